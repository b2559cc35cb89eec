package gate

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// mode is how a call goes over the wire.
type mode uint8

const (
	text     mode = iota // COM_QUERY; Query
	prepared             // prepared once per session and kept
	once                 // prepared, run, closed
	cursor               // in portions: COM_STMT_FETCH; Execute with a row limit
	longData             // MySQL: the first string goes by COM_STMT_SEND_LONG_DATA
	unnamed              // PostgreSQL: Parse, Bind, Describe, Execute, Sync in one write
	pipeline             // PostgreSQL: call.batch in one write
	flushed              // PostgreSQL: Flush between the steps
	command              // MySQL: call.sql is a command's bytes
)

var modeNames = [...]string{"text", "prepared", "once", "cursor", "long-data", "unnamed", "pipeline", "flush", "command"}

func (m mode) String() string { return modeNames[m] }

// class is what the runner may do with a call.
type class uint8

const (
	same  class = iota // run on both sides, compared, never repeated
	read               // the same, and may be repeated while a foreign write is under way
	write              // run once, by call.by, on shared tables
)

// writer is who runs a call of class write.
type writer uint8

const (
	byThrough writer = iota // the pair's session through the proxy
	byDirect                // the pair's session that bypasses it
	byOther                 // a client that belongs to no pair and bypasses it
)

var writerNames = [...]string{"through", "direct", "other"}

// call is one statement, or one batch of them, as a session runs it. In sql,
// `?` is a parameter, {lane} the lane table's name, {key} a number that no
// other session uses and {s} the schema's prefix.
type call struct {
	sql     string
	args    []any // nil, int64, uint64, float64, bool, string, []byte, time.Time
	mode    mode
	class   class
	by      writer
	binary  bool   // PostgreSQL: parameters and results in binary
	rows    uint32 // cursor: rows a portion
	file    []byte // what COPY FROM STDIN or LOAD DATA LOCAL gets
	batch   []call // pipeline
	syncs   bool   // pipeline: a Sync after each, not only at the end
	resets  bool   // the session's prepared statements are gone afterwards
	settles bool   // both write: the session must now see all that was written before
	open    bool   // write: the transaction goes on, nothing is committed yet
	inside  bool   // write: in or at the end of a transaction that is open
}

func (c call) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", c.mode)
	if c.binary {
		b.WriteString(" binary")
	}
	if c.class == write {
		fmt.Fprintf(&b, " by %s", writerNames[c.by])
	}
	if c.mode == command {
		fmt.Fprintf(&b, " %x", c.sql)
	} else if c.sql != "" {
		fmt.Fprintf(&b, " %s", c.sql)
	}
	for i, a := range c.args {
		fmt.Fprintf(&b, " $%d=%s", i+1, literal(a, true))
	}
	for _, x := range c.batch {
		fmt.Fprintf(&b, "\n    %s", x)
	}
	return b.String()
}

// key tells calls apart for the rule that a session never goes back.
func (c call) key() string { return c.String() }

// places are what a lane puts into a call's text.
type places struct {
	lane   string
	key    string
	schema string
}

func (p places) fill(sql string) string {
	return strings.NewReplacer("{lane}", p.lane, "{key}", p.key, "{s}", p.schema).Replace(sql)
}

// neutral takes the lane table's name out of a reply; names are of one length,
// so the lengths before them still hold.
func (p places) neutral(b []byte) []byte {
	for _, name := range []string{p.lane, strings.ToUpper(p.lane)} {
		if bytes.Contains(b, []byte(name)) {
			b = bytes.ReplaceAll(b, []byte(name), []byte(name[:len(name)-1]+"_"))
		}
	}
	return b
}

// inlined is the text with its parameters as literals.
func inlined(sql string, args []any, mysql bool) string {
	if len(args) == 0 {
		return sql
	}
	var b strings.Builder
	for i, part := range strings.Split(sql, "?") {
		if i > 0 {
			b.WriteString(literal(args[i-1], mysql))
		}
		b.WriteString(part)
	}
	return b.String()
}

// numbered turns ? into $1, $2 ….
func numbered(sql string, args []any) string {
	if len(args) == 0 {
		return sql
	}
	var b strings.Builder
	for i, part := range strings.Split(sql, "?") {
		if i > 0 {
			fmt.Fprintf(&b, "$%d", i)
		}
		b.WriteString(part)
	}
	return b.String()
}

const timeLayout = "2006-01-02 15:04:05.000000"

func literal(a any, mysql bool) string {
	switch v := a.(type) {
	case nil:
		return "NULL"
	case string:
		s := strings.ReplaceAll(v, "'", "''")
		if mysql {
			s = strings.ReplaceAll(s, `\`, `\\`)
		}
		return "'" + s + "'"
	case []byte:
		if mysql {
			return fmt.Sprintf("x'%x'", v)
		}
		return fmt.Sprintf(`'\x%x'`, v)
	case time.Time:
		return "'" + v.Format(timeLayout) + "'"
	}
	return fmt.Sprint(a)
}
