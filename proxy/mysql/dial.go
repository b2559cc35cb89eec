package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// linkState is what a session knows of its link. It belongs to the link's
// loop.
type linkState struct {
	caps     wire.Capability
	threadID uint32
	base     *base
	prepared preparedSet
	// lastID is LAST_INSERT_ID() there.
	lastID uint64
}

// Dial implements proxy.Protocol.
func (protocol) Dial(ctx context.Context, u *proxy.Upstream, key string) (net.Conn, any, error) {
	k, err := parseLinkKey(key)
	if err != nil {
		return nil, nil, err
	}
	conn, state, err := dialKey(ctx, u, k, nil)
	if err != nil {
		return nil, nil, err // not a typed nil in the interfaces
	}
	return conn, state, nil
}

// dialKey opens a link; then, if given, is a last step on it.
func dialKey(ctx context.Context, u *proxy.Upstream, k linkKey, then func(*opening) error) (net.Conn, *linkState, error) {
	generation := u.Generation() // before the server sets the session up
	target, err := targetOf(u, k)
	if err != nil {
		return nil, nil, err
	}
	d := net.Dialer{}
	conn, err := d.DialContext(ctx, "tcp", u.Target.Address())
	if err != nil {
		return nil, nil, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(u.ConnectTimeout)
	}
	o := &opening{line: line{conn: conn}, up: sharedOf(u), target: target, key: k, generation: generation}
	err = conn.SetDeadline(deadline)
	if err == nil {
		err = o.open(ctx)
	}
	if err == nil && then != nil {
		err = then(o)
	}
	if err == nil {
		err = o.conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, nil, errors.Join(err, o.conn.Close())
	}
	if !o.encrypted {
		return conn, o.state, nil
	}
	conn, err = proxy.Bridge(o.conn)
	return conn, o.state, err
}

// targetOf is the upstream as the key's user logs in there.
func targetOf(u *proxy.Upstream, k linkKey) (proxy.Target, error) {
	t := u.Target
	if k.user == "" {
		return t, nil
	}
	user, err := u.Login(k.user)
	t.User, t.Password = user.Name, user.Password
	return t, err
}

// opening is one link on its way, step by step in the order of open.
type opening struct {
	line
	up         *shared
	target     proxy.Target
	key        linkKey
	generation uint64
	greeting   wire.Handshake
	encrypted  bool
	status     wire.Status
	state      *linkState
}

func (o *opening) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{o.greet, o.encrypt, o.logIn, o.look, o.bring} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// greet reads the server's handshake.
func (o *opening) greet(context.Context) error {
	p, err := o.read()
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if len(p) > 0 && p[0] == 0xff {
		e, err := wire.DecodeError(p, 0)
		if err != nil {
			return err
		}
		return e
	}
	if o.greeting, err = wire.DecodeHandshake(p); err != nil {
		return err
	}
	o.caps = o.key.caps & (o.greeting.Capabilities | wire.ClientPluginAuthLenenc | wire.ClientReserved | wire.ClientIgnoreSigpipe | wire.ClientInteractive)
	if o.key.database != "" {
		o.caps |= wire.ClientConnectWithDB
	}
	if lost := o.key.caps &^ o.caps & linkCaps &^ wire.ClientLongPassword; lost != 0 {
		return fmt.Errorf("the upstream does not offer the capabilities %#x", uint64(lost))
	}
	if !o.caps.Has(wire.ClientSessionTrack) {
		return errors.New("the upstream has no session tracking (MySQL 5.7, MariaDB 10.2 and later have)")
	}
	o.up.met(&o.greeting)
	return nil
}

// response is the client's answer as far as it is known before TLS.
func (o *opening) response() wire.HandshakeResponse {
	return wire.HandshakeResponse{Capabilities: o.caps, MaxPacket: 1 << 30, Collation: o.key.collation,
		User: []byte(o.target.User), Database: []byte(o.key.database)}
}

