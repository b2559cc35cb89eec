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
const defaultMaxPacket = 64<<20 - 1

// newBase reads off a fresh connection's variables what sessions need.
func newBase(status wire.Status, initial map[string]string) *base {
	b := &base{status: status, initial: initial, maxPacket: defaultMaxPacket}
	if n, err := strconv.Atoi(initial["max_allowed_packet"]); err == nil && n > 0 {
		b.maxPacket = n - 1 // servers refuse a payload of that length
	}
	b.shows.variables = initial["session_track_system_variables"]
	b.shows.schema = isOn(initial["session_track_schema"])
	b.shows.state = isOn(initial["session_track_state_change"])
	b.print = fingerprint(initial)
	return b
}

// shows is what a client that takes session tracking is told of. It is the
// server's default, or what the client asked for.
type shows struct {
	variables     string // session_track_system_variables
	schema, state bool
}

func (s *shows) variable(name string) bool {
	if s.variables == "*" {
		return true
	}
	for list := s.variables; list != ""; {
		var one string
		one, list, _ = strings.Cut(list, ",")
		if strings.EqualFold(strings.TrimSpace(one), name) {
			return true
		}
	}
	return false
}

// change takes in that the client set one of the variables behind it.
func (s *shows) change(name, value string) {
	switch name {
	case "session_track_system_variables":
		s.variables = value
	case "session_track_schema":
		s.schema = isOn(value)
	case "session_track_state_change":
		s.state = isOn(value)
	}
}

// fingerprint holds the initial values of all that may change an answer.
func fingerprint(initial map[string]string) string {
	names := []string{"max_allowed_packet"} // longer values become NULL
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
