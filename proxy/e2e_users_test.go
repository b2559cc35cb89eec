package proxy_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// usersRig is a Freshet with a file of users beside the DSN's.
type usersRig struct {
	*rig
	file string
}

func newUsersRig(t *testing.T, kind upstream.Kind, file string) *usersRig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return &usersRig{newRig(t, upstream.Need(t, kind), proxy.Config{Users: path, Loops: 1}), path}
}

// as is a session of a user.
func (r *usersRig) as(t *testing.T, user, password string) (*sql.Conn, error) {
	t.Helper()
	own := r.server.User + ":" + r.server.Password
	db, err := sql.Open(r.server.Driver(), strings.Replace(r.dsn(""), own, user+":"+password, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := db.Conn(ctx)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func (r *usersRig) must(t *testing.T, user, password string) *sql.Conn {
	t.Helper()
	c, err := r.as(t, user, password)
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	return c
}

func (r *usersRig) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := r.direct.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// makeReader makes a user upstream that may read one of two tables.
func (r *usersRig) makeReader(t *testing.T) {
	t.Helper()
	r.exec(t, "DROP TABLE IF EXISTS users_open", "DROP TABLE IF EXISTS users_closed",
		"CREATE TABLE users_open (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE users_closed (id INT PRIMARY KEY, v VARCHAR(20))",
		"INSERT INTO users_open VALUES (1, 'open')", "INSERT INTO users_closed VALUES (1, 'closed')")
	if r.server.Dialect == upstream.DialectPostgres {
		r.exec(t, "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN PASSWORD 'shown'", "GRANT SELECT, INSERT ON users_open TO reader")
	} else {
		r.exec(t, "DROP USER IF EXISTS reader", "CREATE USER reader IDENTIFIED BY 'shown'", "GRANT SELECT, INSERT ON users_open TO reader")
	}
	t.Cleanup(func() {
		r.exec(t, "DROP TABLE users_open", "DROP TABLE users_closed")
		if r.server.Dialect == upstream.DialectPostgres {
			r.exec(t, "DROP ROLE reader")
		} else {
			r.exec(t, "DROP USER reader")
		}
	})
}

const usersFile = `users:
  - name: reader
    password-env: FRESHET_TEST_READER
  - name: ghost
    password: unknown upstream
`

// everyKind runs a body on every kind of server, each with the users' file.
func everyKind(t *testing.T, body func(t *testing.T, r *usersRig)) {
	t.Helper()
	t.Setenv("FRESHET_TEST_READER", "shown")
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			r := newUsersRig(t, kind, usersFile)
			r.makeReader(t)
			body(t, r)
		})
	}
}

// denied tells whether an answer is the server's refusal for want of a right.
func denied(answer string) bool {
	return strings.Contains(answer, "command denied to user") || strings.Contains(answer, "permission denied")
}

// Each user reads and writes as itself: what one may not read it is not told from
// memory either, and what it was allowed ends with the right to it.
func TestUsers(t *testing.T) {
	const open, closed = "SELECT v FROM users_open WHERE id = 1", "SELECT v FROM users_closed WHERE id = 1"
	everyKind(t, func(t *testing.T, r *usersRig) {
		owner, reader := conn(t, r.through), r.must(t, "reader", "shown")
		hits(t, owner, open)
		hits(t, owner, closed)
		for range 3 {
			if got := ask(reader, closed); !denied(got) {
				t.Errorf("the reader was told %s", got)
			}
		}
		hits(t, reader, open)
		if got := ask(reader, "SELECT CURRENT_USER"); !strings.Contains(got, "\nreader") {
			t.Errorf("the reader is %s", got)
		}
		if got := ask(owner, "SELECT CURRENT_USER"); !strings.Contains(got, "\n"+r.server.User) {
			t.Errorf("the owner is %s", got)
		}
		if _, err := reader.ExecContext(context.Background(), "INSERT INTO users_open VALUES (2, 'its own')"); err != nil {
			t.Error(err)
		}
		r.agrees(t, reader, "SELECT v FROM users_open WHERE id = 2")
		r.agrees(t, owner, "SELECT v FROM users_open WHERE id = 2")
		if _, err := reader.ExecContext(context.Background(), "INSERT INTO users_closed VALUES (2, 'no')"); err == nil || !denied(err.Error()) {
			t.Errorf("the reader wrote where it may not: %v", err)
		}
		hits(t, reader, open)
		r.exec(t, "REVOKE SELECT ON users_open FROM reader")
		until(t, "the end of what the reader may read", func() (bool, string) {
			got := ask(reader, open)
			return denied(got), got
		})
		hits(t, owner, open)
	})
}

