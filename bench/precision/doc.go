// Package precision counts what the tracking of changes costs in answers that
// need not have been lost: how many cached keys a given number of single-row
// updates takes away, and, under the statements of known applications, how many
// of the answers that were found stale turn out to be what they were before.
//
// All writes are made on the server itself, and everything is read only once
// the proxy's feed has passed them, so that a run depends on its seed alone and
// not on the machine.
package precision
