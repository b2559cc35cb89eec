package proxy

import (
	"testing"

	"freshet/planner"
)

// A plan can be dropped between two looks at it: the statement is forwarded.
func TestMissWithoutAPlan(t *testing.T) {
	s := &Session{Upstream: &Upstream{}}
	if miss, fill := s.Miss([]byte("k"), &planner.Statement{}, nil); miss != MissForward || fill != nil {
		t.Fatalf("%v, %v", miss, fill)
	}
	if s.Last.Reason == "" {
		t.Error("no reason is kept")
	}
}
