package mysql_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"freshet/bench/upstream"
	wire "freshet/protocol/mysql"
	"freshet/proxy"
)

// capabilitySets are the kinds of client that replies differ for.
var capabilitySets = map[string]wire.Capability{
	"plain":       plainCaps,
	"deprecated":  plainCaps | wire.ClientDeprecateEOF,
	"tracking":    plainCaps | wire.ClientSessionTrack,
	"modern":      plainCaps | wire.ClientSessionTrack | wire.ClientDeprecateEOF | wire.ClientQueryAttributes | wire.ClientPluginAuthLenenc,
	"found rows":  plainCaps | wire.ClientFoundRows,
	"extended":    plainCaps | wire.ClientDeprecateEOF | wire.MariaDBExtendedMetadata | wire.MariaDBProgress,
	"no metadata": plainCaps | wire.ClientOptionalResultsetMetadata | wire.ClientDeprecateEOF,
}

// Every byte of every reply must be the server's: the scripts are run straight
// on it and through a Freshet, each on a database made anew, and the packets
// compared. Lines run twice where reads may be kept, so the second is a hit.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	everywhere(t, func(t *testing.T, s *upstream.Server) {
		address := serve(t, s, proxy.Config{})
		for _, file := range files {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for name, caps := range capabilitySets {
				t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
					want := play(t, s, s.Address(), caps, string(script))
					got := play(t, s, address, caps, string(script))
					compare(t, got, want)
				})
			}
		}
	})
}

type line struct {
	text string
	out  string
}

func compare(t *testing.T, got, want []line) {
	t.Helper()
	for i := range want {
		if sortedItems(got[i].out) != sortedItems(want[i].out) {
			t.Errorf("%s\nthrough:\n%s\ndirect:\n%s", want[i].text, got[i].out, want[i].out)
		}
	}
}

var preparedAgain = regexp.MustCompile(`(?m)(^\d+:fe0000.{2}.)[4](|0000)$`)

// sortedItems puts the tracked variables of an OK in order: MariaDB's own order
// changes from start to start.
// It also takes off the flag that says that a statement was prepared again,
// which a change of statistics by anybody may bring about.
func sortedItems(reply string) string {
	reply = preparedAgain.ReplaceAllString(reply, "${1}0${2}")
	p, err := hex.DecodeString(strings.TrimPrefix(reply, "1:"))
	if err != nil || len(p) == 0 || p[0] != 0 {
		return reply
	}
	ok, err := wire.DecodeOK(p, wire.ClientSessionTrack)
	if err != nil || len(ok.State) == 0 {
		return reply
	}
	changes, err := wire.DecodeStateChanges(nil, ok.State)
	if err != nil {
		return reply
	}
	slices.SortStableFunc(changes, func(a, b wire.StateChange) int { return bytes.Compare(a.Name, b.Name) })
	ok.State = nil
	for _, c := range changes {
		ok.State = wire.AppendStateChange(ok.State, c)
	}
	return "1:" + hex.EncodeToString(ok.Append(nil, wire.ClientSessionTrack))
}

// scriptDatabase is made anew for every run of a script.
const scriptDatabase = "freshet_script"

// play runs a script. A line is a text for COM_QUERY; "!" begins other
// commands; "~" before a line means that its reply is not compared.
func play(t *testing.T, s *upstream.Server, address string, caps wire.Capability, script string) []line {
	t.Helper()
	admin := mustDial(t, s.Address(), as(s, plainCaps))
	for _, q := range []string{"DROP DATABASE IF EXISTS " + scriptDatabase, "CREATE DATABASE " + scriptDatabase} {
		if r := admin.query(q); r.err != nil {
			t.Fatal(r.err)
		}
	}
	l := as(s, caps)
	l.database = scriptDatabase
	c := mustDial(t, address, l)
	var ids []uint32
	var out []line
	for _, text := range strings.Split(script, "\n") {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		masked := strings.HasPrefix(text, "~")
		r := c.playLine(strings.TrimPrefix(text, "~"), &ids)
		if masked {
			r = "(not compared)"
		}
		out = append(out, line{text, r})
	}
	return out
}

func (c *client) playLine(text string, ids *[]uint32) string {
	c.last = text
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "!ping":
		return c.command([]byte{byte(wire.ComPing)}).String()
	case "!reset":
		return c.command([]byte{byte(wire.ComResetConnection)}).String()
	case "!db":
		return c.command(append([]byte{byte(wire.ComInitDB)}, rest...)).String()
	case "!prepare":
		r := c.command(append([]byte{byte(wire.ComStmtPrepare)}, rest...))
		*ids = append(*ids, r.prep.StatementID)
		if r.err == nil { // the id itself is the session's own business
			r.packets[0] = r.packets[0][:4] + "…" + r.packets[0][12:]
		}
		return r.String()
	case "!raw": // command byte, $n for the nth statement's id, bytes
		return c.command(c.rawLine(rest, *ids)).String()
	case "!raw81": // the same, but with query attributes: a count and names
		if !c.caps.Has(wire.ClientQueryAttributes) {
			return ""
		}
		return c.command(c.rawLine(rest, *ids)).String()
	case "!raw55":
		if c.caps.Has(wire.ClientQueryAttributes) {
			return ""
		}
		return c.command(c.rawLine(rest, *ids)).String()
	}
	return c.query(text).String()
}

func (c *client) rawLine(text string, ids []uint32) []byte {
	var out []byte
	for _, f := range strings.Fields(text) {
		if f[0] == '$' {
			id := ids[f[1]-'1']
			out = append(out, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
			continue
		}
		b, err := hex.DecodeString(f)
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}
