//go:build linux && !race

package cache

import (
	"fmt"
	"syscall"
	"unsafe"
)

// checkedMemory is true in builds that use ordinary Go memory, so that the
// race detector sees every access, and overwrite what is reused.
const checkedMemory = false

// hugePage is the unit in which the kernel may back memory advised as huge.
const hugePage = 2 << 20

// A memory is a piece of zeroed address space outside the Go heap. Pages cost
// nothing until they are touched.
type memory struct {
	mapping []byte
	start   uintptr // offset of the usable part in mapping
	size    uintptr
}

// mapMemory reserves size bytes. With huge set the piece is aligned to 2 MiB
// and backed by huge pages, to be used only where whole multiples of 2 MiB are
// accounted for at once; else huge pages are forbidden, because one touched
// byte would then occupy 2 MiB that nobody counted.
func mapMemory(size int, huge bool) (memory, error) {
	length := size
	if huge {
		length += hugePage
	}
	b, err := syscall.Mmap(-1, 0, length, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return memory{}, fmt.Errorf("cache: reserving %d bytes: %w", length, err)
	}
	m := memory{mapping: b, size: uintptr(size)}
	advice := syscall.MADV_NOHUGEPAGE
	if huge {
		m.start = -uintptr(unsafe.Pointer(&b[0])) & (hugePage - 1)
		advice = syscall.MADV_HUGEPAGE
	}
	// A kernel built without transparent huge pages answers EINVAL to either
	// advice; then there is nothing to advise.
	if err := syscall.Madvise(b, advice); err != nil && err != syscall.EINVAL {
		m.free()
		return memory{}, fmt.Errorf("cache: advising %d bytes: %w", length, err)
	}
	return m, nil
}

func (m *memory) base() unsafe.Pointer {
	if len(m.mapping) == 0 {
		return nil
	}
	return unsafe.Pointer(&m.mapping[m.start])
}

// discard gives the pages of [off, off+n) back to the kernel; they read as
// zero afterwards. It reports whether the kernel took them.
func (m *memory) discard(off, n uintptr) bool {
	return syscall.Madvise(m.mapping[m.start+off:m.start+off+n], syscall.MADV_DONTNEED) == nil
}

// free unmaps the whole piece. Nobody may hold a pointer into it. Unmapping
// what mapMemory mapped cannot fail other than by a bug here.
func (m *memory) free() {
	if m.mapping == nil {
		return
	}
	if err := syscall.Munmap(m.mapping); err != nil {
		panic("cache: munmap: " + err.Error())
	}
	*m = memory{}
}
