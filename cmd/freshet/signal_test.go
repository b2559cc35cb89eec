package main

import (
	"crypto/tls"
	"database/sql"
	"os"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"freshet/bench/pki"
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

// SIGHUP has clients that come from then on see the new certificate, and costs
// those that are there nothing.
func TestHangupReloads(t *testing.T) {
	s := upstream.Need(t, upstream.MariaDB)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	ca := pki.New(t)
	pair := ca.Sign("server")
	f, err := witness.Serve(self, s.DSN(), t.TempDir(), "--tls-cert", pair.Cert, "--tls-key", pair.Key, "--tls", "require")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	open := func() (*sql.Tx, string) {
		t.Helper()
		c, shown := driver.NewConfig(), ""
		c.User, c.Passwd, c.Net, c.Addr, c.DBName = s.User, s.Password, "tcp", f.Address, s.Database
		c.TLS = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", VerifyConnection: func(state tls.ConnectionState) error {
			shown = state.PeerCertificates[0].SerialNumber.String()
			return nil
		}}
		connector, err := driver.NewConnector(c)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		t.Cleanup(func() { db.Close() })
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		return tx, shown
	}
	first, old := open()
	defer first.Rollback() //nolint:errcheck // nothing was done in it
	ca.Sign("server")      // to the same files
	if err := syscall.Kill(f.Pid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		tx, shown := open()
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if shown != old {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("the old certificate is still shown; the log:\n%s", f.Log())
		}
	}
	if _, err := first.Exec("DO 1"); err != nil {
		t.Errorf("who was there before: %v", err)
	}
}
