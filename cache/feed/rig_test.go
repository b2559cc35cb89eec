package feed

import (
	"fmt"
	"strings"
	"testing"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

// everyKind runs a test body on each kind of server.
func everyKind(t *testing.T, body func(t *testing.T, s *upstream.Server)) {
	t.Helper()
	needsServers(t)
	for _, kind := range allKinds {
		t.Run(string(kind), func(t *testing.T) { body(t, upstream.Need(t, kind)) })
	}
}

// needsServers leaves the test out of `go test -short`.
func needsServers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no servers")
	}
}

var allKinds = append([]upstream.Kind{upstream.MariaDB11}, upstream.Kinds...)
var mysqlKinds = []upstream.Kind{upstream.MariaDB, upstream.MySQL, upstream.MariaDB11}
var postgresKinds = []upstream.Kind{upstream.Postgres15, upstream.Postgres18}

func kinds(t *testing.T, list []upstream.Kind, body func(t *testing.T, s *upstream.Server)) {
	t.Helper()
	needsServers(t)
	for _, kind := range list {
		t.Run(string(kind), func(t *testing.T) { body(t, upstream.Need(t, kind)) })
	}
}

func (r *rig) postgres() bool { return r.server.Dialect == upstream.DialectPostgres }

func (r *rig) schema() string {
	if r.postgres() {
		return "public"
	}
	return r.server.Database
}

// spec reads a table's definition from the catalog, as a planner would.
func (r *rig) spec(table string, kinds map[string]canon.Kind) TableSpec {
	r.t.Helper()
	spec := TableSpec{Schema: r.schema(), Name: table}
	query := "SELECT COLUMN_NAME, COLUMN_TYPE, IFNULL(CHARACTER_SET_NAME, '') FROM information_schema.COLUMNS " +
		"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '" + table + "' ORDER BY ORDINAL_POSITION"
	if r.postgres() {
		query = "SELECT attname, format_type(atttypid, atttypmod), '' FROM pg_attribute WHERE attrelid = '" + table +
			"'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
		r.family(table, &spec)
	}
	rows, err := r.db.Query(query)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c Column
		if err := rows.Scan(&c.Name, &c.Type, &c.Charset); err != nil {
			r.t.Fatal(err)
		}
		c.Kind = kinds[c.Name]
		c.Unsigned = strings.Contains(c.Type, "unsigned")
		spec.Columns = append(spec.Columns, c)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return spec
}

// family completes a definition with what else PostgreSQL's catalog says.
func (r *rig) family(table string, spec *TableSpec) {
	r.t.Helper()
	if err := r.db.QueryRow("SELECT c.oid, "+PoliciesSQL+" FROM pg_class c WHERE c.oid = '"+table+"'::regclass").
		Scan(&spec.OID, &spec.Policies); err != nil {
		r.t.Fatal(err)
	}
	rows, err := r.db.Query(pgFamilySQL+"SELECT oid FROM family WHERE oid <> $1 ORDER BY oid", spec.OID, false)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var oid uint32
		if err := rows.Scan(&oid); err != nil {
			r.t.Fatal(err)
		}
		spec.Heirs = append(spec.Heirs, oid)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
}

// watched is a followed table of a test, taken up.
type watched struct {
	*rig
	*Table
	kinds map[string]canon.Kind
}

func (r *rig) follow(table string, kinds map[string]canon.Kind) *watched {
	r.t.Helper()
	r.settle()
	// A definition that was read before a change the feed has yet to see is
	// refused, and the planner asks again.
	var tb *Table
	eventually(r.t, "table "+table+" is taken up", func() bool {
		if tb == nil || tb.Gone() {
			var err error
			if tb, err = r.tracker.Follow(r.spec(table, kinds)); err != nil {
				r.t.Fatal(err)
			}
		}
		since, up := tb.Since()
		return up && r.store.Visible() >= since
	})
	return &watched{rig: r, Table: tb, kinds: kinds}
}

func (w *watched) ordinal(column string) int {
	for i, c := range w.Spec.Columns {
		if c.Name == column {
			return i
		}
	}
	w.t.Fatalf("no column %s", column)
	return 0
}

// shape registers a shape, columns by name; reads "" is all.
func (w *watched) shape(equal, reads string) *watchedShape {
	w.t.Helper()
	ordinals := func(list string) (out []int) {
		for _, name := range strings.Fields(list) {
			out = append(out, w.ordinal(name))
		}
		return out
	}
	sh := w.tracker.ShapeOf(w.Table, ShapeSpec{Equal: ordinals(equal), Range: -1, Reads: ordinals(reads)})
	eventually(w.t, "shape "+equal+" is taken up", func() bool {
		since, up := sh.Since()
		return up && w.store.Visible() >= since
	})
	return &watchedShape{watched: w, Shape: sh}
}

type watchedShape struct {
	*watched
	*Shape
}

// key is the dependency on one key, the values given as text.
func (s *watchedShape) key(values ...string) cache.Dep {
	s.t.Helper()
	var h cache.KeyHasher
	h.Begin(s.Shape.ID)
	for i, v := range values {
		kind := s.Spec.Columns[s.spec.Equal[i]].Kind
		canonical, ok := canon.AppendText(kind, nil, []byte(v))
		if !ok {
			s.t.Fatalf("%q has no canonical form of kind %s", v, kind)
		}
		h.Value(canonical)
	}
	return h.Dep()
}

// now is the applied position, a line to compare marks with.
func (r *rig) now() cache.Position { r.settle(); return r.store.Applied() }

// wants fails the test unless the dependency was (or was not) marked after a
// position.
func (r *rig) wants(what string, dep cache.Dep, after cache.Position, marked bool) {
	r.t.Helper()
	if got := r.store.at(dep) > after; got != marked {
		r.t.Errorf("%s: marked %v, want %v", what, got, marked)
	}
}

func (s *watchedShape) wantsKey(after cache.Position, marked bool, values ...string) {
	s.t.Helper()
	s.wants(fmt.Sprintf("key %v", values), s.key(values...), after, marked)
}

func (s *watchedShape) wantsShape(after cache.Position, marked bool) {
	s.t.Helper()
	s.wants("the shape", cache.DepOfShape(s.Shape.ID), after, marked)
}

func (w *watched) wantsTable(after cache.Position, marked bool) {
	w.t.Helper()
	w.wants("the table", cache.DepOfTable(w.Table.ID), after, marked)
}

// fresh makes a table new.
func (r *rig) fresh(table, columns string) {
	r.t.Helper()
	r.exec("DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" ("+columns+")")
}

var intKinds = map[string]canon.Kind{"id": canon.Int, "a": canon.Int, "b": canon.Int}
