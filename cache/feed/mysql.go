package feed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/cache/feed/binlog"
)

// mysqlDSN is what a mysql:// DSN says.
type mysqlDSN struct {
	addr, host, user, password, database string
	tls                                  *tls.Config
	tlsOptional                          bool
}

func parseMySQLDSN(dsn string) (mysqlDSN, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		// The parser's own words repeat the DSN, password and all.
		return mysqlDSN{}, errors.New("feed: the DSN is not a URL")
	}
	d := mysqlDSN{host: u.Hostname(), user: u.User.Username(), database: strings.TrimPrefix(u.Path, "/")}
	d.password, _ = u.User.Password()
	if d.host == "" {
		d.host = "127.0.0.1"
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	d.addr = net.JoinHostPort(d.host, port)
	switch mode := strings.ToLower(u.Query().Get("tls")); mode {
	case "", "false", "0":
	case "true", "1":
		d.tls = &tls.Config{ServerName: d.host}
	case "skip-verify":
		d.tls = &tls.Config{InsecureSkipVerify: true}
	case "preferred":
		d.tls, d.tlsOptional = &tls.Config{InsecureSkipVerify: true}, true
	default:
		return d, fmt.Errorf("feed: tls=%s is not known: use true, skip-verify, preferred or false", mode)
	}
	return d, nil
}

// sideTimeout bounds every read and write on lines that ask questions.
const sideTimeout = 10 * time.Second

// dial opens a line and logs in. ctx ending closes the line, at any time;
// release undoes that tie. idle bounds the silence on the line.
func (d *mysqlDSN) dial(ctx context.Context, database string, idle time.Duration) (c *client.Conn, release func() bool, err error) {
	c, release, err = d.dialOnce(ctx, database, idle, d.tls)
	if err != nil && d.tlsOptional && ctx.Err() == nil && errorNumber(err) == 0 {
		return d.dialOnce(ctx, database, idle, nil)
	}
	return c, release, err
}

func (d *mysqlDSN) dialOnce(ctx context.Context, database string, idle time.Duration, config *tls.Config) (*client.Conn, func() bool, error) {
	var line net.Conn
	dialer := func(ctx context.Context, network, addr string) (net.Conn, error) {
		nd := net.Dialer{Timeout: sideTimeout}
		var err error
		if line, err = nd.DialContext(ctx, network, addr); err != nil {
			return nil, err
		}
		line = &idleLine{swift(line), idle}
		return line, nil
	}
	release := func() bool { return false }
	options := func(c *client.Conn) error {
		// The dialler has run: from here on ctx closes the line.
		release = context.AfterFunc(ctx, func() { closeQuietly(line) })
		c.WriteTimeout = sideTimeout
		if config != nil {
			c.SetTLSConfig(config.Clone())
		}
		c.SetAttributes(map[string]string{"program_name": "freshet"})
		return c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS)
	}
	c, err := client.ConnectWithDialer(ctx, "tcp", d.addr, d.user, d.password, database, dialer, options)
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("feed: connecting to %s as %s: %w", d.addr, d.user, err)
	}
	return c, release, nil
}

// idleLine bounds the silence on a line. go-mysql would set a deadline twice for
// each packet, whether it has been received already or not, and each row that
// changes comes as some five packets.
type idleLine struct {
	net.Conn
	idle time.Duration
}

func (l *idleLine) Read(b []byte) (int, error) {
	if err := l.SetReadDeadline(time.Now().Add(l.idle)); err != nil {
		return 0, err
	}
	return l.Conn.Read(b)
}

// closeQuietly closes a line whose end is no news: what it would report was
// reported by whoever used it last.
func closeQuietly(c interface{ Close() error }) {
	if err := c.Close(); err != nil {
		return
	}
}

// mysqlSource follows a MySQL or MariaDB server.
type mysqlSource struct {
	feed     *Feed
	dsn      mysqlDSN
	from     *mysqlDSN // the replica whose log is followed; nil: the upstream's is
	serverID uint32

	mu    sync.Mutex
	facts mysqlFacts
	copy  mysqlCopy // what is known of the replica
	place mysqlPlace
	seat  seat
	uuid  string // names this replica to the server; "" before the first stream

	probes, queries, leases *mysqlSide
	origins, replicas       *mysqlSide // to the upstream and the replica, for mysqlreplica.go

	// What the last probe saw; the prober's alone.
	lastSeen    *binlog.GTIDSet
	lastText    string
	lastRaw     uint64
	lastDomains map[uint32]uint64
	readable    mariaReadable

	heartbeat heartbeat
	held      map[string]*prepared // the stream's goroutine only
	misfits   map[nameKey]int      // keeper only
}

// mysqlPlace is where the stream is, or was when its line broke.
type mysqlPlace struct {
	known  bool
	file   string
	offset uint64
	server string // whose log it is
	domain map[uint32]uint64
	heads  map[uint32]uint64 // see mysqlReader
}

