package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Capability flags of the MySQL protocol (manual: Capabilities Flags).
const (
	CapLongPassword     uint32 = 1 << 0
	CapFoundRows        uint32 = 1 << 1
	CapLongFlag         uint32 = 1 << 2
	CapConnectWithDB    uint32 = 1 << 3
	CapLocalFiles       uint32 = 1 << 7
	CapProtocol41       uint32 = 1 << 9
	CapSSL              uint32 = 1 << 11
	CapTransactions     uint32 = 1 << 13
	CapSecureConnection uint32 = 1 << 15
	CapMultiStatements  uint32 = 1 << 16
	CapMultiResults     uint32 = 1 << 17
	CapPSMultiResults   uint32 = 1 << 18
	CapPluginAuth       uint32 = 1 << 19
	CapSessionTrack     uint32 = 1 << 23
	CapDeprecateEOF     uint32 = 1 << 24
)

const capsAlways = CapLongPassword | CapLongFlag | CapProtocol41 | CapTransactions | CapSecureConnection |
	CapMultiStatements | CapMultiResults | CapPSMultiResults | CapPluginAuth

// Commands of the MySQL protocol (manual: Command Phase).
const (
	ComQuit            byte = 0x01
	ComInitDB          byte = 0x02
	ComQuery           byte = 0x03
	ComFieldList       byte = 0x04
	ComPing            byte = 0x0e
	ComChangeUser      byte = 0x11
	ComStmtPrepare     byte = 0x16
	ComStmtExecute     byte = 0x17
	ComStmtSendLong    byte = 0x18
	ComStmtClose       byte = 0x19
	ComStmtReset       byte = 0x1a
	ComSetOption       byte = 0x1b
	ComStmtFetch       byte = 0x1c
	ComResetConnection byte = 0x1f
)

// Status flags that decide where a reply ends.
const (
	statusMoreResults  uint16 = 0x0008
	statusCursorExists uint16 = 0x0040
	// StatusOfPlan are the flags that tell how a query was run, not what it
	// returned: no good index used, no index used, was slow.
	StatusOfPlan uint16 = 0x0010 | 0x0020 | 0x0800
)

const maxPacketBytes = 1<<24 - 1

// MySQLOptions are what a client chooses in the handshake.
type MySQLOptions struct {
	Capabilities uint32 // besides what this package always asks for
	Collation    byte   // 0: utf8mb4_general_ci (45)
}

// MySQLConn is one authenticated connection. It is owned by one goroutine.
type MySQLConn struct {
	Net      net.Conn
	Caps     uint32 // agreed by both sides
	Version  string // as in the greeting
	ThreadID uint32

	r         *bufio.Reader
	seq       byte
	target    Target
	collation byte
	plugin    string
	scramble  []byte
	out       []byte
}

// DialMySQL connects and authenticates with mysql_native_password or
// caching_sha2_password. A refusal by the server is an error of type *MySQLError.
func DialMySQL(ctx context.Context, t Target, o MySQLOptions) (*MySQLConn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", t.Address())
	if err != nil {
		return nil, err
	}
	if dl, ok := ctx.Deadline(); ok {
		if err := nc.SetDeadline(dl); err != nil {
			return nil, closing(nc, err)
		}
	}
	c := &MySQLConn{Net: nc, r: bufio.NewReaderSize(nc, 32<<10), target: t, collation: o.Collation}
	if c.collation == 0 {
		c.collation = 45
	}
	if err := c.handshake(o.Capabilities); err != nil {
		return nil, closing(nc, err)
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, closing(nc, err)
	}
	return c, nil
}

// closing closes what err has made useless and keeps err as the reason.
func closing(c io.Closer, err error) error {
	if cerr := c.Close(); cerr != nil {
		return fmt.Errorf("%w (and closing: %w)", err, cerr)
	}
	return err
}

// Close says goodbye (COM_QUIT has no reply) and closes the socket.
func (c *MySQLConn) Close() error {
	if err := c.Send([]byte{ComQuit}); err != nil {
		return closing(c.Net, err)
	}
	return c.Net.Close()
}

// Send writes one command: a new sequence begins.
func (c *MySQLConn) Send(payload []byte) error {
	c.seq = 0
	return c.write(payload)
}

// write sends payload in packets of at most 16 MiB - 1; an exact multiple ends
// in an empty packet (manual: MySQL Packets).
func (c *MySQLConn) write(payload []byte) error {
	c.out = c.out[:0]
	for {
		n := min(len(payload), maxPacketBytes)
		c.out = append(c.out, byte(n), byte(n>>8), byte(n>>16), c.seq)
		c.out = append(c.out, payload[:n]...)
		c.seq++
		payload = payload[n:]
		if n < maxPacketBytes {
			break
		}
	}
	_, err := c.Net.Write(c.out)
	return err
}

// ReadPacket reads one payload, joining packets of 16 MiB. The bytes are the caller's.
func (c *MySQLConn) ReadPacket() ([]byte, error) {
	var body []byte
	for {
		var h [4]byte
		if _, err := io.ReadFull(c.r, h[:]); err != nil {
			return nil, err
		}
		n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
		if h[3] != c.seq {
			return nil, malformed(fmt.Sprintf("packet sequence %d, expected %d", h[3], c.seq))
		}
		c.seq++
		if len(body)+n > MaxMessageBytes {
			return nil, malformed("packet over the bound")
		}
		at := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(c.r, body[at:]); err != nil {
			return nil, noEOF(err)
		}
		if n < maxPacketBytes {
			return body, nil
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// startTLS sends SSLRequest and goes on over TLS. Certificates are not
// verified unless the DSN says tls=true: a bench on loopback has none to trust.
func (c *MySQLConn) startTLS(caps uint32) error {
	req := make([]byte, 32)
	binary.LittleEndian.PutUint32(req, caps|CapSSL)
	binary.LittleEndian.PutUint32(req[4:], maxPacketBytes)
	req[8] = c.collation
	if err := c.write(req); err != nil {
		return err
	}
	cfg := &tls.Config{ServerName: c.target.Host, InsecureSkipVerify: c.target.Params.Get("tls") != "true"}
	tc := tls.Client(c.Net, cfg)
	if err := tc.Handshake(); err != nil {
		return fmt.Errorf("TLS with %s: %w", c.target.Address(), err)
	}
	c.Net, c.r = tc, bufio.NewReaderSize(tc, 32<<10)
	return nil
}
