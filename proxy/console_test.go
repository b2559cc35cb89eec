package proxy

import (
	"fmt"
	"testing"
)

func TestParseCommand(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"select 1", "<nil>"},
		{"create table cache (a int)", "<nil>"},
		{"CREATE CACHE FROM SELECT 1;", "{ false {0 0 } SELECT 1}"},
		{"create cache if not exists hot with (ttl 10 seconds, max staleness 5 milliseconds) from select a from t where b = ?",
			"{hot true {10000000000 5000000 } select a from t where b = ?}"},
		{"/* hi */ CREATE CACHE \"My Name\" FROM q_0123456789abcdef", "{My Name false {0 0 } q_0123456789abcdef}"},
		{"DROP CACHE IF EXISTS hot", "{hot true}"},
		{"drop all caches ;", "{}"},
		{"FLUSH CACHE hot", "{hot}"},
		{"SHOW CACHES LIKE 'a%'", "{a% }"},
		{"SHOW CACHES WHERE query_id = 'q_1'", "{ q_1}"},
		{"show proxied queries limit 5", "{5}"},
		{"SHOW FRESHET STATUS", "{}"},
		{"show freshet tables;", "{}"},
		{"EXPLAIN LAST STATEMENT", "{}"},
		{"EXPLAIN CREATE CACHE FROM SELECT a FROM t", "{SELECT a FROM t}"},
		{"ALTER CACHE hot SET (CONSISTENCY bounded)", "{hot {0 0 bounded}}"},
		{"SHOW freshet.cache", "{[cache] [freshet.cache]}"},
		{"SELECT @@freshet_cache", "{[cache] [@@freshet_cache]}"},
		{"select @@session.freshet_cache as c, @@freshet_consistency;", "{[cache consistency] [c @@freshet_consistency]}"},
		{"SELECT @@freshet_cache AS ``", "{[cache] []}"},
		{"SELECT @@freshet_cache, @@version", "<nil>"},
		{"SELECT @@freshet_cache FROM t", "<nil>"},
		{"SELECT @@version", "<nil>"},
		{"SET sql_mode = ''", "<nil>"},
		{"SET @@session.sql_mode = ''", "<nil>"},
		{"SET", "<nil>"},
		// mistakes
		{"CREATE CACHE WITH (MAX ENTRY 5) FROM SELECT 1", "the option MAX ENTRY is not available yet: TTL, CONSISTENCY and MAX STALENESS are @20"},
		{"CREATE CACHE WITH (ALWAYS) FROM SELECT 1", "the option ALWAYS is not available yet: TTL, CONSISTENCY and MAX STALENESS are @20"},
		{"CREATE CACHE WITH (MAX AGE 5) FROM SELECT 1", `syntax error at or near "AGE" (position 24): expected STALENESS @24`},
		{"SET @@session.freshet_cache = maybe", `"maybe" (position 31): expected on or off @31`},
		{"CREATE CACHE hot SELECT 1", `syntax error at or near "SELECT" (position 18): expected FROM @18`},
		{"CREATE CACHE FROM", "syntax error at the end: expected a SELECT or a query_id @18"},
		{"CREATE CACHE WITH (TTL 0 SECONDS) FROM SELECT 1", "expected a number above 0 at position 24 @24"},
		{"CREATE CACHE WITH (TTL 5 HOURS) FROM SELECT 1", `syntax error at or near "HOURS" (position 26): expected SECONDS or MILLISECONDS @26`},
		{"DROP CACHE", "syntax error at the end: expected the cache's name @11"},
		{"SHOW FRESHET NONSENSE", `syntax error at or near "NONSENSE" (position 14): expected CONNECTIONS, LINKS, STATUS, TABLES or VERSION @14`},
		{"SHOW PROXIED QUERIES LIMIT 99999999999", `syntax error at or near "99999999999" (position 28): expected a number of rows @28`},
		{"SET freshet.cache = maybe", `"maybe" (position 21): expected on or off @21`},
		{"SET freshet.nonsense = 1", `syntax error at or near "nonsense" (position 13): expected cache or consistency @13`},
		{"DROP ALL CACHES now", `syntax error at or near "now" (position 17): expected the end of the command @17`},
	} {
		cmd, err := parseCommand(c.text)
		got := fmt.Sprint(cmd)
		if e, ok := err.(*ConsoleError); ok {
			got = fmt.Sprintf("%s @%d", e.Message, e.Position)
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestSetOption(t *testing.T) {
	s := &Session{Loop: &Loop{server: &Server{config: Config{Consistency: LevelSession.String()}}}}
	for _, pair := range [][2]string{
		{"SET freshet.cache = off", "set @@freshet_consistency = 'bounded'"},
		{"SET freshet.cache = on", "SET SESSION freshet_consistency = session"},
		{"SET @@session.freshet_cache = 0", "SET @@LOCAL.freshet_consistency := bounded"},
		{"SET freshet_cache = 1", "SET SESSION freshet.consistency TO DEFAULT"},
	} {
		off, level := !s.CacheOff, LevelBounded-s.level
		for _, text := range pair {
			cmd, err := parseCommand(text)
			if err != nil || cmd == nil {
				t.Fatalf("%s: %v, %v", text, cmd, err)
			}
			cmd.(setOption).apply(s)
		}
		if s.CacheOff != off || s.level != level {
			t.Errorf("%v: CacheOff %v, level %v", pair, s.CacheOff, s.level)
		}
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		s, p string
		want bool
	}{{"abc", "a%", true}, {"abc", "%C", true}, {"abc", "_b_", true}, {"abc", "b%", false}, {"", "%", true}, {"aXbXc", "a%x%c", true}, {"abc", "", false}} {
		if got := like(c.s, c.p); got != c.want {
			t.Errorf("%q LIKE %q is %v", c.s, c.p, got)
		}
	}
}

// Whatever is typed, the parser ends and says something of it.
func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"CREATE CACHE a WITH (TTL 5 SECONDS) FROM SELECT 1", "SET freshet.cache = 'off", "SHOW CACHES LIKE '%", "DROP CACHE `a``b`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if cmd, err := parseCommand(s); cmd != nil && err != nil {
			t.Fatal("a command and an error")
		}
	})
}
