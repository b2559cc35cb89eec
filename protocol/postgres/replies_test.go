package postgres

import (
	"fmt"
	"strings"
	"testing"
)

// TestReplies plays scripts: each word is a message sent (by name, with the
// action's sign before it) or, after '<', types of messages from the server.
// The trace says for each of those what it answers, and what was dropped.
func TestReplies(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"simple query", "Q1 <TDDCZ", "T:Q1 D:Q1 D:Q1 C:Q1 Z:Q1."},
		{"several statements in one query", "Q1 <TDCIZ", "T:Q1 D:Q1 C:Q1 I:Q1 Z:Q1."},
		{"error in a simple query does not skip", "Q1 Q2 <EZTCZ", "E:Q1 Z:Q1. T:Q2 C:Q2 Z:Q2."},
		{"extended", "P1 B2 D3 E4 S5 <12TDCZ", "1:P1. 2:B2. T:D3. D:E4 C:E4. Z:S5."},
		{"describe of a statement", "P1 D2 S3 <1tTZ", "1:P1. t:D2 T:D2. Z:S3."},
		{"no data", "P1 D2 B3 D4 E5 S6 <1tn2nCZ", "1:P1. t:D2 n:D2. 2:B3. n:D4. C:E5. Z:S6."},
		{"portal suspended", "B1 E2 E3 S4 <2DsDCZ", "2:B1. D:E2 s:E2. D:E3 C:E3. Z:S4."},
		{"empty query", "P1 B2 E3 S4 <12IZ", "1:P1. 2:B2. I:E3. Z:S4."},
		{"close", "C1 C2 S3 <33Z", "3:C1. 3:C2. Z:S3."},
		{"function call", "F1 <VZ F2 <EZ", "V:F1 Z:F1. E:F2 Z:F2."},
		{"error skips to sync", "P1 B2 E3 S4 B5 S6 <1EZ2Z", "1:P1. E:B2. drop:E3 Z:S4. 2:B5. Z:S6."},
		{"error, sync comes later", "P1 B2 <E B3! E4! S5 <Z", "E:P1. drop:B2 no:B3 no:E4 Z:S5."},
		{"error drops a simple query too", "P1 Q2 S3 <EZ", "E:P1. drop:Q2 Z:S3."},
		{"simple query while skipping", "P1 <E Q2! S3 Q4 <ZCZ", "E:P1. no:Q2 Z:S3. C:Q4 Z:Q4."},
		{"error of the commit at sync", "B1 E2 S3 B4 S5 <2CEZ2Z", "2:B1. C:E2. E:S3 Z:S3. 2:B4. Z:S5."},
		{"two errors in a pipeline", "P1 E2 S3 P4 E5 S6 <EZEZ", "E:P1. drop:E2 Z:S3. E:P4. drop:E5 Z:S6."},
		{"drops newest first", "P1 B2 D3 E4 C5 S6 <EZ", "E:P1. drop:C5 drop:E4 drop:D3 drop:B2 Z:S6."},
		{"notice, setting, notification", "Q1 <NSACZA", "N~Q1 S~Q1 A~Q1 C:Q1 Z:Q1. A~"},
		{"settings between answers", "P1 B2 S3 <1SS2Z", "1:P1. S~B2 S~B2 2:B2. Z:S3."},
		{"the server's farewell", "<E", "E:"},
		{"copy in by query", "Q1 <G d1 k2! <CZ", "G:Q1 no:k2 C:Q1 Z:Q1."},
		{"copy in, done sent ahead", "Q1 k2 Q3 <GCZCZ", "G:Q1 C:Q1 Z:Q1. C:Q3 Z:Q3."},
		{"copy in twice in one query", "Q1 k2 k3 Q4 <GCGCZCZ", "G:Q1 C:Q1 G:Q1 C:Q1 Z:Q1. C:Q4 Z:Q4."},
		{"copy in by execute: the sync before is ignored", "P1 B2 E3 S4 <12G k5! S6 <CZ", "1:P1. 2:B2. drop:S4 G:E3 no:k5 C:E3. Z:S6."},
		{"the same, all sent ahead", "P1 B2 E3 S4 k5 S6 <12GCZ", "1:P1. 2:B2. drop:S4 G:E3 C:E3. Z:S6."},
		{"sync during copy", "B1 E2 <2G S3! S4! k5! S6 <CZ", "2:B1. G:E2 no:S3 no:S4 no:k5 C:E2. Z:S6."},
		{"copy cut by an error", "B1 E2 <2GE k3! S4 <Z", "2:B1. G:E2 E:E2. no:k3 Z:S4."},
		{"copy cut by a query", "Q1 <G Q2! <EZ Q3 <CZ", "G:Q1 no:Q2 E:Q1 Z:Q1. C:Q3 Z:Q3."},
		{"copy by execute cut by a parse", "B1 E2 P3 B4 S5 <2GEZ", "2:B1. drop:P3 G:E2 E:E2. drop:B4 Z:S5."},
		{"end of a copy that failed early", "Q1 k2 Q3 <EZCZ", "E:Q1 Z:Q1. C:Q3 Z:Q3."},
		{"end of a copy out of nowhere", "k1! Q2 <CZ", "no:k1 C:Q2 Z:Q2."},
		{"copy out", "B1 E2 S3 <2HddcCZ", "2:B1. H:E2 d:E2 d:E2 c:E2 C:E2. Z:S3."},
		{"copy both", "Q1 <WdcCZ", "W:Q1 d:Q1 c:Q1 C:Q1 Z:Q1."},
		{"swallowed parse", "-P1 B2 E3 S4 <12CZ", "1-P1. 2:B2. C:E3. Z:S4."},
		{"swallowed parse that fails", "-P1 B2 E3 S4 <EZ", "E-P1. drop:E3 drop:B2 Z:S4."},
		{"hidden query", "Q1 0Q2 Q3 <CZTDCZCZ", "C:Q1 Z:Q1. T0Q2 D0Q2 C0Q2 Z0Q2. C:Q3 Z:Q3."},
		{"replaced error", "!B1 E2 S3 <EZ", "E!B1. drop:E2 Z:S3."},
		{"nothing was asked", "<C", "unexpected"},
		{"wrong reply", "P1 <2", "unexpected"},
		{"rows for a bind", "B1 <D", "unexpected"},
		{"ready too early", "P1 S2 <Z", "unexpected"},
		{"an unknown letter", "Q1 <?", "unexpected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := playReplies(tc.script); got != tc.want {
				t.Errorf("script %s\n got %s\nwant %s", tc.script, got, tc.want)
			}
		})
	}
}

