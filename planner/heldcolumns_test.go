package planner

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"freshet/bench/upstream"
)

const pairNumbers = "0|1|2|-1|127|128|255|1.5|2.005|1.4|9007199254740992|9007199254740993|9007199254740991|9223372036854775807|9223372036854775808|-9223372036854775808|18446744073709551615|18446744073709551614|18446744073709549568|4294967295|4294967296|16777217|16777216|3|20240101|20240101000000|2024|49|0.1|123456789012345678|123456789012345680"

// pairKinds are the kinds of columns, with values near the ends of what they hold.
var pairKinds = []heldColumn{
	{"TINYINT", pairNumbers, ""}, {"TINYINT UNSIGNED", pairNumbers, ""}, {"INT", pairNumbers, ""}, {"INT UNSIGNED", pairNumbers, ""}, {"BIGINT", pairNumbers, ""}, {"BIGINT UNSIGNED", pairNumbers, ""},
	{"DECIMAL(10,0)", pairNumbers, ""}, {"DECIMAL(10,2)", pairNumbers, ""}, {"DECIMAL(40,10)", pairNumbers, ""}, {"DECIMAL(20,0) UNSIGNED", pairNumbers, ""},
	{"FLOAT", pairNumbers, ""}, {"DOUBLE", pairNumbers, ""}, {"DOUBLE UNSIGNED", pairNumbers, ""}, {"DOUBLE(8,2)", pairNumbers, ""}, {"FLOAT(8,2)", pairNumbers, ""},
	{"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", pairTexts, ""}, {"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", pairTexts, ""},
	{"VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci", pairTexts, ""}, {"CHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", pairTexts, ""},
	{"VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin", pairTexts, ""},
	{"VARBINARY(40)", pairTexts, ""}, {"BINARY(24)", pairTexts, ""},
	{"DATE", heldMoments, ""}, {"DATETIME", heldMoments, ""}, {"DATETIME(3)", heldMoments, ""}, {"DATETIME(6)", heldMoments, ""}, {"TIMESTAMP NULL", heldMoments, ""}, {"TIMESTAMP(3) NULL", heldMoments, ""},
	{"TIME", heldTimes, ""}, {"TIME(3)", heldTimes, ""}, {"YEAR", "2000|2001|2024|1999|0|70|2049", ""},
	{"ENUM('a','1','2.5','c','2024-01-01')", "'a'|'1'|'2.5'|'c'|'2024-01-01'", ""}, {"ENUM('1','a','C')", "'a'|'1'|'C'", ""}, {"SET('a','1','2')", "'a'|'1'|'a,1'|'2'|''", ""}, {"BIT(8)", "0|1|2|3|49|97|255", ""}, {"BIT(64)", "0|1|2|3|49|97|255|18446744073709551615|9007199254740993|9223372036854775807", ""},
	{"JSON", `'1'|'1.5'|'"a"'|'"1"'|'"2024-01-01"'|'18446744073709551615'|'9007199254740993'|'true'`, ""}, {"TEXT", pairTexts, ""},
}

const pairTexts = "'a'|'A'|'a '|'1'|'01'|'1.0'|'1.5'|'2024-01-01'|'2024-01-01 00:00:00'|'2024-01-01 00:00:00.5'|'B'|''|'9007199254740993'|'18446744073709551615'|'00:00:01'|'2024'|'ä'|'ß'|'20240101'|'-0'|'1e0'|'2.5'|'c'"

