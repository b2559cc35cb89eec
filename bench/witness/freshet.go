package witness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"freshet/bench/upstream"
)

// Freshet is a running `freshet serve`.
type Freshet struct {
	// Greeting is the first line that it printed.
	Greeting string
	// Address is where it listens, host:port.
	Address string

	http string
	cmd  *exec.Cmd
	log  string // path of its stderr
	done chan struct{}
	err  error
}

const (
	// serveDeadline is for the first line; draining is for a SIGTERM's end.
	serveDeadline = 30 * time.Second
	drainDeadline = 20 * time.Second
)

var greeting = regexp.MustCompile(`^freshet: (\w+) (\S+:\d+) -> `)

// Serve starts the program before an upstream on a free port; its files go into
// the folder. It returns once the program says that it accepts.
func Serve(program, dsn, folder string, more ...string) (*Freshet, error) {
	port, err := upstream.FreePort()
	if err != nil {
		return nil, err
	}
	f := &Freshet{
		http: "127.0.0.1:" + strconv.Itoa(port),
		log:  filepath.Join(folder, "freshet.log"),
		done: make(chan struct{}),
	}
	log, err := os.Create(f.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	arguments := append([]string{"serve", "--upstream", dsn, "--listen", "127.0.0.1:0", "--http", f.http,
		"--store", "file:" + filepath.Join(folder, "store")}, more...)
	f.cmd = exec.Command(program, arguments...)
	f.cmd.Stderr = log
	stdout, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := upstream.StartProcess(f.cmd, nil); err != nil {
		return nil, err
	}
	lines := make(chan string, 1)
	go f.attend(stdout, lines)
	select {
	case f.Greeting = <-lines:
	case <-time.After(serveDeadline):
	}
	found := greeting.FindStringSubmatch(f.Greeting)
	if found == nil {
		return nil, errors.Join(fmt.Errorf("freshet serve printed %q in %s; its log:\n%s", f.Greeting, serveDeadline, f.Log()), f.Stop())
	}
	f.Address = found[2]
	return f, nil
}

// attend passes on the first line, drains the rest and waits for the end.
func (f *Freshet) attend(stdout io.Reader, lines chan<- string) {
	text := bufio.NewScanner(stdout)
	if text.Scan() {
		lines <- text.Text()
	}
	close(lines)
	for text.Scan() {
		continue
	}
	f.err = f.cmd.Wait()
	close(f.done)
}

// Stop ends the program with SIGTERM; one that does not drain in time is killed,
// which is an error, as is an exit status other than 0.
func (f *Freshet) Stop() error {
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-f.done:
		if f.err != nil {
			return fmt.Errorf("freshet serve ended: %w\n%s", f.err, f.Log())
		}
		return nil
	case <-time.After(drainDeadline):
	}
	if err := f.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-f.done
	return fmt.Errorf("freshet serve did not end within %s of SIGTERM\n%s", drainDeadline, f.Log())
}

// Pid is the program's process id.
func (f *Freshet) Pid() int { return f.cmd.Process.Pid }

// Log is the last of what the program wrote to stderr.
func (f *Freshet) Log() string {
	text, err := os.ReadFile(f.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(text)
}

// Queries reads from /metrics how many statements were answered in a way:
// "hit", "fill", "join" or "forward".
func (f *Freshet) Queries(source string) (float64, error) {
	response, err := http.Get("http://" + f.http + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text := bufio.NewScanner(response.Body)
	total, found := 0.0, false
	for text.Scan() {
		line := text.Text()
		if !strings.HasPrefix(line, "freshet_queries_total{") || !strings.Contains(line, `source="`+source+`"`) {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metrics line %q: %w", line, err)
		}
		total, found = total+n, true
	}
	if err := text.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("/metrics has no freshet_queries_total with source %q", source)
	}
	return total, nil
}
