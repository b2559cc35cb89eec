package planner

import (
	"context"
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
	// through tells that the value comes from a derived table or its kin: it may
	// be looked for as it is, or be a column of its own type; united that it may
	// also be text.
	through, united bool
	// loose tells that it is compared in one way whatever its digits.
	loose bool
	// format tells that it is no value but a format of STR_TO_DATE.
	format wantedFormat
	// zone are the days on which the column's values are in doubt; nil for none.
	zone *zone
}

// mixedCheck are values that a column is compared with in one list; numbers and
// strings together are compared in two ways too.
type mixedCheck struct {
	slots []int
	// wide tells that they are compared in one way unless one is beyond 2^53.
	wide   bool
	reason string
}

// mysqlHeld says what values a column holds. Digits tells a SET from an ENUM.
func mysqlHeld(dataType, columnType string, precision int) canon.Held {
	unsigned := strings.Contains(columnType, "unsigned")
	switch dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return canon.Held{Kind: canon.HeldNumber, Unsigned: unsigned, Wide: dataType == "bigint"}
	case "decimal":
		return canon.Held{Kind: canon.HeldNumber, Digits: scaleOf(columnType), Unsigned: unsigned, Wide: precision > 15}
	case "float":
		return canon.Held{Kind: canon.HeldSingle, Rounded: strings.Contains(columnType, ",")}
	case "double":
		if scale := scaleOf(columnType); scale > 0 {
			return canon.Held{Kind: canon.HeldNumber, Digits: scale, Unsigned: unsigned, Rounded: true}
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
		return canon.Held{Kind: canon.HeldBits, Digits: precision, Wide: precision > 52}
	case "enum":
		return canon.Held{Kind: canon.HeldName}
	case "set":
		return canon.Held{Kind: canon.HeldName, Digits: 1}
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
	ctx context.Context
	// equal are the columns that the statement compares with each other: what is
	// compared with one the server may look for in the others.
	equal [][]spot
	// extremes tells that MIN or MAX stands here or around: they look even for
	// the ends of ranges in an index.
	extremes bool
	// answers are what the fields of derived tables and their kin were found to
	// be, inner the holders of views.
	answers map[answerField]side
	inner   map[*relation]*holder
	// parts are what computed values are just being judged for.
	parts map[*query.Term]bool
}

// maxDeep bounds how deep computed values stand in one another.
const maxDeep = 8

func (r *resolver) holder(ctx context.Context) *holder {
	return &holder{resolver: r, ctx: ctx, extremes: r.analysis.Extremes || r.within,
		answers: make(map[answerField]side), inner: make(map[*relation]*holder),
		parts: make(map[*query.Term]bool)}
}

// held refuses comparisons that the server may do in two ways whatever the
// values, and notes the values that others depend on.
func (r *resolver) held(ctx context.Context) {
	h := r.holder(ctx)
	if r.analysis.Natural {
		h.natural()
	}
	sides := make([][]side, len(r.analysis.Comparisons))
	for i := range r.analysis.Comparisons {
		c := &r.analysis.Comparisons[i]
		for k := range c.Terms {
			sides[i] = append(sides[i], h.side(&c.Terms[k], true))
		}
		h.columns(c, sides[i])
	}
	for i := range r.analysis.Comparisons {
		h.comparison(&r.analysis.Comparisons[i], sides[i])
	}
	h.ranked()
}
