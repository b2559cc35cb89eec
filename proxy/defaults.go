package proxy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// The defaults that new sessions start with are part of every answer's
// context without being in its key. They are read every defaultsEvery; when
// they differ, everything cached is dropped and links opened before are not
// used for the cache any more.
const defaultsEvery = time.Second

const mysqlDefaults = `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('sql_mode','time_zone','character_set_client',
	'character_set_results','character_set_connection','collation_connection','collation_server','group_concat_max_len',
	'sql_select_limit','max_sort_length','default_week_format','div_precision_increment','lc_time_names','autocommit',
	'lower_case_table_names','init_connect','sql_auto_is_null','transaction_isolation','tx_isolation','system_time_zone',
	'max_join_size','sql_big_selects','optimizer_switch')`

const postgresDefaults = `SELECT name, setting FROM pg_settings WHERE source NOT IN ('default','client','session','override') ORDER BY 1`

// watchDefaults runs until ctx ends.
func (u *Upstream) watchDefaults(ctx context.Context, changed func()) {
	query := mysqlDefaults
	if u.Target.Dialect == "postgres" {
		query = postgresDefaults
	}
	var known string
	failed := 0
	tick := time.NewTicker(defaultsEvery)
	defer tick.Stop()
	for {
		now, err := u.readDefaults(ctx, query)
		if failed++; !noAnswer(err) {
			failed = 0
		}
		u.unreachable.Store(failed >= unreachableAfter)
		if err == nil && now != known {
			if known != "" {
				u.generation.Add(1)
				changed()
			}
			known = now
		}
		u.lookForUnseen(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unreachableAfter is how many looks in a row have to fail before an upstream
// counts as unreachable: one may meet a connection that has just been lost.
const unreachableAfter = 2

// noAnswer tells that there is no server, or one that says it is starting or
// going down (PostgreSQL's 57P01 to 57P03, ER_SERVER_SHUTDOWN). Whatever else a
// server says, clients may still be served.
func noAnswer(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case err == nil:
		return false
	case errors.As(err, &pg):
		return strings.HasPrefix(pg.Code, "57P")
	case errors.As(err, &my):
		return my.Number == 1053
	}
	return true
}

func (u *Upstream) readDefaults(ctx context.Context, query string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, u.ConnectTimeout)
	defer cancel()
	rows, err := sideQuerier{u.db}.Query(ctx, query)
	if err != nil {
		u.log.Debug("defaults not read", "cause", err)
		return "", err
	}
	var b strings.Builder
	for _, r := range rows {
		for _, c := range r {
			if c != nil {
				b.WriteString(*c)
			}
			b.WriteByte(0)
		}
	}
	return b.String(), nil
}
