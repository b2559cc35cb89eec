package scan

import (
	"slices"
	"strings"
	"testing"
)

var (
	mysqlText    = Options{}
	postgresText = Options{Postgres: true, AnsiQuotes: true, NoBackslash: true}
)

func TestNormalise(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		want string
		from []string
	}{
		{mysqlText, "SELECT a FROM T WHERE b = ?", []string{
			"select a from T where b = 5", "SELECT a FROM T WHERE b=?", "select\ta -- x\nfrom/**/T where b = -5.5e3",
			"SELECT a FROM T WHERE b = 'x' 'y';", "SELECT a FROM T WHERE b = x'ff'", "select /*+ hint */ a from T where b= \"q\"",
		}},
		{postgresText, "SELECT a FROM t WHERE b = $1", []string{
			"select A from T where b = 5", "SELECT a FROM t WHERE b=$7", "SELECT a FROM t WHERE b = E'x'",
			"SELECT a FROM t WHERE b = $$x$$", "select a from t /* a /* b */ */ where b = - 1;;",
		}},
		{mysqlText, "SELECT * FROM t WHERE a IN (?) AND b NOT IN (?)", []string{
			"select * from t where a in (1) and b not in (1, ?, 'x')", "select * from t where a in (?,?,?) and b not in ('a')",
		}},
		{mysqlText, "SELECT * FROM t WHERE (a, b) IN ((?, ?))", []string{
			"select * from t where (a,b) in ((1,2),(3,4))", "select * from t where (a,b) in ((?,?))",
		}},
		{mysqlText, "SELECT * FROM t WHERE a IN (?, b, ?)", []string{"select * from t where a in (1, b, 2)"}},
		{mysqlText, "INSERT INTO t VALUES (?, ?)", []string{"insert into t values (1,2)", "insert into t values (1,2),(?,?), ('a', 'b')"}},
		{mysqlText, "INSERT INTO t VALUES (?, ?), (?)", []string{"insert into t values (1,2),(3)"}},
		{mysqlText, "SELECT count(*) FROM t GROUP BY 1 ORDER BY 2 DESC, a + ? LIMIT ?", []string{
			"select count(*) from t group by 1 order by 2 desc, a + 1 limit 7",
		}},
		{mysqlText, "SELECT count(*) FROM t GROUP BY 2", []string{"select count(*) from t group by 2"}},
		{mysqlText, "SELECT a - ?, ? - a, - a FROM t", []string{"select a -1, - 5 - a, -a from t"}},
		{mysqlText, "SELECT t.1a, `b``c` FROM db.1t", []string{"SELECT t.1a, `b``c` FROM db.1t"}},
		{postgresText, "SELECT a::int, b[$1] FROM t WHERE c <> $2", []string{"select a :: int, b [1] from t where c != 'x'"}},
		{mysqlText, "SELECT NULL, TRUE, ? FROM t WHERE a IS NULL", []string{"select null, true, 1 from t where a is null"}},
	} {
		for _, from := range c.from {
			if got := Normalise(from, c.opt); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", from, got, c.want)
			}
		}
	}
}

func TestTake(t *testing.T) {
	for _, c := range []struct {
		opt            Options
		text, skeleton string
		slots          []Slot
		values         string
	}{
		{mysqlText, "SELECT 1 FROM t WHERE a = -5 AND b = ? AND c = 'x''y\\n'", "SELECT 1 FROM t WHERE a = ? AND b = ? AND c = ?", []Slot{-1, 0, -2}, "-5|x'y\n"},
		{postgresText, "SELECT 1 FROM t WHERE a=5 AND b = $2 AND c IN ('x', $1)", "SELECT 1 FROM t WHERE a=$3 AND b = $2 AND c IN ($4, $1)", []Slot{0, 1, -1, -2}, "5|x"},
		{mysqlText, "SELECT a FROM t LIMIT 5, 10", "SELECT a FROM t LIMIT ?, ?", []Slot{-1, -2}, "5|10"},
		{mysqlText, "SELECT f(1, 2) FROM t WHERE a = DATE '2024-01-01'", "SELECT f(1, 2) FROM t WHERE a = DATE '2024-01-01'", nil, ""},
		{mysqlText, "SELECT a FROM t WHERE a = x'ff' OR a = _utf8'x' OR a = N'x'", "SELECT a FROM t WHERE a = x'ff' OR a = _utf8'x' OR a = N'x'", nil, ""},
		{mysqlText, "SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND 3 < c", "SELECT a FROM t WHERE b BETWEEN ? AND ? AND 3 < c", []Slot{-1, -2}, "1|2"},
		{postgresText, "SELECT a FROM t WHERE b = E'\\x41' AND c = $q$it's$q$", "SELECT a FROM t WHERE b = $1 AND c = $2", []Slot{-1, -2}, "!|it's"},
		{mysqlText, "INSERT INTO t VALUES (1, f(2), 'x')", "INSERT INTO t VALUES (?, f(2), ?)", []Slot{-1, -2}, "1|x"},
	} {
		d := Take(c.text, c.opt)
		var values []string
		for _, l := range d.Literals {
			v := l.Value
			if l.Negative {
				v = "-" + v
			}
			if l.Unread {
				v = "!"
			}
			values = append(values, v)
		}
		if d.Broken || d.Skeleton != c.skeleton || !slices.Equal(d.Slots, c.slots) || strings.Join(values, "|") != c.values {
			t.Errorf("%s\ngot  %s %v %q\nwant %s %v %q", c.text, d.Skeleton, d.Slots, values, c.skeleton, c.slots, c.values)
		}
	}
}

