package planner

import (
	"hash/maphash"
	"sync"
)

const clockShards = 32

// clockMap is a sharded map with a bound on its entries and on the bytes of
// their keys. What was used since the hand last passed is kept (CLOCK, an
// approximation of least recently used). Safe for many goroutines.
type clockMap[V any] struct {
	seed   maphash.Seed
	shards [clockShards]clockShard[V]
}

type clockShard[V any] struct {
	mu      sync.Mutex
	byKey   map[string]int // into ring
	ring    []clockEntry[V]
	hand    int
	bytes   int
	entries int // limits of this shard
	limit   int
}

type clockEntry[V any] struct {
	key   string
	value V
	used  bool
}

func newClockMap[V any](entries, limitBytes int) *clockMap[V] {
	m := &clockMap[V]{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i] = clockShard[V]{
			byKey:   make(map[string]int),
			entries: max(1, entries/clockShards),
			limit:   max(1, limitBytes/clockShards),
		}
	}
	return m
}

func (m *clockMap[V]) shard(key []byte) *clockShard[V] {
	return &m.shards[maphash.Bytes(m.seed, key)%clockShards]
}

// get returns the value under key.
func (m *clockMap[V]) get(key []byte) (v V, ok bool) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byKey[string(key)]
	if !ok {
		return v, false
	}
	s.ring[i].used = true
	return s.ring[i].value, true
}

// getOrAdd returns the value under key, which make gives if there is none. It
// is called under the shard's lock with the key as it is stored.
func (m *clockMap[V]) getOrAdd(key []byte, make func(key string) V) (v V, added bool) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.byKey[string(key)]; ok {
		s.ring[i].used = true
		return s.ring[i].value, false
	}
	k := string(key)
	v = make(k)
	s.add(k, v)
	return v, true
}

// put sets the value under key.
func (m *clockMap[V]) put(key []byte, v V) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.byKey[string(key)]; ok {
		s.ring[i].value = v
		return
	}
	s.add(string(key), v)
}

// add makes room and adds; a key larger than the whole shard is not kept.
func (s *clockShard[V]) add(key string, v V) {
	if len(key) > s.limit {
		return
	}
	for len(s.ring) > 0 && (len(s.ring) >= s.entries || s.bytes+len(key) > s.limit) {
		s.evict()
	}
	s.byKey[key] = len(s.ring)
	s.ring = append(s.ring, clockEntry[V]{key: key, value: v})
	s.bytes += len(key)
}

// evict drops the first entry at the hand that was not used since it last
// passed. The last entry takes its place in the ring.
func (s *clockShard[V]) evict() {
	for {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		e := &s.ring[s.hand]
		if e.used {
			e.used = false
			s.hand++
			continue
		}
		delete(s.byKey, e.key)
		s.bytes -= len(e.key)
		last := len(s.ring) - 1
		if s.hand != last {
			s.ring[s.hand] = s.ring[last]
			s.byKey[s.ring[s.hand].key] = s.hand
		}
		s.ring[last] = clockEntry[V]{}
		s.ring = s.ring[:last]
		s.hand++
		return
	}
}

// stats returns how many entries there are and the bytes of their keys.
func (m *clockMap[V]) stats() (entries, bytes int) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		entries += len(s.ring)
		bytes += s.bytes
		s.mu.Unlock()
	}
	return entries, bytes
}
