package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// placeholder is the n-th parameter in the dialect's spelling.
func (r *rig) placeholder(n int) string {
	if r.postgres() {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}

// forms are the ways in which one query may come: as text and prepared.
func (r *rig) forms(query string, arg any) []struct {
	name, text string
	args       []any
} {
	literal := fmt.Sprint(arg)
	if s, ok := arg.(string); ok {
		literal = "'" + s + "'"
	}
	return []struct {
		name, text string
		args       []any
	}{
		{"text", strings.ReplaceAll(query, "$1", literal), nil},
		{"prepared", strings.ReplaceAll(query, "$1", r.placeholder(1)), []any{arg}},
	}
}

// A repeated read is a hit; a change made by someone else is seen; a change of
// another row leaves the hit.
func TestChangeByAnotherClient(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, v VARCHAR(20), n INT", "1,'a',10", "2,'b',20", "3,'c',30")
		for _, f := range r.forms("SELECT v FROM "+tb+" WHERE id = $1", 1) {
			t.Run(f.name, func(t *testing.T) {
				c := conn(t, r.through)
				hits(t, c, f.text, f.args...)
				mustExec(t, r.direct, "UPDATE "+tb+" SET v = 'x"+f.name+"' WHERE id = 1")
				r.agrees(t, c, f.text, f.args...)
				hits(t, c, f.text, f.args...)
				r.agrees(t, c, f.text, f.args...)

				// what must not invalidate: another row; once a later change to
				// this table is seen, this one has been too
				watch := conn(t, r.through)
				other := strings.Replace("SELECT v FROM "+tb+" WHERE id = $1", "$1", "2", 1)
				hits(t, watch, other)
				mustExec(t, r.direct, "UPDATE "+tb+" SET v = 'y"+f.name+"' WHERE id = 2")
				r.agrees(t, watch, other)
				ask(c, f.text, f.args...)
				if d, reason := where(t, c); !strings.HasPrefix(d, "cache") {
					t.Errorf("a change of row 2 cost the answer for row 1: %s (%s)", d, reason)
				}
			})
		}
	})
}

// An answer without rows is an answer: the row that appears must be seen. So
// must one that moves to the key, and one that leaves it.
func TestRowsThatComeAndGo(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, k INT", "1,5")
		q := "SELECT id FROM " + tb + " WHERE k = 7 ORDER BY id"
		c := conn(t, r.through)
		for _, change := range []string{
			"INSERT INTO " + tb + " VALUES (2,7)",
			"UPDATE " + tb + " SET k = 7 WHERE id = 1",
			"UPDATE " + tb + " SET k = 8 WHERE id = 2",
			"UPDATE " + tb + " SET id = 9 WHERE id = 1",
			"DELETE FROM " + tb + " WHERE k = 7",
		} {
			hits(t, c, q)
			mustExec(t, r.direct, change)
			r.agrees(t, c, q)
		}
	})
}

// What depends on the whole table sees every change.
func TestWholeTable(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		a := r.table(t, "id INT PRIMARY KEY, n INT", "1,10", "2,20")
		b := r.table(t, "id INT PRIMARY KEY, a_id INT", "1,1", "2,1", "3,2")
		queries := []string{
			"SELECT SUM(n) AS s FROM " + a,
			"SELECT n FROM " + a + " WHERE n > 15 ORDER BY n LIMIT 1",
			"SELECT x.n, COUNT(*) AS c FROM " + a + " x JOIN " + b + " y ON y.a_id = x.id GROUP BY x.n ORDER BY x.n",
			"SELECT n FROM " + a + " WHERE EXISTS (SELECT 1 FROM " + b + " WHERE a_id = " + a + ".id) ORDER BY n",
			"WITH w AS (SELECT a_id FROM " + b + ") SELECT COUNT(*) AS c FROM w",
			"SELECT id FROM " + a + " UNION ALL SELECT a_id FROM " + b + " ORDER BY 1",
		}
		c := conn(t, r.through)
		for i, change := range []string{
			"INSERT INTO " + a + " VALUES (3,16)",
			"UPDATE " + b + " SET a_id = 3 WHERE id = 2",
			"DELETE FROM " + a + " WHERE id = 2",
			"INSERT INTO " + b + " VALUES (9,3)",
		} {
			for _, q := range queries {
				r.agrees(t, c, q)
			}
			hits(t, c, queries[i])
			mustExec(t, r.direct, change)
			for _, q := range queries {
				r.agrees(t, c, q)
			}
		}
	})
}

// A session reads what it wrote, at once, whatever the feed has seen.
func TestReadYourWrites(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,0")
		c := conn(t, r.through)
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		hits(t, c, q)
		for i := 1; i <= 300; i++ {
			mustExec(t, c, fmt.Sprintf("UPDATE %s SET n = %d WHERE id = 1", tb, i))
			for range 3 {
				var n int
				if err := c.QueryRowContext(context.Background(), q).Scan(&n); err != nil {
					t.Fatal(err)
				}
				if n != i {
					t.Fatalf("wrote %d, read %d", i, n)
				}
			}
		}
	})
}

// What is not committed is nobody else's, and what is rolled back nobody's.
func TestUncommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,0")
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		reader := conn(t, r.through)
		hits(t, reader, q)
		ctx := context.Background()
		tx, err := r.through.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback() //nolint:errcheck // it is rolled back below
		mustExec(t, tx, "UPDATE "+tb+" SET n = 1 WHERE id = 1")
		var n int
		if err := tx.QueryRowContext(ctx, q).Scan(&n); err != nil || n != 1 {
			t.Fatalf("own uncommitted write: %d, %v", n, err)
		}
		if err := reader.QueryRowContext(ctx, q).Scan(&n); err != nil || n != 0 {
			t.Fatalf("another's uncommitted write: %d, %v", n, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		hits(t, reader, q)
		r.agrees(t, reader, q)
	})
}

// DDL and TRUNCATE invalidate answers and plans; the same prepared statement
// then has its new columns.
func TestSchemaChanges(t *testing.T) {
	everywhere(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10", "2,20")
		c := conn(t, r.through)
		for _, change := range []string{
			"ALTER TABLE " + tb + " ADD COLUMN extra INT DEFAULT 5",
			"ALTER TABLE " + tb + " DROP COLUMN extra",
			"TRUNCATE TABLE " + tb,
			"DROP TABLE " + tb,
			"CREATE TABLE " + tb + " (id INT PRIMARY KEY, other INT)",
			"INSERT INTO " + tb + " VALUES (4,40)",
		} {
			text, star := "SELECT COUNT(*) AS c FROM "+tb, "SELECT * FROM "+tb+" WHERE id = 4"
			if !strings.HasPrefix(change, "CREATE") {
				hits(t, c, text)
				hits(t, c, star)
			}
			mustExec(t, r.direct, change)
			r.agrees(t, c, text)
			r.agrees(t, c, star)
		}
	})
}
