package feed

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

// TestRowsMarkTheirKeys runs random changes on real servers; what must be
// marked is computed from the rows before and after.
func TestRowsMarkTheirKeys(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		seed := seed.Of(t, "FRESHET_SEED", 1)
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, s)
		r.fresh("rowkeys", "id INT PRIMARY KEY, a INT, b INT, c VARCHAR(200)")
		if r.postgres() {
			r.exec("ALTER TABLE rowkeys REPLICA IDENTITY FULL")
		}
		w := r.follow("rowkeys", intKinds)
		shapes := []*watchedShape{w.shape("id", ""), w.shape("a", "a b"), w.shape("a b", "")}
		type line struct{ a, b int }
		rows := map[int]line{}
		for step := range 60 {
			after := r.now()
			want := map[cache.Dep]bool{}
			note := func(id int, l line) {
				want[shapes[0].key(strconv.Itoa(id))] = true
				want[shapes[1].key(strconv.Itoa(l.a))] = true
				want[shapes[2].key(strconv.Itoa(l.a), strconv.Itoa(l.b))] = true
			}
			var statement string
			id, a, b := rng.IntN(12), rng.IntN(5), rng.IntN(3)
			old, there := rows[id]
			switch {
			case !there:
				statement = fmt.Sprintf("INSERT INTO rowkeys VALUES (%d, %d, %d, 'x')", id, a, b)
				rows[id] = line{a, b}
				note(id, rows[id])
			case rng.IntN(3) == 0:
				statement = fmt.Sprintf("DELETE FROM rowkeys WHERE id = %d", id)
				delete(rows, id)
				note(id, old)
			case rng.IntN(4) == 0:
				// Only c changes: what reads only a and b is not touched.
				statement = fmt.Sprintf("UPDATE rowkeys SET c = 'y%d' WHERE id = %d", step, id)
				want[shapes[0].key(strconv.Itoa(id))] = true
				want[shapes[2].key(strconv.Itoa(old.a), strconv.Itoa(old.b))] = true
			default:
				statement = fmt.Sprintf("UPDATE rowkeys SET a = %d, b = %d, c = 'z%d' WHERE id = %d", a, b, step, id)
				rows[id] = line{a, b}
				want[shapes[0].key(strconv.Itoa(id))] = true
				for _, l := range []line{old, {a, b}} {
					if old != (line{a, b}) {
						want[shapes[1].key(strconv.Itoa(l.a))] = true
					}
					want[shapes[2].key(strconv.Itoa(l.a), strconv.Itoa(l.b))] = true
				}
			}
			r.exec(statement)
			r.settle()
			all := map[cache.Dep]string{}
			for i := range 12 {
				all[shapes[0].key(strconv.Itoa(i))] = fmt.Sprint("id ", i)
				for j := range 5 {
					all[shapes[1].key(strconv.Itoa(j))] = fmt.Sprint("a ", j)
					for k := range 3 {
						all[shapes[2].key(strconv.Itoa(j), strconv.Itoa(k))] = fmt.Sprint("a b ", j, k)
					}
				}
			}
			for dep, name := range all {
				r.wants(statement+": "+name, dep, after, want[dep])
			}
			w.wantsTable(after, true)
			for _, sh := range shapes {
				sh.wantsShape(after, false)
			}
			if t.Failed() {
				return
			}
		}
	})
}

type literalColumn struct {
	ddl    string
	kind   canon.Kind
	values []string // as SQL
}

