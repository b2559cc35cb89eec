//go:build !linux

package feed

import "net"

// swift leaves a line as it is where system calls are made through a library.
func swift(line net.Conn) net.Conn { return line }
