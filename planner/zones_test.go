package planner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/bench/upstream"
)

// testZone is a zone that the servers are taught: Berlin's clocks, as Go has them.
const testZone = "Test/Berlin"

// teachZone writes the zone into the server's tables.
func teachZone(h *heldTest) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		h.t.Skip(err)
	}
	for _, q := range []string{
		"INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (7777, 'N')",
		"INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('" + testZone + "', 7777)",
		"INSERT INTO mysql.time_zone_transition_type VALUES (7777, 0, 3600, 0, 'CET'), (7777, 1, 7200, 1, 'CEST')",
	} {
		h.exec(strings.Replace(q, "INSERT", "REPLACE", 1))
	}
	var rows []string
	last := 3600
	for at := int64(0); at < 1<<31; at += 3600 {
		if _, offset := time.Unix(at, 0).In(berlin).Zone(); offset != last {
			rows = append(rows, fmt.Sprintf("(7777, %d, %d)", at, (offset-3600)/3600))
			last = offset
		}
	}
	h.exec("REPLACE INTO mysql.time_zone_transition VALUES " + strings.Join(rows, ","))
}

// zoneTypes are the columns compared, the first two of TIMESTAMP.
var zoneTypes = []string{"TIMESTAMP NULL", "TIMESTAMP(3) NULL", "DATETIME", "VARCHAR(40)", "DATETIME(6)", "BIGINT"}

// zoneProbes are moments on both nights of 2024 on which clocks are set, about
// them, and far from them.
const zoneProbes = "'2024-10-27 01:30:00'|'2024-10-27 02:00:00'|'2024-10-27 02:30:00'|'2024-10-27 02:10:00'|'2024-10-27 03:00:00'|'2024-10-27'|'2024-10-29'|'2024-10-26 23:30:00'|" +
	"'2024-03-31 02:30:00'|'2024-03-31 03:00:00'|'2024-06-01'|'2024-12-01 00:00:00'|TIMESTAMP '2024-10-27 02:30:00'|DATE_ADD('2024-10-26 02:30:00', INTERVAL 1 DAY)|FROM_UNIXTIME(1729989000)|20241027023000|" +
	"(SELECT '2024-10-27 02:30:00')|(SELECT MAX(c) FROM zone0 WHERE c < '2024-10-27 03:00:00')"

var zoneForms = []string{
	"SELECT MAX(c) FROM %[1]s {}", "SELECT MAX(c) FROM %[1]s {} WHERE c < '2024-10-27 03:00:00'", "SELECT MIN(c) FROM %[1]s {} WHERE x = 7", "SELECT DISTINCT c FROM %[1]s {}", "SELECT COUNT(DISTINCT c) FROM %[1]s {}",
	"SELECT c, COUNT(*) FROM %[1]s {} GROUP BY c", "SELECT COUNT(*) AS n FROM %[1]s {} GROUP BY 'x', c", "SELECT c AS d, COUNT(*) FROM %[1]s {} GROUP BY 1", "SELECT DISTINCT d.* FROM (SELECT c FROM %[1]s {}) d",
	"WITH p AS (SELECT %[3]s AS v) SELECT t.id FROM %[1]s t {}, p WHERE t.c = p.v", "SELECT t.id FROM %[1]s t {} JOIN (SELECT '2024-10-27 02:30:00' AS v UNION SELECT %[3]s) p ON t.c = p.v",
}

func newZoneTest(t *testing.T, kind upstream.Kind) *heldTest {
	h := newHeldTest(t, kind)
	teachZone(h)
	const back, forward = 1729987200, 1711846800 // 02:00 CEST, 02:00 CET
	for i, ddl := range zoneTypes {
		h.exec(fmt.Sprintf("CREATE TABLE zone%d (id INT PRIMARY KEY AUTO_INCREMENT, c %s, x INT DEFAULT 7, KEY ix (c), KEY xc (x, c))", i, ddl))
		zone := testZone
		if i < 2 {
			zone = "+00:00" // both hours can be written only so
		}
		h.exec("SET time_zone = '" + zone + "'")
		for _, at := range []int{back - 7200, back - 1800, back, back + 600, back + 1800, back + 3000, back + 3600, back + 4200, back + 5400, back + 7200, back + 9000,
			forward - 3600, forward - 1, forward, forward + 1800, back - 86400*3, back + 86400*3} {
			// FROM_UNIXTIME has no such moment as a BIGINT of this form.
			h.exec(fmt.Sprintf("INSERT IGNORE INTO zone%d (c) VALUES (FROM_UNIXTIME(%d) + INTERVAL 0 SECOND)", i, at))
		}
	}
	h.exec("SET time_zone = '" + testZone + "'")
	h.scope.Zone = testZone
	return h
}