func newMySQL(f *Feed, dsn, from string) (*mysqlSource, error) {
	d, err := parseMySQLDSN(dsn)
	if err != nil {
		return nil, err
	}
	s := &mysqlSource{feed: f, dsn: d, misfits: make(map[nameKey]int)}
	if from != "" {
		d, err := parseMySQLDSN(from)
		if err != nil {
			return nil, err
		}
		s.from = &d
	}
	// Replicas are told apart by this number; a random one of a billion.
	s.serverID = 1<<30 | rand.Uint32N(1<<30)
	s.probes, s.queries, s.leases = s.newSide(), s.newSide(), s.newSide()
	s.origins, s.replicas = s.newSide(), s.newReplicaSide()
	return s, nil
}

func (s *mysqlSource) fact() mysqlFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// logFact is what the server says whose log is followed.
func (s *mysqlSource) logFact() mysqlFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		return s.facts
	}
	return s.copy.facts
}

// logDSN is where that server is.
func (s *mysqlSource) logDSN() *mysqlDSN {
	if s.from == nil {
		return &s.dsn
	}
	return s.from
}

func (s *mysqlSource) key(schema, name string) nameKey {
	if s.fact().lowerNames != 0 {
		return nameKey{schema: strings.ToLower(schema), name: strings.ToLower(name)}
	}
	return nameKey{schema: schema, name: name}
}

func (s *mysqlSource) wake() { s.feed.wake() }

// vet refuses what the binary log does not hold.
func (s *mysqlSource) vet(spec *TableSpec) error {
	switch strings.ToLower(spec.Schema) {
	case "mysql", "information_schema", "performance_schema", "sys":
		return errors.New("it belongs to the server")
	}
	if err := s.fact().filtered(spec.Schema); err != nil {
		return err
	}
	return s.logFact().filtered(spec.Schema)
}

func (s *mysqlSource) keeps(err error) bool { return !errors.Is(err, errPlaceLost) }

func (s *mysqlSource) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = mysqlPlace{}
	clear(s.held)
}

// tend leaves the upstream alone, where a binary log is followed without leaving
// anything; it looks whether a replica still replicates all.
func (s *mysqlSource) tend(ctx context.Context) {
	if s.from != nil {
		s.watchReplica(ctx)
	}
}

func (s *mysqlSource) close(context.Context) {
	for _, line := range []*mysqlSide{s.probes, s.queries, s.leases, s.origins, s.replicas} {
		line.Close()
	}
}

// heldXA returns the XA transactions prepared and not ended, as far as the
// stream brought them.
func (s *mysqlSource) heldXA() map[string]*prepared {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(map[string]*prepared)
	}
	return s.held
}

func (s *mysqlSource) setPlace(p mysqlPlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = p
}

func (s *mysqlSource) describe(st *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Dialect, st.Server = "mysql", s.facts.version
	st.From, st.Replica = s.logDSN().addr, s.from != nil
	if s.place.known {
		st.PositionText = fmt.Sprintf("%s:%d", s.place.file, s.place.offset)
	}
}

// mysqlRows runs a query whose columns are all read as text; NULL is "".
func mysqlRows(c *client.Conn, sql string) ([][]string, error) {
	r, err := c.Execute(sql)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return mysqlTexts(r)
}

// mysqlTexts copies a result's values.
func mysqlTexts(r *mysql.Result) ([][]string, error) {
	out := make([][]string, r.RowNumber())
	for i := range out {
		out[i] = make([]string, r.ColumnNumber())
		for j := range out[i] {
			text, err := r.GetString(i, j)
			if err != nil {
				return nil, err
			}
			out[i][j] = strings.Clone(text)
		}
	}
	return out, nil
}

// quoteMySQL writes a string literal that means the same under every sql_mode.
func quoteMySQL(text string) string { return fmt.Sprintf("CONVERT(X'%x' USING utf8mb4)", text) }

// errorNumber returns the server's error number, 0 for other errors.
func errorNumber(err error) uint16 {
	var my *mysql.MyError
	if errors.As(err, &my) {
		return my.Code
	}
	return 0
}

var _ source = (*mysqlSource)(nil)

// rawPlace is a file's number and an offset as one number.
func rawPlace(file string, offset uint64) (uint64, error) {
	dot := strings.LastIndexByte(file, '.')
	var n uint64
	for _, c := range file[dot+1:] {
		if c < '0' || c > '9' || n > 1<<23 {
			return 0, fmt.Errorf("feed: the log file's name %q does not end in a number", file)
		}
		n = n*10 + uint64(c-'0')
	}
	if dot < 0 || offset >= 1<<40 {
		return 0, fmt.Errorf("feed: %s:%d is not a place in a log", file, offset)
	}
	return n<<40 | offset, nil
}

// name is what the server knows this replica by. It ends a dump that it still
// sends to a replica of the same name.
func (s *mysqlSource) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uuid == "" {
		a, b := rand.Uint64(), rand.Uint64()
		// A random UUID (RFC 9562, section 5.4).
		s.uuid = fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
	}
	return s.uuid
}
