// Package oracle checks what Freshet promises above all: that an answer is one
// the server would give. It makes random tables, rows, SELECTs and writes, and
// after every write, once Freshet has proven that it saw it, reads every
// statement of a working set both through Freshet and from the server itself,
// while nobody else writes. The server is the oracle: no expected value is
// written down anywhere.
//
// A run is a sequence of rounds. A round is drawn as a whole from its seed,
// before anything is sent: tables, rows, the working set and the writes are
// text (see script), so a round can be played again, and parts of it be left
// out to find what a difference needs (see minimise).
//
// Rows are compared in order where the statement orders them totally and as a
// multiset elsewhere. Statements whose answer the server itself leaves open
// are not drawn: which of several equal values stands for a group, a float
// sum's last digit, LIMIT without a total order. Every table has a column n
// whose values are unique, declared or not, so a total order is always at hand.
package oracle
