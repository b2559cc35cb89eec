package wire

import (
	"bytes"
	"testing"
)

// Greetings as MariaDB 10.11 and MySQL 9 send them, and what they hold.
func greeting(plugin string) []byte {
	b := append([]byte{10}, "10.11.2-test\x00\x07\x00\x00\x00ABCDEFGH\x00"...)
	b = append(b, 0xff, 0xf7, 45, 2, 0, 0xff, 0x81, 21)
	b = append(b, make([]byte, 10)...)
	b = append(b, "IJKLMNOPQRST\x00"...)
	return append(append(b, plugin...), 0)
}

func TestGreeting(t *testing.T) {
	whole := greeting("caching_sha2_password")
	c := &MySQLConn{}
	if _, err := c.readGreeting(whole); err != nil {
		t.Fatal(err)
	}
	if c.Version != "10.11.2-test" || c.ThreadID != 7 || c.plugin != "caching_sha2_password" || string(c.scramble) != "ABCDEFGHIJKLMNOPQRST" {
		t.Errorf("%+v", c)
	}
	// The plugin's name ends with the packet, so prefixes of it are names, too.
	for n := range len(whole) - len("caching_sha2_password") - 1 {
		if _, err := (&MySQLConn{}).readGreeting(whole[:n]); err == nil {
			t.Errorf("a greeting of %d of %d bytes was read", n, len(whole))
		}
	}
}

// TestPrefixesFail: what is cut off anywhere is malformed, not something else.
func TestPrefixesFail(t *testing.T) {
	ok := []byte{0, 0xfc, 1, 1, 3, 2, 0, 5, 0}
	for name, c := range map[string]struct {
		whole  []byte
		decode func([]byte) error
		least  int // shorter prefixes are whole values themselves
	}{
		"OK packet":      {ok, func(b []byte) error { _, err := okStatus(b); return err }, 0},
		"EOF packet":     {[]byte{0xfe, 0, 0, 2, 0}, func(b []byte) error { _, err := eofStatus(b); return err }, 0},
		"DataRow":        {[]byte{0, 2, 0, 0, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff}, func(b []byte) error { _, err := DataRow(b); return err }, 0},
		"RowDescription": {append([]byte("\x00\x01id\x00"), make([]byte, 18)...), func(b []byte) error { _, err := columnNames(b); return err }, 0},
		"text row":       {append([]byte{0xfc, 3, 0}, "abc"...), func(b []byte) error { _, err := TextRow(b); return err }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.decode(c.whole); err != nil {
				t.Fatal(err)
			}
			for n := c.least; n < len(c.whole); n++ {
				if err := c.decode(c.whole[:n:n]); err == nil {
					t.Errorf("%d of %d bytes were read", n, len(c.whole))
				}
			}
		})
	}
}

func TestRows(t *testing.T) {
	row, err := TextRow([]byte("\x01a\xfb\x00"))
	if err != nil || len(row) != 3 || string(row[0]) != "a" || row[1] != nil || row[2] == nil {
		t.Errorf("text row: %q, %v", row, err)
	}
	row, err = DataRow([]byte("\x00\x03\x00\x00\x00\x01a\xff\xff\xff\xff\x00\x00\x00\x00"))
	if err != nil || len(row) != 3 || string(row[0]) != "a" || row[1] != nil || row[2] == nil {
		t.Errorf("data row: %q, %v", row, err)
	}
}

func TestSortStateChanges(t *testing.T) {
	a, b := []byte{0, 4, 1, 'a', 1, '1'}, []byte{0, 4, 1, 'b', 1, '2'}
	first := bytes.Join([][]byte{{2, 'o', 'k', 12}, a, b}, nil)
	second := bytes.Join([][]byte{{2, 'o', 'k', 12}, b, a}, nil)
	if got := SortStateChanges(second); !bytes.Equal(got, first) {
		t.Errorf("sorted to %q, want %q", got, first)
	}
	for n := range len(second) {
		if got := SortStateChanges(second[:n]); !bytes.Equal(got, second[:n]) {
			t.Errorf("malformed %q became %q", second[:n], got)
		}
	}
}

func TestParse(t *testing.T) {
	for dsn, want := range map[string]Target{
		"mysql://u:p%40@h:1/d":          {Dialect: MySQL, Host: "h", Port: 1, User: "u", Password: "p@", Database: "d"},
		"mariadb://u@h":                 {Dialect: MySQL, Host: "h", Port: 3306, User: "u"},
		"postgresql://u@/":              {Dialect: Postgres, Host: "127.0.0.1", Port: 5432, User: "u", Database: "u"},
		"postgres://u:p@[::1]:7/d?x=1&": {Dialect: Postgres, Host: "::1", Port: 7, User: "u", Password: "p", Database: "d"},
	} {
		got, err := Parse(dsn)
		got.Params = nil
		if err != nil || got.Address() != want.Address() || got.Dialect != want.Dialect || got.User != want.User ||
			got.Password != want.Password || got.Database != want.Database {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", dsn, got, err, want)
		}
		again, err := Parse(got.DSN())
		if err != nil || again.Address() != got.Address() || again.Password != got.Password || again.Database != got.Database {
			t.Errorf("%q came back as %+v, %v", got.DSN(), again, err)
		}
	}
	for _, bad := range []string{"", "http://h", "mysql://h:x/d", "mysql://h:70000/d", "://"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) succeeded", bad)
		}
	}
}

// FuzzDecoders: no bytes from a peer may panic or be read beyond their end.
func FuzzDecoders(f *testing.F) {
	f.Add(greeting("mysql_native_password"))
	f.Add([]byte{0, 0xfc, 1, 1, 3, 2, 0, 5, 0, 2, 'o', 'k', 12})
	f.Add([]byte("\x00\x03\x00\x00\x00\x01a\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err1 := (&MySQLConn{}).readGreeting(b)
		_, err2 := DecodeMySQLError(b)
		_, err3 := okStatus(b)
		_, err4 := eofStatus(b)
		row, err5 := TextRow(b)
		data, err6 := DataRow(b)
		_, err7 := columnNames(b)
		_, err8 := seal([]byte("secret"), []byte("scramble"), b)
		for _, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
			if err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
		if err5 == nil && len(row) > len(b) || err6 == nil && len(data)*4 > len(b) {
			t.Errorf("%d and %d columns in %d bytes", len(row), len(data), len(b))
		}
		if got := SortStateChanges(b); len(got) != len(b) {
			t.Errorf("%d bytes sorted to %d", len(b), len(got))
		}
		if got := field(b, 'C'); len(got) > len(b) {
			t.Error("a field longer than its message")
		}
	})
}
