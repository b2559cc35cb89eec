// Package postgres is the PostgreSQL session: what a client says, what its
// upstream link answers, and what is answered from memory in between.
//
// The way of a message: handler.Data frames it and, while the session is quiet
// (nothing expected from the link, no transaction, the context known), looks
// whether it starts a unit that can be answered at once (unit.go, hit.go). All
// else goes to the file named after the message (query.go, parse.go, bind.go
// …), which gets a link if there is none (link.go), sends, and notes in the
// queue of replies what is expected. The way back: handler.LinkData (replies.go)
// steps the queue and forwards, swallows or makes up.
//
// What the session is (settings, role, temporary tables …) is not guessed from
// texts: after a statement that may have changed it, the same link is asked
// (state.go), and until it has answered nothing is served from memory.
package postgres
