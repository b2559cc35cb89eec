// Package history records what concurrent sessions are told while everything
// around them is paused, cut, killed and restarted, and checks afterwards that
// Freshet kept its promises (porcupine, github.com/anishathalye/porcupine).
//
// A row of a table is a register: sessions read it and write values of which
// no two are equal, some through Freshet, some past it on the server itself.
// Three promises are checked, each over the reads that were made under it:
//
//   - linearizable: everything that anybody read or wrote, in whatever way, can
//     be put into one order for each key that agrees with real time and in
//     which each read returns what was written last. That registers are
//     linearizable one by one makes the whole so (Herlihy and Wing, 1990).
//   - session: no answer is older than the session's own last write of the
//     key, or than what any statement told it before.
//   - bounded: no answer is older than the bound, against one clock; it
//     holds for the other two levels as well.
//
// What cannot be known is left open: a write whose connection broke may happen
// at any later time, or never. See Op.Open.
//
// A history that shows nothing must not pass for one that is right: a run has
// to be answered from memory often enough, before, between and after faults
// (see Report.Short), and the package's tests run Freshet at a weaker level
// than is claimed, which has to be found out.
package history
