package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// sessionModel is what one session may be told of one key: its state is the
// version below which nothing may come any more, which the session's own writes
// raise as its reads do. Two reads of one version may differ in nothing else,
// as whereFrom checks.
var sessionModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		least, version := state.(int64), output.(int64)
		if input.(action).write {
			return true, max(least, version)
		}
		return version >= least, version
	},
}

// sessions checks that every session at the level saw its own writes and never
// went back in time.
func sessions(ops []Op, log commits) (found []Violation, err error) {
	type place struct{ session, key int }
	parts := make(map[place][]Op)
	for _, o := range ops {
		// Whether an open write was the session's own last one, nobody knows.
		if o.Level == Session && !o.Open {
			at := place{o.Session, o.Key}
			parts[at] = append(parts[at], o)
		}
	}
	for at, part := range parts {
		for i := range part {
			if n, ok := log.version(at.key, part[i].Value); ok && part[i].Write { // others are whereFrom's to find
				part[i].Version = n
			}
		}
		verdict := func(n int) porcupine.CheckResult {
			return porcupine.CheckOperationsTimeout(sessionModel, versions(part[:n]), checkPatience)
		}
		switch verdict(len(part)) {
		case porcupine.Unknown:
			return found, fmt.Errorf("session %d, key %d: no verdict", at.session, at.key)
		case porcupine.Illegal:
			n := 1
			for verdict(n) == porcupine.Ok {
				n++
			}
			found = append(found, Violation{Level: Session, Key: at.key, Around: part[:n],
				What: fmt.Sprintf("session %d was told what is older than its own write or what it read before", at.session)})
		}
	}
	return found, nil
}

func versions(ops []Op) (out []porcupine.Operation) {
	for i := range ops {
		o := &ops[i]
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: action{write: o.Write, value: o.Value}, Output: o.Version, Call: o.Call, Return: o.Return})
	}
	return out
}
