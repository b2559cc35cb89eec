package canon

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"freshet/bench/upstream"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// TestCollations asks each server whether what a collation holds to be equal
// is folded to the same bytes: every letter that is folded, all pairs of
// printable ASCII, and random strings of up to four letters. Collations that
// a server lacks are passed over.
func TestCollations(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no servers")
	}
	for _, server := range []upstream.Kind{upstream.MariaDB, upstream.MariaDB11, upstream.MySQL} {
		t.Run(string(server), func(t *testing.T) {
			rng := seeded(t)
			db := upstream.Need(t, server).DB(t)
			checked := 0
			for charset, collations := range map[string][]string{"ascii": asciiCollations, "latin1": latin1Collations,
				"utf8mb3": utf8Collations, "utf8mb4": utf8Collations} {
				for _, collation := range append(collations, binaryCollations...) {
					if holdsToFold(t, db, rng, charset, charset+"_"+collation) {
						checked++
					}
				}
			}
			t.Logf("%d collations", checked)
			if checked < 20 {
				t.Errorf("only %d of the collations are there", checked)
			}
		})
	}
}

// holdsToFold checks one collation; false when the server lacks it.
func holdsToFold(t *testing.T, db *sql.DB, rng *rand.Rand, charset, collation string) bool {
	t.Helper()
	kind := MySQLTextKind(charset, collation)
	if kind == None {
		t.Errorf("%s of %s is not proven", collation, charset)
	}
	run(t, db, "DROP TABLE IF EXISTS letters")
	if _, err := db.Exec(fmt.Sprintf("CREATE TABLE letters (s VARCHAR(8) CHARACTER SET %s COLLATE %s, f VARBINARY(40), KEY (s)) ENGINE = MyISAM",
		charset, collation)); err != nil {
		return false
	}
	var values []string
	for _, s := range foldSamples(kind, rng) {
		canonical, ok := AppendText(kind, nil, []byte(s))
		if !ok {
			t.Fatalf("%s: %q is refused", collation, s)
		}
		values = append(values, fmt.Sprintf("(CONVERT(X'%x' USING utf8mb4), X'%x')", s, canonical))
		if len(values) == 5000 {
			run(t, db, "INSERT INTO letters VALUES "+strings.Join(values, ","))
			values = values[:0]
		}
	}
	run(t, db, "INSERT INTO letters VALUES "+strings.Join(values, ","))
	var one, other string
	err := db.QueryRow("SELECT HEX(MIN(f)), HEX(MAX(f)) FROM letters GROUP BY s HAVING MIN(f) <> MAX(f) LIMIT 1").Scan(&one, &other)
	if err == nil {
		t.Errorf("%s holds two strings to be equal whose canonical forms are %s and %s", collation, one, other)
	} else if err != sql.ErrNoRows {
		t.Fatal(err)
	}
	return true
}

func run(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%.100s: %v", statement, err)
	}
}

// foldSamples are strings that no two of may be equal unless their canonical
// forms are.
func foldSamples(kind Kind, rng *rand.Rand) []string {
	samples := []string{"", "ccs", "cscs", "ggy", "gygy", "aae", "dzs", "ddzs", "llj", "njx", "chx", "ijx"}
	var letters []rune
	for c := rune(0x20); c < 0x7F; c++ {
		letters = append(letters, c)
		for d := rune(0x20); d < 0x7F; d++ {
			samples = append(samples, string(c)+string(d))
		}
	}
	if kind == FoldUTF8 {
		for r := rune(0x80); r < 0x10000; r++ {
			// One in a hundred of those that stand for themselves.
			if _, ok := foldRune(r); ok && (r < 0x4E00 || rng.IntN(100) == 0) {
				letters = append(letters, r)
			}
		}
	}
	for _, r := range letters {
		samples = append(samples, string(r))
	}
	for range 5000 {
		s := ""
		for range 2 + rng.IntN(3) {
			r := letters[rng.IntN(len(letters))]
			if rng.IntN(2) == 0 {
				r = letters[rng.IntN(0x5F)]
			}
			s += string(r)
		}
		samples = append(samples, s)
	}
	return samples
}

// TestFoldedLetters spells out what is folded and what is refused.
func TestFoldedLetters(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Café ", "cafe", true}, {"ÅNGSTRÖM", "ångström", true}, {"Ёлка", "елка", true}, {"ΣΊΣΥΦΟΣ", "σίσυφος", true},
		{"カタカナ", "かたかな", true}, {"ガッコウ", "かつこう", true}, {"Việt", "viet", true}, {"漢字", "漢字", true}, {"漢字", "漢", false},
		{"한국", "한", false}, {"a", "b", false}, {"ä", "ae", false},
	} {
		a, b := text(t, FoldUTF8, c.a), text(t, FoldUTF8, c.b)
		if a == "refused" || b == "refused" || (a == b) != c.same {
			t.Errorf("%q and %q: %s and %s", c.a, c.b, a, b)
		}
	}
	for _, s := range []string{"ß", "æ", "ﬁ", "😀", "e\u0301", "a\u200d", "\xff", "\xc3", "\xc3\x28", "\xed\xa0\x80", "\u00a0", "½", "Ⅷ", "ｱ", "a\nb", "\x00"} {
		if got := text(t, FoldUTF8, s); got != "refused" {
			t.Errorf("%q: %s, want it refused", s, got)
		}
	}
	for _, name := range []string{"utf8mb4_hu_0900_ai_ci", "utf8mb4_uca1400_german2_ai_ci", "latin1_bin_ci", "utf8mb4_danish_ci", "general_ci", "", "utf8mb4_"} {
		if kind := MySQLTextKind("utf8mb4", name); kind != None {
			t.Errorf("%q is %v", name, kind)
		}
	}
	if MySQLTextKind("utf8mb3", "utf8_general_ci") != FoldUTF8 || MySQLTextKind("utf8", "utf8mb3_bin") != BytesTrim || MySQLTextKind("utf16", "utf16_bin") != None {
		t.Error("names of the three-byte character set")
	}
}
