package cache

// visitSlots is how many index slots are looked at under one hold of the lock.
const visitSlots = 1024

// Visit calls f for every entry that was not flushed, with its meta and the
// bytes it takes. It holds one shard's lock at a time, and not for long: f must
// be quick and must not call the store. What is stored, evicted or moved
// meanwhile may be seen once, twice or not at all. It is for people who look,
// not for the hot path.
func (s *Store) Visit(f func(meta [2]uint64, bytes int)) {
	for i := range s.shards {
		for part := uint64(0); s.shards[i].visit(part, f); part++ {
		}
	}
}

// visit looks at one part of the slots and reports whether there are more.
func (sh *shard) visit(part uint64, f func(meta [2]uint64, bytes int)) (more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.table.Load()
	end := min((part+1)*visitSlots, t.n)
	for i := part * visitSlots; i < end; i++ {
		word := t.load(i)
		if word == 0 {
			continue
		}
		e := sh.store.entryAt(slotOffset(word))
		if epoch, _ := e.loadWord(); epoch == sh.store.loadEpoch() {
			f(e.meta, int(e.size()))
		}
	}
	return end < t.n
}
