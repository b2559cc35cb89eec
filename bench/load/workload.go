package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"freshet/bench/wire"
)

// Statement is one of a workload's statements. Its parameters, all integers,
// are `?` in SQL; Args gives those of call n, as many every time.
type Statement struct {
	SQL  string
	Args func(n int64) []int64
}

// Workload says what the connections send. Call n of a connection runs
// Statements[Pick(n)] (nil: the first). With Distinct, n wraps at it: so many
// different requests are encoded beforehand and sent in turn, each connection
// beginning elsewhere. Without, every n is new: the connection's number from
// bit 40, Round from bit 32, and a count.
type Workload struct {
	Mode       Mode
	Depth      int // requests a write; 0: 1
	Statements []Statement
	Pick       func(n int64) int
	Distinct   int64
	Round      int64 // 0 to 255: repeats of one workload without Distinct must differ in it
}

// Source makes a connection's requests.
type Source interface {
	// Append adds the next request to b.
	Append(b []byte) []byte
}

// socket is a connection that is ready for load.
type socket struct {
	fd     int
	source Source
	framer framer
	bye    []byte // the protocol's goodbye
}

// connect authenticates, prepares, and takes the descriptor from the runtime:
// the loop has its own epoll.
func (w Workload) connect(ctx context.Context, dsn string, index int) (socket, error) {
	t, err := wire.Parse(dsn)
	if err != nil {
		return socket{}, err
	}
	if w.Mode == Pipelined && t.Dialect == wire.MySQL {
		return socket{}, errors.New("MySQL's protocol has no pipelines")
	}
	if t.Dialect == wire.MySQL {
		return w.connectMySQL(ctx, t, index)
	}
	return w.connectPostgres(ctx, t, index)
}

func (w Workload) connectMySQL(ctx context.Context, t wire.Target, index int) (socket, error) {
	c, err := wire.DialMySQL(ctx, t, wire.MySQLOptions{Capabilities: wire.CapDeprecateEOF})
	if err != nil {
		return socket{}, err
	}
	e := &mysqlEncoder{text: w.Mode == Text}
	for _, s := range w.Statements {
		if w.Mode == Text {
			break
		}
		p, reply, err := c.Prepare(s.SQL)
		if err == nil && reply[0].Kind == wire.KindErr {
			err = fmt.Errorf("preparing: %q", reply[0].Body)
		}
		if err != nil {
			return socket{}, errors.Join(err, c.Close())
		}
		e.ids = append(e.ids, p.ID)
	}
	fd, err := take(c.Net)
	if err != nil {
		return socket{}, errors.Join(err, c.Close())
	}
	return socket{fd, w.source(e, index), &mysqlFramer{deprecateEOF: c.Caps&wire.CapDeprecateEOF != 0},
		wire.AppendPacket(nil, 0, []byte{wire.ComQuit})}, nil
}

func (w Workload) connectPostgres(ctx context.Context, t wire.Target, index int) (socket, error) {
	c, err := wire.DialPostgres(ctx, t, wire.PostgresOptions{})
	if err != nil {
		return socket{}, err
	}
	for i, s := range w.Statements {
		if w.Mode == Text {
			break
		}
		b := wire.AppendSync(wire.AppendParse(nil, statementName(i), Numbered(s.SQL), nil))
		err := c.Send(b)
		if err == nil {
			var reply []wire.Message
			if reply, err = c.ReadReady(1, nil); err == nil && reply[0].Kind != "1" {
				err = fmt.Errorf("preparing: %q", reply[0].Body)
			}
		}
		if err != nil {
			return socket{}, errors.Join(err, c.Close())
		}
	}
	fd, err := take(c.Net)
	if err != nil {
		return socket{}, errors.Join(err, c.Close())
	}
	return socket{fd, w.source(postgresEncoder{text: w.Mode == Text}, index), &postgresFramer{},
		[]byte{'X', 0, 0, 0, 4}}, nil
}

// take duplicates the descriptor, which stays non-blocking, and closes the
// runtime's.
func take(c net.Conn) (int, error) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return -1, fmt.Errorf("the load needs a plain TCP connection, not %T: take TLS out of the DSN", c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd, derr := -1, error(nil)
	if err := raw.Control(func(p uintptr) { fd, derr = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	if derr != nil {
		return -1, fmt.Errorf("fcntl: %w", derr)
	}
	return fd, tcp.Close()
}

// encoder encodes one call of a statement.
type encoder interface {
	append(b []byte, statement int, sql string, args []int64) []byte
}

type mysqlEncoder struct {
	text bool
	ids  []uint32
}

func (e *mysqlEncoder) append(b []byte, statement int, sql string, args []int64) []byte {
	if e.text {
		return wire.AppendPacket(b, 0, append([]byte{wire.ComQuery}, inlined(sql, args)...))
	}
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
	}
	payload, _ := wire.AppendStmtExecute(nil, e.ids[statement], 0, values, nil)
	return wire.AppendPacket(b, 0, payload)
}

type postgresEncoder struct{ text bool }

func statementName(i int) string { return fmt.Sprintf("s%d", i) }

// append encodes Bind, Describe, Execute, Sync, which is what libpq sends for
// a prepared statement.
func (e postgresEncoder) append(b []byte, statement int, sql string, args []int64) []byte {
	if e.text {
		return wire.AppendQuery(b, inlined(sql, args))
	}
	values := make([]wire.Value, len(args))
	for i, a := range args {
		values[i].Bytes = fmt.Append(nil, a)
	}
	b = wire.AppendBind(b, "", statementName(statement), values, nil)
	b = wire.AppendDescribe(b, 'P', "")
	return wire.AppendSync(wire.AppendExecute(b, "", 0))
}

func inlined(sql string, args []int64) string {
	for _, a := range args {
		sql = strings.Replace(sql, "?", fmt.Sprint(a), 1)
	}
	return sql
}

// Numbered turns ? into $1, $2 ….
func Numbered(sql string) string {
	for i := 1; strings.Contains(sql, "?"); i++ {
		sql = strings.Replace(sql, "?", fmt.Sprintf("$%d", i), 1)
	}
	return sql
}

// source encodes everything beforehand if it can.
func (w Workload) source(e encoder, index int) Source {
	live := &liveSource{w: w, e: e, next: int64(index)<<40 | w.Round<<32}
	if w.Distinct == 0 {
		return live
	}
	cycle := &cycleSource{at: int(int64(index) * 7919 % w.Distinct)}
	for n := range w.Distinct {
		live.next = n
		cycle.requests = append(cycle.requests, live.Append(nil))
	}
	return cycle
}

// cycleSource sends requests encoded beforehand, in turn.
type cycleSource struct {
	requests [][]byte
	at       int
}

func (s *cycleSource) Append(b []byte) []byte {
	b = append(b, s.requests[s.at]...)
	if s.at++; s.at == len(s.requests) {
		s.at = 0
	}
	return b
}

// liveSource encodes each request when it is sent.
type liveSource struct {
	w    Workload
	e    encoder
	next int64
}

func (s *liveSource) Append(b []byte) []byte {
	n := s.next
	s.next++
	i := 0
	if s.w.Pick != nil {
		i = s.w.Pick(n)
	}
	st := s.w.Statements[i]
	var args []int64
	if st.Args != nil {
		args = st.Args(n)
	}
	return s.e.append(b, i, st.SQL, args)
}
