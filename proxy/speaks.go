package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// Explain makes of an error to connect what the user can act upon: a DSN whose
// scheme is not what the server speaks ends in a wait on both sides, for MySQL's
// server speaks first and PostgreSQL's client does.
func (t Target) Explain(ctx context.Context, err error) error {
	if err == nil || fromServer(err) {
		return err
	}
	switch speaks := speaks(ctx, t.Address()); {
	case speaks == "mysql" && t.Dialect == "postgres":
		return fmt.Errorf("%s speaks MySQL's protocol: want mysql://… for it", t.Address())
	case speaks == "postgres" && t.Dialect == "mysql":
		return fmt.Errorf("%s speaks PostgreSQL's protocol: want postgres://… for it", t.Address())
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer from %s within %s (connect_timeout in the DSN): %w", t.Address(), t.ConnectTimeout, err)
	}
	return err
}

// fromServer tells whether an error is the server's own word.
func fromServer(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &pg) || errors.As(err, &my)
}

const (
	// greetingTime is how long a MySQL server may take to speak first.
	greetingTime = 500 * time.Millisecond
	answerTime   = 2 * time.Second
)

// speaks finds out whether "mysql" or "postgres" is spoken at an address; ""
// when neither shows. A MySQL server greets (protocol version 10, or an error,
// after a header whose sequence number is 0); a PostgreSQL server answers an
// SSLRequest with one letter.
func speaks(ctx context.Context, address string) string {
	d := net.Dialer{Timeout: answerTime}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	defer c.Close()
	var b [5]byte
	got := func(patience time.Duration) int {
		if c.SetReadDeadline(time.Now().Add(patience)) != nil {
			return 0
		}
		n, err := c.Read(b[:])
		if err != nil {
			return 0
		}
		return n
	}
	n := got(greetingTime)
	if n == 0 {
		request := binary.BigEndian.AppendUint32(nil, 8)
		request = binary.BigEndian.AppendUint32(request, 80877103)
		if _, err := c.Write(request); err != nil {
			return ""
		}
		n = got(answerTime)
	}
	switch {
	case n == 5 && b[3] == 0 && (b[4] == 10 || b[4] == 0xff):
		return "mysql"
	case n == 1 && (b[0] == 'S' || b[0] == 'N'):
		return "postgres"
	}
	return ""
}
