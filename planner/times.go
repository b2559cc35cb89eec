package planner

import (
	"slices"
	"strings"
)

// times refuses statements whose answer moves with the clock because of what
// their columns hold.
func (r *resolver) times() {
	a := r.analysis
	ofDay := r.any(a.Columns, clockOfDay)
	if r.template.postgres {
		switch {
		case ofDay:
			a.Refuse("a time with time zone may depend on today's offset")
		case r.any(a.TimeColumns, clockText):
			a.Refuse("text that is read as a time may say 'now'")
		}
		return
	}
	dated := a.NeedsDate || r.any(a.Columns, clockDate) || a.Wildcard && a.United && r.dated()
	r.template.ofDay = r.template.ofDay || ofDay
	r.template.dated = r.template.dated || dated
	if dated && (ofDay || a.TimeOfDay) {
		a.Refuse("a time of day may be completed with the current date")
	}
}

// dated tells whether any column of the tables has a date.
func (r *resolver) dated() bool {
	return slices.ContainsFunc(r.tables, func(rels []*relation) bool {
		return slices.ContainsFunc(rels, func(rel *relation) bool {
			return slices.ContainsFunc(rel.columns, func(c column) bool { return c.clock == clockDate })
		})
	})
}

// any tells whether one of the named columns is of a kind; a name that is no
// column of these tables may be anything.
func (r *resolver) any(names []string, kind clock) bool {
	for _, name := range names {
		if !r.template.postgres {
			name = strings.ToLower(name)
		}
		found := false
		if slices.ContainsFunc(r.tables, func(rels []*relation) bool {
			return slices.ContainsFunc(rels, func(rel *relation) bool {
				i, ok := rel.byName[name]
				found = found || ok
				return ok && rel.columns[i].clock == kind
			})
		}) {
			return true
		}
		if !found && kind == clockText {
			return true
		}
	}
	return false
}
