package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// CacheMode is --cache.
type CacheMode string

const (
	CacheAuto     CacheMode = "auto"
	CacheExplicit CacheMode = "explicit"
	CacheOff      CacheMode = "off"
)

// PoolMode is --pool: when a session's link is given back to the others.
type PoolMode string

const (
	PoolTransaction PoolMode = "transaction" // when it is in none, and has left no state there
	PoolSession     PoolMode = "session"     // when its client leaves
)

// UpstreamConfig is one --upstream with its --listen.
type UpstreamConfig struct {
	DSN    string
	Listen string // host:port; port 0 takes a free one
	// FeedFrom is the DSN of a replica to take the change stream from; "" takes
	// it from the upstream.
	FeedFrom string
}

// ParseFeedFrom reads the DSN of a replica of an upstream and returns it as it
// was understood; one without a database means the upstream's. "" stays.
func ParseFeedFrom(dsn string, upstream Target) (string, error) {
	if dsn == "" {
		return "", nil
	}
	t, err := ParseTarget(dsn)
	if err != nil {
		return "", fmt.Errorf("--feed-from: %w", err)
	}
	if t.Dialect != upstream.Dialect {
		return "", fmt.Errorf("--feed-from %s://…: want a replica of the upstream, which is %s://…", t.URL.Scheme, upstream.URL.Scheme)
	}
	if given, err := url.Parse(dsn); err == nil && strings.Trim(given.Path, "/") == "" {
		t.Database = upstream.Database
		t.URL.Path = "/" + t.Database
	}
	if t.Dialect == "postgres" && t.Database != upstream.Database {
		return "", fmt.Errorf("--feed-from: database %s: want the upstream's, %s, for a change stream is of one database", t.Database, upstream.Database)
	}
	return t.URL.String(), nil
}

// Config is what serve was asked for. Where a zero is no value that could be
// meant, it stands for the default.
type Config struct {
	Upstreams      []UpstreamConfig
	Cache          CacheMode
	Memory         int64 // bytes, for all upstreams together
	MaxStaleness   time.Duration
	Consistency    string // a Level's name
	Loops          int
	HTTP           string // host:port, "" or off for none
	StoreDir       string // where saved queries live, "" for nowhere
	Feed           string // auto or off
	Pool           PoolMode
	MaxLinks       int // to each upstream, for all loops together
	MaxConnections int
	LinkWait       time.Duration
	TLS            TLSConfig // towards clients
	Users          string    // path of the file with users beside the DSN's, "" for none
}

// minStore is the least that one upstream's store can be.
const minStore = 8 << 20

