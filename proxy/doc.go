// Package proxy is the server: event loops, client sessions, upstream links,
// the console's SQL-like commands and HTTP. What is particular to a wire
// protocol lives in proxy/mysql and proxy/postgres, which plug in as a
// Protocol; everything here serves both.
package proxy
