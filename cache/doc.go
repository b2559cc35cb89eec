// Package cache is the keyed store: answers, what each of them was read from,
// and the positions at which those parts of the tables last changed. It knows
// no SQL, no wire protocol and no clock.
//
// # The parts
//
//   - An entry (entry.go) is one immutable answer with its key, written once
//     into a segment (segment.go): a fixed-size piece of memory outside the Go
//     heap. A shard (shard.go) owns segments and an index (index.go) of 8-byte
//     slots, also off heap, so the collector's work does not grow with the
//     number of entries.
//   - A cell (cells.go) holds the position at which one dependency last
//     changed. An entry names its cells by number.
//   - A fill (fill.go) is one answer being fetched.
//   - A Reader (reader.go) looks entries up without a lock.
//
// # Freshness
//
// An entry was filled at a position: everything up to it could be read by the
// statement that made the answer. It is valid while its epoch is the store's
// (no Flush since) and no cell of it changed after that position. Why no
// change can slip between a fill and the feed is proven at cells.claim.
//
// # Who may touch what, and when
//
// Everything that changes a shard happens under that shard's mutex. Cells have
// shards and mutexes of their own. Lock order: shard, then cell shard or pool;
// no two of a kind at once. Readers hold nothing; they are kept from seeing
// reused memory by epochs (reclaim.go). The words that readers share with
// writers are atomic: index slots, an entry's state word, cells' positions, the
// table pointers, the epochs. All the rest of an entry is written before its
// slot is, and never again until no Reader can hold it.
package cache
