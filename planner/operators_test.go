package planner

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"freshet/bench/upstream"
)

// TestAddedOperators holds the judgement of operators and functions to the
// server: what a statement that is taken to use built-in ones alone really uses,
// a view over it tells in pg_depend.
func TestAddedOperators(t *testing.T) {
	for _, kind := range []upstream.Kind{"postgres15", "postgres18"} {
		t.Run(string(kind), func(t *testing.T) {
			server := upstream.Need(t, kind)
			o := &operators{t: t, db: server.DB(t), r: &randomSQL{Rand: seeded(t)}}
			o.scope = Scope{Database: server.Database, User: server.User, Charset: "UTF8", SearchPath: "added, public"}
			o.exec("DROP SCHEMA IF EXISTS added CASCADE")
			for range 12 {
				o.round(Config{Dialect: Postgres, Version: server.Version, Querier: sqlQuerier{o.db}})
			}
			t.Logf("%d statements that the server takes: %d judged built in, %d of them beside added types; %d refused, %d of them needlessly",
				o.taken, o.builtIn, o.beside, o.refused, o.needless)
			if o.beside < 40 || o.refused < 40 {
				t.Error("what was drawn proves nothing")
			}
			o.exec("DROP SCHEMA IF EXISTS added CASCADE")
		})
	}
}

type operators struct {
	t     *testing.T
	db    *sql.DB
	r     *randomSQL
	names []string // what operands are drawn from
	scope Scope

	taken, builtIn, beside, refused, needless int
}

func (o *operators) exec(q string) {
	o.t.Helper()
	if _, err := o.db.Exec(q); err != nil {
		o.t.Fatalf("%s: %v", q, err)
	}
}

// additions are what users may add; each stands alone.
var additions = []string{
	"CREATE FUNCTION added.mixed(citext, text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.= (LEFTARG = citext, RIGHTARG = text, FUNCTION = added.mixed)",
	"CREATE FUNCTION added.turned(text, citext) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.< (LEFTARG = text, RIGHTARG = citext, FUNCTION = added.turned)",
	"CREATE FUNCTION added.few(added.few, numeric) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.> (LEFTARG = added.few, RIGHTARG = numeric, FUNCTION = added.few)",
	"CREATE FUNCTION added.felt(added.mood, added.mood) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.<> (LEFTARG = added.mood, RIGHTARG = added.mood, FUNCTION = added.felt)",
	"CREATE FUNCTION added.many(added.few[], integer[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.>= (LEFTARG = added.few[], RIGHTARG = integer[], FUNCTION = added.many)",
	"CREATE FUNCTION added.both(integer, text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.<= (LEFTARG = integer, RIGHTARG = text, FUNCTION = added.both)",
	"CREATE FUNCTION added.whole(added.pair, added.pair) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR added.= (LEFTARG = added.pair, RIGHTARG = added.pair, FUNCTION = added.whole)",
	"CREATE FUNCTION added.sum(citext, integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1'; CREATE OPERATOR added.+ (LEFTARG = citext, RIGHTARG = integer, FUNCTION = added.sum)",
	"CREATE FUNCTION added.lower(citext) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''x''::text'",
	"CREATE FUNCTION added.abs(added.few) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1'",
	"CREATE FUNCTION added.coal(integer) RETURNS citext IMMUTABLE LANGUAGE sql AS 'SELECT ''x''::citext'; CREATE CAST (integer AS citext) WITH FUNCTION added.coal(integer) AS IMPLICIT",
}

func (o *operators) round(c Config) {
	for _, q := range []string{"CREATE SCHEMA added", "CREATE EXTENSION citext SCHEMA added", "CREATE DOMAIN added.few AS integer", "CREATE TYPE added.mood AS ENUM ('sad', 'ok')",
		"CREATE TYPE added.pair AS (a integer, b text)",
		"CREATE TABLE added.t (i integer, b bigint, n numeric, s text, v varchar(9), a integer[], c citext, f added.few, m added.mood, p added.pair)",
		"CREATE TABLE added.u (i integer, s text, k smallint)"} {
		o.exec("SET search_path = added, public; " + q)
	}
	for _, q := range additions {
		if o.r.chance(25) {
			o.exec("SET search_path = added, public; " + q)
		}
	}
	planner := New(c)
	for range 250 {
		o.one(planner, o.statement())
	}
	o.exec("DROP SCHEMA added CASCADE")
}

