package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// engine is how one kind of server is initialised, started and stopped.
// Paths in commands are as seen inside root.
type engine struct {
	kind    Kind
	dialect string
	root    string   // the folder that the server has as its root; "" is the machine itself
	account *account // whom it runs as; nil: as this process
	program string   // the server program
	version string   // of the package, for the template's name

	initialise  func(e *engine, folder string) [][]string // commands that fill folder/data
	serve       func(s *Server) []string                  // the server's command line
	settings    func(settings []string) []string          // further settings as arguments
	input       func() string                             // what the last command of initialise reads
	stopSignal  syscall.Signal                            // ends it in good order
	deathSignal syscall.Signal                            // ends it at once, with what it holds besides its folder
}

type account struct{ uid, gid uint32 }

// locate finds the programs of a kind.
func locate(kind Kind) (*engine, error) {
	var e *engine
	var name string // of the account
	switch kind {
	case MariaDB:
		e, name = mariadbEngine(), "mysql"
	case Postgres15:
		e, name = postgresEngine("/usr/lib/postgresql/15/bin"), "postgres"
	case MySQL:
		e, name = mysqlEngine(), "mysql"
		e.root = SidFolder()
	case Postgres18:
		e, name = postgresEngine("/usr/lib/postgresql/18/bin"), "postgres"
		e.root = SidFolder()
	case MariaDB11:
		e, name = mariadb11Engine(), "mysql"
		e.root = SidFolder()
	default:
		return nil, fmt.Errorf("%w: unknown kind %q", ErrUnavailable, kind)
	}
	e.kind = kind
	info, err := os.Stat(e.root + e.program)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; run `make deps`", ErrUnavailable, kind, err)
	}
	e.version = fmt.Sprintf("%d-%d", info.Size(), info.ModTime().Unix())
	if os.Getuid() != 0 {
		if e.root != "" {
			return nil, fmt.Errorf("%w: %s runs in a chroot, which needs root", ErrUnavailable, kind)
		}
		return e, nil
	}
	e.account, err = lookAccount(e.root, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, kind, err)
	}
	return e, nil
}

// lookAccount finds an account in the passwd file of a root (passwd(5)). These
// servers refuse to run as root.
func lookAccount(root, name string) (*account, error) {
	if root == "" {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, err
		}
		return newAccount(u.Uid, u.Gid)
	}
	file, err := os.Open(filepath.Join(root, "etc/passwd"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) > 3 && f[0] == name {
			return newAccount(f[2], f[3])
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	// MySQL's bare server package makes no account; the number alone will do.
	return newAccount("64990", "64990")
}

func newAccount(uid, gid string) (*account, error) {
	u, err := strconv.ParseUint(uid, 10, 32)
	g, err2 := strconv.ParseUint(gid, 10, 32)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return &account{uint32(u), uint32(g)}, nil
}

// inside is the path as the server sees it.
func (e *engine) inside(path string) string { return strings.TrimPrefix(path, e.root) }

// workFolder makes a temporary folder that the server can reach and write to.
func (e *engine) workFolder() (string, error) {
	base := os.TempDir()
	if e.root != "" {
		base = filepath.Join(e.root, "tmp")
	}
	folder, err := os.MkdirTemp(base, "freshet-"+string(e.kind)+"-")
	if err != nil || e.account == nil {
		return folder, err
	}
	if err := os.Chown(folder, int(e.account.uid), int(e.account.gid)); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}
