package feed

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

// imageMode is a way in which a server logs less, or no less, than whole rows.
type imageMode struct {
	name    string
	table   string   // the columns
	after   []string // statements once the table is there
	session string   // run before each change
	exact   bool     // what does not change is known not to
}

const (
	mysqlImageColumns = `id INT NOT NULL, a INT, b INT, gen INT AS (a + 1) STORED, virt INT AS (b * 2) VIRTUAL, t TEXT, trig INT,
		stamp TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6), fixed INT DEFAULT 7`
	postgresImageColumns = `id int NOT NULL, a int NOT NULL, b int, gen int GENERATED ALWAYS AS (a + 1) STORED, t text, trig int, fixed int DEFAULT 7`
)

func imageModes(postgres bool) (modes []imageMode) {
	if postgres {
		after := []string{"ALTER TABLE images ALTER t SET STORAGE EXTERNAL",
			`CREATE OR REPLACE FUNCTION images_trig() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF NEW.b % 3 = 0 THEN NEW.trig := NEW.b; END IF; RETURN NEW; END$$`,
			"CREATE TRIGGER images_before BEFORE UPDATE ON images FOR EACH ROW EXECUTE FUNCTION images_trig()"}
		for _, identity := range []string{"DEFAULT", "FULL", "USING INDEX images_key"} {
			modes = append(modes, imageMode{name: identity, table: postgresImageColumns + ", PRIMARY KEY (id)", exact: identity == "FULL",
				after: append(slices.Clone(after), "CREATE UNIQUE INDEX images_key ON images (a, id)", "ALTER TABLE images REPLICA IDENTITY "+identity)})
		}
		return modes
	}
	after := []string{"CREATE TRIGGER images_before BEFORE UPDATE ON images FOR EACH ROW SET NEW.trig = IF(NEW.b % 3 = 0, NEW.b, OLD.trig)"}
	for _, image := range []string{"FULL", "MINIMAL", "NOBLOB"} {
		for _, key := range []string{", PRIMARY KEY (id)", ", UNIQUE KEY (id)", ""} {
			modes = append(modes, imageMode{name: image + key, table: mysqlImageColumns + key, after: after, exact: image == "FULL",
				session: "SET SESSION binlog_row_image = '" + image + "'"})
		}
	}
	return modes
}

// TestImages changes rows at random under every row image and replica
// identity. A shape that reads one column must be marked when the column
// changed, whoever changed it, and where the log says enough must not be when
// it did not.
func TestImages(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		seed := seed.Of(t, "FRESHET_SEED", 1)
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 2))
		r := newRig(t, s)
		for _, mode := range imageModes(r.postgres()) {
			t.Run(mode.name, func(t *testing.T) {
				r.fresh("images", mode.table)
				r.exec(mode.after...)
				newImageRun(t, r, rng, mode).changes(40)
			})
		}
	})
}

type imageRun struct {
	t       *testing.T
	r       *rig
	rng     *rand.Rand
	mode    imageMode
	columns []string
	byID    []*watchedShape // one for each column, which it reads
	byValue []*watchedShape // one for each column that is compared
	only    []*watchedShape // one for each column, comparing nothing
	counts  struct{ marked, coarse, spared int }
}

func newImageRun(t *testing.T, r *rig, rng *rand.Rand, mode imageMode) *imageRun {
	run := &imageRun{t: t, r: r, rng: rng, mode: mode}
	for i := range 6 {
		r.exec(fmt.Sprintf("INSERT INTO images (id, a, b, t, trig) VALUES (%d, %d, %d, '%s', 0)", i, i, i, strings.Repeat("long ", 600)))
	}
	w := r.follow("images", map[string]canon.Kind{"id": canon.Int, "a": canon.Int, "b": canon.Int, "trig": canon.Int})
	for _, c := range w.Spec.Columns {
		run.columns = append(run.columns, c.Name)
		run.byID = append(run.byID, w.shape("id", c.Name))
		run.only = append(run.only, w.shape("", c.Name))
		if c.Kind != canon.None {
			run.byValue = append(run.byValue, w.shape(c.Name, c.Name))
		}
	}
	return run
}

// rows reads the table: id to values.
func (run *imageRun) rows() map[string][]sql.NullString {
	run.t.Helper()
	rows, err := run.r.db.Query("SELECT " + strings.Join(run.columns, ", ") + " FROM images")
	if err != nil {
		run.t.Fatal(err)
	}
	defer rows.Close()
	out := map[string][]sql.NullString{}
	for rows.Next() {
		values := make([]sql.NullString, len(run.columns))
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			run.t.Fatal(err)
		}
		out[values[0].String] = values
	}
	if err := rows.Err(); err != nil {
		run.t.Fatal(err)
	}
	return out
}

