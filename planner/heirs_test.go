package planner

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/cache/feed"
)

// TestTooManyHeirs: a table that is read with too many others is forwarded, and
// says why; without them it is read like any.
func TestTooManyHeirs(t *testing.T) {
	server := upstream.Need(t, "postgres15")
	db := server.DB(t)
	exec := func(q string) {
		t.Helper()
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	exec("DROP TABLE IF EXISTS crowd")
	exec("CREATE TABLE crowd (id int PRIMARY KEY) PARTITION BY RANGE (id)")
	defer exec("DROP TABLE crowd")
	exec(fmt.Sprintf("DO $$ BEGIN FOR i IN 1..%d LOOP EXECUTE format('CREATE TABLE crowd_%%s PARTITION OF crowd FOR VALUES FROM (%%s) TO (%%s)', i, i, i + 1); END LOOP; END $$", feed.MaxHeirs))
	scope := Scope{Database: server.Database, User: server.User, Charset: "UTF8", SearchPath: "public"}
	explain := func(q string) *Plan {
		t.Helper()
		p := New(Config{Dialect: Postgres, Version: server.Version, Querier: sqlQuerier{db}})
		plan, err := p.Explain(context.Background(), scope, q)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if plan := explain("SELECT id FROM crowd WHERE id = 1"); !plan.Cacheable {
		t.Errorf("%d partitions: %s", feed.MaxHeirs, plan.Reason)
	}
	exec("CREATE TABLE crowd_0 PARTITION OF crowd DEFAULT")
	if plan := explain("SELECT id FROM crowd WHERE id = 1"); plan.Cacheable || !strings.Contains(plan.Reason, "more than 256") {
		t.Errorf("one more: %q", plan.Reason)
	}
	if plan := explain("SELECT id FROM ONLY crowd"); !plan.Cacheable {
		t.Errorf("ONLY: %s", plan.Reason)
	}
	if plan := explain("SELECT id FROM crowd_0"); !plan.Cacheable {
		t.Errorf("a partition: %s", plan.Reason)
	}
}
