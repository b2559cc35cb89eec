package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"freshet/proxy"
)

// serveFlags are serve's flags, each also a config key and an environment
// variable; a flag outdoes the environment, which outdoes the file.
type serveFlags struct {
	file      string
	upstreams []proxy.UpstreamConfig
	cache     string
	memory    byteSize
	level     string
	staleness time.Duration
	loops     int
	http      string
	store     string
	feed      string
	pool      string
	links     int
	clients   int
	tls       proxy.TLSConfig
	users     string
	logLevel  string
	logFormat string
	misplaced error // a --feed-from that belongs to no upstream
}

func (f *serveFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var((*upstreamFlag)(f), "upstream", "the database: mysql://, mariadb://, postgres:// or postgresql:// user:pass@host:port/db")
	fs.Var((*listenFlag)(f), "listen", "where to accept its clients (default "+defaultMySQLListen+" or "+defaultPostgresListen+")")
	fs.Var((*feedFromFlag)(f), "feed-from", "a replica of the database to take the change stream from (default the database itself)")
	fs.StringVar(&f.file, "config", "", "YAML file with these flags as keys")
	fs.StringVar(&f.cache, "cache", "auto", "auto: every cacheable SELECT; explicit: only what CREATE CACHE made; off: a plain proxy")
	fs.Var(&f.memory, "memory", "hard limit of all upstreams' stores together, such as 2GiB (default a quarter of the machine)")
	fs.StringVar(&f.level, "consistency", "session", "bounded, session or linearizable (the upstream then holds each commit until it is applied here)")
	fs.DurationVar(&f.staleness, "max-staleness", defaultStaleness, "no answer is older than this")
	fs.IntVar(&f.loops, "loops", 0, "event loops (default one per core, and no more than links)")
	fs.StringVar(&f.http, "http", defaultHTTP, "health and metrics; off for none")
	fs.StringVar(&f.store, "store", "file:./freshet-data", "where saved queries live: file:DIR")
	fs.StringVar(&f.feed, "feed", "auto", "auto, or off: only caches WITH (TTL …) are kept")
	fs.StringVar(&f.pool, "pool", "transaction", "when a connection to the upstream is given back: transaction, or session (when its client leaves)")
	fs.IntVar(&f.links, "max-links", 100, "connections to each upstream for the clients' statements")
	fs.IntVar(&f.clients, "max-connections", 0, "client connections (default below the descriptor limit)")
	fs.StringVar(&f.users, "users", "", "YAML file with users that may log in beside the DSN's, and their passwords")
	fs.StringVar(&f.tls.Cert, "tls-cert", "", "PEM file with the certificate that clients are shown, and its chain (default no TLS)")
	fs.StringVar(&f.tls.Key, "tls-key", "", "PEM file with the certificate's key")
	fs.StringVar(&f.tls.CA, "tls-ca", "", "PEM file with the authorities that sign clients' certificates (default none is asked for)")
	fs.StringVar((*string)(&f.tls.Mode), "tls", "", "prefer, require (no client without TLS) or verify (none without a certificate) (default prefer, with --tls-cert)")
	fs.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&f.logFormat, "log-format", "text", "text or json")
}

// config puts flags, environment and file together.
func (f *serveFlags) config(cmd *cobra.Command) (proxy.Config, error) {
	if err := f.merge(cmd.Flags()); err != nil {
		return proxy.Config{}, err
	}
	if err := f.given(); err != nil {
		return proxy.Config{}, err
	}
	for i := range f.upstreams {
		u := &f.upstreams[i]
		t, err := proxy.ParseTarget(u.DSN)
		if err != nil {
			return proxy.Config{}, err
		}
		if u.Listen == "" && t.Dialect == "mysql" {
			u.Listen = defaultMySQLListen
		} else if u.Listen == "" {
			u.Listen = defaultPostgresListen
		}
	}
	dir, ok := strings.CutPrefix(f.store, "file:")
	if !ok || dir == "" {
		return proxy.Config{}, fmt.Errorf("--store %q: want file:DIR", f.store)
	}
	if _, err := f.level0(); err != nil {
		return proxy.Config{}, err
	}
	if f.logFormat != "text" && f.logFormat != "json" {
		return proxy.Config{}, fmt.Errorf("--log-format %q: want text or json", f.logFormat)
	}
	return proxy.Config{Upstreams: f.upstreams, Cache: proxy.CacheMode(f.cache), Memory: int64(f.memory), MaxStaleness: f.staleness,
		Consistency: f.level, Loops: f.loops, HTTP: f.http, StoreDir: dir, Feed: f.feed, Pool: proxy.PoolMode(f.pool), MaxLinks: f.links, MaxConnections: f.clients, TLS: f.tls, Users: f.users}, nil
}

