package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/cache/feed/binlog"
)

// seatEvery is how often a stream without a seat looks for one.
const seatEvery = int64(time.Second)

// promise asks, in this order, what the settings are, whether commits wait,
// whether the server still sends the log to us, and where the log ends: see
// lease for what follows from it.
func (s *mysqlSource) promise(ctx context.Context) (promise, error) {
	var p promise
	at := s.seatNow()
	if !at.taken {
		return promise{refusal: at.why}, s.seekSeat(ctx, at)
	}
	err := s.leases.Use(ctx, func(_ context.Context, c *client.Conn) (err error) {
		p, err = s.promiseOn(c, at.line)
		return err
	})
	if number := errorNumber(err); number == mysql.ER_UNKNOWN_SYSTEM_VARIABLE {
		return promise{refusal: noSemiSync}, nil
	}
	return p, err
}

func (s *mysqlSource) promiseOn(c *client.Conn, line uint32) (promise, error) {
	facts := s.fact()
	w, ok := facts.semi()
	if !ok {
		return promise{refusal: noSemiSync}, nil
	}
	end := "SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed" // in this order: see gtidSighting
	if facts.maria {
		end = "SHOW MASTER STATUS"
	}
	answers, err := mysqlMany(c, semiStateSQL(facts.maria, w)+"; "+dumpsSQL(line)+"; "+end, 4)
	if err != nil {
		return promise{}, err
	}
	st, err := parseSemiState(w, answers[0], answers[1])
	if err != nil {
		return promise{}, err
	}
	if why := st.refuse(facts.maria, w); why != "" {
		return promise{refusal: why}, nil
	}
	if len(answers[2]) != 1 {
		return promise{refusal: "the upstream no longer sends its log to this Freshet"}, nil
	}
	p := promise{patience: st.timeout, switches: st.switches}
	if len(answers[3]) != 1 || len(answers[3][0]) < 2 {
		return promise{}, errors.New("feed: the server does not tell where its log ends")
	}
	last := answers[3][0]
	if facts.maria {
		offset, err := strconv.ParseUint(last[1], 10, 40)
		if err != nil {
			return promise{}, fmt.Errorf("feed: the log's end: %w", err)
		}
		raw, err := rawPlace(last[0], offset)
		p.end = mariaSighting{raw}
		return p, err
	}
	owned, err1 := binlog.ParseGTIDSet(ownerOf.ReplaceAllString(last[0], ""))
	executed, err2 := binlog.ParseGTIDSet(last[1])
	p.end = gtidSighting{owned: owned, executed: executed}
	return p, errors.Join(err1, err2)
}

// refuse says why commits cannot be relied on to wait for us, who are one of
// the clients; "" when they can.
func (st semiState) refuse(maria bool, w semiWords) string {
	v := "rpl_semi_sync_" + w.source + "_"
	switch {
	case !st.enabled:
		return v + "enabled is OFF"
	case !strings.EqualFold(st.waitPoint, "AFTER_SYNC"):
		return v + "wait_point is " + st.waitPoint + ": commits are seen before they are acknowledged"
	case !st.waitNoReplica:
		return v + "wait_no_" + w.replica + " is OFF: commits go through as soon as the line is cut"
	case st.clients > st.needed:
		return crowded(maria, st.clients-1, st.needed)
	case st.timeout < shortestTimeout:
		return fmt.Sprintf("%stimeout is %d ms, too short to rely on", v, st.timeout.Milliseconds())
	case !st.on:
		return "the upstream has given up waiting for acknowledgements, until its replicas have caught up"
	}
	return ""
}

// shortestTimeout is the least that a lease can be made of.
const shortestTimeout = 500 * time.Millisecond

// seekSeat looks, now and then, whether a stream that began without a seat
// could have one now, and if so begins it anew, where it is.
func (s *mysqlSource) seekSeat(ctx context.Context, at seat) error {
	if at.line == 0 || Now()-at.asked < seatEvery {
		return nil
	}
	s.mu.Lock()
	s.seat.asked = Now()
	s.mu.Unlock()
	return s.leases.Use(ctx, func(_ context.Context, c *client.Conn) error {
		facts, err := readMySQLFacts(c)
		if err != nil {
			return err
		}
		why, err := noSeat(c, facts, seat{})
		if err != nil {
			return err
		}
		if why == "" {
			s.feed.cut(errors.New("feed: the upstream can wait for Freshet now; the stream begins anew, where it was"))
		}
		return nil
	})
}

// holds tells whether changes of the table can be held back from readers until
// they are marked. Engines without transactions show them before they are
// logged.
func (s *mysqlSource) holds(c *client.Conn, spec *TableSpec) (bool, error) {
	if !s.feed.cfg.Synchronous {
		return true, nil
	}
	rows, err := mysqlRows(c, "SELECT ENGINE IN ("+heldEngines+") FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+
		quoteMySQL(spec.Schema)+" AND TABLE_NAME = "+quoteMySQL(spec.Name))
	if err != nil {
		return false, err
	}
	held := len(rows) == 1 && rows[0][0] == "1"
	if !held {
		s.feed.journal.failed("a table is not followed", fmt.Errorf(
			"%s.%s: its engine shows changes before they are logged, so none of its answers can be linearizable", spec.Schema, spec.Name))
	}
	return held, nil
}

// heldEngines are engines with transactions.
const heldEngines = "'InnoDB','ROCKSDB'"
