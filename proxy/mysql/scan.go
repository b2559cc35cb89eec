package mysql

import (
	"strings"
	"unsafe"

	"freshet/planner/scan"
)

// effects are what a text may do to its session or ask of its past, as far as
// its words tell. They err on the side of more.
type effects uint64

const (
	effRead       effects = 1 << iota // begins like a query that may be planned
	effSet                            // SET
	effUse                            // USE
	effTemporary                      // CREATE or DROP TEMPORARY
	effVariables                      // names a user variable
	effLock                           // LOCK TABLES, FLUSH … WITH READ LOCK, FLUSH … FOR EXPORT
	effUnlock                         // UNLOCK TABLES
	effNamedLock                      // GET_LOCK
	effHandler                        // HANDLER
	effXA                             // XA
	effPrepare                        // PREPARE, EXECUTE, DEALLOCATE
	effRole                           // SET ROLE
	effNextTrans                      // SET TRANSACTION
	effTracking                       // SET session_track_…
	effMany                           // several statements
	effUnproven                       // may run anything: CALL, EXECUTE, unknown words
	effConsole                        // begins like one of Freshet's own commands
	effKill                           // KILL
	effLastID                         // asks for LAST_INSERT_ID
	effRowCount                       // asks for ROW_COUNT
	effFound                          // asks for FOUND_ROWS
	effWarnings                       // asks for warnings or errors
	effQuiet                          // changes no data: SHOW, USE, a plain SET …
	effInsert                         // may make LAST_INSERT_ID() another
	effOffset                         // LIMIT with an offset: FOUND_ROWS() is not the number of rows
	effStatement                      // MariaDB's SET STATEMENT … FOR …
	effCalcFound                      // SQL_CALC_FOUND_ROWS: the next may ask for the count
	effComputed                       // SET to what is computed, or of user variables among others
	effUnlogged                       // names sql_log_bin
	effConnection                     // asks for CONNECTION_ID()
	effUnscoped                       // SET @@name without SESSION or GLOBAL
	effReleases                       // COMMIT RELEASE: the server then closes the connection
	effEnds                           // COMMIT, ROLLBACK: ends the transaction
	effGlobal                         // SET GLOBAL, SET PERSIST
)

// firstWords says what a statement's first word makes of it. Words that are
// not here are not proven to leave the session alone.
var firstWords = map[string]effects{
	"SELECT": effRead, "WITH": effRead, "TABLE": effRead, "VALUES": effRead,
	"INSERT": effInsert, "UPDATE": 0, "DELETE": 0, "REPLACE": effInsert, "LOAD": effInsert, "TRUNCATE": 0, "ALTER": effConsole, "CREATE": effConsole | effInsert,
	"DROP": effConsole, "RENAME": 0, "GRANT": 0, "REVOKE": 0, "START": effQuiet, "COMMIT": effEnds, "ROLLBACK": effEnds, "SAVEPOINT": 0,
	"RELEASE": 0, "SHOW": effConsole | effQuiet, "DESCRIBE": effQuiet, "DESC": effQuiet, "EXPLAIN": effConsole, "ANALYZE": 0, "OPTIMIZE": 0, "CHECK": 0,
	"CHECKSUM": effQuiet, "REPAIR": 0, "HELP": effQuiet, "DO": 0, "FLUSH": effConsole, "RESET": 0, "PURGE": 0,
	"SET": effSet | effConsole | effQuiet, "USE": effUse | effQuiet, "HANDLER": effHandler, "XA": effXA, "LOCK": effLock, "UNLOCK": effUnlock,
	"PREPARE": effPrepare, "EXECUTE": effPrepare | effUnproven, "DEALLOCATE": effPrepare, "KILL": effKill,
	"BEGIN": effQuiet, "GET": effQuiet,
}

// words are those that tell something wherever they stand.
var words = map[string]effects{
	"GET_LOCK": effNamedLock, "LAST_INSERT_ID": effLastID, "IDENTITY": effLastID, "LASTVAL": effLastID, "ROW_COUNT": effRowCount,
	"FOUND_ROWS": effFound, "WARNINGS": effWarnings, "ERRORS": effWarnings, "DIAGNOSTICS": effWarnings | effRowCount,
	"CONNECTION_ID": effConnection, "PSEUDO_THREAD_ID": effConnection, "SQL_LOG_BIN": effUnlogged,
	"OFFSET": effOffset, "SQL_CALC_FOUND_ROWS": effCalcFound, "SQL_AUTO_IS_NULL": effLastID,
}

// longestWord is the longest of them: longer words need not be looked up.
const longestWord = len("SQL_CALC_FOUND_ROWS")

// scanText reads a text's words. sqlMode is the session's: it decides what is
// a string.
func scanText(text []byte, sqlMode string) effects {
	r := textReader{limit: 2, text: unsafe.String(unsafe.SliceData(text), len(text)), first: true}
	sc := scan.New(r.text, scanOptions(sqlMode))
	for {
		t := sc.Next()
		switch t.Kind {
		case scan.End:
			if r.eff&effStatement != 0 {
				r.eff &^= effRead // not as it stands
			}
			return r.eff
		case scan.Broken:
			return r.eff | effUnproven
		}
		r.token(t)
	}
}

// textReader gathers effects token by token.
type textReader struct {
	text  string
	eff   effects
	first bool   // at the start of a statement
	verb  string // its first word
	prev  string // the word before
	ended bool   // a semicolon was seen
	limit int    // tokens since LIMIT
}

