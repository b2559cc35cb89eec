package feed

import (
	"testing"

	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

func TestSmoke(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL, upstream.MariaDB11} {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Need(t, kind))
			r.exec("DROP TABLE IF EXISTS smoke", "CREATE TABLE smoke (id INT PRIMARY KEY, a INT, b VARCHAR(20))", "INSERT INTO smoke VALUES (1,10,'x'),(2,20,'y')")
			r.settle()
			tb, err := r.tracker.Follow(TableSpec{Schema: "freshet_test", Name: "smoke", Columns: []Column{
				{Name: "id", Kind: canon.Int, Type: "int"}, {Name: "a", Kind: canon.Int, Type: "int"}, {Name: "b", Kind: canon.FoldASCII, Type: "varchar", Charset: "utf8mb4"}}})
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
			if !tb.Gone() || !r.sawChange("freshet_test", "smoke") {
				t.Error("not gone")
			}
			t.Logf("%+v", r.feed.Status())
		})
	}
}
