package mysql_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// Many sessions read a few hot keys, in text and prepared, over few links,
// while the rows change straight on the server: nobody hangs, and nobody sees
// a row go back in time.
func TestHotKeys(t *testing.T) {
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		const keys, readers = 3, 24
		writer := table(t, s, "hot", "CREATE TABLE hot (id INT PRIMARY KEY, n INT)", "INSERT INTO hot VALUES (0, 0), (1, 0), (2, 0)")
		address := serve(t, s, proxy.Config{MaxLinks: 6, Loops: 2})
		var stop atomic.Bool
		var reads atomic.Int64
		var wg sync.WaitGroup
		for i := range readers {
			c := mustDial(t, address, as(s, plainCaps))
			id := c.command(append([]byte{byte(wire.ComStmtPrepare)}, "SELECT n FROM hot WHERE id = ?"...)).prep.StatementID
			wg.Go(func() {
				var seen [keys]int
				for n := 0; !stop.Load(); n++ {
					k := (n + i) % keys
					v, err := readHot(c, i%2 == 0, id, k)
					if err != nil || v < seen[k] {
						t.Errorf("reader %d: row %d is %d after %d (%v)", i, k, v, seen[k], err)
						return
					}
					seen[k] = v
					reads.Add(1)
				}
			})
		}
		for n, end := 1, time.Now().Add(2*time.Second); time.Now().Before(end); n++ {
			if r := writer.query(fmt.Sprintf("UPDATE hot SET n = %d WHERE id = %d", n, n%keys)); r.err != nil {
				t.Error(r.err)
			}
			time.Sleep(time.Millisecond)
		}
		stop.Store(true)
		wg.Wait()
		if reads.Load() < 100 {
			t.Errorf("only %d reads", reads.Load())
		}
	})
}

// readHot reads one row; it may run beside the test's goroutine, so it returns
// its errors.
func readHot(c *client, text bool, id uint32, key int) (int, error) {
	payload := wire.AppendQuery(nil, c.caps, fmt.Sprintf("SELECT n FROM hot WHERE id = %d", key))
	if !text {
		payload = append(wire.AppendStatementCommand(nil, wire.ComStmtExecute, id), 0, 1, 0, 0, 0, 0, 1, byte(wire.TypeLong), 0, byte(key), 0, 0, 0)
	}
	b, _ := wire.AppendPacket(nil, 0, payload)
	if _, err := c.conn.Write(b); err != nil {
		return 0, err
	}
	var tr wire.Tracker
	tr.Begin(wire.Command(payload[0]), c.caps, 1)
	value := -1
	for !tr.Done() {
		h, p, err := c.tryRead()
		if err != nil {
			return 0, err
		}
		event, err := tr.Packet(h, p)
		if err != nil {
			return 0, err
		}
		switch {
		case event == wire.EventError:
			return 0, tr.Error
		case event == wire.EventRow && text:
			if value, err = strconv.Atoi(string(p[1:])); err != nil {
				return 0, err
			}
		case event == wire.EventRow:
			value = int(uint32(p[2]) | uint32(p[3])<<8 | uint32(p[4])<<16)
		}
	}
	return value, nil
}
