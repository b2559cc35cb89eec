package planner

import (
	"slices"
	"strconv"
	"strings"

	"freshet/cache/canon"
	"freshet/planner/query"
)

// heldCheck is a value that MySQL or MariaDB may find in two ways, by an index
// and by scan, unless the column that it is compared with holds it exactly: what
// the answer is then depends on the plan that the server picks, and no change of
// the tables tells when it picks another.
type heldCheck struct {
	slot   int
	held   canon.Held
	use    canon.HeldUse
	reason string
	// unknown tells that the column's type is not known.
	unknown bool
}

// mixedCheck are values that a column is compared with in one list; numbers and
// strings together are compared in two ways too.
type mixedCheck struct {
	slots  []int
	reason string
}

// mysqlHeld says what values a column holds.
func mysqlHeld(dataType, columnType string, precision int) canon.Held {
	unsigned := strings.Contains(columnType, "unsigned")
	switch dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return canon.Held{Kind: canon.HeldNumber, Unsigned: unsigned}
	case "decimal":
		return canon.Held{Kind: canon.HeldNumber, Digits: scaleOf(columnType), Unsigned: unsigned}
	case "float":
		return canon.Held{Kind: canon.HeldSingle}
	case "double":
		if scale := scaleOf(columnType); scale > 0 {
			return canon.Held{Kind: canon.HeldNumber, Digits: scale, Unsigned: unsigned}
		}
		return canon.Held{Kind: canon.HeldDouble}
	case "year":
		return canon.Held{Kind: canon.HeldYear}
	case "date":
		return canon.Held{Kind: canon.HeldDay}
	case "datetime", "timestamp":
		return canon.Held{Kind: canon.HeldMoment, Digits: precision, Stamp: dataType == "timestamp"}
	case "time":
		return canon.Held{Kind: canon.HeldClock, Digits: precision}
	case "bit":
		return canon.Held{Kind: canon.HeldBits}
	case "enum", "set":
		return canon.Held{Kind: canon.HeldName}
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return canon.Held{Kind: canon.HeldText}
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return canon.Held{Kind: canon.HeldBytes}
	}
	return canon.Held{}
}

// scaleOf is D of decimal(M,D).
func scaleOf(columnType string) int {
	_, after, _ := strings.Cut(columnType, ",")
	digits, _, _ := strings.Cut(after, ")")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// spot is a column that a name may mean.
type spot struct {
	rel     *relation
	ordinal int
}

func (s spot) column() *column { return &s.rel.columns[s.ordinal] }

// holder collects what has to be checked of a statement's comparisons.
type holder struct {
	*resolver
	// equal are the columns that the statement compares with each other: what is
	// compared with one the server may look for in the others.
	equal [][]spot
	// extremes tells that MIN or MAX stands here or around: they look even for
	// the ends of ranges in an index.
	extremes bool
}

// held refuses comparisons that the server may do in two ways whatever the
// values, and notes the values that others depend on.
func (r *resolver) held() {
	h := &holder{resolver: r, extremes: r.analysis.Extremes || r.within}
	if r.analysis.Natural {
		h.natural()
	}
	for i := range r.analysis.Comparisons {
		h.columns(&r.analysis.Comparisons[i])
	}
	for i := range r.analysis.Comparisons {
		h.comparison(&r.analysis.Comparisons[i])
	}
}

// meaning is what a name may mean: columns of tables, and, if it is unclear,
// something of an unknown type.
type meaning struct {
	spots   []spot
	unclear bool
}

// means finds what a column's name may mean. It takes no notice of scopes: a
// name that may mean several columns is held to all of them.
func (h *holder) means(c query.Column, depth int) meaning {
	var m meaning
	table := c.Table != "" && slices.ContainsFunc(h.analysis.Nodes, func(n query.Node) bool { return goesBy(n, c.Table) && n.Table >= 0 })
	for i, rels := range h.tables {
		if table && !slices.ContainsFunc(h.analysis.Nodes, func(n query.Node) bool { return goesBy(n, c.Table) && n.Table == i }) {
			continue
		}
		for _, rel := range rels {
			if ordinal, ok := rel.byName[strings.ToLower(c.Name)]; ok {
				m.spots = append(m.spots, spot{rel, ordinal})
			}
		}
	}
	if table && len(m.spots) > 0 {
		return m
	}
	found := len(m.spots) > 0
	for i := range h.analysis.Renamed {
		switch a := &h.analysis.Renamed[i]; {
		case !strings.EqualFold(a.Name, c.Name):
		case a.Term.Kind == query.TermColumn && depth < 8:
			inner := h.means(a.Term.Column, depth+1)
			m.spots = append(m.spots, inner.spots...)
			m.unclear = m.unclear || inner.unclear
			found = true
		default:
			m.unclear = true
		}
	}
	m.unclear = m.unclear || !found
	return m
}

func goesBy(n query.Node, name string) bool {
	return n.Kind == query.Leaf && strings.EqualFold(n.Name, name)
}
