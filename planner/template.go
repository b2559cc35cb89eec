package planner

import (
	"encoding/binary"
	"slices"

	"freshet/cache"
	"freshet/cache/feed"
	"freshet/planner/query"
	"freshet/planner/scan"
)

const (
	// maxTemplates and maxTemplateBytes bound the templates: most programs
	// have some hundred distinct statements, whatever their literals.
	maxTemplates     = 8 << 10
	maxTemplateBytes = 8 << 20
)

// template is what all texts of one skeleton have in common. It is immutable.
type template struct {
	plan   Plan // without deps
	tables []followed
	// refs are the places where tables are read; each of tables has one at
	// least.
	refs []*reference
	// textOnly tells for each parameter of the skeleton that it is compared
	// with text, so that no string there is read as a time (PostgreSQL).
	textOnly []bool
	postgres bool
	// ofDay tells that a column of type TIME is named: compared with a date, it
	// is completed with the current one (MySQL).
	ofDay bool
	// dated tells that a date is there, which a parameter of type TIME may meet.
	dated   bool
	charset string // Scope.Charset
	// checks and mixed are what values the answer must not be kept for (MySQL).
	checks []heldCheck
	mixed  []mixedCheck
	// slotOf are the slots of the parameters, where the literals are in the tree;
	// nil where the slots are the parameters.
	slotOf []int
}

// followed is a table the answer depends on.
type followed struct {
	name  string
	table *feed.Table
	dep   cache.Dep
}

// table returns the index of a followed table, -1 if it is not among them.
func (t *template) table(table *feed.Table) int {
	return slices.IndexFunc(t.tables, func(f followed) bool { return f.table == table })
}

// templateKey writes what a template depends on: scope, declared types, hints,
// and the skeleton.
func templateKey(dst []byte, scope ScopeID, declared []uint32, d *scan.Digest) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.Hints)))
	for _, h := range d.Hints {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(h)))
		dst = append(dst, h...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Params))
	return statementKey(dst, scope, declared, d.Skeleton)
}

// bindKnown gives a new statement its plan at once if its skeleton is known.
func (p *Planner) bindKnown(st *Statement) {
	opt, ok := p.knownOptions(st.Scope)
	if !ok {
		return
	}
	d := scan.Take(st.Text, opt)
	if d.Broken || d.Exec {
		return
	}
	buffer := keyBuffers.Get().(*[]byte)
	key := templateKey((*buffer)[:0], st.scope, st.declared, &d)
	t, ok := p.templates.get(key)
	*buffer = key
	keyBuffers.Put(buffer)
	if ok && !t.plan.basis.outdated() {
		st.plan.Store(t.bind(p.config.Tracker, &d, st.declared))
	}
}

// bind makes the plan of one text.
func (t *template) bind(f Follower, d *scan.Digest, declared []uint32) *Plan {
	plan := t.plan
	plan.Params = d.Params
	if !plan.Cacheable {
		return &plan
	}
	b := &binding{template: t, follower: f, slots: d.Slots, literals: d.Literals, declared: declared}
	if t.postgres {
		for slot, s := range d.Slots {
			switch {
			case slot < len(t.textOnly) && t.textOnly[slot]:
			case s < 0 && mayBeTime(&d.Literals[^s]):
				plan.refuse("a string that may be read as the current time")
				return &plan
			case s >= 0 && !timeless(declared, int(s)):
				b.times = append(b.times, int(s))
			}
		}
	}
	if reason := b.refused(); reason != "" {
		plan.refuse(reason)
		return &plan
	}
	if t.tables == nil {
		return &plan // the feed is off
	}
	b.fix()
	if !b.proven() {
		plan.Tracking, plan.Explain = t.explain(b.usable)
	}
	plan.deps = b
	return &plan
}

// refuse makes a plan one that is not cacheable.
func (p *Plan) refuse(reason string) {
	p.Cacheable, p.Tracking, p.Reason, p.Explain = false, TrackNone, reason, nil
}

// mayBeTime tells whether a literal, should it be read as a date or time, may
// mean one that moves on.
func mayBeTime(l *scan.Literal) bool {
	return l.Kind == scan.String && (l.Unread || query.TimeWord(l.Value))
}