var kindOfLetter = map[byte]ReplyKind{
	'P': ReplyParse, 'B': ReplyBind, 'D': ReplyDescribe, 'E': ReplyExecute, 'C': ReplyClose,
	'S': ReplySync, 'Q': ReplyQuery, 'F': ReplyFunctionCall, 'k': ReplyCopyEnd,
}

var actionOfSign = map[byte]Action{'-': ActionSwallow, '0': ActionHide, '!': ActionReplace}

func playReplies(script string) string {
	var trace []string
	say := func(format string, args ...any) { trace = append(trace, fmt.Sprintf(format, args...)) }
	q := Replies[string]{OnDrop: func(e Expected[string]) { say("drop:%s", e.Ref) }}
	for word := range strings.FieldsSeq(script) {
		switch {
		case word[0] == '<':
			for _, c := range []byte(word[1:]) {
				r, err := q.Step(c)
				if err != nil {
					return "unexpected"
				}
				sign := map[Action]string{ActionForward: ":", ActionSwallow: "-", ActionHide: "0", ActionReplace: "!"}[r.Action]
				end := ""
				if r.Async {
					sign = "~"
				}
				if r.Last {
					end = "."
				}
				at := len(trace)
				say("%c%s%s%s", c, sign, r.Ref, end)
				if c == 'E' { // what Step dropped was said before: put the error first
					for i := at; i > 0 && strings.HasPrefix(trace[i-1], "drop:"); i-- {
						trace[i-1], trace[i] = trace[i], trace[i-1]
					}
				}
			}
		case word[0] == 'd': // CopyData is not pushed
		default:
			action, rest := ActionForward, word
			if a, ok := actionOfSign[word[0]]; ok {
				action, rest = a, word[1:]
			}
			name := strings.TrimSuffix(rest, "!")
			if !q.Push(kindOfLetter[rest[0]], action, name) {
				say("no:%s", name)
			}
		}
	}
	return strings.Join(trace, " ")
}

func TestRepliesDropAll(t *testing.T) {
	var dropped []string
	q := Replies[string]{OnDrop: func(e Expected[string]) { dropped = append(dropped, e.Ref) }}
	q.Push(ReplyParse, ActionForward, "a")
	q.Push(ReplyBind, ActionForward, "b")
	q.DropAll()
	if got := strings.Join(dropped, ""); got != "ba" || !q.Idle() {
		t.Errorf("dropped %q, idle %v; want \"ba\", true", got, q.Idle())
	}
}

// A long pipeline must not keep what was answered.
func TestRepliesCompact(t *testing.T) {
	var q Replies[int]
	for i := range 10000 {
		q.Push(ReplyBind, ActionForward, i)
		q.Push(ReplyBind, ActionForward, i)
		if _, err := q.Step(TypeBindComplete); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			for range 2 {
				if _, err := q.Step(TypeBindComplete); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if q.Len() != 0 || cap(q.items) > 1024 {
		t.Errorf("len %d, capacity %d", q.Len(), cap(q.items))
	}
}

// FuzzReplies: whatever a server sends, the queue neither panics nor grows.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("\x00\x01\x03\x051\x322CZ"))
	f.Fuzz(func(t *testing.T, script []byte) {
		dropped, pushed := 0, 0
		q := Replies[int]{OnDrop: func(Expected[int]) { dropped++ }}
		for i, c := range script {
			if c < 36 {
				if q.Push(ReplyKind(c%9), Action(c/9), i) {
					pushed++
				}
			} else if _, err := q.Step(c); err != nil {
				return
			}
		}
		if q.Len() > pushed-dropped {
			t.Errorf("%d expected of %d pushed, %d dropped", q.Len(), pushed, dropped)
		}
	})
}