// statement makes a change, and lists the columns that it neither writes nor
// has a trigger look at.
func (run *imageRun) statement() (text string, spared []string) {
	id, n := run.rng.IntN(6), run.rng.IntN(9)
	where := fmt.Sprintf(" WHERE id = %d", id)
	switch run.rng.IntN(9) {
	case 0:
		return fmt.Sprintf("UPDATE images SET a = %d", n) + where, []string{"id", "t", "fixed"}
	case 1, 2:
		return fmt.Sprintf("UPDATE images SET b = %d", n) + where, []string{"id", "a", "gen", "t", "fixed"}
	case 3:
		return fmt.Sprintf("UPDATE images SET t = 'short %d'", n) + where, []string{"id", "a", "gen", "fixed"}
	case 4:
		return fmt.Sprintf("UPDATE images SET b = NULL, t = '%s'", strings.Repeat(fmt.Sprint("other ", n), 500)) + where, []string{"id", "a", "gen", "fixed"}
	case 5:
		return "UPDATE images SET a = a, b = b, t = t" + where, nil
	case 6:
		return fmt.Sprintf("UPDATE images SET id = %d", moved+id) + where, nil
	case 7:
		return "DELETE FROM images" + where, nil
	}
	return fmt.Sprintf("INSERT INTO images (id, a) VALUES (%d, %d)", 200+run.rng.IntN(1<<30), n), nil
}

// moved is added to the id of a row that stays the same one.
const moved = 100

func (run *imageRun) changes(steps int) {
	for range steps {
		old := run.rows()
		text, spared := run.statement()
		after := run.r.now()
		statements := []string{text}
		if run.mode.session != "" {
			statements = []string{run.mode.session, text}
		}
		run.r.session(statements...)
		run.r.settle()
		run.judge(text[:min(80, len(text))], after, old, run.rows(), spared)
		if run.t.Failed() {
			return
		}
		run.r.exec("DELETE FROM images WHERE id >= 100")
		for i := range 6 {
			if run.rng.IntN(3) == 0 {
				run.r.exec(fmt.Sprintf("DELETE FROM images WHERE id = %d", i), fmt.Sprintf(
					"INSERT INTO images (id, a, b, t, trig) VALUES (%d, %d, %d, '%s', 0)", i, i, i, strings.Repeat("long ", 600)))
			}
		}
	}
	run.t.Logf("%+v", run.counts)
}

// judge compares the rows before and after with what was marked.
func (run *imageRun) judge(text string, after cache.Position, old, now map[string][]sql.NullString, spared []string) {
	run.t.Helper()
	anyChange := make([]bool, len(run.columns))
	pair := func(was, is []sql.NullString) {
		for i, name := range run.columns {
			if was != nil && is != nil && was[i] == is[i] {
				continue
			}
			anyChange[i] = true
			for _, row := range [][]sql.NullString{was, is} {
				if row == nil {
					continue
				}
				run.must(text+": "+name+" of "+row[0].String, run.byID[i], after, row[0].String)
				for _, sh := range run.byValue {
					if run.columns[sh.spec.Equal[0]] == name && row[i].Valid {
						run.must(text+": value "+row[i].String+" of "+name, sh, after, row[i].String)
					}
				}
			}
		}
	}
	for id, was := range old {
		is := now[id]
		if n, err := strconv.Atoi(id); is == nil && err == nil {
			is = now[strconv.Itoa(n+moved)]
		}
		pair(was, is)
	}
	for id, is := range now {
		if n, err := strconv.Atoi(id); err == nil && old[id] == nil && old[strconv.Itoa(n-moved)] == nil {
			pair(nil, is)
		}
	}
	for i, name := range run.columns {
		if anyChange[i] {
			run.must(text+": reading "+name, run.only[i], after)
		} else if name != "gen" && name != "virt" && (run.mode.exact || !run.r.postgres() && slices.Contains(spared, name)) {
			// What is computed some servers do not log, so it may have changed.
			run.counts.spared++
			run.r.wants(text+": "+name+" by id", cache.DepOfShape(run.byID[i].Shape.ID), after, false)
			run.r.wants(text+": reading "+name, run.only[i].key(), after, false)
		}
	}
}

// must fails unless the key or the whole shape was marked.
func (run *imageRun) must(what string, sh *watchedShape, after cache.Position, values ...string) {
	run.t.Helper()
	switch {
	case run.r.store.at(sh.key(values...)) > after:
		run.counts.marked++
	case run.r.store.at(cache.DepOfShape(sh.Shape.ID)) > after:
		run.counts.coarse++
	default:
		run.t.Errorf("%s: not marked", what)
	}
}
