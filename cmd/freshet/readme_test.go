package main

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/witness"
)

// readmeBlocks gives the insides of the README's fenced blocks of a language
// under a heading.
func readmeBlocks(t *testing.T, heading, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("README.md has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for {
		_, rest, ok := strings.Cut(section, "```"+language+"\n")
		if !ok {
			break
		}
		block, after, ok := strings.Cut(rest, "```")
		if !ok {
			t.Fatalf("README.md: a block under %q does not end", heading)
		}
		blocks, section = append(blocks, block), after
	}
	if len(blocks) == 0 {
		t.Fatalf("README.md has no %s block under %q", language, heading)
	}
	return blocks
}

// forKind takes a line apart from its comment, which may name the only kind of
// server that the line is for.
func forKind(kind upstream.Kind, line, comment string) (string, bool) {
	line, note, _ := strings.Cut(line, comment)
	line, note = strings.TrimSpace(line), strings.TrimSpace(note)
	switch {
	case line == "", strings.HasPrefix(line, "["):
		return "", false
	case strings.HasPrefix(note, "MySQL") && kind != upstream.MySQL:
		return "", false
	case strings.HasPrefix(note, "MariaDB") && kind == upstream.MySQL:
		return "", false
	}
	return strings.TrimSuffix(line, ";"), true
}

var readmeHeadings = map[string]string{
	upstream.DialectMySQL:    "Point your DSN at it: MySQL or MariaDB",
	upstream.DialectPostgres: "Point your DSN at it: PostgreSQL",
}

// readmeServer starts a server as the README says, with its user, database and
// table, and gives it with the user's DSN.
func readmeServer(t *testing.T, kind upstream.Kind) (*upstream.Server, string) {
	t.Helper()
	dialect, options := upstream.DialectPostgres, []upstream.Option{upstream.WithDatabase("shop")}
	if kind == upstream.MySQL || kind == upstream.MariaDB {
		dialect = upstream.DialectMySQL
		var settings []string
		for _, line := range strings.Split(readmeBlocks(t, readmeHeadings[dialect], "ini")[0], "\n") {
			if s, ok := forKind(kind, line, "#"); ok {
				settings = append(settings, strings.ReplaceAll(s, " ", ""))
			}
		}
		options = append(options, upstream.WithSettings(settings...))
	}
	s := upstream.Own(t, kind, append(options,
		upstream.WithSetup("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40))", "INSERT INTO item VALUES (7, 'lamp')"))...)
	db, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, line := range strings.Split(readmeBlocks(t, readmeHeadings[dialect], "sql")[0], "\n") {
		statement, ok := forKind(kind, line, "--")
		if !ok {
			continue
		}
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if strings.Contains(line, "restart the server") {
			if err := s.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	u, err := url.Parse(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("app", "secret")
	return s, u.String()
}

// readmeRead is a read that the README has its users type, and where it says
// that the answer comes from.
type readmeRead struct{ sql, destination string }

func readmeReads(t *testing.T, dialect string) []readmeRead {
	t.Helper()
	mark := map[string]string{upstream.DialectMySQL: "#", upstream.DialectPostgres: "--"}[dialect]
	var out []readmeRead
	for _, line := range strings.Split(readmeBlocks(t, readmeHeadings[dialect], "sh")[1], "\n") {
		sql, _, ok := strings.Cut(strings.TrimSpace(line), "; ")
		if _, note, said := strings.Cut(line, mark+" "); ok && said {
			out = append(out, readmeRead{sql, strings.FieldsFunc(note, func(r rune) bool { return r == ',' || r == '(' })[0]})
		}
	}
	return out
}

// What the README has users do is enough for check to miss nothing, and what it
// has them type then shows what it says.
func TestReadme(t *testing.T) {
	for _, kind := range upstream.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			server, dsn := readmeServer(t, kind)
			status, stdout, stderr := run(t, program(t, "check", "--upstream", dsn))
			if status != 0 || strings.Contains(stdout, "MISSING") {
				t.Errorf("check: status %d\n%s%s", status, stdout, stderr)
			}
			conn := serveReadme(t, server, dsn)
			reads := readmeReads(t, server.Dialect)
			if len(reads) != 3 {
				t.Fatalf("the README has %d reads with where they come from: %v", len(reads), reads)
			}
			for _, r := range reads {
				destinationOf(t, conn, r)
			}
		})
	}
}

// serveReadme serves a user's DSN and connects as that user.
func serveReadme(t *testing.T, server *upstream.Server, dsn string) *sql.Conn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	f, err := witness.Serve(self, dsn, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	if !strings.HasSuffix(f.Greeting, "feed following") {
		t.Errorf("the first line is %q", f.Greeting)
	}
	through := "postgres://app:secret@" + f.Address + "/shop?sslmode=disable"
	if server.Dialect == upstream.DialectMySQL {
		through = "app:secret@tcp(" + f.Address + ")/shop"
	}
	db, err := sql.Open(server.Driver(), through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// destinationOf reads until the answer comes from where it should, or, as a
// busy machine may take longer over a step, from further on.
func destinationOf(t *testing.T, conn *sql.Conn, r readmeRead) {
	t.Helper()
	steps := []string{"upstream", "fill", "cache"}
	want := slices.Index(steps, r.destination)
	if want < 0 {
		t.Fatalf("the README says that an answer comes from %q", r.destination)
	}
	var name, destination, reason string
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
		if err := conn.QueryRowContext(context.Background(), r.sql).Scan(&name); err != nil || name != "lamp" {
			t.Fatalf("%s: %q, %v", r.sql, name, err)
		}
		if err := conn.QueryRowContext(context.Background(), "EXPLAIN LAST STATEMENT").Scan(&destination, &reason); err != nil {
			t.Fatal(err)
		}
		word, _, _ := strings.Cut(destination, "(")
		if slices.Index(steps, word) >= want {
			return
		}
	}
	t.Errorf("%s came from %s (%s), want %s", r.sql, destination, reason, r.destination)
}