func (r *textReader) token(t scan.Token) {
	s := r.text[t.Start:t.End]
	switch {
	case t.Kind == scan.Op && s == ";":
		r.first, r.ended, r.verb, r.prev = true, true, "", ""
		return
	case t.Kind == scan.Op && s == "(" && r.verb == "SET":
		r.eff = r.eff&^effQuiet | effComputed // a function or a query may do anything
	case t.Kind == scan.Op && s == "," && r.verb == "SET" && r.eff&effVariables != 0:
		r.eff |= effComputed
	case t.Kind == scan.Hint || t.Kind == scan.Exec || t.Kind == scan.Op && s == "(" && r.first:
		return
	}
	if r.ended {
		r.eff |= effMany
	}
	if r.limit++; r.limit == 2 && s == "," {
		r.eff |= effOffset
	}
	switch t.Kind {
	case scan.Word:
		r.word(upper(s))
	case scan.Variable:
		r.variable(s)
		fallthrough
	default:
		if r.first {
			r.first = false
			r.eff |= effUnproven
		}
		r.prev = ""
	}
}

func (r *textReader) variable(s string) {
	if !strings.HasPrefix(s, "@@") {
		r.eff |= effVariables
		return
	}
	name := upper(s)
	if r.verb == "SET" && (strings.HasPrefix(name, "@@GLOBAL.") || strings.HasPrefix(name, "@@PERSIST.")) {
		r.eff |= effGlobal
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	name = strings.TrimLeft(name, "@")
	switch {
	case name == "LAST_INSERT_ID" || name == "IDENTITY":
		r.eff |= effLastID
	case name == "WARNING_COUNT" || name == "ERROR_COUNT":
		r.eff |= effWarnings
	case r.verb == "SET" && strings.HasPrefix(name, "SESSION_TRACK_"):
		r.eff |= effTracking
	case name == "SQL_LOG_BIN" || name == "PSEUDO_THREAD_ID":
		r.eff |= words[name]
	case strings.HasPrefix(name, "FRESHET_"):
		r.eff |= effConsole
	}
	switch {
	case r.verb != "SET" || strings.IndexByte(s, '.') >= 0:
	case nextTransaction[strings.Trim(name, "`")]:
		r.eff |= effNextTrans
	default:
		r.eff |= effUnscoped
	}
}

// nextTransaction are the variables that, set without a scope, hold for the
// next transaction only.
var nextTransaction = map[string]bool{"TRANSACTION_ISOLATION": true, "TX_ISOLATION": true, "TRANSACTION_READ_ONLY": true, "TX_READ_ONLY": true}

// scoped writes SESSION before the variables that a SET names without a scope,
// which means the same; MariaDB's session tracking does not tell of a change
// that was made without (seen on 10.11).
func scoped(text []byte, sqlMode string) []byte {
	in := string(text)
	sc := scan.New(in, scanOptions(sqlMode))
	var out []byte
	copied, target := 0, false
	var name scan.Token // the target at hand
	for {
		t := sc.Next()
		if t.Kind == scan.End || t.Kind == scan.Broken {
			return append(out, in[copied:]...)
		}
		word := in[t.Start:t.End]
		if name.End > 0 && (word == "=" || word == ":=") {
			out = append(append(out, in[copied:name.Start]...), "@@session."...)
			copied = name.Start + len("@@")
		}
		name = scan.Token{}
		if target && t.Kind == scan.Variable && strings.HasPrefix(word, "@@") && strings.IndexByte(word, '.') < 0 &&
			!nextTransaction[strings.Trim(upper(word), "@`")] {
			name = t
		}
		target = strings.EqualFold(word, "SET") || word == ","
	}
}

func scanOptions(sqlMode string) scan.Options {
	return scan.Options{AnsiQuotes: strings.Contains(sqlMode, "ANSI_QUOTES"), NoBackslash: strings.Contains(sqlMode, "NO_BACKSLASH_ESCAPES")}
}

func (r *textReader) word(w string) {
	if r.first {
		r.first, r.verb = false, w
		eff, known := firstWords[w]
		if !known {
			eff = effUnproven
		}
		r.eff |= eff
		r.prev = w
		return
	}
	if len(w) <= longestWord {
		r.eff |= words[w]
	}
	if w == "LIMIT" {
		r.limit = 0
	}
	r.pair(w)
	r.prev = w
}

// pair looks at words that tell something by what stands before them.
func (r *textReader) pair(w string) {
	switch {
	case w == "TEMPORARY" && (r.verb == "CREATE" || r.verb == "DROP"):
		r.eff |= effTemporary
	case w == "NOT" && r.prev == "BEGIN":
		r.eff |= effUnproven // MariaDB's BEGIN NOT ATOMIC … END
	case r.verb == "FLUSH" && (w == "LOCK" || w == "EXPORT"):
		r.eff |= effLock
	case r.verb == "SET" && (w == "GLOBAL" || w == "PERSIST"):
		r.eff |= effGlobal
	case r.verb == "SET" && w == "ROLE" && r.prev == "SET":
		r.eff |= effRole
	case r.verb == "SET" && w == "STATEMENT" && r.prev == "SET":
		r.eff |= effStatement
	case r.verb == "SET" && w == "FOR" && r.eff&effStatement != 0:
		r.first, r.eff = true, r.eff&^effQuiet // the statement that it is for
	case r.verb == "SET" && w == "TRANSACTION" && r.prev == "SET":
		r.eff |= effNextTrans
	case (r.verb == "COMMIT" || r.verb == "ROLLBACK") && w == "RELEASE" && r.prev != "NO" && r.prev != "TO":
		r.eff |= effReleases
	case r.verb == "ROLLBACK" && w == "TO":
		r.eff &^= effEnds
	case r.verb == "SET" && strings.HasPrefix(w, "SESSION_TRACK_"):
		r.eff |= effTracking
	}
}

// upper gives the word in capitals, without a copy when it is.
func upper(s string) string {
	if len(s) > 64 {
		return s
	}
	return strings.ToUpper(s)
}
