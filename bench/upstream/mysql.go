package upstream

import (
	"strconv"
	"syscall"
)

// mysqlAccounts are the statements that make the user that tests and Freshet
// use. It may do everything, from anywhere on this machine.
func mysqlAccounts(identified string) string {
	return "CREATE DATABASE IF NOT EXISTS freshet_test;\n" +
		"CREATE USER 'freshet'@'%' " + identified + ";\n" +
		"GRANT ALL PRIVILEGES ON *.* TO 'freshet'@'%' WITH GRANT OPTION;\n"
}

// withoutSyncing has InnoDB never sync a file, so that a slow disk does not set the
// pace of the tests. A server that is killed still recovers: what it had written
// is the kernel's and outlives it. Only the machine's own end would lose that, and
// with it the folder's use.
const withoutSyncing = "--innodb-flush-method=nosync"

// mysqlSettings hold for the whole family: small, with the change stream that
// Freshet follows, and durable only as far as a killed server goes: commits
// are written out but not synced to the disk.
func mysqlSettings(s *Server) []string {
	folder := s.engine.inside(s.Dir)
	return []string{
		s.engine.program,
		"--no-defaults",
		"--datadir=" + folder + "/data",
		"--socket=" + folder + "/sock",
		"--pid-file=" + folder + "/data/pid",
		"--tmpdir=" + folder,
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(s.Port),
		"--skip-name-resolve",
		"--server-id=1",
		"--log-bin=binlog",
		"--binlog-format=ROW",
		"--binlog-row-image=FULL",
		"--sync-binlog=0",
		"--innodb-flush-log-at-trx-commit=2",
		withoutSyncing,
		"--innodb-use-native-aio=0",
		"--innodb-buffer-pool-size=64M",
		"--innodb-doublewrite=OFF",
		"--character-set-server=utf8mb4",
		"--max-connections=500",
	}
}

// longOptions spells settings as mysqld's arguments.
func longOptions(settings []string) []string {
	arguments := make([]string, len(settings))
	for i, setting := range settings {
		arguments[i] = "--" + setting
	}
	return arguments
}

func mariadbEngine() *engine {
	return mariadbAt("/usr", "/usr/sbin/mariadbd")
}

func mariadb11Engine() *engine {
	return mariadbAt("/opt/mariadb/usr", "/opt/mariadb/usr/sbin/mariadbd")
}

func mariadbAt(base, program string) *engine {
	return &engine{
		dialect: DialectMySQL,
		program: program,
		initialise: func(e *engine, folder string) [][]string {
			// Run by bootstrap after the system tables exist; it starts without grants, hence FLUSH.
			return [][]string{{
				base + "/bin/mariadb-install-db", "--no-defaults", "--basedir=" + base,
				"--datadir=" + e.inside(folder) + "/data", "--extra-file=" + e.inside(folder) + "/input.sql",
				"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
				"--innodb-log-file-size=16M", "--innodb-use-native-aio=0", "--innodb-flush-log-at-trx-commit=0", withoutSyncing,
			}}
		},
		input: func() string {
			return "FLUSH PRIVILEGES;\nDELETE FROM mysql.global_priv WHERE User='';\nFLUSH PRIVILEGES;\n" +
				mysqlAccounts("IDENTIFIED BY 'freshet'")
		},
		serve: func(s *Server) []string {
			return append(mysqlSettings(s), "--basedir="+base, "--innodb-log-file-size=16M")
		},
		settings:    longOptions,
		stopSignal:  syscall.SIGTERM,
		deathSignal: syscall.SIGKILL,
	}
}

func mysqlEngine() *engine {
	return &engine{
		dialect: DialectMySQL,
		program: "/usr/sbin/mysqld",
		initialise: func(e *engine, folder string) [][]string {
			return [][]string{{
				e.program, "--no-defaults", "--initialize-insecure",
				"--datadir=" + e.inside(folder) + "/data", "--init-file=" + e.inside(folder) + "/input.sql",
				"--innodb-use-native-aio=0", "--innodb-redo-log-capacity=32M", "--innodb-flush-log-at-trx-commit=0", withoutSyncing,
			}}
		},
		input: func() string {
			return mysqlAccounts("IDENTIFIED WITH caching_sha2_password BY 'freshet'")
		},
		serve: func(s *Server) []string {
			return append(mysqlSettings(s), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--mysqlx=OFF",
				"--innodb-redo-log-capacity=32M", "--secure-file-priv=")
		},
		settings:    longOptions,
		stopSignal:  syscall.SIGTERM,
		deathSignal: syscall.SIGKILL,
	}
}
