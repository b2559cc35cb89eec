package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"freshet/planner"
)

// ErrorCode says what kind of mistake a console command made, for the dialect
// to find its own number.
type ErrorCode uint8

const (
	ErrSyntax ErrorCode = iota
	ErrDenied
	ErrUnknown // no such cache
	ErrExists
	ErrUnsupported
	ErrInternal
)

// ConsoleError is what a client is told of a command that failed.
type ConsoleError struct {
	Code     ErrorCode
	Message  string
	Position int // 1-based byte of the text, 0 for none
}

func (e *ConsoleError) Error() string { return e.Message }

func syntaxError(pos int, format string, a ...any) *ConsoleError {
	return &ConsoleError{Code: ErrSyntax, Message: fmt.Sprintf(format, a...), Position: pos + 1}
}

// ResultColumn is one column of a console answer.
type ResultColumn struct {
	Name    string
	Numeric bool
}

// Result is the answer to a console command. Columns nil: an OK or command tag.
type Result struct {
	Columns []ResultColumn
	Rows    [][]string
	Tag     string
	Err     *ConsoleError
}

// consoleTimeout bounds what a command may ask the upstream.
const consoleTimeout = 10 * time.Second

// Console runs a text that is one of Freshet's own commands; false: it is not,
// and is to be forwarded. done gets the answer on the loop; until then the
// session is Blocked.
func (s *Session) Console(text []byte, scope planner.Scope, done func(*Result)) bool {
	cmd, err := parseCommand(string(text))
	if cmd == nil && err == nil {
		return false
	}
	last := s.Last
	s.Blocked = true
	finish := func(r *Result) {
		s.Post(func() {
			s.Last = Last{Source: SourceConsole}
			s.wake(func() { done(r) })
		})
	}
	if err == nil && !forEveryone(cmd) && !s.IsAdmin() {
		err = &ConsoleError{Code: ErrDenied, Message: "freshet: user " + s.User + " is no admin (see --users)"}
	}
	if err != nil {
		finish(failed(err))
		return true
	}
	c := &console{session: s, server: s.Loop.server, upstream: s.Upstream, scope: scope, last: last, level: s.level, cacheOff: s.CacheOff}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), consoleTimeout)
		defer cancel()
		r, err := cmd.run(ctx, c)
		if err != nil {
			r = failed(err)
		}
		finish(r)
	}()
	return true
}

func failed(err error) *Result {
	var ce *ConsoleError
	if !errors.As(err, &ce) {
		ce = &ConsoleError{Code: ErrInternal, Message: "freshet: " + err.Error()}
	}
	return &Result{Err: ce}
}

// console is what a command may look at. It runs off the loop: of the session
// it only knows what was copied here.
type console struct {
	session  *Session
	server   *Server
	upstream *Upstream
	scope    planner.Scope
	last     Last
	level    Level
	cacheOff bool
}

// forEveryone tells whether a command speaks of nothing but the user's own session.
func forEveryone(cmd command) bool {
	switch cmd.(type) {
	case showVersion, explainLast, showOptions, setOption:
		return true
	}
	return false
}

// command is a parsed console command.
type command interface {
	run(ctx context.Context, c *console) (*Result, error)
}

func columns(names ...string) []ResultColumn {
	cols := make([]ResultColumn, len(names))
	for i, n := range names {
		if n[0] == '#' {
			cols[i] = ResultColumn{Name: n[1:], Numeric: true}
			continue
		}
		cols[i] = ResultColumn{Name: n}
	}
	return cols
}
