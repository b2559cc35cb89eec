package postgres

import (
	"testing"

	"freshet/proxy"
)

func TestPlainTransactions(t *testing.T) {
	for text, want := range map[string]string{
		"begin": "BEGIN", "BEGIN;": "BEGIN", "BEGIN WORK ; ": "BEGIN", "begin transaction read only": "BEGIN", "start transaction": "START TRANSACTION",
		"Start\nTransaction Read Write": "START TRANSACTION", "begin isolation level read committed": "BEGIN isolated",
		"begin isolation level read committed, read only": "BEGIN isolated", "BEGIN READ ONLY ISOLATION LEVEL READ COMMITTED": "BEGIN isolated",
		"begin isolation level repeatable read": "", "begin isolation level read uncommitted": "", "begin isolation level": "", "begin,": "", "begin , read only": "", "begin read only,": "",
		"begin; select 1": "", "begin;;": "", "beginn": "", "start": "", "start transaction deferrable": "", "begin -- x": "", "begin /* x */": "", "begin read": "", "": "", ";": "", "begin work work": "",
		"begin 'a'": "", "beg\x00in": "", "begin read only read only": "BEGIN",
	} {
		tag, isolated := beginsPlainly([]byte(text))
		if isolated {
			tag += " isolated"
		}
		if tag != want {
			t.Errorf("%q: got %q, want %q", text, tag, want)
		}
	}
	for text, want := range map[string]string{
		"commit": "COMMIT", "END TRANSACTION;": "COMMIT", "rollback work": "ROLLBACK", "abort": "ROLLBACK", "commit and chain": "", "commit prepared 'x'": "", "rollback to a": "", "commit; select 1": "",
		"rollback to savepoint a": "", "end work work": "", "committed": "", "": "",
	} {
		if got := endsPlainly([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if want != "" && !proxy.MayTransact([]byte(text)) {
			t.Errorf("%q is not looked at", text)
		}
	}
}