// Validate fills defaults and refuses what makes no sense. To validate again
// changes nothing.
func (c *Config) Validate() error {
	for _, check := range []func() error{c.choices, c.addresses, c.TLS.validate, c.numbers, c.limits} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// choices are the settings with a few words to choose from.
func (c *Config) choices() error {
	switch c.Cache {
	case "":
		c.Cache = CacheAuto
	case CacheAuto, CacheExplicit, CacheOff:
	default:
		return fmt.Errorf("--cache %q: want auto, explicit or off", c.Cache)
	}
	switch c.Pool {
	case "":
		c.Pool = PoolTransaction
	case PoolTransaction, PoolSession:
	default:
		return fmt.Errorf("--pool %q: want transaction or session", c.Pool)
	}
	if c.Consistency == "" {
		c.Consistency = LevelSession.String()
	}
	level, ok := ParseLevel(c.Consistency)
	if !ok {
		return fmt.Errorf("--consistency %q: want %s", c.Consistency, wantLevel)
	}
	if level == LevelLinearizable && c.Feed == "off" {
		return errors.New("--consistency linearizable needs the change feed: leave --feed off away")
	}
	if c.Feed != "" && c.Feed != "auto" && c.Feed != "off" {
		return fmt.Errorf("--feed %q: want auto or off", c.Feed)
	}
	return nil
}

// addresses looks at DSNs and at what is to be listened on.
func (c *Config) addresses() error {
	if len(c.Upstreams) == 0 {
		return errors.New("no upstream: give --upstream mysql://user:pass@host:3306/db or postgres://user:pass@host:5432/db")
	}
	taken := map[string]bool{}
	for _, u := range c.Upstreams {
		t, err := ParseTarget(u.DSN)
		if err != nil {
			return err
		}
		if u.FeedFrom != "" {
			if _, err := ParseFeedFrom(u.FeedFrom, t); err != nil {
				return err
			}
			if c.Consistency == LevelLinearizable.String() {
				return errors.New("--consistency linearizable cannot be had with --feed-from: it is the upstream that must hold each commit until Freshet has it")
			}
		}
		port, err := listenPort(u.Listen)
		if err != nil {
			return fmt.Errorf("--listen %q: %w", u.Listen, err)
		}
		if port != 0 && taken[u.Listen] {
			return fmt.Errorf("two upstreams listen on %s: give each --upstream a --listen of its own", u.Listen)
		}
		taken[u.Listen] = true
	}
	if c.HTTP == "" || c.HTTP == "off" {
		return nil
	}
	if _, err := listenPort(c.HTTP); err != nil {
		return fmt.Errorf("--http %q: %w, or off", c.HTTP, err)
	}
	return nil
}

// listenPort reads host:port; the host may be empty, for all addresses.
func listenPort(address string) (int, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, errors.New("want host:port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, errors.New("want host:port with a port from 0 to 65535")
	}
	return int(n), nil
}

// numbers takes the defaults of those that do not depend on the machine's
// limits. Loops without a link of their own could not serve, so there are
// never more of them than links.
func (c *Config) numbers() error {
	switch {
	case c.MaxStaleness < 0:
		return fmt.Errorf("--max-staleness %s: want more than 0", c.MaxStaleness)
	case c.Loops < 0:
		return fmt.Errorf("--loops %d: want 1 or more, or 0 for one per core", c.Loops)
	case c.MaxLinks < 0:
		return fmt.Errorf("--max-links %d: want 1 or more", c.MaxLinks)
	case c.MaxConnections < 0:
		return fmt.Errorf("--max-connections %d: want 1 or more, or 0 for what the descriptor limit allows", c.MaxConnections)
	}
	if c.MaxStaleness == 0 {
		c.MaxStaleness = time.Second
	}
	if c.MaxLinks == 0 {
		c.MaxLinks = 100
	}
	if c.Loops > c.MaxLinks {
		return fmt.Errorf("--max-links %d: want at least one for each of the %d loops (--loops)", c.MaxLinks, c.Loops)
	}
	if c.Loops == 0 {
		c.Loops = min(runtime.GOMAXPROCS(0), c.MaxLinks)
	}
	if c.LinkWait <= 0 {
		c.LinkWait = 10 * time.Second
	}
	return nil
}

// limits takes what the machine says where nothing was asked for.
func (c *Config) limits() error {
	n := int64(len(c.Upstreams))
	if c.Memory == 0 {
		c.Memory = max(machineMemory()/4, n*minStore)
	}
	if c.Memory < n*minStore {
		if n == 1 {
			return errors.New("--memory: want at least 8MiB")
		}
		return fmt.Errorf("--memory: want at least %dMiB, which is 8MiB for each of the %d upstreams", n*minStore>>20, n)
	}
	limit := descriptorLimit()
	room := limit - 3*c.MaxLinks*int(n) - 64
	switch {
	case room < 1:
		return fmt.Errorf("--max-links %d: the descriptor limit of %d leaves no room for clients beside them (lower --max-links, or raise the limit with ulimit -n)", c.MaxLinks, limit)
	case c.MaxConnections > room:
		return fmt.Errorf("--max-connections %d: the descriptor limit leaves room for %d (raise it with ulimit -n)", c.MaxConnections, room)
	case c.MaxConnections == 0:
		c.MaxConnections = room
	}
	return nil
}

// storeLimit is one upstream's equal share of --memory.
func (c *Config) storeLimit() int64 { return c.Memory / int64(len(c.Upstreams)) }

// linkShare is how many of --max-links one of the loops has.
func (c *Config) linkShare(loop int) int {
	share := c.MaxLinks / c.Loops
	if loop < c.MaxLinks%c.Loops {
		share++
	}
	return share
}
