// Package postgres turns bytes into the messages of PostgreSQL's wire protocol
// 3.x and back, says which reply each message will get, and runs the server's
// side of its authentication. It has no sockets, no clock and no goroutines.
//
// Decoding is in place: a decoded message's slices point into the body it was
// given and live as long as that does. A message value may be used again; its
// own slices are then reused, so a decoder that is kept does not allocate.
// Encoding appends the whole message, type byte and length included.
//
// Bytes come from a peer that may be hostile: each length is checked against
// what is really there before anything is sliced or reserved, and what does not
// fit is a *MalformedError, never a panic. The formats are in the manual's
// chapter "Frontend/Backend Protocol", section "Message Formats".
package postgres
