package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

// The test binary is the program, too, when it is told so.
const asProgram = "FRESHET_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(upstream.Main(m))
}

// program prepares a run of freshet in a folder of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// run gives the exit status and what was said on each output.
func run(t *testing.T, cmd *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Bad usage ends with 2 and one line that says what to do, before anything is
// connected to; a failure ends with 1.
func TestMistakes(t *testing.T) {
	const dsn = "mysql://app:hidden@127.0.0.1:1/shop"
	serve := func(more ...string) []string { return append([]string{"serve", "--upstream", dsn}, more...) }
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"nonsense"}, 2, `unknown command "nonsense"`},
		{[]string{"serve"}, 2, "give --upstream"},
		{[]string{"serve", "extra"}, 2, "see freshet serve --help"},
		{serve("--nonsense"), 2, "unknown flag: --nonsense"},
		{serve("--max-staleness", "0"), 2, "--max-staleness 0: want more than 0"},
		{serve("--max-staleness=-1s"), 2, "--max-staleness -1s: want more than 0"},
		{serve("--loops", "-1"), 2, "--loops -1: want 1 or more"},
		{serve("--max-links", "-3"), 2, "--max-links -3: want 1 or more"},
		{serve("--max-links", "0"), 2, "--max-links 0: want 1 or more"},
		{serve("--max-links", "1", "--loops", "2"), 2, "want at least one for each of the 2 loops"},
		{serve("--max-connections", "-1"), 2, "--max-connections -1"},
		{serve("--cache="), 2, "--cache is empty: want auto, explicit or off"},
		{serve("--consistency="), 2, "--consistency is empty"},
		{serve("--feed="), 2, "--feed is empty"},
		{serve("--memory", "12"), 2, "want at least 8MiB"},
		{serve("--memory", "8MiB", "--upstream", "postgres://app@h/shop"), 2, "want at least 16MiB"},
		{serve("--http", "bogus"), 2, `--http "bogus": want host:port, or off`},
		{serve("--listen", "bogus"), 2, `--listen "bogus": want host:port`},
		{serve("--listen", ":1", "--listen", ":2"), 2, "each --upstream takes one --listen"},
		{serve("--upstream", dsn), 2, "two upstreams listen on 127.0.0.1:3307"},
		{serve("--store", "nowhere"), 2, "want file:DIR"},
		{serve("--log-level", "loud"), 2, "want debug, info, warn or error"},
		{serve("--config", "/nonexistent.yaml"), 2, "--config /nonexistent.yaml"},
		{[]string{"serve", "--upstream", "postgres://app:hidden@h/d?sslmode=bogus"}, 2, "sslmode is invalid"},
		{[]string{"serve", "--upstream", "mysql://app:hidden@h:99999/d"}, 2, "port 99999: want 1 to 65535"},
		{[]string{"check", "--upstream", "mysql://app:hidden@h/d?parsetime=1"}, 2, `unknown parameter "parsetime"`},
		{append([]string{"serve", "--feed-from", dsn}, "--upstream", dsn), 2, "give --upstream before its --feed-from"},
		{serve("--feed-from", dsn, "--feed-from", dsn), 2, "each --upstream takes one --feed-from"},
		{serve("--feed-from", "postgres://app:hidden@h/d"), 2, "want a replica of the upstream, which is mysql://"},
		{serve("--feed-from", "mysql://app:hidden@h:99999/d"), 2, "--feed-from: upstream DSN: port 99999"},
		{serve("--feed-from", dsn, "--consistency", "linearizable"), 2, "linearizable cannot be had with --feed-from"},
		{[]string{"check", "--upstream", dsn, "--feed-from", dsn, "--consistency", "linearizable"}, 2, "linearizable cannot be had with --feed-from"},
		{[]string{"check", "--upstream", "postgres://app:hidden@h/d", "--feed-from", "postgres://app:hidden@h/e"}, 2, "database e: want the upstream's, d"},
		{serve("--tls", "always"), 2, `--tls "always": want prefer, require or verify`},
		{serve("--tls", "require"), 2, "--tls require: needs a certificate"},
		{serve("--tls-ca", "ca.pem"), 2, "--tls-ca: needs a certificate"},
		{serve("--tls-cert", "cert.pem"), 2, "--tls-cert and --tls-key go together"},
		{serve("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tls", "verify"), 2, "--tls verify: needs --tls-ca"},
		{serve("--tls-cert", "cert.pem", "--tls-key", "key.pem"), 1, "--tls-cert cert.pem, --tls-key key.pem: open cert.pem: no such file"},
		{serve("--users", "users.yaml"), 1, "--users: open users.yaml: no such file"},
		{[]string{"check"}, 2, "give --upstream DSN"},
		{serve("--store", "file:/proc/x"), 1, "want a folder that can be written"},
		{serve(), 1, "upstream mysql://app@127.0.0.1:1/shop"},
		{[]string{"check", "--upstream", "postgres://app:hidden@127.0.0.1:1/d"}, 1, "see the lines marked MISSING"},
	} {
		status, stdout, stderr := run(t, program(t, c.args...))
		name := strings.Join(c.args, " ")
		if status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d and %q, want %d and %q", name, status, stderr, c.status, c.want)
		}
		if strings.Count(stderr, "\n") != 1 || strings.Contains(stdout+stderr, "hidden") {
			t.Errorf("%s: said %q and %q, want one line without the password", name, stdout, stderr)
		}
	}
}

