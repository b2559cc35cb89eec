package mysql_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
	"freshet/proxy/mysql"
)

func TestMain(m *testing.M) { os.Exit(upstream.Main(m)) }

// kinds are the servers that every session test runs on.
var kinds = []upstream.Kind{upstream.MariaDB, upstream.MySQL}

// everywhere runs one body on every kind of server.
func everywhere(t *testing.T, body func(t *testing.T, s *upstream.Server)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) { body(t, upstream.Need(t, k)) })
	}
}

// serve starts a Freshet before the server and returns its address.
func serve(t *testing.T, s *upstream.Server, c proxy.Config) string {
	t.Helper()
	c.Upstreams = []proxy.UpstreamConfig{{DSN: s.DSN(), Listen: "127.0.0.1:0"}}
	if c.Memory == 0 {
		c.Memory = 32 << 20
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, stop := context.WithCancel(context.Background())
	srv, err := proxy.Open(ctx, c, proxy.Protocols{"mysql": mysql.New()}, log)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error("serve:", err)
		}
	})
	return strings.Fields(srv.Listeners()[0])[1]
}

// client speaks the protocol by hand, so that every byte of a reply is seen.
type client struct {
	t    *testing.T
	conn net.Conn
	caps wire.Capability
	hs   wire.Handshake
	last string // the line or text sent last
}

// patience bounds every wait of a test client.
const patience = 20 * time.Second

type loginAs struct {
	user, password, database string
	plugin                   string // "" for the server's
	caps                     wire.Capability
	collation                uint16
}

func as(s *upstream.Server, caps wire.Capability) loginAs {
	return loginAs{user: s.User, password: s.Password, database: s.Database, caps: caps, collation: 45}
}

// plainCaps are those of a client of MySQL 5.5.
const plainCaps = wire.ClientLongPassword | wire.ClientLongFlag | wire.ClientConnectWithDB | wire.ClientProtocol41 | wire.ClientTransactions |
	wire.ClientSecureConnection | wire.ClientMultiStatements | wire.ClientMultiResults | wire.ClientPSMultiResults | wire.ClientPluginAuth | wire.ClientLocalFiles

// meet connects, and reads what the server says first.
func meet(t *testing.T, address string) (c *client, greeting []byte) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c = &client{t: t, conn: conn}
	_, greeting = c.read()
	return c, greeting
}

// dial connects and logs in; the error is the server's refusal.
func dial(t *testing.T, address string, l loginAs) (*client, error) {
	t.Helper()
	c, p := meet(t, address)
	var err error
	if p[0] == 0xff {
		e, err := wire.DecodeError(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		return nil, e
	}
	if c.hs, err = wire.DecodeHandshake(p); err != nil {
		t.Fatal(err)
	}
	c.caps = l.caps & c.hs.Capabilities
	if l.database == "" {
		c.caps &^= wire.ClientConnectWithDB
	}
	return c, c.login(l)
}

func (c *client) login(l loginAs) error {
	plugin := l.plugin
	if plugin == "" {
		plugin = c.hs.Plugin
	}
	a := wire.ClientAuth{Password: l.password}
	name, answer, err := a.Start(plugin, c.hs.Nonce)
	if err != nil {
		c.t.Fatal(err)
	}
	r := wire.HandshakeResponse{Capabilities: c.caps, MaxPacket: 1 << 24, Collation: l.collation, User: []byte(l.user), Auth: answer,
		Database: []byte(l.database), Plugin: []byte(name)}
	c.write(1, r.Append(nil))
	return c.authenticate(&a)
}

func (c *client) authenticate(a *wire.ClientAuth) error {
	for {
		h, p := c.read()
		reply, send, done, err := a.Step(p, c.caps)
		if done || err != nil {
			return err
		}
		if send {
			c.write(h.Seq+1, reply)
		}
	}
}

func mustDial(t *testing.T, address string, l loginAs) *client {
	t.Helper()
	c, err := dial(t, address, l)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) read() (wire.Header, []byte) {
	c.t.Helper()
	h, p, err := c.tryRead()
	if err != nil {
		c.t.Fatalf("reading a packet after %s: %v", c.last, err)
	}
	return h, p
}

func (c *client) tryRead() (wire.Header, []byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return wire.Header{}, nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.DecodeHeader(head[:])
	if err != nil {
		return h, nil, err
	}
	p := make([]byte, h.Length)
	_, err = io.ReadFull(c.conn, p)
	return h, p, err
}

func (c *client) write(seq uint8, payload []byte) {
	c.t.Helper()
	b, _ := wire.AppendPacket(nil, seq, payload)
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal("writing a packet: ", err)
	}
}

// reply is a whole reply: its packets as the client saw them.
type reply struct {
	packets []string // "seq:hex"
	rows    []string
	err     *wire.ServerError
	last    wire.OK
	prep    wire.PrepareOK
}

func (r reply) String() string { return strings.Join(r.packets, "\n") }

// command sends one and reads its reply.
func (c *client) command(payload []byte) reply {
	c.t.Helper()
	c.write(0, payload)
	return c.reply(wire.Command(payload[0]))
}

func (c *client) reply(cmd wire.Command) reply {
	c.t.Helper()
	out, err := c.tryReply(cmd)
	if err != nil {
		c.t.Fatalf("reading a packet after %s: %v", c.last, err)
	}
	return out
}

// tryReply tells of a connection that was closed.
func (c *client) tryReply(cmd wire.Command) (out reply, _ error) {
	c.t.Helper()
	if cmd.Silent() {
		return out, nil
	}
	var tr wire.Tracker
	tr.Begin(cmd, c.caps, 1)
	for !tr.Done() {
		h, p, err := c.tryRead()
		if err != nil {
			return out, err
		}
		event, err := tr.Packet(h, p)
		if err != nil {
			c.t.Fatalf("packet %d:%x after %v: %v", h.Seq, p, out, err)
		}
		text := hex.EncodeToString(p)
		if len(text) > 400 {
			text = text[:400] + fmt.Sprintf("…%d", len(p))
		}
		out.packets = append(out.packets, fmt.Sprintf("%d:%s", h.Seq, text))
		switch event {
		case wire.EventRow:
			out.rows = append(out.rows, string(p))
		case wire.EventError:
			e := tr.Error
			out.err = &e
		case wire.EventLocalInfile:
			last := c.sendFile(h.Seq + 1)
			tr.FileSent(last)
		case wire.EventPrepareOK:
			out.prep = tr.Prepared
		}
	}
	out.last = tr.Last
	return out, nil
}

// sendFile sends the file that LOAD DATA LOCAL asks for.
func (c *client) sendFile(seq uint8) (last uint8) {
	c.write(seq, []byte("1\n2\n"))
	c.write(seq+1, []byte("3\n"))
	c.write(seq+2, nil)
	return seq + 2
}

func (c *client) query(text string) reply {
	c.t.Helper()
	return c.command(wire.AppendQuery(nil, c.caps, text))
}

// cells gives a text reply's rows as readable strings.
func (c *client) cells(text string) string {
	c.t.Helper()
	return c.query(text).cells()
}

// cells gives a text reply's rows as readable strings, or its error.
func (r reply) cells() string {
	if r.err != nil {
		return r.err.Error()
	}
	var out []string
	for _, row := range r.rows {
		b := []byte(row)
		for len(b) > 0 {
			if b[0] == 0xfb {
				out, b = append(out, "NULL"), b[1:]
				continue
			}
			n, used := wire.DecodeLenenc(b)
			out = append(out, string(b[used:used+int(n)]))
			b = b[used+int(n):]
		}
	}
	return strings.Join(out, ",")
}
