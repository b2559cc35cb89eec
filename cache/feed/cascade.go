package feed

import (
	"slices"

	"freshet/cache/feed/row"
)

// cascade is a way in which rows of a child change, unlogged, with rows of
// another table: the foreign key through which it begins there. The child may
// lie any number of foreign keys further on; that the first one acts is what it
// takes for the change to get there.
type cascade struct {
	child              nameKey
	onUpdate, onDelete bool
	// columns are the ordinals of the columns that the foreign key refers to, in
	// a table of so many (width); nil: any update may reach the child.
	columns []int
	width   int
}

// bluntAll are the cascades without what depends on their table's definition.
func bluntAll(list []cascade) []cascade {
	out := slices.Clone(list)
	for i := range out {
		out[i].columns = nil
	}
	return out
}

// acts tells whether an update of a row may reach the child: a column that is
// referred to may have changed. What the log leaves out of the new image was not
// written; columns computed from others are in no cascade's list.
func (c *cascade) acts(images *row.Images) bool {
	if c.columns == nil || len(images.New) != c.width || len(images.Old) != c.width {
		return true
	}
	return slices.ContainsFunc(c.columns, func(i int) bool {
		before, after := &images.Old[i], &images.New[i]
		switch after.State {
		case row.Absent, row.Unchanged:
			return false
		case row.Null:
			return before.State != row.Null
		case row.Present:
			return before.State != row.Present || string(before.Raw) != string(after.Raw)
		}
		return true
	})
}

// adoptCascades notes by which tables' changes rows of tb change without a log
// entry, in place of what was noted of it for those tables. They need not be
// followed themselves. It does nothing when tb is gone.
func (t *Tracker) adoptCascades(tb *Table, child nameKey, parents map[nameKey][]cascade) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tb.gone.Load() || len(parents) == 0 {
		return
	}
	next := t.view.copied()
	for parent, list := range parents {
		f := followed{key: parent}
		if e := next.byName[parent]; e != nil {
			f = *e
		}
		f.children = slices.DeleteFunc(slices.Clone(f.children), func(c cascade) bool { return c.child == child })
		f.children = append(f.children, list...)
		next.byName[parent] = &f
	}
	t.replace(next)
}

// childrenOf returns the tables, not gone, that rows of the named ones reach, as
// the view now has it.
func (t *Tracker) childrenOf(parents []nameKey) map[nameKey]*Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[nameKey]*Table)
	for _, parent := range parents {
		if f := t.view.byName[parent]; f != nil {
			for _, c := range f.children {
				if tb := t.tables[c.child]; tb != nil {
					out[c.child] = tb
				}
			}
		}
	}
	return out
}

// bluntTo makes every cascade that ends at a table act on any update: the table
// is gone, and with it whoever would notice that a parent is redefined. It
// changes a view that is not in use yet.
func (v *view) bluntTo(child nameKey) {
	for key, e := range v.byName {
		if slices.ContainsFunc(e.children, func(c cascade) bool { return c.child == child && c.columns != nil }) {
			f := *e
			f.children = slices.Clone(f.children)
			for i := range f.children {
				if f.children[i].child == child {
					f.children[i].columns = nil
				}
			}
			v.byName[key] = &f
		}
	}
}
