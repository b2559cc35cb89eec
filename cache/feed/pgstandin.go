package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"freshet/cache/feed/pgoutput"
)

// While no stream of ours runs, all commits that wait for us stand still, and
// with them the transactions that a new slot waits for before it begins: the
// slot would wait for the commits and the commits for the slot, for ever. So
// somebody stands in for the stream while its slot is made: a physical standby
// of the same name, which needs no slot, and confirms everything at once
// without looking at it. There is no lease then, so nobody relies on more.

// standInEvery is how often it confirms: the server heeds it only once it has
// caught up, and does not say when.
const standInEvery = 10 * time.Millisecond

// standIn confirms whatever is committed, until leave is called, which returns
// when the line is closed.
func (s *pgSource) standIn(ctx context.Context, name string) (leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.standInUntil(ctx, name); err != nil && ctx.Err() == nil {
			s.feed.journal.failed("commits that wait for Freshet cannot be let go while its slot is made", err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func (s *pgSource) standInUntil(ctx context.Context, name string) error {
	conn, err := s.connectAs(ctx, map[string]string{"replication": "true", "application_name": name})
	if err != nil {
		return err
	}
	defer closePg(conn)
	stop := context.AfterFunc(ctx, func() { closeLine(conn.Conn()) })
	defer stop()
	results, err := conn.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		return err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) < 3 {
		return errors.New("feed: the server does not tell where its log ends")
	}
	end, err := parseLSN(string(results[0].Rows[0][2]))
	if err != nil {
		return err
	}
	if err := sendReplication(conn, "START_REPLICATION PHYSICAL "+lsnText(end)); err != nil {
		return err
	}
	line := &pgLine{conn: conn}
	line.applied.Store(end)
	ticking, cancel := context.WithCancel(ctx)
	var ticks sync.WaitGroup
	defer ticks.Wait()
	defer cancel()
	ticks.Go(func() {
		for line.status(false) == nil && sleep(ticking, standInEvery) {
			continue
		}
	})
	for {
		message, err := conn.ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		if end, ok := physicalEnd(message); ok && end > line.applied.Load() {
			line.applied.Store(end)
			if err := line.status(false); err != nil {
				return err
			}
		}
		if m, failed := message.(*pgproto3.ErrorResponse); failed {
			return pgconn.ErrorResponseToPgError(m)
		}
	}
}

// physicalEnd returns where the log data of a message ends: 'w', its start, the
// server's end and clock, and the data (manual, "Streaming Replication
// Protocol", XLogData).
func physicalEnd(message pgproto3.BackendMessage) (uint64, bool) {
	const head = 1 + 3*8
	m, ok := message.(*pgproto3.CopyData)
	if !ok || len(m.Data) < head || m.Data[0] != pgoutput.DataID {
		return 0, false
	}
	return binary.BigEndian.Uint64(m.Data[1:]) + uint64(len(m.Data)-head), true
}
