package witness

import (
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"freshet/bench/upstream"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// Endpoint is where a load generator connects: a server, or Freshet before it.
type Endpoint struct {
	Dialect  string // upstream.DialectMySQL or upstream.DialectPostgres
	Host     string
	Port     int
	User     string
	Password string
	Database string
}

// Direct is the server itself.
func Direct(s *upstream.Server) Endpoint {
	return Endpoint{s.Dialect, s.Host, s.Port, s.User, s.Password, s.Database}
}

// At is the same database behind another address, host:port.
func (e Endpoint) At(address string) (Endpoint, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return e, err
	}
	e.Host = host
	e.Port, err = strconv.Atoi(port)
	return e, err
}

// Mode is how a pool sends its statements.
type Mode string

// Text sends each statement with its values written into it, prepared sends it
// once and its values apart.
const (
	Text     Mode = "text"
	Prepared Mode = "prepared"
)

// Open gives a pool whose statements go the mode's way.
func (e Endpoint) Open(mode Mode) (*sql.DB, error) {
	address := net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	if e.Dialect == upstream.DialectPostgres {
		protocol := "cache_statement"
		if mode == Text {
			protocol = "simple_protocol"
		}
		u := url.URL{
			Scheme: "postgres", User: url.UserPassword(e.User, e.Password), Host: address, Path: "/" + e.Database,
			RawQuery: "sslmode=disable&default_query_exec_mode=" + protocol,
		}
		return sql.Open("pgx", u.String())
	}
	c := mysqldriver.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = e.User, e.Password, "tcp", address, e.Database
	c.InterpolateParams = mode == Text
	return sql.Open("mysql", c.FormatDSN())
}

// placeholder is how the dialect writes its nth parameter.
func placeholder(dialect string, n int) string {
	if dialect == upstream.DialectPostgres {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

func (e Endpoint) String() string {
	return fmt.Sprintf("%s at %s:%d", e.Dialect, e.Host, e.Port)
}
