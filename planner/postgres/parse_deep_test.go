package postgres

import (
	"strings"
	"testing"
)

// TestDeepInput gives the grammar the deepest texts that Analyse lets pass:
// were the bounds too wide, the process would end here.
func TestDeepInput(t *testing.T) {
	fill := func(open, middle, closing string, bytes int) string {
		n := (bytes - len(middle) - 10) / (len(open) + len(closing))
		return "SELECT " + strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
	}
	for name, sql := range map[string]string{
		"sum":      fill("1+", "1", "", MaxBytes),
		"not":      fill("NOT ", "true", "", MaxBytes),
		"minus":    fill("- ", "1", "", MaxBytes),
		"tilde":    fill("@", "1", "", MaxBytes),
		"cast":     fill("", "1", "::int", MaxBytes),
		"union":    fill("", "1", " UNION SELECT 1", MaxBytes),
		"brackets": fill("(", "1", ")", MaxBytes),
		"arrays":   fill("ARRAY[", "1", "]", MaxBytes),
		"case":     fill("CASE WHEN ", "true", " THEN 1 END", MaxBytes),
		"select":   fill("(SELECT ", "1", ")", MaxBytes),
		"is null":  fill("", "1", " IS NULL", MaxBytes),
		"collate":  fill("", "'a'", " COLLATE c", MaxBytes),
		"joins":    fill("", "1 FROM t", " CROSS JOIN t", MaxBytes),
		"index":    fill("", "a", "[1]", MaxBytes),
	} {
		if _, err := Analyse(sql, 0, 0); err != nil {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestZeroByte refuses a text of which the grammar would read only the start.
func TestZeroByte(t *testing.T) {
	if a, err := Analyse("SELECT 1 \x00; DROP TABLE t", 0, 0); err == nil {
		t.Errorf("taken as %+v", a)
	}
}
