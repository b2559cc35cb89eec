package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/cache/feed/side"
)

// mysqlSide is a line for questions.
type mysqlSide = side.Line[*client.Conn]

// newSide makes a line to the server whose log is followed: behind one name
// there may be several.
func (s *mysqlSource) newSide() *mysqlSide {
	return s.sideTo(&s.dsn, func() string { return s.fact().identity })
}

// newReplicaSide makes a line to the replica.
func (s *mysqlSource) newReplicaSide() *mysqlSide {
	return s.sideTo(s.logDSN(), func() string { return s.logFact().identity })
}

func (s *mysqlSource) sideTo(dsn *mysqlDSN, identity func() string) *mysqlSide {
	return side.New(side.Kind[*client.Conn]{
		Dial:   func(ctx context.Context) (*client.Conn, string, error) { return dialSide(ctx, dsn) },
		Server: identity,
		Elsewhere: func(server string) error {
			err := fmt.Errorf("feed: %s is now another server (%s, not %s)", dsn.addr, server, identity())
			s.feed.cut(err)
			return err
		},
		Judge: func(_ *client.Conn, err error) side.Fate { return judgeMySQL(err) },
		// The connection's own Close writes to its state, its socket's does not.
		Interrupt: func(c *client.Conn) { closeQuietly(c.Conn.Conn) },
		Close:     func(c *client.Conn) { closeQuietly(c) },
	})
}

// dialSide opens a line and names the server at its other end.
func dialSide(ctx context.Context, dsn *mysqlDSN) (*client.Conn, string, error) {
	conn, release, err := dsn.dial(ctx, "", sideTimeout)
	if err != nil {
		return nil, "", err
	}
	facts, err := readMySQLFacts(conn)
	if err == nil && facts.maria {
		_, err = conn.Execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	}
	if !release() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		closeQuietly(conn)
		return nil, "", err
	}
	return conn, facts.identity, nil
}

// Error numbers with which a server takes its leave on a line at rest (MySQL
// "Server Error Message Reference"; MariaDB "MariaDB Error Code Reference").
const (
	mysqlServerShutdown     = 1053
	mysqlConnectionKilled   = 1927 // MariaDB
	mysqlIdleDisconnect     = 4031 // MySQL
	mysqlServerIsTerminated = 3169 // MySQL: the session was killed
)

// judgeMySQL keeps no line after an error: a statement of several may have
// left a transaction open on it.
func judgeMySQL(err error) side.Fate {
	switch number := errorNumber(err); number {
	case mysqlServerShutdown, mysqlConnectionKilled, mysqlIdleDisconnect, mysqlServerIsTerminated:
		return side.Broken
	case 0:
		if errors.Is(err, mysql.ErrBadConn) {
			return side.Broken
		}
	}
	return side.Drop
}
