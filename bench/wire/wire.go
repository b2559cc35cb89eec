// Package wire speaks the two client protocols as raw messages. The gate and
// the load generators need every byte of a reply as the server sent it, which
// no driver hands out; what they need of a protocol is small: connect,
// authenticate, send a request, know where its reply ends.
//
// It trusts neither side: every length from a peer is checked, and no message
// larger than MaxMessageBytes is read into memory.
package wire

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// The two dialects a Target can have.
const (
	MySQL    = "mysql"
	Postgres = "postgres"
)

// MaxMessageBytes bounds one message (after MySQL's 16 MiB packets are joined).
const MaxMessageBytes = 256 << 20

// ErrMalformed is wrapped by every error about bytes that break the protocol.
var ErrMalformed = errors.New("malformed message")

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// Message is one message of a reply: its kind in the protocol's own words (a
// PostgreSQL message's type letter, "ok", "row", … for MySQL) and its bytes
// without length or sequence number.
type Message struct {
	Kind string
	Body []byte
}

// Target is where a DSN points.
type Target struct {
	Dialect  string // MySQL or Postgres
	Host     string
	Port     int
	User     string
	Password string
	Database string
	Params   url.Values
}

// Parse reads mysql://, mariadb://, postgres:// and postgresql:// DSNs.
func Parse(dsn string) (Target, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		// The text of a url.Error repeats the DSN, and with it the password.
		return Target{}, errors.New("DSN cannot be read; expected mysql://user:password@host:port/database or postgres://…")
	}
	t := Target{Host: u.Hostname(), Database: strings.TrimPrefix(u.Path, "/"), Params: u.Query()}
	switch u.Scheme {
	case "mysql", "mariadb":
		t.Dialect, t.Port = MySQL, 3306
	case "postgres", "postgresql":
		t.Dialect, t.Port = Postgres, 5432
	default:
		return Target{}, fmt.Errorf("DSN scheme %q is not one of mysql, mariadb, postgres, postgresql", u.Scheme)
	}
	if t.Host == "" {
		t.Host = "127.0.0.1"
	}
	if p := u.Port(); p != "" {
		if t.Port, err = strconv.Atoi(p); err != nil || t.Port < 1 || t.Port > 65535 {
			return Target{}, fmt.Errorf("DSN port %q is not a port", p)
		}
	}
	if u.User != nil {
		t.User = u.User.Username()
		t.Password, _ = u.User.Password()
	}
	if t.Dialect == Postgres && t.Database == "" {
		t.Database = t.User
	}
	return t, nil
}

// Address is host:port as net.Dial takes it.
func (t Target) Address() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// DSN is the target as a URL again, its password included.
func (t Target) DSN() string {
	u := url.URL{Scheme: t.Dialect, Host: t.Address(), Path: "/" + t.Database, RawQuery: t.Params.Encode()}
	if t.User != "" {
		u.User = url.UserPassword(t.User, t.Password)
	}
	return u.String()
}

// At is the same target at another address.
func (t Target) At(host string, port int) Target {
	t.Host, t.Port = host, port
	return t
}

// In is the same target with another database.
func (t Target) In(database string) Target {
	t.Database = database
	return t
}
