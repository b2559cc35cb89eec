package upstream

import (
	"context"
	"testing"
	"time"
)

// A replica has what its primary has, not while it does not apply it, and then
// again.
func TestReplica(t *testing.T) {
	every(t, func(t *testing.T, kind Kind) {
		primary := Own(t, kind, WithSetup("CREATE TABLE copied (id INT PRIMARY KEY)", "INSERT INTO copied VALUES (1)"))
		replica := OwnReplica(t, primary)
		if replica.Port == primary.Port || replica.Pid() == primary.Pid() {
			t.Fatal("the replica is its primary")
		}
		from, to := primary.DB(t), replica.DB(t)
		rows := func() (n int) {
			if err := to.QueryRow("SELECT count(*) FROM copied").Scan(&n); err != nil {
				return 0 // the table is not there yet
			}
			return n
		}
		has := func(want int) {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); rows() != want; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the replica has %d rows, want %d", rows(), want)
				}
			}
		}
		has(1)
		if err := replica.StopApplying(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := from.Exec("INSERT INTO copied VALUES (2)"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // what must not happen has this long to happen
		if n := rows(); n != 1 {
			t.Errorf("a replica that applies nothing has %d rows", n)
		}
		if err := replica.StartApplying(context.Background()); err != nil {
			t.Fatal(err)
		}
		has(2)
	})
}
