package canon

import (
	"slices"
	"strings"
)

// Collations whose equality is proven, by what follows the character set in
// their names; TestCollations holds each to the servers. Collations of one
// language may hold more strings to be equal (in utf8mb4_hu_0900_ai_ci 'ccs'
// equals 'cscs'), so they are listed one by one, or left out.
var (
	utf8Collations = []string{
		"general_ci", "general_nopad_ci", "unicode_ci", "unicode_nopad_ci", "unicode_520_ci", "unicode_520_nopad_ci",
		"0900_ai_ci", "0900_as_ci", "0900_as_cs",
		"uca1400_ai_ci", "uca1400_ai_cs", "uca1400_as_ci", "uca1400_as_cs",
		"uca1400_nopad_ai_ci", "uca1400_nopad_ai_cs", "uca1400_nopad_as_ci", "uca1400_nopad_as_cs",
	}
	latin1Collations = []string{
		"swedish_ci", "swedish_nopad_ci", "general_ci", "general_cs", "german1_ci", "german2_ci", "danish_ci", "spanish_ci",
	}
	asciiCollations  = []string{"general_ci", "general_nopad_ci"}
	binaryCollations = []string{"bin", "nopad_bin", "0900_bin"}
)

// MySQLTextKind returns the kind of a text column of MySQL or MariaDB, None when
// its equality is not proven.
func MySQLTextKind(charset, collation string) Kind {
	var folds []string
	kind := FoldASCII
	switch charset {
	case "ascii":
		folds = asciiCollations
	case "latin1":
		folds = latin1Collations
	case "utf8", "utf8mb3", "utf8mb4":
		// Some versions of MySQL 8.0 call the three-byte one by both names.
		folds, kind = utf8Collations, FoldUTF8
		for _, other := range []string{"utf8_", "utf8mb3_"} {
			if name, ok := strings.CutPrefix(collation, other); ok && charset != "utf8mb4" {
				collation = charset + "_" + name
			}
		}
	default:
		return None
	}
	name, ok := strings.CutPrefix(collation, charset+"_")
	switch {
	case ok && slices.Contains(binaryCollations, name):
		return BytesTrim
	case ok && slices.Contains(folds, name):
		return kind
	}
	return None
}
