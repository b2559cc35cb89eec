package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"testing"
)

// StartReplica starts another server of the primary's kind that replicates all
// of it, from the beginning of its log (MariaDB, MySQL: which must be there
// whole) or from a copy of it (PostgreSQL: a physical standby). It logs what it
// replicates, as Freshet needs it to take a change stream from it.
func StartReplica(ctx context.Context, primary *Server, opts ...Option) (*Server, error) {
	s := &Server{
		Kind: primary.Kind, Dialect: primary.Dialect, Host: "127.0.0.1",
		User: primary.User, Password: primary.Password, Database: primary.Database, Version: primary.Version,
		engine: primary.engine,
	}
	for _, o := range append(replicaSettings(s), opts...) {
		o(&s.options)
	}
	var err error
	if s.Dir, err = s.engine.workFolder(); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if s.reaper, err = newReaper(s.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("upstream: %w", err), os.RemoveAll(s.Dir))
	}
	if err := s.bringUpReplica(ctx, primary); err != nil {
		return nil, errors.Join(fmt.Errorf("upstream: starting a replica of %s: %w", s.Kind, err), s.Stop())
	}
	return s, nil
}

func replicaSettings(s *Server) []Option {
	switch {
	case s.Dialect == DialectPostgres:
		return []Option{WithSettings("hot_standby_feedback=on")}
	case s.Kind == MySQL:
		return []Option{WithSettings("server-id=2", "log-replica-updates=ON", "super-read-only=ON", "skip-replica-start=ON")}
	}
	return []Option{WithSettings("server-id=2", "log-slave-updates=ON", "read-only=ON", "skip-slave-start=ON")}
}

// bringUpReplica fills the folder, starts the server and has it replicate.
func (s *Server) bringUpReplica(ctx context.Context, primary *Server) error {
	if s.Dialect == DialectPostgres {
		// -R writes standby.signal and primary_conninfo (PostgreSQL manual, pg_basebackup).
		err := s.engine.run(ctx, []string{path.Join(path.Dir(s.engine.program), "pg_basebackup"), "-R", "-X", "stream", "-c", "fast", "--no-sync",
			"-D", s.engine.inside(s.dataFolder()), "-d", primary.DSN()}, "")
		if err != nil {
			return err
		}
		return s.launch(ctx)
	}
	template, err := s.engine.template(ctx)
	if err != nil {
		return err
	}
	if err := copyTree(ctx, template, s.dataFolder()); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	return s.replicate(ctx, primary)
}

// replicate has a MariaDB or MySQL server follow the primary by GTIDs.
func (s *Server) replicate(ctx context.Context, primary *Server) error {
	change, start := "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', "+
		"SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=86400", "START REPLICA"
	if s.Kind != MySQL {
		change, start = "CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%d, MASTER_USER='%s', MASTER_PASSWORD='%s', "+
			"MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1", "START SLAVE"
	}
	if err := s.exec(ctx, fmt.Sprintf(change, primary.Host, primary.Port, primary.User, primary.Password)); err != nil {
		return err
	}
	return s.exec(ctx, start)
}

// StopApplying has a replica go on receiving the primary's log and stop
// applying it; StartApplying undoes that.
func (s *Server) StopApplying(ctx context.Context) error {
	return s.exec(ctx, map[Kind]string{Postgres15: "SELECT pg_wal_replay_pause()", Postgres18: "SELECT pg_wal_replay_pause()",
		MySQL: "STOP REPLICA SQL_THREAD", MariaDB: "STOP SLAVE SQL_THREAD", MariaDB11: "STOP SLAVE SQL_THREAD"}[s.Kind])
}

// StartApplying undoes StopApplying.
func (s *Server) StartApplying(ctx context.Context) error {
	return s.exec(ctx, map[Kind]string{Postgres15: "SELECT pg_wal_replay_resume()", Postgres18: "SELECT pg_wal_replay_resume()",
		MySQL: "START REPLICA SQL_THREAD", MariaDB: "START SLAVE SQL_THREAD", MariaDB11: "START SLAVE SQL_THREAD"}[s.Kind])
}

// OwnReplica is StartReplica for one test alone.
func OwnReplica(t testing.TB, primary *Server, opts ...Option) *Server {
	t.Helper()
	s, err := StartReplica(context.Background(), primary, opts...)
	check(t, primary.Kind, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping the replica of %s: %v", primary.Kind, err)
		}
	})
	return s
}
