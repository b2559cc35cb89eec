package upstream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// stopPatience is how long a server may take over an orderly stop.
const stopPatience = 30 * time.Second

// launch starts the server's program on its folder and waits until it answers.
// A free port is only known to be free when it is looked at, so a server that
// could not have it is started again on another.
func (s *Server) launch(ctx context.Context) error {
	fixed := s.options.port != 0 || s.Port != 0
	for attempt := 1; ; attempt++ {
		if s.options.port != 0 {
			s.Port = s.options.port
		} else if !fixed {
			port, err := FreePort()
			if err != nil {
				return err
			}
			s.Port = port
		}
		err := s.launchOnce(ctx)
		if err == nil {
			return nil
		}
		s.process = nil
		if fixed || attempt == 5 || !strings.Contains(err.Error(), "in use") {
			return err
		}
	}
}

func (s *Server) launchOnce(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command := append(s.engine.serve(s), s.engine.settings(s.options.settings)...)
	if s.process, err = s.engine.start(command, log, s.options.cpus, s.engine.deathSignal); err != nil {
		return err
	}
	if err := s.reaper.watch(s.Dir, s.process.pid()); err != nil {
		return errors.Join(err, s.process.end(syscall.SIGKILL, stopPatience))
	}
	if err := s.awaitReady(ctx); err != nil {
		return errors.Join(err, s.process.end(syscall.SIGKILL, stopPatience))
	}
	return nil
}

// awaitReady waits until the server answers, ends, or the deadline passes.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	db, err := s.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.answers(ctx, db)
		if s.process.ended() {
			return fmt.Errorf("server ended (%s)\n%s", s.process.cmd.ProcessState, tail(s.Log(), 30))
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server does not answer: %w\n%s", err, tail(s.Log(), 30))
		case <-tick.C:
		}
	}
}

// answers says with nil that this server, and not another that was first at the
// port, answers a query.
func (s *Server) answers(ctx context.Context, db *sql.DB) error {
	// The connection is tried first by hand: the drivers log a refused one.
	connection, err := net.DialTimeout("tcp", s.Address(), time.Second)
	if err != nil {
		return err
	}
	if err := connection.Close(); err != nil {
		return err
	}
	query := "SELECT @@datadir"
	if s.Dialect == DialectPostgres {
		query = "SHOW data_directory"
	}
	var folder string
	if err := db.QueryRowContext(ctx, query).Scan(&folder); err != nil {
		return err
	}
	if want := s.engine.inside(s.dataFolder()); strings.TrimSuffix(folder, "/") != want {
		return fmt.Errorf("port %d is in use by the server of %s", s.Port, folder)
	}
	return nil
}

// Stop ends the server at once and removes its folder: what an orderly stop
// would write goes with the folder, and MySQL's can take it ten seconds. The
// second call does nothing.
func (s *Server) Stop() error {
	if s.reaper == nil {
		return nil
	}
	err := s.halt(s.engine.deathSignal)
	err = errors.Join(err, s.reaper.finish())
	s.reaper = nil
	forget(s)
	return err
}

// Kill ends the server at once, as a machine does that loses power; the folder
// stays for Restart. All its processes are stopped before the first is killed:
// PostgreSQL's children notice that their parent is gone, and one whose commit waits
// for a standby then goes on without it, for the others to read until they
// end too.
func (s *Server) Kill() error {
	if s.process == nil {
		return nil
	}
	pids, err := s.stopAll()
	if err = errors.Join(err, signalEach(pids, syscall.SIGKILL), s.halt(syscall.SIGKILL)); err != nil {
		return err
	}
	// The children hold PostgreSQL's shared memory until they are gone, and a
	// restart is refused as long.
	return await(lives, pids)
}

// Shutdown ends the server in good order; the folder stays for Restart.
func (s *Server) Shutdown() error { return s.halt(s.engine.stopSignal) }

// Restart starts the server again on its port and folder, stopping it first if
// it is up.
func (s *Server) Restart(ctx context.Context, more ...Option) error {
	if err := s.Shutdown(); err != nil {
		return err
	}
	for _, o := range more {
		o(&s.options)
	}
	return s.launch(ctx)
}

// Pause stops the server's processes where they are, as a hung machine does;
// Resume lets them go on.
func (s *Server) Pause() error {
	_, err := s.stopAll()
	return err
}

// Resume undoes Pause.
func (s *Server) Resume() error {
	if s.process == nil {
		return fmt.Errorf("upstream: %s is down", s.Kind)
	}
	pids, err := family(s.process.pid())
	return errors.Join(err, signalEach(pids, syscall.SIGCONT))
}

// stopAll stops the server and then its children, of which it makes no more by
// then.
func (s *Server) stopAll() ([]int, error) {
	if s.process == nil {
		return nil, fmt.Errorf("upstream: %s is down", s.Kind)
	}
	if err := freeze([]int{s.process.pid()}); err != nil {
		return nil, err
	}
	pids, err := family(s.process.pid())
	if err != nil {
		return nil, err
	}
	return pids, freeze(pids)
}

func (s *Server) halt(signal syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	err := s.process.end(signal, stopPatience)
	s.process = nil
	return errors.Join(err, s.reaper.watch(s.Dir, 0))
}

// FreePort finds a loopback port below the range from which the kernel takes
// the local ports of outgoing connections, so that none of these is in its way
// when a server comes back to its port.
func FreePort() (int, error) {
	const low, high = 15000, 32000
	var err error
	for range 100 {
		port := low + rand.IntN(high-low)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free loopback port: %w", err)
}

// tail is the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
