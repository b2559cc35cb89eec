package proxy

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Bridge gives a loop something to poll for a line that is not a plain socket
// (TLS): one end of a socket pair whose other end two goroutines pump. It costs
// two copies; links over plain TCP do not need it.
func Bridge(line net.Conn) (net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, err := connOf(fds[0])
	theirs, err2 := connOf(fds[1])
	closeFD(fds[0])
	closeFD(fds[1])
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	pump := func(to, from net.Conn) {
		// An error ends the line either way; the reader at the other end
		// sees it as a close.
		_, err := io.Copy(to, from)
		if err = errors.Join(err, to.Close(), from.Close()); err != nil {
			return
		}
	}
	go pump(line, theirs)
	go pump(theirs, line)
	return ours, nil
}
