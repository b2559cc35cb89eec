package main

import (
	"database/sql"
	"os"
	"syscall"
	"testing"
	"time"

	"freshet/bench/upstream"
	"freshet/bench/witness"
)

// The first SIGTERM waits for a transaction, a second one ends at once.
func TestSecondSignal(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	f, err := witness.Serve(self, s.DSN(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	db, err := sql.Open("mysql", s.User+":"+s.Password+"@tcp("+f.Address+")/"+s.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // its connection is lost
	begun := time.Now()
	go func() { ended <- f.Stop() }() // sends the first
	select {
	case err := <-ended:
		t.Fatalf("ended with a transaction open, after %s: %v", time.Since(begun), err)
	case <-time.After(time.Second):
	}
	if _, err := tx.Exec("DO 1"); err != nil {
		t.Errorf("the transaction was not waited for: %v", err)
	}
	if err := syscall.Kill(f.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("ended as if all were done")
		}
	case <-time.After(5 * time.Second):
		t.Error("a second signal did not end it")
		<-ended // Stop kills it
	}
}