// inZone draws a statement.
func (h *heldTest) inZone() string {
	probes := strings.Split(zoneProbes, "|")
	a, b := probes[h.rand.IntN(len(probes))], probes[h.rand.IntN(len(probes))]
	x, y := fmt.Sprintf("zone%d", h.rand.IntN(2)), fmt.Sprintf("zone%d", h.rand.IntN(len(zoneTypes)))
	form := zoneForms[h.rand.IntN(len(zoneForms))]
	switch h.rand.IntN(3) {
	case 0:
		where := heldForms[h.rand.IntN(len(heldForms))]
		where, _, _ = strings.Cut(fmt.Sprintf(where+"\x00%[1]s%[2]s", a, b), "\x00")
		return fmt.Sprintf(heldSelects[h.rand.IntN(len(heldSelects))], x, "{}") + where
	case 1:
		if form = pairForms[h.rand.IntN(len(pairForms))]; h.rand.IntN(2) == 0 {
			x, y = y, x
		}
		text, _, _ := strings.Cut(fmt.Sprintf(form+"\x00%[1]s%[2]s%[3]d", x, y, 1+h.rand.IntN(17)), "\x00")
		return text
	}
	text, _, _ := strings.Cut(fmt.Sprintf(form+"\x00%[1]s%[2]s%[3]s", x, y, a), "\x00")
	return text
}

// TestTimestampInTwoWays compares TIMESTAMPs of the hours in which clocks are set
// in a zone that sets them. What is compared in two ways must not be kept.
func TestTimestampInTwoWays(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL, upstream.MariaDB11} {
		t.Run(string(kind), func(t *testing.T) {
			h := newZoneTest(t, kind)
			twice, kept := h.play(zoneStatements, func() (string, []any) { return h.inZone(), nil })
			if twice < zoneStatements/20 || kept < zoneStatements/50 {
				t.Error("the statements drawn prove nothing")
			}
			h.zoned()
		})
	}
}

const zoneStatements = 800

// zoned holds what is kept in which zone to what must be.
func (h *heldTest) zoned() {
	for _, c := range []struct {
		zone, text string
		kept       bool
	}{
		{testZone, "SELECT id FROM zone0 WHERE c = '2024-06-01 12:00:00'", true},
		{testZone, "SELECT id FROM zone0 WHERE c >= '2024-06-01' AND c < '2024-06-02'", true},
		{testZone, "SELECT id FROM zone0 WHERE c = '2024-10-27 02:30:00'", false},
		{testZone, "SELECT id FROM zone2 WHERE c = '2024-10-27 02:30:00'", true},
		{testZone, "SELECT x, COUNT(*) FROM zone0 GROUP BY x", true},
		{"", "SELECT id FROM zone0 WHERE c = '2024-10-27 02:30:00'", true},
		{"", "SELECT MAX(c) FROM zone0", true},
		{"SYSTEM", "SELECT MAX(c) FROM zone0", true}, // the servers of tests run in UTC
		{"No/Such", "SELECT id FROM zone0 WHERE c = '2024-06-01 12:00:00'", false},
	} {
		h.scope.Zone = c.zone
		if got := h.kept(c.text, nil); got != c.kept {
			h.t.Errorf("in %q: %s kept = %v, want %v", c.zone, c.text, got, c.kept)
		}
	}
	h.scope.Zone = testZone
	start := time.Now()
	if _, err := h.planner.catalog.zone(context.Background(), "+00:30"); err != nil {
		h.t.Error(err)
	}
	h.t.Logf("a zone is asked for in %v", time.Since(start))
}