// Every line of check's report stays one line, whatever a driver's error is.
func TestCheckKeepsToItsLines(t *testing.T) {
	_, stdout, _ := run(t, program(t, "check", "--upstream", "postgres://app@127.0.0.1:1/d"))
	for _, line := range strings.Split(strings.TrimSuffix(stdout, "\n"), "\n") {
		if !strings.HasPrefix(line, "ok ") && !strings.HasPrefix(line, "MISSING ") && !strings.Contains(line, "mend:  ") {
			t.Errorf("a line of its own: %q in\n%s", line, stdout)
		}
	}
}

// check looks at a replica, too, and finds what it lacks.
func TestCheckFeedFrom(t *testing.T) {
	primary := upstream.Own(t, upstream.MariaDB)
	replica := upstream.OwnReplica(t, primary)
	for _, c := range []struct {
		change       string
		status       int
		want, mended string
	}{{"SELECT 1", 0, "ok  replica: it leaves nothing out", ""},
		{"SET GLOBAL slave_exec_mode = 'IDEMPOTENT'", 1, "MISSING  replica: replica_exec_mode is IDEMPOTENT", "set it to STRICT"}} {
		if _, err := replica.DB(t).Exec(c.change); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := run(t, program(t, "check", "--upstream", primary.DSN(), "--feed-from", replica.DSN()))
		if status != c.status || !strings.Contains(stdout, c.want) || !strings.Contains(stdout, c.mended) {
			t.Errorf("%s: status %d, want %d and %q; said\n%s%s", c.change, status, c.status, c.want, stdout, stderr)
		}
	}
}

// Each mistake in the file is told with its place; what the environment says
// counts as the flag does.
func TestConfigFile(t *testing.T) {
	const head = "upstreams:\n  - dsn: mysql://app@127.0.0.1:1/shop\n"
	for file, want := range map[string]string{
		head + "    lisen: 127.0.0.1:0\n":          `upstreams: item 1: unknown key "lisen": want dsn, listen and feed-from`,
		head + "    listen: 5\n":                   "upstreams: item 1: listen: want text",
		head + "    feed-from: postgres://a@h/d\n": "want a replica of the upstream",
		"upstreams: mysql://app@h/d\n":             "upstreams: want a list",
		"upstreams: [mysql://app@h/d]\n":           "upstreams: item 1: want dsn, listen and feed-from",
		"upstreams:\n  - listen: 127.0.0.1:0\n":    "upstreams: item 1 has no dsn",
		head + "max_staleness: 1s\n":               `unknown key "max_staleness"`,
		head + "max-staleness: soon\n":             "max-staleness: ",
		head + "    listen: bogus\n":               `--listen "bogus"`,
		head + "http: off\ncache: off\nfeed: on\n": `--feed "on": want auto or off`,
	} {
		cmd := program(t, "serve")
		path := filepath.Join(cmd.Dir, "freshet.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "FRESHET_CONFIG="+path)
		if status, _, stderr := run(t, cmd); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d and %q, want %q", file, status, stderr, want)
		}
	}
	text, err := os.ReadFile("../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	cmd := program(t, "serve", "--config", "freshet.yaml")
	// Nothing listens at port 1.
	example = strings.NewReplacer("db.example:3306", "127.0.0.1:1", "pg.example:5432", "127.0.0.1:1").Replace(example)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "freshet.yaml"), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run(t, cmd); status != 1 || !strings.Contains(stderr, "upstream mysql://app@127.0.0.1:1/shop") {
		t.Errorf("the example of docs/running.md: status %d and %q", status, stderr)
	}
	cmd = program(t, "serve", "--upstream", "mysql://app@127.0.0.1:1/shop")
	cmd.Env = append(cmd.Env, "FRESHET_MAX_LINKS=-7")
	if status, _, stderr := run(t, cmd); status != 2 || !strings.Contains(stderr, "--max-links -7") {
		t.Errorf("from the environment: status %d and %q", status, stderr)
	}
	cmd = program(t, "serve", "--upstream", "mysql://app@127.0.0.1:1/shop")
	cmd.Env = append(cmd.Env, "FRESHET_TLS=require", "FRESHET_TLS_CERT=cert.pem", "FRESHET_TLS_KEY=key.pem")
	if status, _, stderr := run(t, cmd); status != 1 || !strings.Contains(stderr, "--tls-cert cert.pem, --tls-key key.pem: open") {
		t.Errorf("from the environment: status %d and %q", status, stderr)
	}
	cmd = program(t, "serve", "--upstream", "mysql://app@127.0.0.1:1/shop")
	cmd.Env = append(cmd.Env, "FRESHET_FEED_FROM=postgres://app:hidden@h/d")
	if status, _, stderr := run(t, cmd); status != 2 || !strings.Contains(stderr, "want a replica of the upstream") || strings.Contains(stderr, "hidden") {
		t.Errorf("from the environment: status %d and %q", status, stderr)
	}
}
