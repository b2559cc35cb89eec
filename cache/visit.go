package cache

// Visit calls f for every entry that was not flushed, with its meta and the
// bytes it takes. It holds one shard's lock at a time: f must be quick and must
// not call the store. It is for people who look, not for the hot path.
func (s *Store) Visit(f func(meta [2]uint64, bytes int)) {
	for i := range s.shards {
		s.shards[i].visit(f)
	}
}

func (sh *shard) visit(f func(meta [2]uint64, bytes int)) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.table.Load()
	for i := range t.n {
		word := t.load(i)
		if word == 0 {
			continue
		}
		e := sh.store.entryAt(slotOffset(word))
		if epoch, _ := e.loadWord(); epoch == sh.store.loadEpoch() {
			f(e.meta, int(e.size()))
		}
	}
}