func (o *operators) statement() string {
	from := pick(o.r, "added.t t", "added.t t JOIN added.u u USING (i)", "added.t t, added.u u", "added.u u", "added.t t CROSS JOIN (SELECT c AS k, v AS s FROM added.t) d")
	where := o.condition()
	if o.r.chance(40) {
		where = fmt.Sprintf("%s %s %s", where, pick(o.r, "AND", "OR"), o.condition())
	}
	return "SELECT 1 AS one FROM " + from + " WHERE " + where
}

var (
	numberNames = []string{"t.i", "u.i", "b", "n", "k", "u.k", "f", "1", "2", "1.5", "'1'", "NULL"}
	textNames   = []string{"t.s", "u.s", "s", "v", "c", "t.c", "'a'", "'b'", "NULL"}
)

func (o *operators) condition() string {
	op := pick(o.r, "=", "=", "<", ">", "<>", ">=", "<=", "LIKE", "IS DISTINCT FROM")
	o.names = pick(o.r, numberNames, numberNames, textNames, textNames, slices.Concat(numberNames, textNames, []string{"a", "m", "p", "'{1}'"}))
	a, b := o.operand(0), o.operand(0)
	switch o.r.IntN(8) {
	case 0:
		return fmt.Sprintf("%s BETWEEN %s AND %s", a, b, o.operand(1))
	case 1:
		return fmt.Sprintf("%s IN (%s, %s)", a, b, o.operand(1))
	case 2:
		return fmt.Sprintf("(%s, %s) = (%s, %s)", a, o.operand(1), b, o.operand(1))
	case 3:
		return fmt.Sprintf("CASE %s WHEN %s THEN true ELSE false END", a, b)
	case 4:
		return fmt.Sprintf("%s = ANY (ARRAY[%s, %s])", a, b, o.operand(1))
	case 5:
		return fmt.Sprintf("%s IN (SELECT %s FROM added.t t)", a, o.operand(1))
	}
	return fmt.Sprintf("%s %s %s", a, op, b)
}

func (o *operators) operand(depth int) string {
	if depth < 2 && o.r.chance(30) {
		a, b := o.operand(depth+1), o.operand(depth+1)
		return fmt.Sprintf(pick(o.r, "(%s + %s)", "(%s || %s)", "coalesce(%s, %s)", "nullif(%s, %s)", "greatest(%s, %s)", "CASE WHEN true THEN %s ELSE %s END"), a, b)
	}
	if depth < 2 && o.r.chance(20) {
		return fmt.Sprintf(pick(o.r, "lower(%s)", "abs(%s)", "(-%s)", "(%s)::text", "(%s)::integer", "length(%s)"), o.operand(depth+1))
	}
	return pick(o.r, o.names...)
}

func (o *operators) one(planner *Planner, q string) {
	if _, err := o.db.Exec("SET search_path = added, public; CREATE VIEW added.told AS " + q); err != nil {
		return // the server refuses it
	}
	var added int
	err := o.db.QueryRow(`SELECT count(*) FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
		WHERE w.ev_class = 'added.told'::regclass AND d.refobjid >= 16384 AND d.refclassid IN ('pg_operator'::regclass, 'pg_proc'::regclass)`).Scan(&added)
	if err != nil {
		o.t.Fatal(err)
	}
	o.exec("DROP VIEW added.told")
	plan, err := planner.Explain(context.Background(), o.scope, q)
	if err != nil {
		o.t.Fatal(err)
	}
	o.taken++
	switch builtIn := !strings.Contains(plan.Reason, "not built in"); {
	case builtIn && added > 0:
		o.t.Errorf("it uses %d added operators or functions, and is taken to use none (%s): %s", added, plan.Reason, q)
	case builtIn:
		o.builtIn++
		if strings.Contains(q, "added.t") {
			o.beside++
		}
	default:
		o.refused++
		if added == 0 {
			o.needless++
		}
	}
}
