package wire

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
)

// MySQLError is an ERR packet.
type MySQLError struct {
	Number   uint16
	SQLState string
	Message  string
}

func (e *MySQLError) Error() string {
	return fmt.Sprintf("error %d (%s): %s", e.Number, e.SQLState, e.Message)
}

// DecodeMySQLError reads an ERR packet's payload (manual: ERR_Packet). Before
// the handshake is done the SQLSTATE is absent.
func DecodeMySQLError(b []byte) (*MySQLError, error) {
	if len(b) < 3 || b[0] != 0xff {
		return nil, malformed("ERR packet")
	}
	e := &MySQLError{Number: binary.LittleEndian.Uint16(b[1:])}
	rest := b[3:]
	if len(rest) >= 6 && rest[0] == '#' {
		e.SQLState, rest = string(rest[1:6]), rest[6:]
	}
	e.Message = string(rest)
	return e, nil
}

// handshake reads the greeting, answers it and follows the authentication
// exchange to its end (manual: Connection Phase).
func (c *MySQLConn) handshake(extra uint32) error {
	greeting, err := c.ReadPacket()
	if err != nil {
		return fmt.Errorf("greeting: %w", noEOF(err))
	}
	if len(greeting) > 0 && greeting[0] == 0xff {
		return errOf(greeting)
	}
	serverCaps, err := c.readGreeting(greeting)
	if err != nil {
		return err
	}
	caps := capsAlways | extra
	if c.target.Database != "" {
		caps |= CapConnectWithDB
	}
	c.Caps = caps & serverCaps
	if mode := c.target.Params.Get("tls"); mode != "" && mode != "false" {
		if serverCaps&CapSSL == 0 {
			return fmt.Errorf("%s offers no TLS", c.target.Address())
		}
		if err := c.startTLS(c.Caps); err != nil {
			return err
		}
		c.Caps |= CapSSL
	}
	if err := c.write(c.handshakeResponse()); err != nil {
		return err
	}
	return c.authenticate()
}

// readGreeting reads HandshakeV10 and returns the server's capabilities.
func (c *MySQLConn) readGreeting(b []byte) (uint32, error) {
	if len(b) < 1 || b[0] != 10 {
		return 0, malformed("greeting is not protocol 10")
	}
	end := bytes.IndexByte(b[1:], 0)
	if end < 0 {
		return 0, malformed("greeting version")
	}
	c.Version = string(b[1 : 1+end])
	b = b[2+end:]
	if len(b) < 4+8+1+2+1+2+2+1+10 {
		return 0, malformed("greeting is short")
	}
	c.ThreadID = binary.LittleEndian.Uint32(b)
	scramble := append([]byte(nil), b[4:12]...)
	caps := uint32(binary.LittleEndian.Uint16(b[13:])) | uint32(binary.LittleEndian.Uint16(b[18:]))<<16
	authLen := int(b[20])
	b = b[31:]
	if caps&CapSecureConnection != 0 {
		n := max(13, authLen-8)
		if len(b) < n {
			return 0, malformed("greeting scramble")
		}
		scramble = append(scramble, b[:n-1]...)
		b = b[n:]
	}
	c.scramble, c.plugin = scramble, "mysql_native_password"
	if caps&CapPluginAuth != 0 {
		c.plugin = string(bytes.TrimRight(b, "\x00"))
	}
	return caps, nil
}

func (c *MySQLConn) handshakeResponse() []byte {
	b := make([]byte, 32, 128)
	binary.LittleEndian.PutUint32(b, c.Caps)
	binary.LittleEndian.PutUint32(b[4:], maxPacketBytes)
	b[8] = c.collation
	b = append(append(b, c.target.User...), 0)
	proof := c.proof()
	b = append(append(b, byte(len(proof))), proof...)
	if c.Caps&CapConnectWithDB != 0 {
		b = append(append(b, c.target.Database...), 0)
	}
	return append(append(b, c.plugin...), 0)
}

