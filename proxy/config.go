package proxy

import (
	"fmt"
	"runtime"
	"time"
)

// CacheMode is --cache.
type CacheMode string

const (
	CacheAuto     CacheMode = "auto"
	CacheExplicit CacheMode = "explicit"
	CacheOff      CacheMode = "off"
)

// UpstreamConfig is one --upstream with its --listen.
type UpstreamConfig struct {
	DSN    string
	Listen string // host:port; port 0 takes a free one
}

// Config is what serve was asked for.
type Config struct {
	Upstreams      []UpstreamConfig
	Cache          CacheMode
	Memory         int64 // bytes, each upstream's share is equal
	MaxStaleness   time.Duration
	Consistency    string // bounded or session
	Loops          int
	HTTP           string // host:port, "" for none
	StoreDir       string // where saved queries live, "" for nowhere
	Feed           string // auto or off
	MaxLinks       int
	MaxConnections int
	LinkWait       time.Duration
}

// Validate fills defaults and refuses what makes no sense.
func (c *Config) Validate() error {
	if len(c.Upstreams) == 0 {
		return fmt.Errorf("no upstream: give --upstream mysql://user:pass@host:3306/db or postgres://user:pass@host:5432/db")
	}
	if c.Loops <= 0 {
		c.Loops = runtime.GOMAXPROCS(0)
	}
	if c.MaxLinks <= 0 {
		c.MaxLinks = 100
	}
	if c.LinkWait <= 0 {
		c.LinkWait = 10 * time.Second
	}
	switch c.Cache {
	case "":
		c.Cache = CacheAuto
	case CacheAuto, CacheExplicit, CacheOff:
	default:
		return fmt.Errorf("--cache %q: want auto, explicit or off", c.Cache)
	}
	switch c.Consistency {
	case "":
		c.Consistency = LevelSession.String()
	case LevelSession.String(), LevelBounded.String():
	case "linearizable":
		return fmt.Errorf("--consistency linearizable is not available yet: want bounded or session")
	default:
		return fmt.Errorf("--consistency %q: want bounded or session", c.Consistency)
	}
	if c.Feed != "" && c.Feed != "auto" && c.Feed != "off" {
		return fmt.Errorf("--feed %q: want auto or off", c.Feed)
	}
	if c.MaxStaleness <= 0 {
		c.MaxStaleness = time.Second
	}
	return c.limits()
}

// limits takes what the machine says where nothing was asked for.
func (c *Config) limits() error {
	if c.Memory == 0 {
		c.Memory = machineMemory() / 4
	}
	if c.Memory < 8<<20 {
		return fmt.Errorf("--memory: want at least 8MiB")
	}
	c.Memory /= int64(len(c.Upstreams))
	room := descriptorLimit() - 3*c.MaxLinks - 64
	if c.MaxConnections <= 0 || c.MaxConnections > room {
		if c.MaxConnections > room {
			return fmt.Errorf("--max-connections %d: the descriptor limit leaves room for %d (raise it with ulimit -n)", c.MaxConnections, room)
		}
		c.MaxConnections = room
	}
	return nil
}
