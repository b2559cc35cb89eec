package proxy

import (
	"golang.org/x/sys/unix"
)

// machineMemory is the machine's memory in bytes.
func machineMemory() int64 {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return 4 << 30
	}
	return int64(si.Totalram) * int64(si.Unit)
}

// descriptorLimit raises the soft limit to the hard one and returns it: gnet
// stops accepting for good when descriptors run out, so connections are
// capped below.
func descriptorLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1024
	}
	if r.Cur < r.Max {
		r.Cur = r.Max
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
			return 1024
		}
	}
	return int(min(r.Cur, 1<<20))
}
