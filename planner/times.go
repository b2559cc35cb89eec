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
	if len(a.Formats) > 0 {
		r.formats(ofDay || a.TimeOfDay, dated)
		dated = dated || !ofDay && !a.TimeOfDay
	}
	r.template.ofDay = r.template.ofDay || ofDay
	r.template.dated = r.template.dated || dated
	if dated && (ofDay || a.TimeOfDay) {
		a.Refuse("a time of day may be completed with the current date")
	}
}

// formats holds what STR_TO_DATE gives to one side: days where dates are about, or
// nothing is, and times of day beside those.
func (r *resolver) formats(ofDay, dated bool) {
	c := heldCheck{format: formatOfDay, reason: "STR_TO_DATE may give a day beside a time of day, or the reverse, which is completed with the current date"}
	if !ofDay || dated {
		c.format = formatDated
	}
	h := &holder{resolver: r}
	for i := range r.analysis.Formats {
		h.check(c, &r.analysis.Formats[i])
	}
}

// wantedFormat is what a format of STR_TO_DATE has to be.
type wantedFormat uint8

const (
	formatAny wantedFormat = iota
	// formatDated has a part of a date: what it reads is a day or a moment.
	formatDated
	// formatOfDay has nothing but parts of a time: what it reads is a TIME.
	formatOfDay
)

// gives tells whether a format is as wanted (MySQL manual, "Date and Time
// Functions", DATE_FORMAT's specifiers).
func (w wantedFormat) gives(format string) bool {
	dated, other := false, false
	for i := 0; i+1 < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		i++
		dated = dated || strings.IndexByte("YymcMb", format[i]) >= 0
		other = other || strings.IndexByte("HhIiklrSsTpf", format[i]) < 0
	}
	if w == formatDated {
		return dated
	}
	return !other && strings.Contains(format, "%")
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