var mysqlLiterals = []literalColumn{
	{"TINYINT", canon.Int, []string{"-128", "127", "0"}},
	{"TINYINT UNSIGNED", canon.Int, []string{"255"}},
	{"SMALLINT", canon.Int, []string{"-32768"}},
	{"SMALLINT UNSIGNED", canon.Int, []string{"65535"}},
	{"MEDIUMINT", canon.Int, []string{"-8388608", "8388607"}},
	{"MEDIUMINT UNSIGNED", canon.Int, []string{"16777215"}},
	{"INT UNSIGNED", canon.Int, []string{"4294967295"}},
	{"BIGINT", canon.Int, []string{"-9223372036854775808", "9223372036854775807"}},
	{"BIGINT UNSIGNED", canon.Int, []string{"18446744073709551615"}},
	{"DECIMAL(10,2)", canon.Decimal, []string{"1.19", "-12345678.90", "0"}},
	{"DECIMAL(65,30)", canon.Decimal, []string{"-99999999999999999999999999999999999.000000000000000000000000000001", "0.5"}},
	{"DECIMAL(5,5)", canon.Decimal, []string{"0.00001", "-0.12345"}},
	{"DECIMAL(20,0)", canon.Decimal, []string{"12345678901234567890"}},
	{"DECIMAL(18,9)", canon.Decimal, []string{"123456789.987654321", "-1.000000001"}},
	{"DATE", canon.Date, []string{"'2024-02-29'", "'1000-01-01'", "'9999-12-31'"}},
	{"VARCHAR(20)", canon.FoldASCII, []string{"'Abc'", "''", "'x  '"}},
	{"VARCHAR(300)", canon.FoldASCII, []string{"'Abc'", "'longer than one byte of length'"}},
	{"CHAR(10)", canon.FoldASCII, []string{"'Pad'"}},
	{"CHAR(255)", canon.FoldASCII, []string{"'wide'"}},
	{"TEXT", canon.FoldASCII, []string{"'some text'"}},
	{"VARCHAR(20) COLLATE utf8mb4_bin", canon.BytesTrim, []string{"'Straße'"}},
	{"BINARY(5)", canon.BytesTrim, []string{"'ab'", "'abcde'"}},
	{"VARBINARY(20)", canon.Bytes, []string{"'ab'", "'ab '"}},
	{"LONGBLOB", canon.Bytes, []string{"'blob'"}},
}
var postgresLiterals = []literalColumn{
	{"smallint", canon.Int, []string{"-32768"}}, {"integer", canon.Int, []string{"5"}},
	{"bigint", canon.Int, []string{"-9223372036854775808"}},
	{"numeric(10,2)", canon.Decimal, []string{"1.19", "-12345678.90", "0"}},
	{"numeric", canon.Decimal, []string{"1.1900", "0.00001"}},
	{"text", canon.Bytes, []string{"'Straße'", "''"}}, {"varchar(9)", canon.Bytes, []string{"'a '"}},
	{"char(9)", canon.BytesTrim, []string{"'pad'"}},
	{"uuid", canon.UUID, []string{"'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"}},
	{"boolean", canon.Bool, []string{"true", "false"}},
	{"date", canon.Date, []string{"'2024-02-29'"}},
	{"bytea", canon.Bytea, []string{`'\x00ff'`}},
}

// TestValuesMeetLiterals writes values of every kind that can be compared and
// looks for their keys under what the server itself says they are.
func TestValuesMeetLiterals(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		r := newRig(t, s)
		columns := mysqlLiterals
		if r.postgres() {
			columns = postgresLiterals
		}
		ddl, kinds := "id INT PRIMARY KEY", map[string]canon.Kind{}
		for i, c := range columns {
			ddl += fmt.Sprintf(", c%d %s", i, c.ddl)
			kinds[fmt.Sprintf("c%d", i)] = c.kind
		}
		r.fresh("literals", ddl)
		w := r.follow("literals", kinds)
		for i, c := range columns {
			name := fmt.Sprintf("c%d", i)
			sh := w.shape(name, "")
			for _, v := range c.values {
				after := r.now()
				r.exec(fmt.Sprintf("INSERT INTO literals (id, %s) VALUES (1, %s)", name, v))
				var text string
				if err := r.db.QueryRow("SELECT " + name + " FROM literals").Scan(&text); err != nil {
					t.Fatal(err)
				}
				if c.kind == canon.Bytea {
					text = fmt.Sprintf(`\x%x`, text)
				}
				if c.kind == canon.Date {
					text = text[:10]
				}
				r.settle()
				if !t.Run(c.ddl+" "+v, func(t *testing.T) {
					if r.store.at(sh.key(text)) <= after {
						t.Errorf("key %q is not marked", text)
					}
					if r.store.at(cache.DepOfShape(sh.Shape.ID)) > after {
						t.Errorf("the whole shape is marked")
					}
				}) {
					t.Fail()
				}
				r.exec("DELETE FROM literals")
			}
		}
	})
}
