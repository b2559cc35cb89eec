package planner

import (
	"math"
	"strconv"
	"strings"

	"freshet/cache/canon"
	"freshet/planner/scan"
)

// literal tells whether a literal passes.
func (c *heldCheck) literal(text []byte, number bool) bool {
	switch {
	case c.format != formatAny:
		return !number && c.format.gives(string(text))
	case c.unknown:
		return !canon.Finer(text)
	case c.through && !c.asColumn(kindOfLiteral(text, number)):
		return false
	case c.zone != nil && !c.zone.sureOfText(text):
		return false
	case c.takesAll():
		return true
	case number:
		return c.held.HoldsNumber(text, c.use)
	}
	return c.held.HoldsText(text, c.use)
}

// double tells whether a value that is a double passes as such: beyond 2^53 it
// stands for several whole numbers, of which an index finds one.
func (c *heldCheck) double(text string) bool {
	const exact = 1 << 53
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && !(c.held.Wide && math.Abs(v) >= exact) && (!c.through || c.asColumn(canon.Held{Kind: canon.HeldDouble}))
}

// asColumn tells whether a value passes as a column of its own type, which a
// derived table that is not merged makes of it.
func (c *heldCheck) asColumn(of canon.Held) bool {
	return alike(c.held, of, false, c.loose) && (!c.united || alike(c.held, canon.Held{Kind: canon.HeldText}, false, c.loose))
}

// kindOfLiteral is the type that a select list gives a literal.
func kindOfLiteral(text []byte, number bool) canon.Held {
	if !number {
		return canon.Held{Kind: canon.HeldText}
	}
	_, fraction, _ := strings.Cut(string(text), ".")
	return canon.Held{Kind: canon.HeldNumber, Digits: len(fraction), Wide: len(text) > 15}
}

// kindOfParam is the type that a select list gives a parameter.
func kindOfParam(p *Param) canon.Held {
	switch {
	case canon.ParamClassOf(p.Type) == canon.ClassString:
		return canon.Held{Kind: canon.HeldText}
	case canon.IsMySQLTime(p.Type):
		return canon.Held{Kind: canon.HeldClock, Digits: 6}
	case canon.IsMySQLFloat(p.Type):
		return canon.Held{Kind: canon.HeldDouble}
	case canon.ParamClassOf(p.Type) == canon.ClassNumber:
		return canon.Held{Kind: canon.HeldNumber, Wide: true}
	case canon.ParamClassOf(p.Type) == canon.ClassDate:
		return canon.Held{Kind: canon.HeldMoment, Digits: 6}
	}
	return canon.Held{}
}

// scanned tells whether a literal that the scanner took out passes.
func (c *heldCheck) scanned(l *scan.Literal) bool {
	switch {
	case l.Unread:
		return false
	case l.Kind == scan.String:
		return c.literal([]byte(l.Value), false)
	case l.Kind == scan.Float:
		v, err := strconv.ParseFloat(string(signed(l)), 64)
		return err == nil && c.double(string(signed(l))) && c.literal(strconv.AppendFloat(nil, v, 'f', -1, 64), true)
	}
	return c.literal(signed(l), true)
}

// param tells whether a parameter's value passes.
func (c *heldCheck) param(p *Param) bool {
	switch {
	case c.format != formatAny:
		return false // the server did not know it when it settled the type
	case p.Null:
		return true
	case c.unknown:
		return canon.ParamClassOf(p.Type) != canon.ClassString || !canon.Finer(p.Data)
	case c.through && !c.asColumn(kindOfParam(p)):
		return false
	case c.zone != nil && !c.zone.sureOfParam(p):
		return false
	case canon.IsMySQLFloat(p.Type) && c.held.Wide && !c.double(canon.FloatText(p.Type, p.Data)):
		return false
	case c.takesAll():
		return true
	}
	return c.held.HoldsParam(p.Type, p.Data, c.use)
}

// refused says why the text's literals forbid keeping its answers, "" if they do
// not, and notes what depends on parameters.
func (b *binding) refused() string {
	for i := range b.checks {
		c := &b.checks[i]
		switch {
		case c.slot < 0 || c.slot >= len(b.slots):
			return c.reason
		case b.slots[c.slot] >= 0:
			b.held = true
		case !c.scanned(&b.literals[^b.slots[c.slot]]):
			return c.reason
		}
	}
	for i := range b.mixed {
		m := &b.mixed[i]
		open := false
		for _, slot := range m.slots {
			open = open || slot >= 0 && slot < len(b.slots) && b.slots[slot] >= 0
		}
		if b.held = b.held || open; !open && b.mixes(m, nil) {
			return m.reason
		}
	}
	return ""
}

// unheld says why a run's parameters forbid keeping its answer, "" if they do not.
func (b *binding) unheld(params []Param) string {
	if !b.held {
		return ""
	}
	for i := range b.checks {
		c := &b.checks[i]
		slot := b.slots[c.slot]
		if slot >= 0 && (int(slot) >= len(params) || !c.param(&params[slot])) {
			return c.reason
		}
	}
	for i := range b.mixed {
		if b.mixes(&b.mixed[i], params) {
			return b.mixed[i].reason
		}
	}
	return ""
}

// mixes tells whether a list has numbers beside other values.
func (b *binding) mixes(m *mixedCheck, params []Param) bool {
	numbers, others, large := false, false, !m.wide
	for _, i := range m.slots {
		large = large || b.large(i, params)
		class := b.classOf(&source{slot: i}, params)
		numbers = numbers || class == canon.ClassNumber
		others = others || class != canon.ClassNumber
	}
	return numbers && others && large
}

// large tells whether a value may have more digits than a double.
func (b *binding) large(slot int, params []Param) bool {
	const digits = 15
	if slot < 0 || slot >= len(b.slots) {
		return true
	}
	i := b.slots[slot]
	if i < 0 {
		return b.literals[^i].Unread || len(b.literals[^i].Value) > digits
	}
	if int(i) >= len(params) || params[i].Null {
		return false
	}
	p := &params[i]
	if canon.ParamClassOf(p.Type) == canon.ClassString {
		return len(p.Data) > digits
	}
	text, ok := canon.WholeText(p.Type, p.Data)
	return !ok || len(text) > digits
}
