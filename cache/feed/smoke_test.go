package feed

import (
	"testing"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

func TestSmoke(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL, upstream.MariaDB11, upstream.Postgres15, upstream.Postgres18} {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Need(t, kind))
			r.exec("DROP TABLE IF EXISTS smoke", "CREATE TABLE smoke (id INT PRIMARY KEY, a INT, b VARCHAR(20))", "INSERT INTO smoke VALUES (1,10,'x'),(2,20,'y')")
			r.settle()
			spec := TableSpec{Schema: "freshet_test", Name: "smoke", Columns: []Column{
				{Name: "id", Kind: canon.Int, Type: "int"}, {Name: "a", Kind: canon.Int, Type: "int"}, {Name: "b", Kind: canon.FoldASCII, Type: "varchar", Charset: "utf8mb4"}}}
			if r.server.Dialect == "postgres" {
				spec.Schema = "public"
				for i, ty := range []string{"integer", "integer", "varchar"} {
					spec.Columns[i].Type = ty
				}
				if err := r.db.QueryRow("SELECT 'smoke'::regclass::oid").Scan(&spec.OID); err != nil {
					t.Fatal(err)
				}
			}
			tb, err := r.tracker.Follow(spec)
			if err != nil {
				t.Fatal(err)
			}
			sh := r.tracker.Shape(tb, []int{0}, nil)
			eventually(t, "taken up", func() bool { _, ok := sh.Since(); return ok })
			key := func(id int64) cache.Dep {
				var h cache.KeyHasher
				h.Begin(sh.ID)
				h.Value(canon.AppendInt(nil, id))
				return h.Dep()
			}
			since, _ := sh.Since()
			eventually(t, "visible", func() bool { return r.store.Visible() >= since })
			r.exec("UPDATE smoke SET a = 11 WHERE id = 1")
			r.settle()
			if p := r.store.at(key(1)); p <= since {
				t.Errorf("key 1 at %d", p)
			}
			if p := r.store.at(key(2)); p != 0 {
				t.Errorf("key 2 at %d", p)
			}
			r.exec("ALTER TABLE smoke ADD c INT")
			r.settle()
			if !tb.Gone() || !r.sawChange(spec.Schema, "smoke") {
				t.Error("not gone")
			}
			t.Logf("%+v", r.feed.Status())
		})
	}
}
