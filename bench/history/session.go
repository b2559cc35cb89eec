package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// sessionModel is what one session may be told of one key: its state are the
// versions below which nothing may come any more: for all its reads, that of
// its own last write; for reads by one statement, also that of the last of them.
var sessionModel = porcupine.Model{
	Init: func() any { return least{} },
	Step: func(state, input, output any) (bool, any) {
		s, a, version := state.(least), input.(sessionAction), output.(int64)
		if a.write {
			s.own = max(s.own, version)
			return true, s
		}
		ok := version >= s.own && (a.how != s.how || version >= s.read)
		s.how, s.read = a.how, version
		return ok, s
	},
}

type least struct {
	own, read int64
	how       string // by which statement read was read
}

type sessionAction struct {
	write bool
	how   string
}

// sessions checks that every session at the level saw its own writes, and that
// no statement took it back in time.
func sessions(ops []Op, log commits) (found []Violation, err error) {
	for at, part := range bySession(ops) {
		for i := range part {
			if n, ok := log.version(at.key, part[i].Value); ok && part[i].Write { // others are whereFrom's to find
				part[i].Version = n
			}
		}
		for _, how := range statements(part) {
			one := slices.DeleteFunc(slices.Clone(part), func(o Op) bool { return !o.Write && o.How != how })
			broken, err := firstBroken(one)
			if err != nil {
				return found, fmt.Errorf("session %d, key %d: %w", at.session, at.key, err)
			}
			if broken > 0 {
				found = append(found, Violation{Level: Session, Key: at.key, Around: one[:broken],
					What: fmt.Sprintf("session %d was told what is older than its own write, or than what the same statement told it before", at.session)})
				break
			}
		}
	}
	return found, nil
}

// place is where a session's promises hold.
type place struct{ session, key int }

// bySession parts the operations at the level, each session's own, in their
// order. Whether an open write was the session's last one, nobody knows.
func bySession(ops []Op) map[place][]Op {
	parts := make(map[place][]Op)
	for _, o := range ops {
		if o.Level == Session && !o.Open {
			at := place{o.Session, o.Key}
			parts[at] = append(parts[at], o)
		}
	}
	for _, part := range parts {
		slices.SortStableFunc(part, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return parts
}

func statements(ops []Op) (out []string) {
	for i := range ops {
		if !ops[i].Write && !slices.Contains(out, ops[i].How) {
			out = append(out, ops[i].How)
		}
	}
	return out
}

// firstBroken is how many of the operations of a session it takes to break its
// promise; 0 if it is kept.
func firstBroken(ops []Op) (int, error) {
	verdict := func(n int) porcupine.CheckResult {
		var history []porcupine.Operation
		for i := range ops[:n] {
			o := &ops[i]
			history = append(history, porcupine.Operation{ClientId: o.Client, Input: sessionAction{o.Write, o.How}, Output: o.Version, Call: o.Call, Return: o.Return})
		}
		return porcupine.CheckOperationsTimeout(sessionModel, history, checkPatience)
	}
	switch verdict(len(ops)) {
	case porcupine.Ok:
		return 0, nil
	case porcupine.Illegal:
		n := 1
		for verdict(n) == porcupine.Ok {
			n++
		}
		return n, nil
	}
	return 0, fmt.Errorf("no verdict on %d operations within %s", len(ops), checkPatience)
}

// backward counts the reads at session level that went back in time behind
// what another statement had told the session, and returns one such pair. Freshet does
// not promise that there are none (docs/caching.md): two statements' answers
// may be of different age, within the bound.
func backward(ops []Op) (n int, sample []Op) {
	for _, part := range bySession(ops) {
		var newest Op
		for _, o := range part {
			switch {
			case o.Write:
			case o.Version >= newest.Version:
				newest = o
			default:
				n++
				sample = []Op{newest, o}
			}
		}
	}
	return n, sample
}
