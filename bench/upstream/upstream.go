package upstream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql" // also registers "mysql"
	_ "github.com/jackc/pgx/v5/stdlib"           // registers "pgx"
)

// Kind names a server and its version line.
type Kind string

// The kinds of server. MariaDB and Postgres15 come from the machine's
// packages, the others from the sid folder.
const (
	MariaDB    Kind = "mariadb"    // 10.11
	MySQL      Kind = "mysql"      // 9.7
	Postgres15 Kind = "postgres15" // 15
	Postgres18 Kind = "postgres18" // 18
	MariaDB11  Kind = "mariadb11"  // 11.8
)

// Kinds are the servers that every test of both dialects should run on.
var Kinds = []Kind{MariaDB, MySQL, Postgres15, Postgres18}

// The two dialects, as Server.Dialect has them.
const (
	DialectMySQL    = "mysql"
	DialectPostgres = "postgres"
)

// ErrUnavailable says that a kind of server cannot be had on this machine:
// its programs are not installed, or it needs root for its chroot.
var ErrUnavailable = errors.New("server not available")

// Server is one running server. It belongs to whoever started it; its methods
// are not for concurrent use, except Open, DSN and GoDSN.
type Server struct {
	Kind     Kind
	Dialect  string // "mysql" or "postgres"
	Host     string // always 127.0.0.1
	Port     int
	User     string // may do everything: ALL with GRANT OPTION, or SUPERUSER
	Password string
	Database string
	Version  string // as the server itself says it
	Dir      string // its folder on this machine: data/, server.log

	engine  *engine
	options options
	process *process // nil while it is down
	reaper  *reaper
}

// startDeadline bounds one attempt to bring a server up. A machine whose cores
// are all taken by other tests can need most of it.
const startDeadline = 90 * time.Second

// Start makes a data folder and starts a server of the kind on a free loopback
// port; it returns once the server answers queries. The error wraps
// ErrUnavailable when the kind cannot be had.
func Start(ctx context.Context, kind Kind, opts ...Option) (*Server, error) {
	e, err := locate(kind)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Kind: kind, Dialect: e.dialect, Host: "127.0.0.1",
		User: "freshet", Password: "freshet", Database: "freshet_test",
		engine: e,
	}
	for _, o := range opts {
		o(&s.options)
	}
	template, err := e.template(ctx)
	if err != nil {
		return nil, fmt.Errorf("upstream: making the template of %s: %w", kind, err)
	}
	if s.Dir, err = e.workFolder(); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if s.reaper, err = newReaper(s.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("upstream: %w", err), os.RemoveAll(s.Dir))
	}
	if err := s.bringUp(ctx, template); err != nil {
		return nil, errors.Join(fmt.Errorf("upstream: starting %s: %w", kind, err), s.Stop())
	}
	return s, nil
}

// bringUp fills the folder, starts the server and does its set-up.
func (s *Server) bringUp(ctx context.Context, template string) error {
	if err := copyTree(ctx, template, s.dataFolder()); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	return s.setUp(ctx)
}

// setUp makes the wanted database, reads the version and runs the set-up
// statements.
func (s *Server) setUp(ctx context.Context) error {
	if name := s.options.database; name != "" && name != s.Database {
		if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
			return err
		}
		s.Database = name
	}
	db, err := s.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	query := "SELECT version()"
	if s.Dialect == DialectPostgres {
		query = "SELECT current_setting('server_version')"
	}
	if err := db.QueryRowContext(ctx, query).Scan(&s.Version); err != nil {
		return err
	}
	for _, statement := range s.options.statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("set-up statement %q: %w", statement, err)
		}
	}
	return nil
}

func (s *Server) exec(ctx context.Context, statement string) error {
	db, err := s.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

func (s *Server) dataFolder() string { return filepath.Join(s.Dir, "data") }
func (s *Server) logFile() string    { return filepath.Join(s.Dir, "server.log") }

// Address is host:port.
func (s *Server) Address() string { return fmt.Sprintf("%s:%d", s.Host, s.Port) }

// DSN is the server's address as users of Freshet write it:
// mysql://user:pass@host:port/db or postgres://user:pass@host:port/db?sslmode=disable.
func (s *Server) DSN() string {
	u := url.URL{Scheme: s.Dialect, User: url.UserPassword(s.User, s.Password), Host: s.Address(), Path: "/" + s.Database}
	if s.Dialect == DialectPostgres {
		u.RawQuery = "sslmode=disable"
	}
	return u.String()
}

// Driver is the database/sql driver that GoDSN is for: "mysql" or "pgx".
func (s *Server) Driver() string {
	if s.Dialect == DialectPostgres {
		return "pgx"
	}
	return "mysql"
}

// GoDSN is the address for database/sql with Driver.
func (s *Server) GoDSN() string {
	if s.Dialect == DialectPostgres {
		return s.DSN()
	}
	c := mysqldriver.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = s.User, s.Password, "tcp", s.Address(), s.Database
	return c.FormatDSN()
}

// Open gives a pool of connections to the server, of which none is made yet.
func (s *Server) Open() (*sql.DB, error) { return sql.Open(s.Driver(), s.GoDSN()) }

// Pid is the server's process id, 0 while it is down.
func (s *Server) Pid() int {
	if s.process == nil {
		return 0
	}
	return s.process.pid()
}

// Log is what the server has written to its log so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}
