package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// sessionModel is what one session may be told of one key: its state is the
// version below which nothing may come any more, that of its own last write or
// of its last read, by whatever statement.
var sessionModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		least, version := state.(int64), output.(int64)
		if input.(sessionAction).write {
			return true, max(least, version)
		}
		return version >= least, version
	},
}

type sessionAction struct{ write bool }

// sessions checks that every session at the level saw its own writes, and was
// never taken back in time.
func sessions(ops []Op, log commits) (found []Violation, err error) {
	for at, part := range bySession(ops) {
		for i := range part {
			if n, ok := log.version(at.key, part[i].Value); ok && part[i].Write { // others are whereFrom's to find
				part[i].Version = n
			}
		}
		broken, err := firstBroken(part)
		if err != nil {
			return found, fmt.Errorf("session %d, key %d: %w", at.session, at.key, err)
		}
		if broken > 0 {
			found = append(found, Violation{Level: Session, Key: at.key, Around: part[:broken],
				What: fmt.Sprintf("session %d was told what is older than its own write, or than what it was told before", at.session)})
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

// firstBroken is how many of the operations of a session it takes to break its
// promise; 0 if it is kept.
func firstBroken(ops []Op) (int, error) {
	verdict := func(n int) porcupine.CheckResult {
		var history []porcupine.Operation
		for i := range ops[:n] {
			o := &ops[i]
			history = append(history, porcupine.Operation{ClientId: o.Client, Input: sessionAction{o.Write}, Output: o.Version, Call: o.Call, Return: o.Return})
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
