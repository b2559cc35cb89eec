package feed

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"freshet/cache/feed/binlog"
)

// Semi-synchronous replication (MySQL manual, "Semisynchronous Replication";
// MariaDB knowledge base, same title): a replica that asks for it before its
// dump gets two bytes ahead of every event, a magic number and whether the
// server wants to be told that the event has come; it tells so with a packet of
// the magic number, the offset behind the event and the log file's name. With
// the wait point AFTER_SYNC a commit is in the log, but not yet readable, while
// the server waits for that.

const (
	semiMagic = 0xEF // the first byte, of both
	semiWants = 1    // the flag: the server waits
)

// semiWords are a server's words for the two sides: MySQL since 8.0.26 has
// "source" and "replica", unless its old plugin is installed; all others have
// "master" and "slave".
type semiWords struct{ source, replica string }

var (
	newSemiWords = semiWords{"source", "replica"}
	oldSemiWords = semiWords{"master", "slave"}
)

// semi returns the words of the plugin that the server has; ok is false when it
// has none.
func (f mysqlFacts) semi() (w semiWords, ok bool) {
	for _, w := range []semiWords{newSemiWords, oldSemiWords} {
		if _, ok := f.vars["rpl_semi_sync_"+w.source+"_enabled"]; ok {
			return w, true
		}
	}
	return semiWords{}, false
}

// semiState is what the server says of how its commits wait.
type semiState struct {
	enabled, on   bool
	waitPoint     string
	waitNoReplica bool // it waits though too few replicas are connected
	timeout       time.Duration
	needed        uint64 // so many acknowledgements, each of another replica
	clients       uint64 // semi-synchronous replicas connected
	switches      uint64 // times that it was switched off
}

// semiStateSQL reads the variables, then the state: a commit that found them
// otherwise is in the log before the state is read.
func semiStateSQL(maria bool, w semiWords) string {
	v := "@@GLOBAL.rpl_semi_sync_" + w.source + "_"
	needed := v + "wait_for_" + w.replica + "_count"
	if maria {
		needed = "1" // whoever is first
	}
	return "SELECT " + v + "enabled, " + v + "wait_point, " + v + "wait_no_" + w.replica + ", " + v + "timeout, " + needed +
		"; SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_" + w.source + "_%'"
}

// parseSemiState reads the two answers.
func parseSemiState(w semiWords, vars, status [][]string) (st semiState, err error) {
	if len(vars) != 1 || len(vars[0]) != 5 {
		return st, fmt.Errorf("feed: the server does not tell how its commits wait")
	}
	number := func(text string) uint64 {
		n, failed := strconv.ParseUint(text, 10, 63)
		if failed != nil {
			err = fmt.Errorf("feed: semi-synchronous replication: %w", failed)
		}
		return n
	}
	v := vars[0]
	st = semiState{enabled: on(v[0]), waitPoint: v[1], waitNoReplica: on(v[2]), needed: number(v[4])}
	// No lease comes near an hour.
	st.timeout = time.Duration(min(number(v[3]), 3_600_000)) * time.Millisecond
	seen := 0
	for _, row := range status {
		if len(row) != 2 {
			continue
		}
		switch strings.TrimPrefix(strings.ToLower(row[0]), "rpl_semi_sync_"+w.source+"_") {
		case "status":
			st.on = on(row[1])
		case "clients":
			st.clients = number(row[1])
		case "no_times":
			st.switches = number(row[1])
		default:
			continue
		}
		seen++
	}
	if seen != 3 && err == nil {
		err = fmt.Errorf("feed: the server does not tell how its commits wait")
	}
	return st, err
}

// seat is the stream's place among the replicas that commits wait for.
type seat struct {
	taken bool
	why   string // it was not
	line  uint32 // the stream's connection, as the server numbers it; 0 before the first
	asked int64  // when it was last looked for
}

func (s *mysqlSource) seatNow() seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seat
}

// takeSeat decides whether the stream on this connection asks to be waited for.
//
// It does not when it would be one more than the server waits for: then any
// other could acknowledge in the place of one that relies on being waited for.
// The stream before this one may still be counted: until the server notices
// that its line is cut, or that there is a new one of the same name.
func (s *mysqlSource) takeSeat(c *client.Conn, facts mysqlFacts) (bool, error) {
	if !s.feed.cfg.Synchronous {
		return false, nil
	}
	old := s.seatNow()
	now := seat{line: c.GetConnectionID(), asked: Now()}
	var err error
	now.why, err = noSeat(c, facts, old)
	if err != nil {
		return false, err
	}
	now.taken = now.why == ""
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seat = now
	return now.taken, nil
}

const noSemiSync = "semi-synchronous replication is not installed upstream"

