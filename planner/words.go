package planner

import (
	"strings"

	"freshet/planner/query"
	"freshet/planner/scan"
)

// firstWords scans a text for the first word of each of its statements. plain
// is false when it has something by which even a known first word may change
// the session: a variable, an executable comment, no proper end.
func firstWords(sql string, opt scan.Options) (leading []string, plain bool) {
	if len(sql) > longScanBytes {
		return nil, false
	}
	plain = true
	first, depth := true, 0
	for s := scan.New(sql, opt); ; {
		t := s.Next()
		switch t.Kind {
		case scan.End:
			return leading, plain
		case scan.Variable, scan.Exec, scan.Broken:
			plain = false
		}
		word := sql[t.Start:t.End]
		switch {
		case t.Kind == scan.Hint:
		case t.Kind == scan.Op && word == ";" && depth == 0:
			first = true
			continue
		case t.Kind == scan.Op && word == "(":
			depth++
		case t.Kind == scan.Op && word == ")":
			depth = max(0, depth-1)
		case first && t.Kind == scan.Word:
			leading = append(leading, strings.ToUpper(word))
			first = false
		case first:
			leading = append(leading, "")
			first = false
		}
	}
}

// classByWords classifies statements that were not parsed. What could do
// anything (a SELECT may call functions) has an unknown effect.
func classByWords(leading []string, plain bool) Class {
	class := ClassRead
	for _, w := range leading {
		class = class.Worse(classOfWord(w))
	}
	if !plain || len(leading) == 0 {
		class = class.Worse(query.ClassOther)
	}
	return class
}

func classOfWord(word string) Class {
	switch word {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "COPY":
		return ClassWrite
	case "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "ABORT":
		// Not BEGIN: one that does not parse opens a block of statements.
		return ClassTransaction
	case "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE", "RENAME", "COMMENT":
		return ClassSchema
	case "SET", "RESET", "USE", "PREPARE", "EXECUTE", "DEALLOCATE", "DECLARE", "LOCK", "UNLOCK", "HANDLER", "XA",
		"LISTEN", "UNLISTEN", "DISCARD":
		return ClassSession
	case "SHOW", "DESCRIBE", "DESC", "HELP":
		return ClassRead
	}
	return ClassOther
}
