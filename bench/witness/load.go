package witness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Load is one load generator in one way of using it.
type Load struct {
	Name string
	// Prepare fills the empty database, Run works on it; each is commands run
	// one after another.
	Prepare, Run func(Endpoint) []Command
	// Tune are statements run once after Prepare.
	Tune []string
	// Cleanup leaves the database empty again.
	Cleanup func(Endpoint) []Command
	// Repeatable: on two equal databases Run leaves equal rows.
	Repeatable bool
	// Probes are what is read before and after Run, both ways.
	Probes []Probe
	// MustHit is how many statements of Run must be answered from memory at
	// least: it reads the same rows over and over outside transactions. A
	// witness that only ever saw forwarding would prove nothing.
	MustHit int
}

// Probe is a statement with one whole-number parameter, written ?, run for each
// value from 1 to Last.
type Probe struct {
	Statement string
	Last      int
}

// Command is one run of a tool.
type Command struct {
	Arguments   []string
	Environment []string
	// Wrong finds in the output what the exit status does not tell.
	Wrong *regexp.Regexp
	// Right is something that the output of a good run has.
	Right *regexp.Regexp
}

// commandLimit ends a command that hangs: a proxy's way of failing that exit
// statuses do not show.
const commandLimit = 10 * time.Minute

// Do runs the command; its error has the end of the output.
func (c Command) Do(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Arguments[0], c.Arguments[1:]...)
	cmd.Env = append(os.Environ(), c.Environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The tool's children (pgbench runs under a wrapper) go with it.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	line := strings.Join(c.Arguments, " ")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w\n%s", line, ctx.Err(), lastLines(output))
	case err != nil:
		return fmt.Errorf("%s: %w\n%s", line, err, lastLines(output))
	case c.Wrong != nil && c.Wrong.Match(output):
		return fmt.Errorf("%s: says %q\n%s", line, c.Wrong.Find(output), lastLines(output))
	case c.Right != nil && !c.Right.Match(output):
		return fmt.Errorf("%s: does not say %s\n%s", line, c.Right, lastLines(output))
	}
	return nil
}

func lastLines(output []byte) string {
	const most = 4000
	if len(output) > most {
		output = output[len(output)-most:]
	}
	return string(output)
}

// doAll runs commands in turn until one fails.
func doAll(ctx context.Context, commands []Command) error {
	for _, c := range commands {
		if err := c.Do(ctx); err != nil {
			return err
		}
	}
	return nil
}
