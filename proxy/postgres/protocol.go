package postgres

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"freshet/planner"
	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

type protocol struct{}

// New gives the PostgreSQL dialect.
func New() proxy.Protocol { return protocol{} }

// NewHandler makes the state machine of one client.
func (protocol) NewHandler(s *proxy.Session) proxy.Handler {
	h := &handler{s: s, shared: sharedOf(s.Upstream), tx: pg.TxIdle}
	h.replies.OnDrop = h.dropped
	s.Upstream.Planner.Hidden() // so that it is known by the first write
	return h
}

// shared is what all sessions of one upstream have in common.
type shared struct {
	config *pgconn.Config // the DSN's; copied for every dial
	broken error          // why there is no config or verifier

	verifier   *pg.Verifier // the DSN's user's; nil: it has no password, so none is asked
	verifiers  verifiers    // those of --users
	mockSecret []byte
	// prefix begins the names of statements prepared on links. It is random, so
	// that no client can mean one by chance or by guessing.
	prefix string

	mu        sync.RWMutex
	greetings map[string]*greeting // by pool key
	described descriptions

	// usesSequences is set once any client asked for currval or lastval:
	// sessions then keep the link on which they wrote.
	usesSequences atomic.Bool
}

// greeting is what the last link of a pool key was told when it opened.
type greeting struct {
	parameters []pg.Option
	state      state
	scope      planner.ScopeID
}

type sharedKey struct{}

func sharedOf(u *proxy.Upstream) *shared {
	return u.Shared(sharedKey{}, func() any { return newShared(u) }).(*shared)
}

func newShared(u *proxy.Upstream) *shared {
	sh := &shared{greetings: map[string]*greeting{}, mockSecret: make([]byte, 32)}
	tag := make([]byte, 6)
	for _, b := range [][]byte{sh.mockSecret, tag} {
		if _, err := rand.Read(b); err != nil {
			sh.broken = err
		}
	}
	sh.prefix = "fs_" + hex.EncodeToString(tag) + "_"
	var err error
	if sh.config, err = pgconn.ParseConfig(u.Target.URL.String()); err != nil {
		sh.broken = err
		return sh
	}
	if sh.config.Password != "" {
		if sh.verifier, err = pg.NewVerifier(sh.config.Password); err != nil {
			sh.broken = err
		}
	}
	return sh
}

func (sh *shared) greeting(key string) *greeting {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.greetings[key]
}

// maxGreetings bounds what clients with ever new startup parameters can make
// the process remember.
const maxGreetings = 10_000

func (sh *shared) greet(key string, g *greeting) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.greetings) >= maxGreetings {
		clear(sh.greetings)
	}
	sh.greetings[key] = g
}
