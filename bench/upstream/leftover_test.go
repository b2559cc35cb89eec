package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// childKind, in the environment, makes TestChild start a server of that kind
// and wait to be killed.
const childKind = "FRESHET_UPSTREAM_CHILD"

func TestChild(t *testing.T) {
	kind := os.Getenv(childKind)
	if kind == "" {
		t.Skip("only as a child of TestNothingIsLeftWhenTheStarterIsKilled")
	}
	s, err := Start(context.Background(), Kind(kind))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("child %d %s\n", s.Pid(), s.Dir)
	select {}
}

func TestNothingIsLeftWhenTheStarterIsKilled(t *testing.T) {
	every(t, func(t *testing.T, kind Kind) {
		Need(t, kind) // skips
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
		cmd.Env = append(os.Environ(), childKind+"="+string(kind))
		cmd.Stderr = os.Stderr
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pid int
		var folder string
		lines := bufio.NewScanner(output)
		for folder == "" && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "child ") {
				if _, err := fmt.Sscanf(lines.Text(), "child %d %s", &pid, &folder); err != nil {
					t.Fatal(err)
				}
			}
		}
		if folder == "" {
			t.Fatalf("no server in the child: %v", cmd.Wait())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended well though it was killed")
		}
		eventually(t, "the folder is gone", func() bool {
			_, err := os.Stat(folder)
			return errors.Is(err, os.ErrNotExist)
		})
		eventually(t, "the processes are gone", func() bool {
			members, err := family(pid)
			return err == nil && len(members) == 0
		})
	})
}

func TestCrashRestartAndPause(t *testing.T) {
	every(t, func(t *testing.T, kind Kind) {
		s := Own(t, kind, WithSetup("CREATE TABLE kept (id int primary key)", "INSERT INTO kept VALUES (7)"))
		port := s.Port
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Port != port {
			t.Errorf("port %d became %d", port, s.Port)
		}
		var id int
		if err := s.DB(t).QueryRow("SELECT id FROM kept").Scan(&id); err != nil || id != 7 {
			t.Errorf("after the crash: %d, %v", id, err)
		}
		old, err := s.DB(t).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		const short = 200 * time.Millisecond
		oldCtx, oldCancel := context.WithTimeout(t.Context(), short)
		defer oldCancel()
		if err := old.QueryRowContext(oldCtx, "SELECT id FROM kept").Scan(&id); err == nil {
			t.Error("a paused server answered an old connection")
		}
		ctx, cancel := context.WithTimeout(t.Context(), short)
		defer cancel()
		if err := s.DB(t).PingContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a paused server answered a new connection: %v", err)
		}
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := s.DB(t).PingContext(t.Context()); err != nil {
			t.Errorf("after Resume: %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	every(t, func(t *testing.T, kind Kind) {
		s := Own(t, kind, WithDatabase("shop"), WithSettings("max_connections=77"), WithCPUs(0), WithSetup("CREATE TABLE item (id int)"))
		query := "SELECT concat(database(), ' ', @@max_connections)"
		if s.Dialect == DialectPostgres {
			query = "SELECT current_database() || ' ' || current_setting('max_connections')"
		}
		var got string
		if err := s.DB(t).QueryRow(query).Scan(&got); err != nil || got != "shop 77" {
			t.Errorf("%q, %v", got, err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
		if err != nil || !strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
			t.Errorf("not bound to core 0: %v\n%s", err, status)
		}
	})
}

// Many processes may start servers at once; here many goroutines, which meet in
// the same template, ports and folders.
func TestManyStartsAtOnce(t *testing.T) {
	leaveOut(t)
	results := make(chan error)
	const n = 6
	for range n {
		go func() {
			s, err := Start(t.Context(), Postgres15)
			if err == nil {
				err = s.Stop()
			}
			results <- err
		}()
	}
	for range n {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestStartSaysWhatTheServerSaid(t *testing.T) {
	leaveOut(t)
	_, err := Start(t.Context(), Postgres15, WithSettings("no_such_setting=1"))
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("error %v", err)
	}
	if _, err := Start(t.Context(), Kind("oracle")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestTakenPort(t *testing.T) {
	first := Need(t, Postgres15)
	if _, err := Start(t.Context(), Postgres15, WithPort(first.Port)); err == nil {
		t.Error("two servers on one port")
	}
}

// eventually waits for a condition with a deadline.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if condition() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("not within 20 s: %s", what)
}
