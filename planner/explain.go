package planner

import "slices"

// describe says in words what one narrowing of a reference depends on.
func (ref *reference) describe(n narrowing) (Tracking, string) {
	var columns []int
	for i := range ref.equal {
		if n.mask&(1<<i) != 0 {
			columns = append(columns, ref.equal[i].ordinal)
		}
	}
	name := ref.relation.String()
	switch {
	case ref.whole || n == (narrowing{}) && ref.reads == nil:
		return TrackTable, "table " + name
	case n.ranged:
		return TrackRange, "range " + name + " (" + ref.relation.names(append(columns, ref.ranged.ordinal)) + ")"
	case len(columns) > 0:
		return TrackKey, "key " + name + " (" + ref.relation.names(columns) + ")"
	case len(ref.reads) == 0:
		return TrackTable, "table " + name + " (reads no column)"
	}
	return TrackTable, "table " + name + " (reads " + ref.relation.names(ref.reads) + ")"
}

// full is what a run can use of a reference if all its values are proven.
func (ref *reference) full() narrowing {
	return narrowing{mask: 1<<len(ref.equal) - 1, ranged: ref.ranged != nil}
}

// explain says in words what the answer depends on, one line a reference, and
// names the coarsest tracking among them. given tells what a reference's values
// are known to prove.
func (t *template) explain(given func(i int) narrowing) (Tracking, []string) {
	var lines []string
	worst := TrackNone
	for i, ref := range t.refs {
		tracking, line := ref.describe(given(i))
		if worst == TrackNone || tracking < worst {
			worst = tracking
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return worst, lines
}
