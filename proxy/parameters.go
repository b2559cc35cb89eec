package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// DSNs are copied from applications, so what their drivers know is taken: what
// concerns the upstream is done, what concerns the client alone is left to the
// clients. What nobody knows is refused, for it is most often a typing mistake,
// and one in tls or sslmode would cost the encryption.

// mysqlClientOnly are go-sql-driver's parameters that say how the application
// wants to be served; each client of Freshet says so in its own DSN.
var mysqlClientOnly = []string{"allowAllFiles", "allowCleartextPasswords", "allowFallbackToPlaintext", "allowNativePasswords", "allowOldPasswords",
	"charset", "checkConnLiveness", "clientFoundRows", "collation", "columnsWithAlias", "compress", "connectionAttributes", "interpolateParams", "loc",
	"maxAllowedPacket", "multiStatements", "parseTime", "readTimeout", "rejectReadOnly", "strict", "timeTruncate", "writeTimeout"}

// postgresClientOnly are libpq's parameters of the same kind (PostgreSQL 18
// documentation, 32.1.2) that pgconn does not know: it would pass them on as
// settings of the session.
var postgresClientOnly = []string{"fallback_application_name", "gssdelegation", "gssencmode", "gsslib", "keepalives", "keepalives_count",
	"keepalives_idle", "keepalives_interval", "sslcompression", "tcp_user_timeout"}

// postgresInURL are parameters for what stands elsewhere in the DSN, and
// replication, which would make every link a replication connection.
var postgresInURL = []string{"database", "dbname", "host", "hostaddr", "password", "port", "replication", "user"}

func (t *Target) readParameters() error {
	if t.Dialect == "postgres" {
		return t.postgresParameters()
	}
	return t.mysqlParameters()
}

func (t *Target) mysqlParameters() error {
	for name := range t.Params {
		switch {
		case name == "tls", name == "timeout", name == "connect_timeout":
		case slices.Contains(mysqlClientOnly, name):
			t.Params.Del(name)
		default:
			return fmt.Errorf("unknown parameter %q: want tls (true, skip-verify, preferred or false), timeout or connect_timeout; "+
				"of the client's own %s are accepted and have no effect", name, strings.Join(mysqlClientOnly, ", "))
		}
	}
	if t.Params.Has("tls") {
		mode, ok := map[string]string{"": "false", "0": "false", "false": "false", "1": "true", "true": "true", "skip-verify": "skip-verify",
			"preferred": "preferred"}[strings.ToLower(t.Params.Get("tls"))]
		if !ok {
			return fmt.Errorf("tls=%q: want true, skip-verify, preferred or false", t.Params.Get("tls"))
		}
		t.Params.Set("tls", mode)
	}
	return errors.Join(t.readTimeout("timeout"), t.readTimeout("connect_timeout"))
}

func (t *Target) postgresParameters() error {
	for name := range t.Params {
		switch {
		case slices.Contains(postgresInURL, name):
			return fmt.Errorf("parameter %q is not taken: want postgres://user:password@host:port/database", name)
		case slices.Contains(postgresClientOnly, name):
			t.Params.Del(name)
		}
	}
	if err := t.readTimeout("connect_timeout"); err != nil {
		return err
	}
	if t.Params.Has("connect_timeout") {
		t.Params.Set("connect_timeout", strconv.Itoa(int((t.ConnectTimeout+time.Second-1)/time.Second)))
	}
	return nil
}

// readTimeout reads a duration, or a number of seconds.
func (t *Target) readTimeout(name string) error {
	v := t.Params.Get(name)
	if v == "" {
		return nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil {
		return fmt.Errorf("%s=%q: want seconds", name, v)
	}
	if d > 0 {
		t.ConnectTimeout = d
	}
	return nil
}

// checkPostgres has the parameters judged by what will use them. Those that it
// does not know are settings for Freshet's sessions (search_path=…), which the
// server refuses if it does not know them either.
func (t *Target) checkPostgres() error {
	if t.Dialect != "postgres" {
		return nil
	}
	_, err := pgconn.ParseConfig(t.URL.String())
	if err == nil {
		return nil
	}
	text := err.Error() // begins with the DSN
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+3:]
	}
	return fmt.Errorf("upstream DSN: %s", text)
}
