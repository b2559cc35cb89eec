// Package mysql is the MySQL and MariaDB session: it plugs into package proxy
// as a proxy.Protocol.
//
// The way of a command: Data frames it and command (dispatch.go) sends it to
// its family's file. A read is first looked up (read.go); what is not answered
// there goes upstream by forward (forward.go) on a link, and LinkData
// (reply.go) follows the reply's packets to the client. When a reply is over,
// settle (settle.go) takes in what the server said of the session's state and
// gives the link back if nothing of the session is left on it.
//
// A command that must wait (for a plan, a link, another session's fill, a
// statement to be prepared) is not consumed: its bytes are offered again, and
// stage tells how far it has come.
//
// What a session is (database, settings) is known at every moment because
// links are opened with session tracking of everything; see context.go. Links
// whose state is equal have equal keys, so a session's state never has to be
// replayed on a link on the loop: a link is either found in that state, or
// opened into it by Dial.
package mysql
