package feed

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/bench/seed"
	"freshet/bench/upstream"
	"freshet/cache"
	"freshet/cache/canon"
)

// drawn is a column type and how values of it are drawn, as the texts of
// literals.
type drawn struct {
	ddl  string
	kind canon.Kind
	draw func(rng *rand.Rand) string
}

// pick draws one of the given texts.
func pick(texts ...string) func(*rand.Rand) string {
	return func(rng *rand.Rand) string { return texts[rng.IntN(len(texts))] }
}

// near draws integers around a few places, in forms that mean the same.
func near(places ...int64) func(*rand.Rand) string {
	return func(rng *rand.Rand) string {
		v := places[rng.IntN(len(places))]
		if d := rng.Int64N(40); v > 0 {
			v -= d
		} else {
			v += d
		}
		return fmt.Sprintf([]string{"%d", "%d", "%03d"}[rng.IntN(3)], v)
	}
}

func drawMoment(layouts ...string) func(*rand.Rand) string {
	return func(rng *rand.Rand) string {
		at := time.Date(1999+rng.IntN(3), time.Month(1+rng.IntN(12)), 1+rng.IntN(28), 0, 0, 0, 0, time.UTC)
		switch rng.IntN(3) {
		case 0:
			at = time.Date(2024, 2, 28, 23, 59, 58, 0, time.UTC).Add(time.Duration(rng.Int64N(4e6)) * time.Microsecond)
		case 1:
			at = time.Date(2024, 2, 28, 0, 0, rng.IntN(200000), 500_000*1000*rng.IntN(2), time.UTC)
		}
		return at.Format(layouts[rng.IntN(len(layouts))])
	}
}

func drawText(letters string) func(*rand.Rand) string {
	runes := []rune(letters)
	return func(rng *rand.Rand) string {
		s := ""
		for range rng.IntN(3) {
			s += string(runes[rng.IntN(len(runes))])
		}
		return s + strings.Repeat(" ", rng.IntN(2))
	}
}

const (
	micros  = "2006-01-02 15:04:05.000000"
	foldSet = "aAáÄbB1-éEßæñ漢한かカЯяґΣς😀\u0301"
)

var (
	drawDate = drawMoment("2006-01-02")
	drawTime = drawMoment("2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05", micros, "2006-01-02 15:04:05.0", "2006-01-02 15:04:05.000")
	drawTZ   = drawMoment("2006-01-02 15:04:05+00", "2006-01-02 15:04:05.000000+00:00", "2006-01-02 15:04:05-07", "2006-01-02 15:04:05.000+05:30")
	drawUUID = pick("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12}")
	drawNum  = pick("0", "-0.0", "1.19", "1.190", "01.19", "-7", "-7.000", "0.001", ".5", "0.5", "123456789.125", "1e2")
)

var drawnMySQL = []drawn{
	{"TINYINT", canon.Int, near(-128, 0, 127)}, {"SMALLINT UNSIGNED", canon.Int, near(0, 65535)}, {"MEDIUMINT", canon.Int, near(-8388608, 0, 8388607)},
	{"INT", canon.Int, near(math.MinInt32, 0, math.MaxInt32)}, {"BIGINT", canon.Int, near(math.MinInt64, 0, 1<<53, math.MaxInt64)},
	{"BIGINT UNSIGNED", canon.Int, pick("0", "5", "9223372036854775807", "9223372036854775808", "18446744073709551615")},
	{"DECIMAL(12,3)", canon.Decimal, drawNum}, {"DATE", canon.Date, drawDate},
	{"DATETIME", canon.DateTime, drawTime}, {"DATETIME(3)", canon.DateTime, drawTime}, {"DATETIME(6)", canon.DateTime, drawTime},
	{"VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", canon.FoldUTF8, drawText(foldSet)},
	{"CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", canon.FoldUTF8, drawText(foldSet)},
	{"TEXT CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci", canon.FoldUTF8, drawText("aAáÄbéEßæñ漢한かカЯяґΣς")},
	{"VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci", canon.FoldASCII, drawText("aAbByü")},
	{"VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", canon.BytesTrim, drawText(foldSet)},
	{"VARBINARY(20)", canon.Bytes, drawText("aA\x01")}, {"BINARY(4)", canon.BytesTrim, drawText("aA")},
}