// encrypt starts TLS as the DSN's tls parameter wants it (the names are those
// of go-sql-driver: true, skip-verify, preferred, false).
func (o *opening) encrypt(ctx context.Context) error {
	mode := o.target.Params.Get("tls")
	has := o.greeting.Capabilities.Has(wire.ClientSSL)
	switch mode {
	case "", "false", "0":
		return nil
	case "preferred":
		if !has {
			return nil
		}
	case "true", "1", "skip-verify":
		if !has {
			return errors.New("the DSN asks for TLS, which the upstream does not offer")
		}
	default:
		return fmt.Errorf("upstream DSN: tls=%q: want true, skip-verify, preferred or false", mode)
	}
	o.caps |= wire.ClientSSL
	r := o.response()
	if err := o.write(r.AppendSSLRequest(nil)); err != nil {
		return err
	}
	o.seq++
	c := tls.Client(o.conn, &tls.Config{ServerName: o.target.Host, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: mode == "skip-verify" || mode == "preferred"})
	if err := c.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	o.conn, o.encrypted = c, true
	return nil
}

// logIn authenticates as the key's user.
func (o *opening) logIn(context.Context) error {
	auth := wire.ClientAuth{Password: o.target.Password, Secure: o.encrypted}
	plugin, answer, err := auth.Start(o.greeting.Plugin, o.greeting.Nonce)
	if err != nil {
		return err
	}
	r := o.response()
	r.Plugin, r.Auth = []byte(plugin), answer
	if err := o.write(r.Append(nil)); err != nil {
		return err
	}
	for {
		p, err := o.read()
		if err != nil {
			return fmt.Errorf("authentication: %w", err)
		}
		reply, send, done, err := auth.Step(p, o.caps)
		if err != nil {
			return err
		}
		if done {
			ok, err := wire.DecodeOK(p, o.caps)
			o.status = ok.Status &^ wire.StatusStateChanged
			return err
		}
		if send {
			if err := o.write(reply); err != nil {
				return err
			}
		}
	}
}

// look notes what a connection like this is before anything was set on it.
func (o *opening) look(context.Context) error {
	initial, err := o.variables()
	if err != nil {
		return err
	}
	if err := o.learnCollations(); err != nil {
		return err
	}
	fresh := newBase(o.status, initial)
	fresh.generation = o.generation
	b := o.up.learn(o.key.base(), fresh)
	o.state = &linkState{caps: o.caps, threadID: o.greeting.ConnectionID, base: b}
	return nil
}

// learnCollations reads the server's collations, once.
func (o *opening) learnCollations() error {
	if o.up.collations.Load() != nil {
		return nil
	}
	rows, err := o.query("SELECT ID, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL AND CHARACTER_SET_NAME IS NOT NULL")
	if err != nil {
		return err
	}
	all := make(map[string]collation, len(rows))
	for _, r := range rows {
		all[string(r[0])] = collation{charset: string(r[1]), name: string(r[2])}
	}
	o.up.collations.Store(&all)
	return nil
}

// variables reads the session variables, and the collation of results.
func (o *opening) variables() (map[string]string, error) {
	rows, err := o.query("SHOW SESSION VARIABLES")
	if err != nil {
		return nil, err
	}
	v := make(map[string]string, len(rows)+1)
	for _, r := range rows {
		v[string(r[0])] = string(r[1])
	}
	if _, err := o.query("SELECT @@collation_connection"); err != nil {
		return nil, err
	}
	v[resultsCollation] = resultsCollationOf(v["character_set_results"], o.collation)
	return v, nil
}

// bring turns tracking on and applies the key's settings.
func (o *opening) bring(context.Context) error {
	if _, err := o.query("SET session_track_system_variables = '*', session_track_schema = ON, session_track_state_change = ON"); err != nil {
		return err
	}
	if len(o.key.settings) == 0 {
		return nil
	}
	text, err := o.key.settings.whole(o.state.base.initial).statement(*o.up.collations.Load())
	if err != nil {
		return err
	}
	_, err = o.query(text)
	return err
}

// learnReset finds out, on a connection of its own, what
// COM_RESET_CONNECTION leaves of a fresh connection's settings.
func learnReset(ctx context.Context, u *proxy.Upstream, key linkKey, b *base) error {
	key.settings = nil
	conn, _, err := dialKey(ctx, u, key, func(o *opening) error {
		o.seq = 0
		if err := o.write([]byte{byte(wire.ComResetConnection)}); err != nil {
			return err
		}
		p, err := o.read()
		if err != nil {
			return err
		}
		if _, err := wire.DecodeOK(p, o.caps); err != nil {
			return err
		}
		after, err := o.variables()
		if err != nil {
			return err
		}
		set := settings{}
		for name := range replayable {
			if after[name] != b.initial[name] {
				set = set.with(name, after[name])
			}
		}
		b.reset.Store(&set)
		return nil
	})
	if err != nil {
		return err
	}
	return conn.Close()
}
