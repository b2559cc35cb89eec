package upstream

// Option changes how Start starts a server.
type Option func(*options)

type options struct {
	database   string
	statements []string
	settings   []string
	cpus       []int
	port       int
}

// WithDatabase makes a database of that name (a plain identifier) and makes it
// the one that DSN names; the default is freshet_test.
func WithDatabase(name string) Option { return func(o *options) { o.database = name } }

// WithSetup runs the statements, one at a time, in the database once the
// server is up, for instance the tables of a test.
func WithSetup(statements ...string) Option {
	return func(o *options) { o.statements = append(o.statements, statements...) }
}

// WithSettings adds server settings, "name=value" in the server's own
// spelling ("gtid_mode=OFF", "max_connections=500", "wal_level=replica"); they
// win over the ones that this package sets.
func WithSettings(settings ...string) Option {
	return func(o *options) { o.settings = append(o.settings, settings...) }
}

// WithCPUs binds the server and its threads to these cores, so that a
// benchmark's server and client do not share one.
func WithCPUs(cores ...int) Option { return func(o *options) { o.cpus = cores } }

// WithPort asks for a certain loopback port instead of a free one.
func WithPort(port int) Option { return func(o *options) { o.port = port } }
