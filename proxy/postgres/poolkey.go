package postgres

import (
	"slices"
	"strings"

	pg "freshet/protocol/postgres"
)

// A pool key is the database and the startup parameters, sorted by name: what
// a link was opened with and no later statement can take from it. Names and
// values cannot hold a zero byte, so the key says exactly what it was made of.
//
// user is the one that the link is opened as, "" for the DSN's. It stands among
// the parameters, where a client cannot put it.
func poolKey(m *pg.StartupMessage, user string) string {
	database, _ := m.Get("database")
	if database == "" {
		database, _ = m.Get("user")
	}
	last := map[string]string{}
	for _, o := range m.Options {
		switch {
		case o.Name == "user", o.Name == "database", strings.HasPrefix(o.Name, "_pq_."):
		case o.Name == "replication" && isFalse(o.Value):
		default:
			last[o.Name] = o.Value
		}
	}
	if user != "" {
		last["user"] = user
	}
	names := make([]string, 0, len(last))
	for name := range last {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(database)
	for _, name := range names {
		b.WriteString("\x00" + name + "\x00" + last[name])
	}
	return b.String()
}

// withCustoms is the key of a link on which customised options were made. A
// server never forgets that one exists (RESET leaves it empty, not missing), so
// such a link is only for sessions that made the same. The names stand under an
// empty one, which no parameter has.
func withCustoms(key string, customs []string) string {
	if len(customs) == 0 {
		return key
	}
	return key + "\x00\x00" + strings.Join(customs, ",")
}

// splitKey is poolKey's inverse; customised options are left out.
func splitKey(key string) (database string, parameters map[string]string) {
	parts := strings.Split(key, "\x00")
	parameters = make(map[string]string, len(parts)/2)
	for i := 1; i+1 < len(parts); i += 2 {
		if parts[i] != "" {
			parameters[parts[i]] = parts[i+1]
		}
	}
	return parts[0], parameters
}

func isFalse(v string) bool {
	switch strings.ToLower(v) {
	case "", "0", "false", "off", "no", "f", "n":
		return true
	}
	return false
}
