package proxy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func twoUpstreams() []UpstreamConfig {
	return []UpstreamConfig{{DSN: "mysql://app@h/shop", Listen: "127.0.0.1:3307"}, {DSN: "postgres://app@h/shop", Listen: "127.0.0.1:5433"}}
}

// The sums that users give hold for all upstreams and loops together, however
// often a config is looked over.
func TestSharesAddUp(t *testing.T) {
	c := Config{Upstreams: twoUpstreams(), Memory: 20 << 20, Loops: 4, MaxLinks: 7}
	for range 3 {
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.storeLimit(); got != 10<<20 {
		t.Errorf("one of two stores gets %d bytes of 20 MiB", got)
	}
	links := 0
	for i := range c.Loops {
		n := c.linkShare(i)
		if n < 1 {
			t.Errorf("loop %d has no link", i)
		}
		links += n
	}
	if links != 7 {
		t.Errorf("the loops have %d links of 7", links)
	}
	few := Config{Upstreams: twoUpstreams(), MaxLinks: 1}
	if err := few.Validate(); err != nil || few.Loops != 1 {
		t.Errorf("one link: %d loops, %v", few.Loops, err)
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Upstreams = nil }, "give --upstream"},
		{func(c *Config) { c.MaxStaleness = -time.Second }, "--max-staleness -1s: want more than 0"},
		{func(c *Config) { c.Loops = -1 }, "--loops -1"},
		{func(c *Config) { c.MaxLinks = -3 }, "--max-links -3"},
		{func(c *Config) { c.MaxLinks, c.Loops = 1, 2 }, "--max-links 1: want at least one for each of the 2 loops"},
		{func(c *Config) { c.MaxLinks = 10_000_000 }, "lower --max-links"},
		{func(c *Config) { c.MaxConnections = -1 }, "--max-connections -1"},
		{func(c *Config) { c.MaxConnections = 1 << 30 }, "the descriptor limit leaves room for"},
		{func(c *Config) { c.Cache = "some" }, "want auto, explicit or off"},
		{func(c *Config) { c.Consistency = "eventual" }, "want bounded, session or linearizable"},
		{func(c *Config) { c.Feed = "on" }, "want auto or off"},
		{func(c *Config) { c.HTTP = "bogus" }, `--http "bogus": want host:port, or off`},
		{func(c *Config) { c.HTTP = "h:70000" }, "port from 0 to 65535"},
		{func(c *Config) { c.Upstreams[0].Listen = "bogus" }, `--listen "bogus": want host:port`},
		{func(c *Config) { c.Upstreams[1].Listen = "127.0.0.1:3307" }, "two upstreams listen on 127.0.0.1:3307"},
		{func(c *Config) { c.Upstreams[1].DSN = "postgres://app@h/shop?sslmode=bogus" }, "sslmode is invalid"},
		{func(c *Config) { c.Memory = 8 << 20 }, "want at least 16MiB, which is 8MiB for each of the 2 upstreams"},
		{func(c *Config) { c.Upstreams, c.Memory = c.Upstreams[:1], 1<<20 }, "want at least 8MiB"},
	} {
		config := Config{Upstreams: twoUpstreams()}
		c.change(&config)
		err := config.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestValidateTwiceChangesNothing(t *testing.T) {
	first := Config{Upstreams: twoUpstreams()}
	if err := first.Validate(); err != nil {
		t.Fatal(err)
	}
	second := first
	if err := second.Validate(); err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%+v, then %+v, %v", first, second, err)
	}
}
