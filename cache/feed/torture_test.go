package feed

import (
	"strings"
	"testing"

	"freshet/bench/upstream"
)

// TestManyStatements runs what the log has its own ways for, and looks at
// whether the stream bears it and the table is marked.
func TestManyStatements(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP TABLE IF EXISTS many_memory, many_isam, many_copy, many_log, many_json", "DROP PROCEDURE IF EXISTS many_proc")
		r.fresh("many", "id INT PRIMARY KEY, a INT, b INT")
		r.exec("CREATE TABLE many_log (id INT AUTO_INCREMENT PRIMARY KEY, x INT)",
			"CREATE TRIGGER many_trigger AFTER INSERT ON many FOR EACH ROW INSERT INTO many_log (x) VALUES (NEW.a)",
			"CREATE PROCEDURE many_proc() BEGIN INSERT INTO many VALUES (50, 50, 50); UPDATE many SET a = 51 WHERE id = 50; END",
			"CREATE TABLE many_isam (id INT PRIMARY KEY, a INT, b INT) ENGINE=MyISAM",
			"CREATE TABLE many_memory (id INT PRIMARY KEY, a INT, b INT) ENGINE=MEMORY",
			"CREATE TABLE many_json (id INT PRIMARY KEY, a INT, b JSON)",
			"INSERT INTO many_json VALUES (1, 1, '{\"x\": 1, \"y\": [1,2,3]}')")
		steps := []struct{ table, statement string }{
			{"many", "INSERT INTO many VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)"},
			{"many_log", "INSERT INTO many VALUES (4, 4, 4)"},
			{"many", "REPLACE INTO many VALUES (1, 7, 7)"},
			{"many", "INSERT INTO many VALUES (1, 8, 8) ON DUPLICATE KEY UPDATE a = 9"},
			{"many", "CALL many_proc()"},
			{"many", "UPDATE many m JOIN many_log l ON l.x = m.a SET m.b = 5, l.x = l.x + 1"},
			{"many_log", "DELETE m, l FROM many m JOIN many_log l ON l.id = m.id WHERE m.id > 2"},
			{"many", "DROP TRIGGER many_trigger"},
			{"many", "INSERT INTO many SELECT id + 100, x, x FROM many_log"},
			{"many_isam", "INSERT INTO many_isam VALUES (1, 1, 1)"},
			{"many_isam", "UPDATE many_isam SET a = 2"},
			{"many_memory", "INSERT INTO many_memory VALUES (1, 1, 1)"},
			{"many_memory", "DELETE FROM many_memory"},
			{"many_json", "UPDATE many_json SET b = JSON_SET(b, '$.x', 2)"},
			{"many", "DELETE FROM many"},
		}
		for _, step := range steps {
			w := r.follow(step.table, intKinds)
			after := r.now()
			r.exec(step.statement)
			r.settle()
			w.wantsTable(after, true)
			if w.Gone() != strings.HasPrefix(step.statement, "DROP") {
				t.Errorf("%s: gone", step.statement)
			}
		}
		w := r.follow("many", intKinds)
		sh := w.shape("id", "")
		flushes := r.store.flushed()
		after := r.now()
		r.exec("CREATE TABLE many_copy AS SELECT * FROM many_log", "INSERT INTO many VALUES (1, 1, 1)")
		r.session("CREATE TEMPORARY TABLE many_tmp (id INT)", "INSERT INTO many_tmp VALUES (1)", "INSERT INTO many SELECT id + 1, id, id FROM many_tmp",
			"DROP TEMPORARY TABLE many_tmp")
		r.session("CREATE TEMPORARY TABLE many (id INT)", "INSERT INTO many VALUES (77)", "DROP TEMPORARY TABLE many")
		r.session("BEGIN", "INSERT INTO many_isam VALUES (9, 9, 9)", "INSERT INTO many VALUES (9, 9, 9)", "ROLLBACK")
		r.exec("ANALYZE TABLE many", "OPTIMIZE TABLE many_isam", "FLUSH TABLES", "FLUSH BINARY LOGS")
		r.settle()
		r.settle()
		sh.wantsKey(after, true, "1")
		sh.wantsKey(after, true, "2")
		sh.wantsKey(after, false, "77")
		sh.wantsKey(after, false, "9")
		if st := r.feed.Status(); st.LastError != "" {
			t.Errorf("the stream failed: %s", st.LastError)
		}
		if r.store.flushed() != flushes || w.Gone() {
			t.Error("statements that name other tables, or none, were taken for more")
		}
		if s.Kind == upstream.MySQL {
			j := r.follow("many_json", intKinds)
			byID := j.shape("id", "b")
			after = r.now()
			r.session("SET SESSION binlog_row_value_options = PARTIAL_JSON", "UPDATE many_json SET b = JSON_SET(b, '$.x', 3)")
			r.settle()
			byID.wantsKey(after, true, "1")
			r.session("SET gtid_next = 'AUTOMATIC:tagged'", "UPDATE many_json SET a = 5")
			r.settle()
			r.session("SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:17'", "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")
			r.settle()
		}
		// Gaps in visible would show here.
		eventually(t, "visible is applied", func() bool { return r.store.Visible() == r.store.Applied() })
	})
}

// TestTables of two databases with one name are told apart.
func TestOtherDatabase(t *testing.T) {
	kinds(t, mysqlKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.exec("DROP DATABASE IF EXISTS otherdb", "CREATE DATABASE otherdb", "CREATE TABLE otherdb.twin (id INT PRIMARY KEY)")
		r.fresh("twin", "id INT PRIMARY KEY")
		w := r.follow("twin", intKinds)
		after := r.now()
		r.exec("INSERT INTO otherdb.twin VALUES (1)", "TRUNCATE TABLE otherdb.twin", "ALTER TABLE otherdb.twin ADD x INT")
		r.settle()
		w.wantsTable(after, false)
		r.session("USE otherdb", "ALTER TABLE twin ADD y INT")
		r.settle()
		w.wantsTable(after, false)
		r.exec("DROP DATABASE otherdb")
	})
}

// TestUnpublished takes the table out of the publication behind the feed's
// back: changes between that and the next probe are in no stream.
func TestUnpublished(t *testing.T) {
	kinds(t, postgresKinds, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		r.fresh("unpublished", "id INT PRIMARY KEY, a INT, b INT")
		w := r.follow("unpublished", intKinds)
		after := r.now()
		r.exec("ALTER PUBLICATION freshet DROP TABLE unpublished", "INSERT INTO unpublished VALUES (1, 1, 1)")
		r.settle()
		w.wantsTable(after, true)
		if !w.Gone() {
			t.Error("a table that is not published is still followed")
		}
		sh := r.follow("unpublished", intKinds).shape("id", "")
		after = r.now()
		r.exec("UPDATE unpublished SET a = 2")
		r.settle()
		sh.wantsKey(after, true, "1")
		r.exec("DROP PUBLICATION freshet")
		r.settle()
		r.exec("UPDATE unpublished SET a = 3")
		sh = r.follow("unpublished", intKinds).shape("id", "")
		after = r.now()
		r.exec("UPDATE unpublished SET a = 4")
		r.settle()
		sh.wantsKey(after, true, "1")
		if st := r.feed.Status(); st.LastError != "" && !strings.Contains(st.LastError, "publication") {
			t.Logf("last error: %s", st.LastError)
		}
	})
}
