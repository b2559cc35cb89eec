package planner

import (
	"slices"
	"strings"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/cache/feed"
	"freshet/planner/query"
)

// follow registers every table with the feed.
func (r *resolver) follow() {
	tracker := r.planner.config.Tracker
	if tracker == nil {
		return
	}
	for _, rels := range r.tables {
		for _, rel := range rels {
			table, err := rel.follow(tracker)
			if err != nil {
				r.passing(err.Error())
				return
			}
			f := followed{name: rel.String(), table: table, dep: cache.DepOfTable(table.ID)}
			if !slices.ContainsFunc(r.template.tables, func(g followed) bool { return g.table == table }) {
				r.template.tables = append(r.template.tables, f)
			}
		}
	}
}

// key narrows one table to the rows that its ANDed equalities leave.
func (r *resolver) key() {
	k := r.analysis.Key
	if k == nil || len(r.tables[k.Table]) != 1 {
		return
	}
	rel := r.tables[k.Table][0]
	var columns []keyColumn
	var equal []int
	keys := 1
	for _, c := range k.Conditions {
		ordinal, ok := rel.byName[c.Column]
		if !ok || rel.columns[ordinal].compare.Kind == canon.None || slices.Contains(equal, ordinal) {
			continue
		}
		sources, ok := r.sources(c.Sources)
		if !ok || len(sources)*keys > maxKeys {
			continue
		}
		keys *= len(sources)
		at, _ := slices.BinarySearch(equal, ordinal)
		equal = slices.Insert(equal, at, ordinal)
		columns = slices.Insert(columns, at, keyColumn{column: rel.columns[ordinal], sources: sources})
	}
	if len(equal) == 0 {
		return
	}
	r.textOnly(columns)
	r.shape(rel, equal, columns)
}

// shape registers the shape and makes the table depend on it.
func (r *resolver) shape(rel *relation, equal []int, columns []keyColumn) {
	tracker, t := r.planner.config.Tracker, r.template
	if tracker == nil {
		return
	}
	table := rel.table.Load()
	shape := tracker.ShapeOf(table, feed.ShapeSpec{Equal: equal, Range: -1, Reads: r.reads(rel)})
	t.keyed = &keyed{
		name: rel.String(), shape: shape, columns: columns,
		all: cache.DepOfShape(shape.ID), whole: cache.DepOfTable(table.ID),
	}
	for i := range t.tables {
		t.tables[i].byKey = t.tables[i].table == table
	}
}

// sources resolves what a column is compared with; false when a cast's type is
// not one whose comparison is known.
func (r *resolver) sources(list []query.Source) ([]source, bool) {
	out := make([]source, len(list))
	for i, s := range list {
		out[i] = source{slot: s.Param, shared: r.analysis.Params[s.Param] > 1}
		if s.Cast.Name == "" {
			continue
		}
		if out[i].cast = castOID(s.Cast.Name); out[i].cast == 0 {
			return nil, false
		}
	}
	return out, true
}

// castOID is the OID of a built-in type by its catalog name, 0 for those whose
// comparison is not known.
func castOID(name string) uint32 {
	switch name {
	case "int2":
		return canon.OIDInt2
	case "int4":
		return canon.OIDInt4
	case "int8":
		return canon.OIDInt8
	case "numeric":
		return canon.OIDNumeric
	case "text":
		return canon.OIDText
	case "varchar":
		return canon.OIDVarchar
	case "uuid":
		return canon.OIDUUID
	case "bool":
		return canon.OIDBool
	case "date":
		return canon.OIDDate
	case "bytea":
		return canon.OIDBytea
	}
	return 0
}

// textOnly notes the parameters that are compared with text and nothing else.
func (r *resolver) textOnly(columns []keyColumn) {
	if !r.template.postgres {
		return
	}
	only := make([]bool, len(r.analysis.Params))
	for _, c := range columns {
		for _, s := range c.sources {
			textual := s.cast == 0 || canon.PostgresKind(s.cast, true).IsText()
			only[s.slot] = c.column.compare.Kind.IsText() && textual && !s.shared
		}
	}
	r.template.textOnly = only
}

// reads returns the ordinals of the columns that the answer reads; nil for
// all. A generated column is read through others, so it stands for all.
func (r *resolver) reads(rel *relation) []int {
	if r.analysis.Key.Reads == nil {
		return nil
	}
	out := []int{}
	for _, name := range r.analysis.Key.Reads {
		if !r.template.postgres {
			name = strings.ToLower(name)
		}
		i, ok := rel.byName[name]
		if !ok || rel.columns[i].generated {
			return nil
		}
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}