// drawnOf adds what only one kind of server has.
var drawnOf = map[upstream.Kind][]drawn{
	upstream.MySQL: {{"VARCHAR(20) COLLATE utf8mb4_0900_ai_ci", canon.FoldUTF8, drawText(foldSet)},
		{"VARCHAR(20) COLLATE utf8mb4_0900_as_cs", canon.FoldUTF8, drawText(foldSet)}},
	upstream.MariaDB:   {{"VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci", canon.FoldUTF8, drawText(foldSet)}},
	upstream.MariaDB11: {{"VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci", canon.FoldUTF8, drawText(foldSet)}},
}

var drawnPostgres = []drawn{
	{"smallint", canon.Int, near(-32768, 0, 32767)}, {"int", canon.Int, near(math.MinInt32, 0, math.MaxInt32)},
	{"bigint", canon.Int, near(math.MinInt64, 0, math.MaxInt64)}, {"numeric", canon.Decimal, drawNum}, {"numeric(12,3)", canon.Decimal, drawNum},
	{"date", canon.Date, drawDate}, {"timestamp", canon.DateTime, drawTime}, {"timestamp(0)", canon.DateTime, drawTime},
	{"timestamptz", canon.Instant, drawTZ}, {"timestamptz(3)", canon.Instant, drawTZ},
	{"text", canon.Bytes, drawText(foldSet)}, {`varchar(9) COLLATE "C"`, canon.Bytes, drawText(foldSet)}, {"char(9)", canon.BytesTrim, drawText(foldSet)},
	{"uuid", canon.UUID, drawUUID}, {"boolean", canon.Bool, pick("t", "true", "f", "false", "FALSE")},
	{"bytea", canon.Bytea, pick(`\x00ff`, `\x00FF`, `\x`)},
}

// TestServersOwnEquality holds the whole way of a value to the servers: of
// random rows and literals, every row that `=` or BETWEEN finds must have been
// marked, in its log's image, under a key that the literal comes to; or one of
// the two was refused.
func TestServersOwnEquality(t *testing.T) {
	everyKind(t, func(t *testing.T, s *upstream.Server) {
		seed := seed.Of(t, "FRESHET_SEED", 1)
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, s)
		columns := drawnPostgres
		if !r.postgres() {
			columns = append(slices.Clone(drawnMySQL), drawnOf[s.Kind]...)
		}
		for _, c := range columns {
			newPairs(t, r, rng, c).compare()
		}
	})
}

// pairs compares the values of one column with literals.
type pairs struct {
	*watched
	rng    *rand.Rand
	column drawn
	equal  *watchedShape
	levels []*watchedShape            // of the range, none if the kind has no order
	rows   map[int]map[cache.Dep]bool // by id
	counts struct{ found, byKey, needless int }
}

func newPairs(t *testing.T, r *rig, rng *rand.Rand, c drawn) *pairs {
	columns := "id INT PRIMARY KEY, v " + c.ddl
	if !r.postgres() && !strings.HasPrefix(c.ddl, "TEXT") && rng.IntN(2) == 0 {
		columns += ", KEY (v)" // what is looked for in an index may be cut to the column's size first
	}
	r.fresh("pairs", columns)
	p := &pairs{watched: r.follow("pairs", map[string]canon.Kind{"v": c.kind}), rng: rng, column: c, rows: map[int]map[cache.Dep]bool{}}
	p.equal = p.shape("v", "")
	switch c.kind {
	case canon.Int, canon.Date, canon.DateTime, canon.Instant:
		for level := uint8(0); level < 64; level += 4 {
			sh := p.tracker.ShapeOf(p.Table, ShapeSpec{Range: 1, Level: level})
			eventually(t, "the range is taken up", func() bool { _, up := sh.Since(); return up })
			p.levels = append(p.levels, &watchedShape{watched: p.watched, Shape: sh})
		}
	}
	p.fill(t)
	return p
}

// fill inserts rows one by one, and notes what each marks.
func (p *pairs) fill(t *testing.T) {
	begin := p.now()
	marked := map[cache.Position]map[cache.Dep]bool{}
	p.store.mu.Lock()
	p.store.onMarked = func(d cache.Dep, at cache.Position) {
		if marked[at] == nil {
			marked[at] = map[cache.Dep]bool{}
		}
		marked[at][d] = true
	}
	p.store.mu.Unlock()
	ids := 0
	for range 40 {
		// What the type does not take is no row.
		if _, err := p.db.Exec(fmt.Sprintf("INSERT INTO pairs VALUES (%d, %s)", ids, p.literal(p.column.draw(p.rng)))); err == nil {
			ids++
		}
	}
	p.exec(fmt.Sprintf("INSERT INTO pairs VALUES (%d, NULL)", ids))
	p.settle()
	p.store.mu.Lock()
	p.store.onMarked = nil
	p.store.mu.Unlock()
	var positions []cache.Position
	for at, deps := range marked {
		if at > begin && deps[cache.DepOfTable(p.ID)] {
			positions = append(positions, at)
		}
	}
	slices.Sort(positions)
	if len(positions) != ids+1 || ids < 5 {
		t.Fatalf("%s: %d rows marked the table %d times", p.column.ddl, ids, len(positions))
	}
	for id, at := range positions {
		p.rows[id] = marked[at]
	}
	for _, sh := range append(p.levels, p.equal) {
		if p.rows[ids][cache.DepOfShape(sh.Shape.ID)] {
			t.Errorf("%s: NULL marks a whole shape", p.column.ddl)
		}
	}
}

