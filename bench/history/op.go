package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Level is a promise, by Freshet's own names of them.
type Level string

// The levels, the weakest first.
const (
	Bounded      Level = "bounded"
	Session      Level = "session"
	Linearizable Level = "linearizable"
)

// Direct is the level of those who talk to the server itself: their reads are
// part of what has to be linearizable.
const Direct Level = "direct"

// Op is one operation on one key. A read of several keys is several operations
// with the same times.
type Op struct {
	Client  int   // who: one goroutine
	Session int   // the connection it was made on; no two clients share a number
	Level   Level // what is promised to its reader
	Write   bool
	Key     int
	Value   int64 // written or read; 0 is what every key begins with
	// Version is how many writes the key had seen, as a read was told. Of a
	// write it is known from the log only, see commits.
	Version      int64
	Call, Return int64 // nanoseconds since the run began, on one monotonic clock
	// Open says that nobody knows whether the write happened: the connection
	// broke, or an error came back, which may have happened to the answer alone.
	// It can take effect at any time after Call, long after Return even: a
	// stopped server goes on where it was. So it is taken to never return.
	Open bool
	Hit  bool   // Freshet says that the read came from memory
	How  string // what was read: several statements, of which answers are kept one by one, read a key
}

// end is when the operation was over for sure.
func (o *Op) end() int64 {
	if o.Open {
		return math.MaxInt64
	}
	return o.Return
}

func (o *Op) String() string {
	what, told := "reads ", ""
	if o.Write {
		what = "writes"
	} else {
		told = fmt.Sprintf(" (version %d) by %s", o.Version, o.How)
	}
	if o.Hit {
		told += " from memory"
	}
	till := fmt.Sprintf("%11.3f", millis(o.Return))
	if o.Open {
		till = "   (open)  "
	}
	return fmt.Sprintf("%11.3f … %s ms  client %2d session %3d %-12s %s key %d = %d%s", millis(o.Call), till, o.Client, o.Session, o.Level, what, o.Key, o.Value, told)
}

func millis(nanos int64) float64 { return float64(nanos) / float64(time.Millisecond) }

// byKey parts operations by their key, each in the order of their calls.
func byKey(ops []Op) map[int][]Op {
	parts := make(map[int][]Op)
	for _, o := range ops {
		parts[o.Key] = append(parts[o.Key], o)
	}
	for _, part := range parts {
		slices.SortStableFunc(part, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return parts
}

// commits is the order in which the server committed: the values of each key
// by version. A trigger writes it, in the transaction of the write itself, so
// the log has a write if and only if it was committed, whatever its writer was
// told. The version is counted up by the same UPDATE, under the row's lock,
// which is held until the commit: versions of a key are in the order of
// commits, and no two alike.
//
// The check for linearizability does not use it, so that it rests on nothing
// but what sessions saw.
type commits map[int]map[int64]int64 // key -> value -> version

// version is the value's place in the order; ok is false if it never came to be.
func (c commits) version(key int, value int64) (n int64, ok bool) {
	if value == 0 {
		return 0, true
	}
	n, ok = c[key][value]
	return n, ok
}