func TestBroken(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		text string
	}{
		{mysqlText, "SELECT 'a"}, {mysqlText, "SELECT `a"}, {mysqlText, "SELECT /* a"}, {mysqlText, "SELECT 'a\\'"},
		{postgresText, "SELECT $a$ b"}, {postgresText, "SELECT /* /* a */"}, {postgresText, "SELECT $70000"},
		{postgresText, "SELECT \x01"}, {mysqlText, "SELECT /*! 1"},
	} {
		if d := Take(c.text, c.opt); !d.Broken {
			t.Errorf("%q is taken for whole: %+v", c.text, d)
		}
	}
}

func TestReadHints(t *testing.T) {
	for _, c := range []struct {
		inside string
		want   Hints
	}{
		{" freshet: no-cache ", Hints{NoCache: true}},
		{"freshet:no-cache", Hints{NoCache: true}},
		{" freshet:ttl 10s", Hints{TTLMillis: 10_000}},
		{"freshet: ttl 10s", Hints{TTLMillis: 10_000}},
		{"FRESHET: TTL 250MS", Hints{TTLMillis: 250}},
		{"freshet: ttl -1s", Hints{NoCache: true}},
		{"freshet: ttl 10 s", Hints{NoCache: true}},
		{"freshet: nonsense", Hints{NoCache: true}},
		{"freshet: ttl 99999999999d", Hints{NoCache: true}},
		{"SET_VAR(sql_mode='')", Hints{SetVar: true}},
		{"NO_INDEX_MERGE(t)", Hints{}},
		{"", Hints{}},
	} {
		if got := ReadHints([]string{c.inside}); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.inside, got, c.want)
		}
	}
}

// FuzzTake scans anything: it must end, tokens must follow one another, and a
// text and its skeleton must be the same once normalised.
func FuzzTake(f *testing.F) {
	for _, s := range []string{
		"SELECT a, -5 FROM t WHERE b IN (1, 2) -- x", "SELECT $1::int, $$x$$, E'\\'' /* /* */ */", "a.1b @x @@y /*!50000 z */ /*+ h */",
		"INSERT INTO t VALUES (1,'a'),(2,'b')", "ORDER BY 1, 2 LIMIT 3; SELECT `x``y`", "1e5 .5 5. 0x1F 1_0 x'0' U&'a' <=> ->> || ::",
	} {
		f.Add(s, uint8(0))
		f.Add(s, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, bits uint8) {
		opt := Options{Postgres: bits&1 != 0, AnsiQuotes: bits&2 != 0, NoBackslash: bits&4 != 0}
		last := 0
		for s := New(text, opt); ; {
			tok := s.Next()
			if tok.Kind == End {
				break
			}
			if tok.Start < last || tok.End < tok.Start || tok.End > len(text) || tok.End == tok.Start && tok.Kind != Broken {
				t.Fatalf("%q: token %+v after %d", text, tok, last)
			}
			last = tok.End
		}
		d := Take(text, opt)
		once := Normalise(text, opt)
		if d.Broken || d.Exec {
			return
		}
		if skeleton := Normalise(d.Skeleton, opt); len(d.Hints) == 0 && skeleton != once {
			t.Fatalf("%q normalises to %q, its skeleton %q to %q", text, once, d.Skeleton, skeleton)
		}
		if len(d.Skeleton) > 2*len(text)+len(text)*5 {
			t.Fatalf("%q has a skeleton of %d bytes", text, len(d.Skeleton))
		}
	})
}
