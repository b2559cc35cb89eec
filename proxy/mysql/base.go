package mysql

import (
	"sort"
	"strconv"
	"strings"

	wire "freshet/protocol/mysql"
)

// initialStatus is what a session assumes before its first link.
const initialStatus = wire.StatusAutocommit

// defaultMaxPacket is used when the server does not tell max_allowed_packet.
const defaultMaxPacket = 64 << 20

// newBase reads off a fresh connection's variables what sessions need.
func newBase(status wire.Status, initial map[string]string) *base {
	b := &base{status: status, initial: initial, maxPacket: defaultMaxPacket}
	if n, err := strconv.Atoi(initial["max_allowed_packet"]); err == nil && n > 0 {
		b.maxPacket = n
	}
	list := initial["session_track_system_variables"]
	b.trackAll = list == "*"
	b.tracked = map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		b.tracked[strings.ToLower(strings.TrimSpace(name))] = true
	}
	b.trackSchema = isOn(initial["session_track_schema"])
	b.trackState = isOn(initial["session_track_state_change"])
	b.print = fingerprint(initial)
	return b
}

// fingerprint holds the initial values of all that may change an answer.
func fingerprint(initial map[string]string) string {
	names := make([]string, 0, len(replayable))
	for name := range replayable {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []byte
	for _, name := range names {
		value, ok := initial[name]
		out = append(out, byte(boolInt(ok)))
		out = wire.AppendLenencString(out, value)
	}
	return string(out)
}

func isOn(v string) bool { return strings.EqualFold(v, "ON") || v == "1" }
