package postgres

import (
	"sync"

	pg "freshet/protocol/postgres"
	"freshet/proxy"
)

// verifiers keeps what is computed of users' passwords. Safe for use from all
// loops. It is bounded by the users that there ever were in the file.
type verifiers struct {
	mu sync.RWMutex
	m  map[string]madeVerifier // by user name
}

type madeVerifier struct {
	password string
	verifier *pg.Verifier
}

// get is nil while the user's password, as it is now, is new.
func (v *verifiers) get(u *proxy.User) *pg.Verifier {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if made := v.m[u.Name]; made.password == u.Password {
		return made.verifier
	}
	return nil
}

func (v *verifiers) make(u *proxy.User) (*pg.Verifier, error) {
	verifier, err := pg.NewVerifier(u.Password)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.m == nil {
		v.m = map[string]madeVerifier{}
	}
	v.m[u.Name] = madeVerifier{u.Password, verifier}
	return verifier, nil
}
