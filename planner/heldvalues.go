package planner

import (
	"strconv"

	"freshet/cache/canon"
	"freshet/planner/scan"
)

// literal tells whether a literal passes.
func (c *heldCheck) literal(text []byte, number bool) bool {
	switch {
	case c.unknown:
		return !canon.Finer(text)
	case number:
		return c.held.HoldsNumber(text, c.use)
	}
	return c.held.HoldsText(text, c.use)
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
		return err == nil && c.literal(strconv.AppendFloat(nil, v, 'f', -1, 64), true)
	}
	return c.literal(signed(l), true)
}

// param tells whether a parameter's value passes.
func (c *heldCheck) param(p *Param) bool {
	switch {
	case p.Null:
		return true
	case c.unknown:
		return canon.ParamClassOf(p.Type) != canon.ClassString || !canon.Finer(p.Data)
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
	numbers, others := false, false
	for _, i := range m.slots {
		class := b.classOf(&source{slot: i}, params)
		numbers = numbers || class == canon.ClassNumber
		others = others || class != canon.ClassNumber
	}
	return numbers && others
}
