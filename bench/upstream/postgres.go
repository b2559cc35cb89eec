package upstream

import (
	"strconv"
	"strings"
	"syscall"
)

// postgresEngine is PostgreSQL with its programs in the folder bin.
func postgresEngine(bin string) *engine {
	return &engine{
		dialect: DialectPostgres,
		program: bin + "/postgres",
		initialise: func(e *engine, folder string) [][]string {
			data := e.inside(folder) + "/data"
			return [][]string{
				{bin + "/initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile=" + e.inside(folder) + "/password",
					"--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"},
				{bin + "/postgres", "--single", "-D", data, "postgres"},
			}
		},
		// The single-user mode takes one statement a line.
		input: func() string {
			return "CREATE ROLE freshet LOGIN SUPERUSER REPLICATION PASSWORD 'freshet'\n" +
				"CREATE DATABASE freshet_test OWNER freshet\n"
		},
		serve:    postgresServe,
		settings: postgresSettings,
		// "Fast": ends sessions, then writes a checkpoint (PostgreSQL manual, 18.5).
		stopSignal: syscall.SIGINT,
		// "Immediate": the children end and the shared memory goes, which SIGKILL would leave behind.
		deathSignal: syscall.SIGQUIT,
	}
}

// postgresServe is small, has the change stream that Freshet follows, and is
// durable only as far as a killed server goes: commits are written out but not
// synced to the disk.
func postgresServe(s *Server) []string {
	folder := s.engine.inside(s.Dir)
	return append([]string{s.engine.program, "-D", folder + "/data"}, postgresSettings([]string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(s.Port),
		"unix_socket_directories=" + folder,
		"wal_level=logical",
		"max_replication_slots=20",
		"max_wal_senders=20",
		"max_connections=200",
		"fsync=off",
		"full_page_writes=off",
		"shared_buffers=64MB",
		"dynamic_shared_memory_type=mmap",
		"password_encryption=scram-sha-256",
		"timezone=UTC",
	})...)
}

func postgresSettings(settings []string) []string {
	var arguments []string
	for _, setting := range settings {
		arguments = append(arguments, "-c", strings.TrimSpace(setting))
	}
	return arguments
}