// noSeat says why no seat can be had; "" when one can. old is a seat of ours
// that may not have been cleared yet.
func noSeat(c *client.Conn, facts mysqlFacts, old seat) (string, error) {
	w, ok := facts.semi()
	if !ok {
		return noSemiSync, nil
	}
	answers, err := mysqlMany(c, semiStateSQL(facts.maria, w)+"; "+dumpsSQL(old.line), 3)
	if err != nil {
		return "", err
	}
	st, err := parseSemiState(w, answers[0], answers[1])
	if err != nil {
		return "", err
	}
	others := st.clients
	if old.taken && others > 0 && len(answers[2]) == 1 {
		others--
	}
	if others >= st.needed {
		return crowded(facts.maria, others, st.needed), nil
	}
	return "", nil
}

// crowded words that others can acknowledge in our place.
func crowded(maria bool, others, needed uint64) string {
	if maria {
		return fmt.Sprintf("%d other semi-synchronous replicas may acknowledge in Freshet's place: MariaDB waits for one only", others)
	}
	return fmt.Sprintf("the upstream waits for %d of its semi-synchronous replicas, and %d others may acknowledge in Freshet's place", needed, others)
}

// dumpsSQL finds the connection among those that are sent a log.
func dumpsSQL(line uint32) string {
	return fmt.Sprintf("SELECT ID FROM information_schema.PROCESSLIST WHERE ID = %d AND COMMAND LIKE 'Binlog Dump%%'", line)
}

// askSemiSync makes the next dump on the connection a semi-synchronous one, in
// the words of every server.
func askSemiSync(c *client.Conn) error {
	_, err := c.Execute("SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1")
	return err
}

// semiLine is the semi-synchronous side of one dump; the stream's goroutine's.
type semiLine struct {
	asked bool // the server may have put headers ahead of the events
	begun bool
	heads bool // it has
	reply []byte
}

// strip takes the header off an event and tells whether the server waits for
// it. A server without the plugin sends none, though asked; the first event
// tells, for it is a made up rotate event, whose own first four bytes, the
// time, are 0.
func (l *semiLine) strip(data []byte) (event []byte, wants bool, err error) {
	if !l.asked {
		return data, false, nil
	}
	if !l.begun {
		l.begun = true
		l.heads = len(data) > 0 && data[0] == semiMagic
	}
	if !l.heads {
		return data, false, nil
	}
	if len(data) < 2 || data[0] != semiMagic {
		return nil, false, fmt.Errorf("feed: an event without the header of semi-synchronous replication")
	}
	return data[2:], data[1] == semiWants, nil
}

// acknowledge says that everything before the place has been marked. The server
// numbers packets anew behind each event that it waits for: from 0, our answer,
// which is why the answer comes before the next event is read.
func (l *semiLine) acknowledge(c *client.Conn, file string, offset uint64) error {
	l.reply = append(l.reply[:0], 0, 0, 0, 0, semiMagic)
	l.reply = binary.LittleEndian.AppendUint64(l.reply, offset)
	l.reply = append(l.reply, file...)
	c.ResetSequence()
	return c.WritePacket(l.reply)
}

// volunteer acknowledges what a heartbeat told: that everything before a place
// has been sent, or was not asked for because it was known before the stream
// began. A server that has given up waiting takes it up again at an
// acknowledgement of all there is, but asks for one only with the next commit.
//
// Nobody asked, so the server does not number its packets anew.
func (l *semiLine) volunteer(c *client.Conn, r *mysqlReader, event []byte) error {
	if !l.heads || r.group.open || len(event) < binlog.HeaderSize || binlog.Type(event[4]) != binlog.HeartbeatEvent {
		return nil
	}
	e, err := r.parse(event, false)
	if err != nil || string(e.Body) != r.file {
		return err
	}
	defer func(next uint8) { c.Sequence = next }(c.Sequence)
	return l.acknowledge(c, r.file, uint64(e.End))
}

// mysqlMany runs statements that give n results, in one round trip; NULL is "".
func mysqlMany(c *client.Conn, sql string, n int) ([][][]string, error) {
	var out [][][]string
	var failed error
	_, err := c.ExecuteMultiple(sql, func(r *mysql.Result, err error) {
		if failed != nil || err != nil {
			failed = firstError(failed, err)
			return
		}
		if r.Resultset == nil {
			return
		}
		rows, err := mysqlTexts(r)
		failed = firstError(failed, err)
		out = append(out, rows)
	})
	if err = firstError(failed, err); err != nil {
		return nil, err
	}
	if len(out) != n {
		return nil, fmt.Errorf("feed: the server gave %d answers to %d questions", len(out), n)
	}
	return out, nil
}

func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