// pairForms compare column c of %[1]s with that of %[2]s, looked for by index.
var pairForms = []string{
	"SELECT s.id, t.id AS tc FROM %[1]s s STRAIGHT_JOIN %[2]s t {} ON t.c = s.c",
	"SELECT s.id, t.id AS tc FROM %[1]s s STRAIGHT_JOIN %[2]s t {} ON t.x = 7 AND t.c = s.c",
	"SELECT s.id, t.id AS tc FROM %[1]s s STRAIGHT_JOIN %[2]s t {} ON t.c <=> s.c",
	"SELECT s.id, t.id AS tc FROM %[1]s s STRAIGHT_JOIN %[2]s t {} ON t.c < s.c",
	"SELECT s.id, t.id AS tc FROM %[1]s s STRAIGHT_JOIN %[2]s t {} ON t.c >= s.c",
	"SELECT s.id, t.id AS tc FROM %[1]s s JOIN %[2]s t {} ON t.c = s.c WHERE s.id = %[3]d",
	"SELECT MAX(t.c) FROM %[1]s s JOIN %[2]s t {} ON t.c <= s.c WHERE s.id = %[3]d",
	"SELECT id, c FROM %[2]s {} WHERE c = (SELECT MAX(c) FROM %[1]s WHERE id <= %[3]d)",
	"SELECT id, c FROM %[2]s {} WHERE c >= (SELECT c FROM %[1]s WHERE id = %[3]d)",
	"SELECT id, c FROM %[2]s {} WHERE c IN (SELECT c FROM %[1]s)",
	"SELECT id, c FROM %[2]s {} WHERE c IN (SELECT c FROM %[1]s WHERE id = %[3]d)",
	"SELECT id, c FROM %[2]s {} WHERE c NOT IN (SELECT c FROM %[1]s WHERE c IS NOT NULL)",
	"SELECT s.id, t.id AS ti FROM (SELECT DISTINCT c, id FROM %[1]s) s JOIN %[2]s t {} ON t.c = s.c",
}

// newPairTest makes a table of each kind.
func newPairTest(t *testing.T, kind upstream.Kind) *heldTest {
	h := newHeldTest(t, kind)
	for i, c := range pairKinds {
		keys := "KEY ix (c), KEY xc (x, c)"
		switch {
		case c.ddl == "TEXT", c.ddl == "JSON" && kind != upstream.MySQL:
			keys = "KEY ix (c(30)), KEY xc (x, c(30))"
		case c.ddl == "JSON":
			keys = "KEY ix (x), KEY xc (x, id)"
		}
		h.exec(fmt.Sprintf("CREATE TABLE pair%d (id INT PRIMARY KEY AUTO_INCREMENT, c %s, x INT DEFAULT 7, %s)", i, c.ddl, keys))
		for _, v := range strings.Split(c.rows, "|") {
			// What a kind does not take is left out.
			h.conn.ExecContext(context.Background(), fmt.Sprintf("INSERT IGNORE INTO pair%d (c) VALUES (%s)", i, v))
		}
	}
	return h
}

// TestColumnsInTwoWays has the servers compare columns of two kinds, drawn from
// all pairs, by an index and without one. What they answer in two ways must not be
// kept; a kind compared with itself must be.
func TestColumnsInTwoWays(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			h := newPairTest(t, kind)
			twice := 0
			for range pairStatements {
				i, j, form := h.rand.IntN(len(pairKinds)), h.rand.IntN(len(pairKinds)), pairForms[h.rand.IntN(len(pairForms))]
				text, _, _ := strings.Cut(fmt.Sprintf(form+"\x00%[1]s%[2]s%[3]d", fmt.Sprintf("pair%d", i), fmt.Sprintf("pair%d", j), 1+h.rand.IntN(24)), "\x00")
				if answers := h.answers(text, nil); len(answers) > 1 {
					if twice++; h.kept(text, nil) {
						t.Errorf("%s (%s, %s) has %d answers, and would be kept:\n%s", text, pairKinds[i].ddl, pairKinds[j].ddl, len(answers), strings.Join(answers, "\n---\n"))
					}
				}
			}
			t.Logf("%d statements, %d with several answers", pairStatements, twice)
			if twice < pairStatements/300 {
				t.Error("the statements drawn prove nothing")
			}
			for i, c := range pairKinds {
				if text := fmt.Sprintf("SELECT a.id FROM pair%[1]d a JOIN pair%[1]d b ON a.c = b.c", i); !h.kept(text, nil) && !strings.HasSuffix(c.ddl, "(8,2)") {
					t.Errorf("a join of %s with itself is not kept", c.ddl)
				}
			}
		})
	}
}

const pairStatements = 900
