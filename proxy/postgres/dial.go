package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/planner"
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// linkState is what is known of one link. It belongs to whoever has the link.
type linkState struct {
	cancelKey pg.CancelRequest

	// settings is what the link has on top of what it was opened with, in the
	// form of state.settings.
	settings string
	// hidden: a statement of unknown effect ran here; it may have left a
	// setting that no catalog shows. user is the session it belonged to.
	hidden bool
	user   uint64
	// writer is the session whose statement last wrote here: the values that
	// currval and lastval know are its own.
	writer uint64

	// trust is what was known of the database's code when statements ran here
	// that may run it, trustedAt when they were done, trustedBy whose they were;
	// see hidden.go. doubtful: they may have left anything here.
	trust     *planner.Hidden
	trustedAt int64
	trustedBy uint64
	doubtful  bool

	// mixed: a simple query ran in the middle of a batch's transaction. PostgreSQL
	// 18 can be left with a transaction that is neither open nor ended by that,
	// which the next statement would fail of: it must not be another session's.
	mixed bool

	prepared   map[string]*linkStatement // by statement.key
	nextName   uint64
	useCounter uint64
	unnamed    presence // of the unnamed statement; what is nil for none or unknown
}

// Dial opens a link with the pool key's user, database and startup parameters, and asks it what a fresh session is.
func (protocol) Dial(ctx context.Context, u *proxy.Upstream, key string) (net.Conn, any, error) {
	sh := sharedOf(u)
	if sh.broken != nil {
		return nil, nil, sh.broken
	}
	c := sh.config.Copy()
	database, parameters := splitKey(key)
	c.Database = database
	if name := parameters["user"]; name != "" {
		user, err := u.Login(name)
		if err != nil {
			return nil, nil, err
		}
		c.User, c.Password = user.Name, user.Password
		delete(parameters, "user")
	}
	maps.Copy(c.RuntimeParams, parameters)
	c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	first := state{searchPath: "", standardStrings: "on"}
	if !replicates(parameters) {
		if first, err = askDirectly(ctx, conn, stateQuery(sh.prefix, c.User, nil)); err != nil {
			return nil, nil, errors.Join(err, conn.Close(ctx))
		}
	}
	if err := conn.SyncConn(ctx); err != nil {
		return nil, nil, errors.Join(err, conn.Close(ctx))
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, nil, err
	}
	line, err := plainLine(hijacked.Conn)
	if err != nil {
		return nil, nil, errors.Join(err, hijacked.Conn.Close())
	}
	g := &greeting{state: first, scope: u.Planner.Scope(first.scope(c.User, database))}
	for _, name := range slices.Sorted(maps.Keys(hijacked.ParameterStatuses)) {
		g.parameters = append(g.parameters, pg.Option{Name: name, Value: hijacked.ParameterStatuses[name]})
	}
	sh.greet(key, g)
	return line, &linkState{
		cancelKey: pg.CancelRequest{ProcessID: hijacked.PID, Secret: hijacked.SecretKey},
		settings:  first.settings,
		prepared:  map[string]*linkStatement{},
	}, nil
}

// askDirectly runs the state query before the link is on a loop.
func askDirectly(ctx context.Context, conn *pgconn.PgConn, query string) (state, error) {
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return state{}, fmt.Errorf("state of a fresh session: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return state{}, errors.New("state of a fresh session: want one row")
	}
	return readState(results[0].Rows[0])
}

// plainLine gives the loop a socket it can poll.
func plainLine(conn net.Conn) (net.Conn, error) {
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return conn, nil
	}
	return proxy.Bridge(conn)
}

func replicates(parameters map[string]string) bool { return parameters["replication"] != "" }