// literal writes a string literal, in UTF-8 whatever the session has.
func (p *pairs) literal(text string) string {
	if p.postgres() {
		return quoteText(text)
	}
	return fmt.Sprintf("_utf8mb4 X'%x'", text)
}

// digits is the column's precision as the catalog tells it.
func (c drawn) digits() int {
	if c.kind != canon.DateTime {
		return 12
	}
	if _, n, ok := strings.Cut(c.ddl, "("); ok {
		return int(n[0] - '0')
	}
	return 0
}

// canonical is a literal's canonical form as the planner makes it.
func (p *pairs) canonical(text string) ([]byte, bool) {
	if p.postgres() {
		return canon.AppendText(p.column.kind, nil, []byte(text))
	}
	column := canon.MySQLColumn{Kind: p.column.kind, Digits: p.column.digits()}
	return canon.AppendMySQLString(column, nil, []byte(text), !strings.Contains(p.column.ddl, "latin1"))
}

func (p *pairs) compare() {
	for range 60 {
		a, b := p.column.draw(p.rng), p.column.draw(p.rng)
		if canonical, ok := p.canonical(a); ok {
			p.check("= "+p.literal(a), p.equal, [][]byte{canonical})
		}
		if low, high, ok := p.bounds(a, b); ok {
			sh, blocks := p.blocks(low, high)
			p.check("BETWEEN "+p.literal(a)+" AND "+p.literal(b), sh, blocks)
		}
	}
	p.t.Logf("%s: %+v", p.column.ddl, p.counts)
	if p.counts.found < 20 && p.column.kind != canon.BytesTrim {
		p.t.Errorf("%s: the values drawn prove nothing", p.column.ddl)
	}
}

// bounds are the ordinals of a range's ends.
func (p *pairs) bounds(a, b string) (low, high uint64, ok bool) {
	if len(p.levels) == 0 {
		return 0, 0, false
	}
	ca, ok1 := p.canonical(a)
	cb, ok2 := p.canonical(b)
	low, ok3 := canon.Ordinal(p.column.kind, ca)
	high, ok4 := canon.Ordinal(p.column.kind, cb)
	return low, high, ok1 && ok2 && ok3 && ok4 && low <= high
}

// blocks covers a range by blocks of the finest level that takes few.
func (p *pairs) blocks(low, high uint64) (*watchedShape, [][]byte) {
	for _, sh := range p.levels {
		level := sh.spec.Level
		if high>>level-low>>level > 30 {
			continue
		}
		var out [][]byte
		for i := range high>>level - low>>level + 1 { // the last ordinal has no successor
			out = append(out, binary.BigEndian.AppendUint64(nil, low>>level+i))
		}
		return sh, out
	}
	p.t.Fatal("no level is wide enough")
	return nil, nil
}

// check has the server say which rows the condition finds.
func (p *pairs) check(condition string, sh *watchedShape, values [][]byte) {
	p.t.Helper()
	rows, err := p.db.Query("SELECT id FROM pairs WHERE v " + condition)
	if err != nil {
		return // the type does not take the literal
	}
	defer rows.Close()
	found := map[int]bool{}
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			p.t.Fatal(err)
		}
		found[id] = true
	}
	if rows.Err() != nil {
		return
	}
	for id, deps := range p.rows {
		byKey := slices.ContainsFunc(values, func(v []byte) bool {
			var h cache.KeyHasher
			h.Begin(sh.Shape.ID)
			h.Value(v)
			return deps[h.Dep()]
		})
		switch all := deps[cache.DepOfShape(sh.Shape.ID)]; {
		case found[id] && !byKey && !all:
			p.t.Errorf("%s: row %d is found by %s and was marked under no key of it", p.column.ddl, id, condition)
		case found[id] && byKey:
			p.counts.byKey++
			p.counts.found++
		case found[id]:
			p.counts.found++
		case byKey:
			p.counts.needless++
		}
	}
}