// proof answers the current scramble with the current plugin; for an unknown
// plugin it is empty, and the server will ask for a switch or refuse.
func (c *MySQLConn) proof() []byte {
	if c.target.Password == "" {
		return nil
	}
	pw := []byte(c.target.Password)
	switch c.plugin {
	case "mysql_native_password": // SHA1(pw) XOR SHA1(scramble + SHA1(SHA1(pw)))
		h1 := sha1.Sum(pw)
		h2 := sha1.Sum(h1[:])
		h3 := sha1.Sum(append(append([]byte(nil), c.scramble...), h2[:]...))
		return xor(h1[:], h3[:])
	case "caching_sha2_password": // SHA256(pw) XOR SHA256(SHA256(SHA256(pw)) + scramble)
		h1 := sha256.Sum256(pw)
		h2 := sha256.Sum256(h1[:])
		h3 := sha256.Sum256(append(h2[:], c.scramble...))
		return xor(h1[:], h3[:])
	}
	return nil
}

func xor(a, b []byte) []byte {
	for i := range a {
		a[i] ^= b[i]
	}
	return a
}

// authenticate follows AuthSwitchRequest and AuthMoreData until OK or ERR.
func (c *MySQLConn) authenticate() error {
	for rounds := 0; rounds < 8; rounds++ {
		b, err := c.ReadPacket()
		if err != nil {
			return fmt.Errorf("authentication: %w", noEOF(err))
		}
		if len(b) == 0 {
			return malformed("empty authentication packet")
		}
		switch b[0] {
		case 0x00:
			return nil
		case 0xff:
			return errOf(b)
		case 0xfe:
			name, data, ok := bytes.Cut(b[1:], []byte{0})
			if !ok {
				return malformed("AuthSwitchRequest")
			}
			c.plugin = string(name)
			c.scramble = append([]byte(nil), bytes.TrimSuffix(data, []byte{0})...)
			if err := c.write(c.proof()); err != nil {
				return err
			}
		case 0x01:
			if err := c.moreData(b[1:]); err != nil {
				return err
			}
		default:
			return malformed("authentication packet")
		}
	}
	return malformed("authentication does not end")
}

// moreData is caching_sha2_password's second half (manual: Caching SHA-2
// Pluggable Authentication): 3 means done, 4 asks for the password itself, sent
// bare over TLS and else under the server's RSA key.
func (c *MySQLConn) moreData(b []byte) error {
	if len(b) != 1 {
		return malformed("AuthMoreData")
	}
	if b[0] == 3 {
		return nil
	}
	if b[0] != 4 {
		return malformed("AuthMoreData")
	}
	secret := append([]byte(c.target.Password), 0)
	if _, ok := c.Net.(*tls.Conn); ok {
		return c.write(secret)
	}
	if err := c.write([]byte{2}); err != nil {
		return err
	}
	key, err := c.ReadPacket()
	if err != nil {
		return fmt.Errorf("public key: %w", noEOF(err))
	}
	if len(key) > 0 && key[0] == 0xff {
		return errOf(key)
	}
	sealed, err := seal(secret, c.scramble, key)
	if err != nil {
		return err
	}
	return c.write(sealed)
}

// seal encrypts the password, XORed with the scramble, under the PEM key that
// follows the packet's first byte.
func seal(secret, scramble, packet []byte) ([]byte, error) {
	if len(packet) < 1 || len(scramble) == 0 {
		return nil, malformed("public key packet")
	}
	block, _ := pem.Decode(packet[1:])
	if block == nil {
		return nil, malformed("public key is not PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, malformed("public key is not RSA")
	}
	for i := range secret {
		secret[i] ^= scramble[i%len(scramble)]
	}
	return rsa.EncryptOAEP(sha1.New(), rand.Reader, key, secret, nil)
}

func errOf(packet []byte) error {
	e, err := DecodeMySQLError(packet)
	if err != nil {
		return err
	}
	return e
}
