package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"freshet/bench/pki"
	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
)

// A session that compresses is a session: hits, prepared statements, results and
// statements of many packets, several statements, files; in TLS and without.
func TestCompression(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		ca, compressed := pki.New(t), driver.EnableCompression(true)
		address := serve(t, s, withTLS(ca, ""))
		for name, db := range map[string]*sql.DB{"in clear": overTLS(t, s, address, nil, compressed), "in TLS": overTLS(t, s, address, trusting(ca), compressed)} {
			t.Run(name, func(t *testing.T) {
				exec := func(text string) {
					t.Helper()
					if _, err := db.Exec(text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
				exec("DROP TABLE IF EXISTS packed_client")
				exec("CREATE TABLE packed_client (id INT PRIMARY KEY, v VARCHAR(20))")
				exec("INSERT INTO packed_client VALUES (1, 'one'), (2, 'two')")
				hitsUnderTLS(t, db, "SELECT v FROM packed_client WHERE id = 1")
				hitsUnderTLS(t, db, "SELECT v FROM packed_client WHERE id = ?", 1)
				longUnderTLS(t, db)
				fileOf(t, db, 30000)
				exec("DROP TABLE packed_client")
			})
		}
	})
}

// fileOf loads a file of the client's, in frames whose numbers go round more
// than once.
func fileOf(t *testing.T, db *sql.DB, rows int) {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), "/", "_")
	driver.RegisterReaderHandler(name, func() io.Reader {
		var b bytes.Buffer
		for n := range rows {
			fmt.Fprintf(&b, "%d\t%s\n", n+10, strings.Repeat("x", n%20))
		}
		return &b
	})
	if _, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::" + name + "' INTO TABLE packed_client"); err != nil {
		if strings.Contains(err.Error(), "disabled") {
			return // local_infile is off by default on MySQL
		}
		t.Fatal(err)
	}
	var n, length int
	if err := db.QueryRow("SELECT COUNT(*), SUM(LENGTH(v)) FROM packed_client WHERE id >= 10").Scan(&n, &length); err != nil || n != rows {
		t.Errorf("%d rows of %d bytes, %v", n, length, err)
	}
}

// go-mysql's client counts the frames strictly, and speaks zstd.
func TestCompressionIsNumbered(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, withTLS(pki.New(t), ""))
		flags := map[string]uint32{"zlib": mysql.CLIENT_COMPRESS}
		if s.Kind == upstream.MySQL {
			flags["zstd"] = mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM
		}
		for name, flag := range flags {
			t.Run(name, func(t *testing.T) {
				c, err := gomysql.Connect(address, s.User, s.Password, s.Database, func(c *gomysql.Conn) error { return c.SetCapability(flag) })
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for n := range 600 {
					// Longer and longer: one frame, then several, then so many that numbers go round.
					r, err := c.Execute(fmt.Sprintf("SELECT REPEAT('%d', %d)", n%10, n*n*8))
					if err != nil {
						t.Fatal(n, err)
					}
					if got, err := r.GetString(0, 0); err != nil || got != strings.Repeat(fmt.Sprint(n%10), n*n*8) {
						t.Fatalf("%d: %d bytes, %v", n, len(got), err)
					}
					r.Close()
				}
				noise := strings.Repeat("0123456789abcdef", 6<<20/16)
				r, err := c.Execute("SELECT LENGTH(?), ?", noise, noise)
				if err != nil {
					t.Fatal(err)
				}
				if length, err := r.GetInt(0, 0); err != nil || length != int64(len(noise)) {
					t.Errorf("%d bytes arrived, %v", length, err)
				}
			})
		}
	})
}

// The servers' own shell, with -C, prints what it prints without.
func TestCompressionOfTheShell(t *testing.T) {
	shell, err := exec.LookPath("mariadb")
	if err != nil {
		t.Skip("no mariadb shell")
	}
	s := upstream.Need(t, upstream.MariaDB)
	address := serve(t, s, withTLS(pki.New(t), ""))
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	run := func(more ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		arguments := append([]string{"-h", host, "-P", port, "-u", s.User, "-p" + s.Password, s.Database, "-e",
			"SELECT REPEAT('abc', 300000); SELECT 1; SELECT * FROM no_such_table"}, more...)
		out, err := exec.CommandContext(ctx, shell, arguments...).CombinedOutput()
		if err == nil {
			t.Error("a table that is not there is no error")
		}
		return string(out)
	}
	plain, packed := run("--skip-compress"), run("--compress")
	if plain != packed || len(plain) < 900000 || !strings.Contains(plain, "1146") {
		t.Errorf("%d bytes in clear, %d compressed: %.200s", len(plain), len(packed), packed)
	}
}

// Frames that lie, and commands that come in one piece: the first end the
// session, the second are answered one by one.
func TestCompressedFrames(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, withTLS(pki.New(t), ""))
		packed := plainCaps | wire.ClientCompress
		ping := []byte{1, 0, 0, 0, byte(wire.ComPing)}
		c := mustDial(t, address, as(s, packed))
		frames := wire.NewCompressor(wire.Zlib, 0).Pack(nil, ping)
		again := wire.NewCompressor(wire.Zlib, 0).Pack(nil, bytes.Repeat(ping, 2))
		if _, err := c.conn.Write(append(frames, again...)); err != nil {
			t.Fatal(err)
		}
		var numbers []byte
		var replies int
		for replies < 3 {
			head := make([]byte, 7)
			if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c.conn, head); err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, head[3])
			body := make([]byte, int(head[0])|int(head[1])<<8)
			if _, err := io.ReadFull(c.conn, body); err != nil {
				t.Fatal(err)
			}
			for len(body) > 4 {
				replies++
				body = body[4+int(body[0]):]
			}
		}
		if len(numbers) < 2 || numbers[0] != 1 || numbers[1] != 1 {
			t.Errorf("the replies' frames have numbers %v, want 1 for each command", numbers)
		}
		for name, lie := range map[string][]byte{
			"no zlib":       {4, 0, 0, 0, 9, 0, 0, 'a', 'b', 'c', 'd'},
			"sixteen megas": append([]byte{12, 0, 0, 0, 0xff, 0xff, 0xff}, 0x78, 0x9c, 0x4b, 0x4c, 0x4a, 0x06, 0, 2, 0x4d, 1, 0x27, 0),
		} {
			c := mustDial(t, address, as(s, packed))
			if _, err := c.conn.Write(lie); err != nil {
				t.Fatal(err)
			}
			if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if n, err := c.conn.Read(make([]byte, 100)); err != io.EOF && n != 0 {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
		}
	})
}
