package proxy_test

import (
	"database/sql"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// inMySQL runs one body on MariaDB and MySQL.
func inMySQL(t *testing.T, body func(t *testing.T, r *rig)) {
	t.Helper()
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			body(t, newRig(t, upstream.Need(t, kind), proxy.Config{Loops: 1, MaxLinks: 3}))
		})
	}
}

// What a session does where the server does not tell must reach neither the
// cache nor, by a link that changes hands, another session.
func TestHiddenStateStaysWithItsSession(t *testing.T) {
	inMySQL(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, a VARCHAR(9), ts TIMESTAMP", "1,'real','2024-05-06 07:08:09'")
		mustExec(t, r.direct, "CREATE PROCEDURE p_"+tb+"() CREATE TEMPORARY TABLE "+tb+" SELECT 1 id, 'tmp' a, NOW() ts")
		mustExec(t, r.direct, "CREATE FUNCTION f_"+tb+"() RETURNS INT DETERMINISTIC BEGIN SET @@time_zone = '+09:00'; RETURN 1; END")
		t.Cleanup(func() {
			mustExec(t, r.direct, "DROP PROCEDURE p_"+tb)
			mustExec(t, r.direct, "DROP FUNCTION f_"+tb)
		})
		read := "SELECT a, ts FROM " + tb + " WHERE id = 1"
		want := ask(r.direct, read)
		hiding := []string{
			"CALL p_" + tb + "()",
			"PREPARE s FROM 'CREATE TEMPORARY TABLE " + tb + " SELECT 1 id, ''tmp'' a, NOW() ts'; EXECUTE s",
			"SELECT f_" + tb + "()",
			"SET @a = 1, @@time_zone = '+09:00'",
			"SET @@sql_select_limit = (SELECT 0 + MIN(id) - 1 FROM " + tb + ")",
		}
		if r.server.Kind == upstream.MariaDB {
			hiding = append(hiding, "EXECUTE IMMEDIATE 'CREATE TEMPORARY TABLE "+tb+" SELECT 1 id, ''tmp'' a, NOW() ts'",
				"BEGIN NOT ATOMIC CREATE TEMPORARY TABLE "+tb+" SELECT 1 id, 'tmp' a, NOW() ts; END")
		}
		for _, text := range hiding {
			hider := r.open(t, "multiStatements=true")
			c, own := conn(t, hider), conn(t, r.ownMulti(t))
			for _, part := range []string{text, read} {
				if got, want := ask(c, part), ask(own, part); !strings.Contains(part, "f_") && strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") && !strings.Contains(got, "tmp") {
					t.Errorf("%s: the session itself: got %s want %s", text, got, want)
				}
			}
			c.Close()
			hider.Close()
			for range 4 {
				other := r.open(t, "")
				for range 2 {
					if got := ask(other, read); got != want {
						t.Errorf("another session after %s: got %s want %s", text, got, want)
					}
				}
				other.Close()
			}
		}
	})
}

// ownMulti is a direct pool that takes several statements in one text.
func (r *rig) ownMulti(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", strings.Replace(r.dsn("multiStatements=true"), r.listen, r.server.Address(), 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Changes that the session keeps out of the log are seen all the same.
func TestUnloggedWrites(t *testing.T) {
	inMySQL(t, func(t *testing.T, r *rig) {
		tb := r.table(t, "id INT PRIMARY KEY, n INT", "1,10")
		q := "SELECT n FROM " + tb + " WHERE id = 1"
		reader, writer := conn(t, r.through), conn(t, r.through)
		hits(t, reader, q)
		mustExec(t, writer, "SET sql_log_bin = 0")
		mustExec(t, writer, "UPDATE "+tb+" SET n = 11 WHERE id = 1")
		r.agrees(t, reader, q)
		r.agrees(t, writer, q)
	})
}

// The connection id that a session has asked for stays its own.
func TestConnectionIDStays(t *testing.T) {
	inMySQL(t, func(t *testing.T, r *rig) {
		c := conn(t, r.through)
		id := ask(c, "SELECT CONNECTION_ID() AS id")
		for range 20 {
			ask(r.through, "SELECT 1")
			if again := ask(c, "SELECT CONNECTION_ID() AS id"); again != id {
				t.Fatalf("%s, then %s", id, again)
			}
		}
	})
}
