package feed

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// swiftLine reads without telling the scheduler that a system call begins: a
// read that does not wait is over sooner than the telling. Each time that the
// process had nothing to do before, it would have the runtime's monitor thread
// woken, too, which costs more than taking in the row that came.
type swiftLine struct {
	net.Conn
	raw syscall.RawConn
}

// swift makes a line swift whose descriptor can be had, as a TCP or a Unix
// connection's can.
func swift(line net.Conn) net.Conn {
	c, ok := line.(syscall.Conn)
	if !ok {
		return line
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return line
	}
	return &swiftLine{line, raw}
}

func (l *swiftLine) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	var n uintptr
	var errno syscall.Errno
	err := l.raw.Read(func(fd uintptr) bool {
		for {
			n, _, errno = syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
			if errno != syscall.EINTR {
				return errno != syscall.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}
