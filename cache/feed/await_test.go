package feed

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Whoever awaits a ticket that is proven, before or after, is told once; nobody
// else is.
func TestAwait(t *testing.T) {
	f := &Feed{kick: make(chan struct{}, 1), woken: make(chan struct{}, 1)}
	const last, each = 500, 4
	told := make([]atomic.Int32, last+10)
	var running sync.WaitGroup
	for range each {
		running.Go(func() {
			for ticket := range told {
				f.Await(uint64(ticket), func() {
					if f.ProvenTicket() < uint64(ticket) {
						t.Errorf("%d is told at %d", ticket, f.ProvenTicket())
					}
					told[ticket].Add(1)
				})
			}
		})
	}
	for ticket := uint64(1); ticket <= last; ticket++ {
		f.proven(ticket, 1)
	}
	running.Wait()
	for ticket := range told {
		want := int32(each)
		if ticket > last {
			want = 0
		}
		if got := told[ticket].Load(); got != want {
			t.Errorf("ticket %d: told %d times, want %d", ticket, got, want)
		}
	}
	if len(f.kick) != 1 {
		t.Error("nobody asked for a probe")
	}
}
