package postgres

import "testing"

// Messages are sent ahead of their answers: a change that is cancelled must
// leave those behind it alone.
func TestNames(t *testing.T) {
	a, b := &statement{name: "x"}, &statement{name: "x"}
	var n names
	n.set("x", a)
	first := n.change("x", nil)
	n.batch++
	second := n.change("x", b)
	if n.get([]byte("x")) != b || !n.sure([]byte("x")) {
		t.Error("the newest change does not count in its own batch")
	}
	n.batch++
	if n.sure([]byte("x")) {
		t.Error("a change of an earlier batch is taken as sure")
	}
	n.cancel(first)
	if n.get([]byte("x")) != b {
		t.Error("cancelling the first change took the second along")
	}
	n.cancel(second)
	if n.get([]byte("x")) != a || !n.sure([]byte("x")) {
		t.Error("what was confirmed before is gone")
	}
	n.confirm(n.change("x", nil))
	if n.get([]byte("x")) != nil || len(n.named) != 0 {
		t.Error("a name that was taken away is still there")
	}
	closing := n.change("y", nil)
	closing.to = b
	all := n.clear()
	n.cancel(closing)
	n.confirmAll(all)
	if n.get([]byte("y")) != nil {
		t.Error("clear left a name whose close was under way")
	}
	n.set("", a)
	n.confirm(n.change("", nil))
	if n.get(nil) != nil {
		t.Error("the unnamed statement is still there")
	}
}