// Freshet's own commands are for admins, but for those about the session itself.
func TestUsersAndCommands(t *testing.T) {
	everyKind(t, func(t *testing.T, r *usersRig) {
		owner, reader := conn(t, r.through), r.must(t, "reader", "shown")
		for _, text := range []string{"SHOW CACHES", "SHOW FRESHET STATUS", "SHOW PROXIED QUERIES", "FLUSH ALL CACHES", "EXPLAIN CREATE CACHE FROM SELECT v FROM users_closed"} {
			if got := ask(reader, text); !strings.Contains(got, "user reader is no admin") {
				t.Errorf("%s: %s", text, got)
			}
			if got := ask(owner, text); strings.HasPrefix(got, "error") {
				t.Errorf("%s, by an admin: %s", text, got)
			}
		}
		where(t, reader) // EXPLAIN LAST STATEMENT
		if _, err := reader.ExecContext(context.Background(), "SET freshet.cache = off"); err != nil {
			t.Error(err)
		}
	})
}

// Who is in the file may come in, with its password; the file may change.
func TestUsersFile(t *testing.T) {
	everyKind(t, func(t *testing.T, r *usersRig) {
		refusal := map[string]string{upstream.DialectMySQL: "Error 1045 (28000): Access denied for user '%s'", upstream.DialectPostgres: `password authentication failed for user "%s"`}[r.server.Dialect]
		refused := func(user, password string) {
			t.Helper()
			if _, err := r.as(t, user, password); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(refusal, user)) {
				t.Errorf("%s: %v", user, err)
			}
		}
		refused("reader", "wrong")
		refused("nobody", "shown")
		refused("writer", "shown")
		if _, err := r.as(t, "ghost", "unknown upstream"); err == nil {
			t.Error("a user that the server does not know is let in")
		}
		reader := r.must(t, "reader", "shown")
		for _, bad := range []string{"users: [{name: reader}]", "users: [{name: reader, password: a, password-env: B}]", "users: [{password: a}]", "users: 5", "user: []",
			"users: [{name: a, password: b}, {name: a, password: c}]", "users: [{name: a, password-env: FRESHET_TEST_NOT_SET}]",
			"users: [{name: " + r.server.User + ", password: another}]"} {
			if err := os.WriteFile(r.file, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := r.freshet.Reload(); err == nil {
				t.Errorf("%s was read", bad)
			}
		}
		r.must(t, "reader", "shown").Close()
		if err := os.WriteFile(r.file, []byte("users: [{name: other, password: x}]"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.freshet.Reload(); err != nil {
			t.Fatal(err)
		}
		refused("reader", "shown")
		if got := ask(reader, "SELECT 1"); strings.HasPrefix(got, "error") && !strings.Contains(got, "not in --users any more") {
			t.Error("who was in: ", got)
		}
		r.must(t, r.server.User, r.server.Password)
	})
}

// What a role begins with is a user's own: a change of it reaches the user's next
// session, whatever link lies idle.
func TestUsersDefaults(t *testing.T) {
	t.Setenv("FRESHET_TEST_READER", "shown")
	for _, kind := range []upstream.Kind{upstream.Postgres15, upstream.Postgres18} {
		t.Run(string(kind), func(t *testing.T) {
			r := newUsersRig(t, kind, usersFile)
			r.makeReader(t)
			const q = "SELECT v, '2024-02-03'::date::text FROM users_open WHERE id = 1"
			hits(t, r.must(t, "reader", "shown"), q)
			r.exec(t, "ALTER ROLE reader SET datestyle = 'German'")
			until(t, "the new default", func() (bool, string) {
				c := r.must(t, "reader", "shown")
				defer c.Close()
				got := ask(c, q)
				return strings.Contains(got, "03.02.2024"), got
			})
		})
	}
}

// MariaDB's connections keep the rights of a role that was revoked, and neither's
// gain those of a new default role: a user's next session is on a new one.
func TestUsersRoles(t *testing.T) {
	t.Setenv("FRESHET_TEST_READER", "shown")
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			r := newUsersRig(t, kind, usersFile)
			r.makeReader(t)
			r.exec(t, "DROP ROLE IF EXISTS sees_closed", "CREATE ROLE sees_closed", "GRANT SELECT ON users_closed TO sees_closed")
			t.Cleanup(func() { r.exec(t, "DROP ROLE sees_closed") })
			const q = "SELECT v FROM users_closed WHERE id = 1"
			next := func() string {
				c := r.must(t, "reader", "shown")
				defer c.Raw(func(any) error { return driver.ErrBadConn }) //nolint:errcheck // it ends the connection
				return ask(c, q)
			}
			if got := next(); !denied(got) {
				t.Fatalf("without the role: %s", got)
			}
			r.exec(t, "GRANT sees_closed TO reader", map[upstream.Kind]string{upstream.MariaDB: "SET DEFAULT ROLE sees_closed FOR reader",
				upstream.MySQL: "SET DEFAULT ROLE sees_closed TO reader"}[kind])
			until(t, "the role", func() (bool, string) {
				got := next()
				return strings.Contains(got, "closed|"), got
			})
			hits(t, r.must(t, "reader", "shown"), q)
			r.exec(t, "REVOKE sees_closed FROM reader")
			until(t, "the end of the role", func() (bool, string) {
				got := next()
				return denied(got), got
			})
		})
	}
}
