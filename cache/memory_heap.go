//go:build !linux || race

package cache

import "unsafe"

// checkedMemory is true in builds that use ordinary Go memory, so that the
// race detector sees every access, and overwrite what is reused. (The race
// detector ignores memory it did not hand out, so a mapping would hide all
// faults of reclamation from it.)
const checkedMemory = true

const hugePage = 2 << 20

// A memory is a piece of zeroed memory without pointers.
type memory struct{ words []uint64 }

func mapMemory(size int, _ bool) (memory, error) {
	return memory{words: make([]uint64, size/8)}, nil
}

func (m *memory) base() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.words)) }

func (m *memory) discard(_, _ uintptr) bool { return true }

func (m *memory) free() { *m = memory{} }
