package cache

// Stats is a picture of a Store. The parts are taken one after another.
type Stats struct {
	Entries    int64 // valid or stale, not flushed
	Bytes      int64 // memory taken, all kinds, never above LimitBytes
	LimitBytes int64
	LiveBytes  int64 // of entries that can be found, heads and keys included
	FillBytes  int64 // of answers being filled; included in Bytes
	Fills      int   // running

	Stored     uint64 // answers stored
	NotStored  uint64 // fills that ended without (changed meanwhile, flushed, too large, abandoned)
	NoSegment  uint64 // of those, for want of memory that no Reader can see
	Refused    uint64 // claims refused
	Joined     uint64 // claims that joined
	Evictions  uint64 // valid entries dropped for want of memory
	Segments   int    // segments in use
	Reclaimed  uint64 // segments emptied
	IndexBytes int64
	IndexSlots uint64 // of which in use

	Cells        uint64 // dependencies of live entries and running fills
	CellBytes    int64
	MarksHit     uint64 // marks that found a cell
	MarksMissed  uint64 // marks of what nobody depends on
	Flushes      uint64
	SegmentBytes int64 // size of one segment
}

// Stats takes each shard's lock for a moment.
func (s *Store) Stats() Stats {
	st := Stats{
		LimitBytes:   s.acct.limit + s.fillAcct.limit,
		FillBytes:    s.fillAcct.used.Load(),
		Flushes:      uint64(s.loadEpoch()),
		SegmentBytes: int64(s.pool.segSize),
	}
	st.Bytes = s.acct.used.Load() + st.FillBytes
	for i := range s.shards {
		s.shards[i].addTo(&st)
	}
	for i := range s.cells.shards {
		sh := &s.cells.shards[i]
		sh.mu.Lock()
		st.Cells += sh.used
		st.MarksHit += sh.marked
		st.MarksMissed += sh.missed
		st.CellBytes += int64(len(sh.heads)) * 4
		sh.mu.Unlock()
	}
	s.cells.mu.Lock()
	st.CellBytes += int64(s.cells.taken) * cellBytes
	s.cells.mu.Unlock()
	return st
}

func (sh *shard) addTo(st *Stats) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	c := &sh.stats
	st.Entries += c.entries
	st.LiveBytes += c.liveBytes
	st.Fills += int(c.fills)
	st.Stored += c.stored
	st.NotStored += c.notStored
	st.NoSegment += c.noSegment
	st.Refused += c.refused
	st.Joined += c.joined
	st.Evictions += c.evicted
	st.Reclaimed += c.segmentsEvicted
	st.Segments += sh.owned
	st.IndexBytes += sh.table.Load().bytes()
	st.IndexSlots += sh.slots
}
