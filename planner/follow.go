package planner

import (
	"slices"
	"strings"

	"freshet/cache"
	"freshet/cache/canon"
	"freshet/planner/narrow"
	"freshet/planner/query"
)

// follow registers every table with the feed. It returns false when one cannot
// be followed.
func (r *resolver) follow() bool {
	tracker := r.planner.config.Tracker
	if tracker == nil {
		return true
	}
	for _, rels := range r.tables {
		for _, rel := range rels {
			if v := r.views[rel]; v != nil {
				if !v.follow() {
					r.passing(v.analysis.Reason)
					return false
				}
				continue
			}
			table, err := rel.follow(tracker)
			if err != nil {
				r.passing(err.Error())
				return false
			}
			if r.template.table(table) < 0 {
				f := followed{name: rel.String(), table: table, dep: cache.DepOfTable(table.ID)}
				r.template.tables = append(r.template.tables, f)
			}
		}
	}
	return true
}

// refer works out what each place where a table is read depends on. A table of
// which no place is known counts whole.
func (r *resolver) refer() {
	places, _ := narrow.References(narrow.Input{
		Analysis: r.analysis, Columns: r.columns(), Fold: !r.template.postgres, Alike: r.alike,
	})
	met := make([]bool, len(r.tables))
	if len(places) <= maxReferences {
		for i := range places {
			// A name that may stand for several tables makes all of them count;
			// a view stands for what it reads.
			if p := &places[i]; r.settled(p.Table) {
				r.reference(p)
				met[p.Table] = true
			}
		}
	}
	for i := range r.tables {
		if !met[i] {
			r.whole(i)
		}
	}
}

// settled tells whether a name stands for one table.
func (r *resolver) settled(table int) bool {
	return len(r.tables[table]) == 1 && r.tables[table][0].definition == ""
}

// columns are the columns of each table by name, nil for what is not settled.
func (r *resolver) columns() []map[string]int {
	out := make([]map[string]int, len(r.tables))
	for i, rels := range r.tables {
		if r.settled(i) {
			out[i] = rels[0].byName
		}
	}
	return out
}

// alike tells whether two columns are compared by the same rules, so that
// equality carries over from one to the other. What the kinds fold together,
// the database may hold apart, but never the other way round.
func (r *resolver) alike(a, b narrow.Ref) bool {
	x, y := r.column(a), r.column(b)
	return x.compare.Kind != canon.None && x.compare.Kind == y.compare.Kind && x.charset == y.charset && x.collation == y.collation
}

func (r *resolver) column(c narrow.Ref) *column { return &r.tables[c.Table][0].columns[c.Ordinal] }

// whole makes an answer depend on all of a table, or on all the tables that a
// name may stand for, or on all that a view reads.
func (r *resolver) whole(table int) {
	for _, rel := range r.tables[table] {
		if v := r.views[rel]; v != nil {
			v.refer()
			continue
		}
		ref := r.place(rel)
		ref.whole = true
		r.template.add(ref)
	}
}

// place makes a reference to a table that nothing narrows yet.
func (r *resolver) place(rel *relation) *reference {
	ref := &reference{relation: rel, table: -1}
	if table := rel.table.Load(); table != nil {
		ref.table, ref.shapes = r.template.table(table), r.planner.shapes.get(table)
	}
	return ref
}

// reference keeps of one place what this server's rules of comparison prove.
func (r *resolver) reference(p *narrow.Reference) {
	rel := r.tables[p.Table][0]
	ref := r.place(rel)
	ref.reads = r.reads(rel, p)
	ref.equal = r.equalities(p)
	ref.ranged = r.ranged(p)
	ref.whole = ref.reads == nil && len(ref.equal) == 0 && ref.ranged == nil
	r.template.add(ref)
}

