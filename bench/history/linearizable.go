package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkPatience bounds the search for an order of one key's operations.
const checkPatience = 2 * time.Minute

// action is what porcupine gets of an operation.
type action struct {
	write bool
	value int64
	// seen says of a write that somebody read its value.
	seen bool
}

// register is the state of a key. unread says that its value was read by
// somebody, but not yet in the order tried so far.
type register struct {
	value  int64
	unread bool
}

// registerModel is a register with one addition that changes no verdict and
// makes the search short. As no two writes write the same value, one that was
// read must stand directly before its readers, so an order that overwrites it
// first is a dead end: without this it would be noticed only at the reader,
// which may be thousands of operations later. Open writes, which fit nearly
// everywhere, would make that a search among all subsets of them.
var registerModel = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, _ any) (bool, any) {
		s, a := state.(register), input.(action)
		if a.write {
			return !s.unread, register{a.value, a.seen}
		}
		return s.value == a.value, register{value: s.value}
	},
}

// linearizes tells whether operations on one key are linearizable.
func linearizes(ops []Op) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(registerModel, operations(ops), checkPatience)
}

// operations gives porcupine its view. An open write that nobody read is left
// out: it can be put after everything else, so it forbids nothing. One that
// was read is open to the end.
func operations(ops []Op) []porcupine.Operation {
	seen := make(map[int64]bool)
	for i := range ops {
		if !ops[i].Write {
			seen[ops[i].Value] = true
		}
	}
	var out []porcupine.Operation
	for i := range ops {
		o := &ops[i]
		if o.Open && !seen[o.Value] {
			continue
		}
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: action{o.Write, o.Value, o.Write && seen[o.Value]}, Call: o.Call, Return: o.end()})
	}
	return out
}

// linearizable checks what is promised to those at that level: their reads,
// those made on the server itself, and all writes.
func linearizable(ops []Op) (found []Violation, err error) {
	for key, part := range byKey(ops) {
		var chosen []Op
		for _, o := range part {
			if o.Write || o.Level == Linearizable || o.Level == Direct {
				chosen = append(chosen, o)
			}
		}
		switch linearizes(chosen) {
		case porcupine.Unknown:
			return found, fmt.Errorf("key %d: no verdict on %d operations within %s", key, len(chosen), checkPatience)
		case porcupine.Illegal:
			found = append(found, Violation{Level: Linearizable, Key: key, Around: shortest(chosen),
				What: "no order of these operations agrees with what was read and when"})
		}
	}
	return found, nil
}

// shortest is the shortest history, by the time of its end, that is not
// linearizable: the answer that ends it is the one too many. What is not over
// by then is open, if a write, and left out, if a read.
func shortest(ops []Op) []Op {
	low, high := int64(0), int64(0)
	for i := range ops {
		high = max(high, ops[i].Return)
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; linearizes(until(ops, middle)) == porcupine.Illegal {
			high = middle
		} else {
			low = middle
		}
	}
	return until(ops, high)
}

// until is the history as it was known at a time.
func until(ops []Op, at int64) (out []Op) {
	for _, o := range ops {
		switch {
		case o.Call > at || o.Return > at && !o.Write:
			continue
		case o.Return > at:
			o.Open = true
		}
		out = append(out, o)
	}
	return out
}
