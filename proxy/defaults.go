package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// The defaults that new sessions start with are part of every answer's
// context without being in its key. Those that answers depend on are read every
// defaultsEvery, the others every othersEvery times, and all when a session has
// set one. When they differ, links opened before and what was learnt from them
// serve no new session any more; and if answers depend on what changed,
// everything cached is dropped.
const (
	defaultsEvery = time.Second
	othersEvery   = 10
)

const (
	mysqlDefaults = "SHOW GLOBAL VARIABLES"
	// The second half is what other users and databases begin with.
	postgresDefaults = `SELECT name, setting FROM pg_settings WHERE source NOT IN ('default','client','session','override')
		UNION ALL SELECT concat_ws(' ', 'of', setdatabase, setrole), setconfig::text FROM pg_db_role_setting ORDER BY 1`
)

// decisive are the variables of MySQL and MariaDB that answers depend on.
var decisive = map[string]bool{"sql_mode": true, "time_zone": true, "character_set_client": true, "character_set_results": true,
	"character_set_connection": true, "collation_connection": true, "collation_server": true, "group_concat_max_len": true,
	"sql_select_limit": true, "max_sort_length": true, "default_week_format": true, "div_precision_increment": true, "lc_time_names": true,
	"autocommit": true, "lower_case_table_names": true, "init_connect": true, "sql_auto_is_null": true, "transaction_isolation": true,
	"tx_isolation": true, "system_time_zone": true, "max_join_size": true, "sql_big_selects": true, "optimizer_switch": true,
	"max_allowed_packet": true}

// Generation numbers the server's defaults: a link of an older one may differ
// from what a new session would find. It is safe for use from all loops.
func (u *Upstream) Generation() uint64 { return u.generation.Load() }

// DefaultsSet tells that a session may have changed the server's defaults, so
// that who comes next finds the new ones. It is safe for use from all loops.
func (u *Upstream) DefaultsSet() {
	u.generation.Add(1)
	select {
	case u.lookNow <- struct{}{}:
	default: // a look is about to begin
	}
}

// watchDefaults runs until ctx ends. changed is told whether answers depend on
// what changed.
func (u *Upstream) watchDefaults(ctx context.Context, changed func(answers bool)) {
	first, others := watched{query: decisiveDefaults(), every: 1}, watched{query: mysqlDefaults, every: othersEvery}
	first.decisive = func(string) bool { return true }
	others.skip = func(name string) bool { return decisive[name] } // the first tells
	all := []*watched{&first, &others}
	if u.Target.Dialect == "postgres" {
		first.query, all = postgresDefaults, all[:1]
	}
	failed := 0
	tick := time.NewTicker(defaultsEvery)
	defer tick.Stop()
	asked := true
	for turn := 0; ; turn++ {
		for _, w := range all {
			if !asked && turn%w.every != 0 {
				continue
			}
			err := u.look(ctx, w, changed)
			if failed++; !noAnswer(err) {
				failed = 0
			}
			u.unreachable.Store(failed >= unreachableAfter)
			if err != nil {
				break
			}
		}
		u.lookForUnseen(ctx)
		asked = false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-u.lookNow:
			asked = true
		}
	}
}

// look reads some of the defaults, and tells if they are others than before.
func (u *Upstream) look(ctx context.Context, w *watched, changed func(answers bool)) error {
	now, err := u.readDefaults(ctx, w.query)
	if err != nil {
		return err
	}
	if differ, answers := w.compare(now); differ {
		u.generation.Add(1)
		changed(answers)
	}
	return nil
}

// watched are some of the defaults and how they are read.
type watched struct {
	defaults
	query string
	every int // how many turns apart
}

// decisiveDefaults reads the decisive variables alone: reading them all costs
// the server and this process too much to do it often.
func decisiveDefaults() string {
	names := slices.Sorted(maps.Keys(decisive))
	return mysqlDefaults + " WHERE Variable_name IN ('" + strings.Join(names, "', '") + "')"
}

// defaults are the server's as they were seen last.
type defaults struct {
	decisive func(name string) bool // nil: none
	skip     func(name string) bool // nil: none
	known    map[string]string      // nil before the first look
	changes  map[string]int
}

// maxDefaultChanges is how often a variable that is not decisive may change: one
// that does so more often is no default but moves by itself, and must not cost
// the links every time.
const maxDefaultChanges = 10

// compare takes in what a look found, and says whether a default changed and
// whether one that answers depend on did.
func (d *defaults) compare(now map[string]string) (differ, answers bool) {
	before := d.known
	d.known = now
	if before == nil {
		return false, false
	}
	if d.changes == nil {
		d.changes = map[string]int{}
	}
	note := func(name string) {
		switch {
		case d.skip != nil && d.skip(name):
		case d.decisive != nil && d.decisive(name):
			differ, answers = true, true
		case strings.HasPrefix(name, "gtid_"): // positions in the log
		default:
			d.changes[name]++
			differ = differ || d.changes[name] <= maxDefaultChanges
		}
	}
	for name, value := range now {
		if old, ok := before[name]; !ok || old != value {
			note(name)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			note(name)
		}
	}
	return differ, answers
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

func (u *Upstream) readDefaults(ctx context.Context, query string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, u.ConnectTimeout)
	defer cancel()
	rows, err := sideQuerier{u.db}.Query(ctx, query)
	if err != nil {
		u.log.Debug("defaults not read", "cause", err)
		return nil, err
	}
	all := make(map[string]string, len(rows))
	for _, r := range rows {
		if len(r) == 2 && r[0] != nil && r[1] != nil {
			all[*r[0]] = *r[1]
		}
	}
	return all, nil
}