// add adds a reference, unless one that narrows as little is there already.
func (t *template) add(ref *reference) {
	if len(ref.equal) == 0 && ref.ranged == nil && slices.ContainsFunc(t.refs, func(o *reference) bool {
		return o.relation == ref.relation && len(o.equal) == 0 && o.ranged == nil && o.whole == ref.whole && slices.Equal(o.reads, ref.reads)
	}) {
		return
	}
	t.refs = append(t.refs, ref)
}

// equalities keeps the compared columns whose equality is proven, those with
// the fewest values first should all together be too many; they come back in
// the order of the table.
func (r *resolver) equalities(p *narrow.Reference) []keyColumn {
	list := slices.Clone(p.Equal)
	slices.SortStableFunc(list, func(a, b narrow.Equal) int { return len(a.Sources) - len(b.Sources) })
	var out []keyColumn
	keys := 1
	for _, e := range list {
		of := r.column(e.Of)
		if of.compare.Kind == canon.None || len(out) == maxColumns || len(e.Sources)*keys > maxKeys {
			continue
		}
		sources, ok := r.sources(e.Sources)
		if !ok {
			continue
		}
		keys *= len(sources)
		out = append(out, keyColumn{ordinal: e.Ordinal, of: *of, sources: sources})
	}
	slices.SortFunc(out, func(a, b keyColumn) int { return a.ordinal - b.ordinal })
	return out
}

// ranged keeps the first range over a column whose values are numbered.
func (r *resolver) ranged(p *narrow.Reference) *keyRange {
	for _, g := range p.Ranges {
		low, high := r.column(g.Low.Of), r.column(g.High.Of)
		sources, ok := r.sources([]query.Source{g.Low.Source, g.High.Source})
		if ok && numbered(low.compare.Kind) && numbered(high.compare.Kind) {
			return &keyRange{ordinal: g.Ordinal, between: g.Between, low: *low, high: *high, sources: [2]source{sources[0], sources[1]}}
		}
	}
	return nil
}

// numbered tells whether the values of a kind have ordinals.
func numbered(k canon.Kind) bool {
	switch k {
	case canon.Int, canon.Date, canon.DateTime, canon.Instant:
		return true
	}
	return false
}

// sources resolves what a column is compared with; false when a cast's type is
// not one whose comparison is known.
func (r *resolver) sources(list []query.Source) ([]source, bool) {
	out := make([]source, len(list))
	for i, s := range list {
		out[i] = source{slot: s.Param, array: s.Array, shared: r.analysis.Params[s.Param] > 1}
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
	case "timestamp":
		return canon.OIDTimestamp
	case "timestamptz":
		return canon.OIDTimestamptz
	}
	return 0
}

// textOnly notes the parameters that are compared with text and nothing else.
func (r *resolver) textOnly() {
	if !r.template.postgres {
		return
	}
	only := make([]bool, len(r.analysis.Params))
	for _, ref := range r.template.refs {
		for _, c := range ref.equal {
			for _, s := range c.sources {
				textual := s.cast == 0 || canon.PostgresKind(s.cast, true).IsText()
				only[s.slot] = only[s.slot] || c.of.compare.Kind.IsText() && textual && !s.shared
			}
		}
	}
	r.template.textOnly = only
}

// reads returns the ordinals of the columns that are read, nil for all. A
// generated column is read through others, so it stands for all.
func (r *resolver) reads(rel *relation, p *narrow.Reference) []int {
	read := p.Reads
	if columns, ok := r.policed[rel]; ok {
		read = slices.Concat(read, columns)
		slices.Sort(read)
		read = slices.Compact(read)
	}
	if p.All || slices.ContainsFunc(read, func(i int) bool { return rel.columns[i].generated }) {
		return nil
	}
	return read
}

// names lists some columns of a relation.
func (r *relation) names(ordinals []int) string {
	out := make([]string, len(ordinals))
	for i, ordinal := range ordinals {
		out[i] = r.columns[ordinal].name
	}
	return strings.Join(out, ", ")
}