// given refuses values that the proxy would take for "not given".
func (f *serveFlags) given() error {
	switch {
	case f.misplaced != nil:
		return f.misplaced
	case f.cache == "":
		return errors.New("--cache is empty: want auto, explicit or off")
	case f.level == "":
		return errors.New("--consistency is empty: want bounded, session or linearizable")
	case f.pool == "":
		return errors.New("--pool is empty: want transaction or session")
	case f.feed == "":
		return errors.New("--feed is empty: want auto or off")
	case f.staleness == 0:
		return errors.New("--max-staleness 0: want more than 0, for nothing is proven the moment it happens (--cache off serves no answer from memory)")
	case f.links == 0:
		return errors.New("--max-links 0: want 1 or more")
	}
	return nil
}

// merge sets every flag that was not given from the environment or the file.
func (f *serveFlags) merge(fs *pflag.FlagSet) error {
	v := viper.New()
	v.SetEnvPrefix("FRESHET")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if f.file == "" {
		f.file = v.GetString("config")
	}
	if f.file != "" {
		v.SetConfigFile(f.file)
		v.SetConfigType("yaml")
		if err := v.ReadInConfig(); err != nil {
			return fmt.Errorf("--config %s: %w", f.file, err)
		}
		if err := knownKeys(v, fs); err != nil {
			return fmt.Errorf("--config %s: %w", f.file, err)
		}
	}
	var errs []error
	fs.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || flag.Name == "config" || flag.Name == "help" || !v.IsSet(flag.Name) {
			return
		}
		if (flag.Name == "listen" || flag.Name == "feed-from") && len(f.upstreams) == 0 {
			return
		}
		if err := flag.Value.Set(v.GetString(flag.Name)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag.Name, err))
		}
	})
	if len(f.upstreams) == 0 && v.IsSet("upstreams") {
		var err error
		if f.upstreams, err = readUpstreams(v.Get("upstreams")); err != nil {
			errs = append(errs, fmt.Errorf("upstreams: %w", err))
		}
	}
	return errors.Join(errs...)
}

// readUpstreams reads the file's list of dsn, listen and feed-from.
func readUpstreams(value any) ([]proxy.UpstreamConfig, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("want a list of items with dsn, listen and feed-from")
	}
	var out []proxy.UpstreamConfig
	for i, item := range list {
		keys, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d: want dsn, listen and feed-from", i+1)
		}
		u := proxy.UpstreamConfig{}
		for key, value := range keys {
			text, ok := value.(string)
			if !ok {
				return nil, fmt.Errorf("item %d: %s: want text", i+1, key)
			}
			switch key {
			case "dsn":
				u.DSN = text
			case "listen":
				u.Listen = text
			case "feed-from":
				u.FeedFrom = text
			default:
				return nil, fmt.Errorf("item %d: unknown key %q: want dsn, listen and feed-from", i+1, key)
			}
		}
		if u.DSN == "" {
			return nil, fmt.Errorf("item %d has no dsn", i+1)
		}
		out = append(out, u)
	}
	return out, nil
}

// knownKeys refuses a key that means nothing, which is most often a typing
// mistake that would otherwise go unseen.
func knownKeys(v *viper.Viper, fs *pflag.FlagSet) error {
	for key := range v.AllSettings() {
		if key != "upstreams" && fs.Lookup(key) == nil {
			return fmt.Errorf("unknown key %q: the keys are the flags of freshet serve --help, and upstreams", key)
		}
	}
	return nil
}

func (f *serveFlags) level0() (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(f.logLevel)); err != nil {
		return l, fmt.Errorf("--log-level %q: want debug, info, warn or error", f.logLevel)
	}
	return l, nil
}

func (f *serveFlags) logger(w io.Writer) *slog.Logger {
	level, err := f.level0()
	if err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	if f.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// upstreamFlag appends an upstream; listenFlag gives the last one its address,
// feedFromFlag its replica.
type (
	upstreamFlag serveFlags
	listenFlag   serveFlags
	feedFromFlag serveFlags
)

func (u *upstreamFlag) Set(dsn string) error {
	u.upstreams = append(u.upstreams, proxy.UpstreamConfig{DSN: dsn})
	return nil
}
func (u *upstreamFlag) String() string { return "" }
func (u *upstreamFlag) Type() string   { return "DSN" }

func (l *listenFlag) Set(address string) error {
	n := len(l.upstreams)
	if n == 0 {
		return errors.New("give --upstream before its --listen")
	}
	if l.upstreams[n-1].Listen != "" {
		return errors.New("each --upstream takes one --listen")
	}
	l.upstreams[n-1].Listen = address
	return nil
}
func (l *listenFlag) String() string { return "" }
func (l *listenFlag) Type() string   { return "ADDRESS" }

// Set keeps a mistake for later: whoever parses flags would repeat the DSN with
// it, password and all.
func (r *feedFromFlag) Set(dsn string) error {
	switch n := len(r.upstreams); {
	case n == 0:
		r.misplaced = errors.New("give --upstream before its --feed-from")
	case r.upstreams[n-1].FeedFrom != "":
		r.misplaced = errors.New("each --upstream takes one --feed-from")
	default:
		r.upstreams[n-1].FeedFrom = dsn
	}
	return nil
}
func (r *feedFromFlag) String() string { return "" }
func (r *feedFromFlag) Type() string   { return "DSN" }
