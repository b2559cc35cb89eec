package feed

import (
	"bytes"
	"fmt"
	"strings"

	"freshet/cache/feed/binlog"
	"freshet/cache/feed/row"
)

// query applies a statement that the log keeps as text.
func (r *mysqlReader) query(e binlog.Event, cut bool) error {
	q, err := binlog.ParseQuery(e.Type, e.Body, maxEventBytes)
	if err != nil || cut {
		// Too long or not to be understood: it may have done anything.
		r.openFor()
		r.group.content = true
		r.txn.everything()
		return r.statementEnd()
	}
	text := bytes.TrimSpace(q.Text)
	switch {
	case equalWord(text, "BEGIN"):
		r.openFor()
		r.group.transaction = true
		return nil
	case equalWord(text, "COMMIT"), equalWord(text, "ROLLBACK"):
		// What is rolled back but logged are changes of tables without
		// transactions; they stand.
		return r.finish()
	case startsWith(text, "XA "):
		return r.xaQuery(string(text))
	case startsWith(text, "SAVEPOINT "), startsWith(text, "ROLLBACK TO "), startsWith(text, "RELEASE SAVEPOINT "):
		return nil
	}
	r.openFor()
	r.statement(&q, string(text))
	return r.statementEnd()
}

// openFor opens a group for an event that comes without a GTID event.
func (r *mysqlReader) openFor() {
	if !r.group.open {
		r.beginGroup()
	}
}

func equalWord(text []byte, word string) bool {
	return len(text) == len(word) && strings.EqualFold(string(text), word)
}

func startsWith(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix)
}

// statement applies what a statement surely names, else everything.
func (r *mysqlReader) statement(q *binlog.Query, text string) {
	r.group.content = true
	verdict := r.ddl.read(q, text)
	switch {
	case verdict.nothing:
	case verdict.tables == nil:
		r.txn.everything()
	default:
		for _, t := range verdict.tables {
			r.txn.redefine(r.source.key(t.schema, t.name))
		}
	}
}

// xaQuery applies XA START, END, COMMIT and ROLLBACK, which the log keeps as
// text with the identifier in hexadecimal. Rows between XA START and XA
// PREPARE count from XA COMMIT on, and by then only their tables are known:
// shapes may have come that they were not hashed for.
func (r *mysqlReader) xaQuery(text string) error {
	r.openFor()
	r.group.content = true
	fields := strings.Fields(text)
	verb := ""
	if len(fields) > 1 {
		verb = strings.ToUpper(fields[1])
	}
	switch verb {
	case "START", "BEGIN":
		r.group.transaction = true
		if r.group.xa == nil {
			r.group.xa = &prepared{tables: make(map[nameKey]bool)}
		}
		return nil
	case "END":
		return nil
	case "PREPARE":
		r.txn.everything()
		return nil
	}
	id, ok := xaID(fields)
	held, known := r.held[id]
	switch {
	case verb == "ROLLBACK" && ok:
		delete(r.held, id)
	case verb == "COMMIT" && ok && known && !held.all:
		delete(r.held, id)
		for key := range held.tables {
			if f := r.txn.view.byName[key]; f != nil {
				r.txn.unreadable(f, row.Delete)
			}
		}
	default:
		delete(r.held, id)
		r.txn.everything()
	}
	r.group.transaction = false
	return r.finish()
}

// xaID reads the identifier of `XA COMMIT X'…',X'…',n [ONE PHASE]`.
func xaID(fields []string) (string, bool) {
	if len(fields) < 3 {
		return "", false
	}
	id := strings.Join(fields[2:], "")
	parts := strings.Split(id, ",")
	if len(parts) != 3 {
		return "", false
	}
	digits := strings.TrimRight(parts[2], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	for i := range 2 {
		if len(parts[i]) < 3 || (parts[i][0] != 'X' && parts[i][0] != 'x') || parts[i][1] != '\'' {
			return "", false
		}
		parts[i] = "X'" + strings.ToLower(parts[i][2:])
	}
	return fmt.Sprintf("%s,%s,%s", parts[0], parts[1], digits), true
}

// xaPrepare ends a group whose rows wait for XA COMMIT.
func (r *mysqlReader) xaPrepare(e binlog.Event) error {
	x, err := binlog.ParseXAPrepare(e.Body)
	if err != nil {
		return err
	}
	if x.OnePhase || !r.group.open {
		return r.finish()
	}
	p := r.group.xa
	if p == nil {
		p = &prepared{all: true}
	}
	if len(r.held) >= maxPrepared {
		clear(r.held) // unknown ones change everything at their commit
	}
	r.held[x.ID] = p
	r.txn.reset()
	return r.finish()
}
