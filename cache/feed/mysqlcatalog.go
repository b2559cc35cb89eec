package feed

import (
	"context"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
)

// misfitLimit is how often one table may be found not to fit before it is left
// alone: whoever follows it then reads something else than this catalog.
const misfitLimit = 5

// inspect compares tables with information_schema, and finds the parents whose
// changes reach them through foreign keys.
func (s *mysqlSource) inspect(ctx context.Context, tables []*Table) (verdict, error) {
	var v verdict
	err := s.queries.Use(ctx, func(_ context.Context, c *client.Conn) error {
		for _, tb := range tables {
			key := s.key(tb.Spec.Schema, tb.Spec.Name)
			fits, facts, err := s.fits(c, &tb.Spec)
			if err != nil {
				return err
			}
			if !fits {
				if s.misfits[key]++; s.misfits[key] <= misfitLimit {
					v.bad = append(v.bad, tb)
				}
				continue
			}
			delete(s.misfits, key)
			s.feed.cfg.Tracker.learn(tb, facts)
			if held, err := s.holds(c, &tb.Spec); err != nil {
				return err
			} else if !held {
				continue // never taken up
			}
			if err := s.learnCascades(c, tb, key); err != nil {
				return err
			}
			v.good = append(v.good, tb)
		}
		return nil
	})
	return v, err
}

// imageSQL gives the row image of the log that is followed.
func (s *mysqlSource) imageSQL() string {
	if s.from == nil {
		return "@@GLOBAL.binlog_row_image"
	}
	return quoteMySQL(s.logFact().vars["binlog_row_image"])
}

// fits tells whether the catalog has the columns that the definition has, by
// name, type and order.
func (s *mysqlSource) fits(c *client.Conn, spec *TableSpec) (bool, tableFacts, error) {
	rows, err := mysqlRows(c, "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IFNULL(GENERATION_EXPRESSION, '') <> '', COLUMN_KEY, "+s.imageSQL()+" "+
		"FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+quoteMySQL(spec.Schema)+" AND TABLE_NAME = "+quoteMySQL(spec.Name)+" ORDER BY ORDINAL_POSITION")
	if err != nil || len(rows) != len(spec.Columns) {
		return false, tableFacts{}, err
	}
	facts := mysqlTableFacts(rows)
	for i, col := range spec.Columns {
		row := rows[i]
		if !strings.EqualFold(row[0], col.Name) {
			return false, tableFacts{}, nil
		}
		if col.Type != "" && !strings.EqualFold(col.Type, row[1]) && !strings.EqualFold(col.Type, row[2]) {
			return false, tableFacts{}, nil
		}
	}
	return true, facts, nil
}

// mysqlTableFacts reads what is known of a table's rows from fits' query: what
// the log has of them under the server's row image. Sessions may set another.
func mysqlTableFacts(rows [][]string) tableFacts {
	facts := tableFacts{derived: make([]bool, len(rows)), written: true}
	key := slices.ContainsFunc(rows, func(row []string) bool { return row[4] == "PRI" })
	for i, row := range rows {
		facts.derived[i] = row[3] == "1"
		facts.image = strings.ToUpper(row[5])
		known := true
		switch facts.image {
		case "MINIMAL":
			known = row[4] == "PRI" || !key
		case "NOBLOB":
			known = row[4] == "PRI" || !key || !strings.HasSuffix(row[2], "blob") && !strings.HasSuffix(row[2], "text")
		}
		facts.known = append(facts.known, known)
	}
	facts.mend = "SET GLOBAL binlog_row_image = 'FULL', and binlog_row_image=FULL in the server's configuration"
	return facts
}
