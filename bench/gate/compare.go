package gate

import (
	"bytes"
	"fmt"
	"strconv"

	"freshet/bench/wire"
)

// diff names the first thing in which two replies differ; "" when they are alike.
func diff(direct, through []wire.Message) string {
	for i := range min(len(direct), len(through)) {
		a, b := direct[i], through[i]
		if a.Kind != b.Kind {
			return fmt.Sprintf("message %d: direct %s, through %s", i, show(a), show(b))
		}
		if !bytes.Equal(a.Body, b.Body) {
			at := 0
			for at < len(a.Body) && at < len(b.Body) && a.Body[at] == b.Body[at] {
				at++
			}
			return fmt.Sprintf("message %d (%s) differs at byte %d of %d and %d:\n  direct  %s\n  through %s",
				i, a.Kind, at, len(a.Body), len(b.Body), around(a.Body, at), around(b.Body, at))
		}
	}
	if len(direct) > len(through) {
		return fmt.Sprintf("through ends after %d messages, direct goes on with %s", len(through), show(direct[len(through)]))
	}
	if len(through) > len(direct) {
		return fmt.Sprintf("direct ends after %d messages, through goes on with %s", len(direct), show(through[len(direct)]))
	}
	return ""
}

func show(m wire.Message) string { return m.Kind + " " + around(m.Body, 0) }

// around is the part of b in which byte at stands.
func around(b []byte, at int) string {
	from, to := max(0, at-40), min(len(b), at+120)
	return strconv.Quote(string(b[from:to]))
}

// refusal is the error a reply carries, if any.
func refusal(reply []wire.Message) error {
	for _, m := range reply {
		if m.Kind == wire.KindErr || m.Kind == "E" {
			return fmt.Errorf("refused: %s", around(m.Body, 0))
		}
	}
	return nil
}
