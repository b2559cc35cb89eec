package proxy

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Target is a parsed upstream DSN.
type Target struct {
	URL      *url.URL
	Dialect  string // "mysql" (also MariaDB) or "postgres"
	Host     string
	Port     string
	User     string
	Password string
	Database string
	// Params are the DSN's parameters that have a meaning here, see
	// parameters.go.
	Params url.Values
	// ConnectTimeout is connect_timeout (seconds, libpq) or timeout
	// (go-sql-driver); 5 s when neither is given.
	ConnectTimeout time.Duration
}

// Address is host:port.
func (t Target) Address() string { return net.JoinHostPort(t.Host, t.Port) }

// ParseTarget reads mysql://, mariadb://, postgres:// and postgresql:// DSNs.
func ParseTarget(dsn string) (Target, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return Target{}, fmt.Errorf("upstream DSN: %w", hideDSN(err))
	}
	t := Target{URL: u, Host: u.Hostname(), Port: u.Port(), Params: u.Query(), ConnectTimeout: 5 * time.Second}
	switch u.Scheme {
	case "mysql", "mariadb":
		t.Dialect = "mysql"
		t.Port = orElse(t.Port, "3306")
	case "postgres", "postgresql":
		t.Dialect = "postgres"
		t.Port = orElse(t.Port, "5432")
	default:
		return Target{}, fmt.Errorf("upstream DSN: scheme %q: want mysql://, mariadb://, postgres:// or postgresql://", u.Scheme)
	}
	t.Host = orElse(t.Host, "127.0.0.1")
	t.Database = strings.TrimPrefix(u.Path, "/")
	if u.User != nil {
		t.User = u.User.Username()
		t.Password, _ = u.User.Password()
	}
	if t.User == "" {
		return Target{}, fmt.Errorf("upstream DSN: no user: want %s://user:password@host:port/database", u.Scheme)
	}
	if n, err := strconv.ParseUint(t.Port, 10, 16); err != nil || n == 0 {
		return Target{}, fmt.Errorf("upstream DSN: port %s: want 1 to 65535", t.Port)
	}
	if strings.Contains(t.Host, ",") {
		return Target{}, fmt.Errorf("upstream DSN: host %q: want one host, for it is one server's change stream that is followed", t.Host)
	}
	if t.Dialect == "postgres" {
		t.Database = orElse(t.Database, t.User)
	}
	if err := t.readParameters(); err != nil {
		return Target{}, fmt.Errorf("upstream DSN: %w", err)
	}
	// Whoever reads the URL finds what was understood, not what the
	// environment (PGPORT …) or another default would make of it.
	u.Host, u.Path, u.RawPath, u.RawQuery = t.Address(), "/"+t.Database, "", t.Params.Encode()
	return t, t.checkPostgres()
}

// hideDSN keeps a parse error from repeating the DSN and its password.
func hideDSN(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// connector opens side connections, for what Freshet itself asks.
func (t Target) connector() (driver.Connector, error) {
	if t.Dialect == "postgres" {
		c, err := pgx.ParseConfig(t.URL.String())
		if err != nil {
			return nil, err
		}
		// What reads the catalog is not to wait for a client's locks.
		c.RuntimeParams["lock_timeout"] = "500ms"
		return stdlib.GetConnector(*c), nil
	}
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", t.Address()
	c.User, c.Passwd, c.DBName = t.User, t.Password, t.Database
	c.Timeout = t.ConnectTimeout
	c.TLSConfig = t.Params.Get("tls")
	c.Logger = &mysql.NopLogger{} // its errors reach us as errors
	return mysql.NewConnector(c)
}
