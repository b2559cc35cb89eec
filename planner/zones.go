package planner

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"freshet/cache/canon"
	"freshet/planner/query"
)

// zone is a session's time zone as far as it sets its clocks. MySQL and MariaDB
// hold a TIMESTAMP in UTC: in an index they look for the one moment that a value
// means, and without one they compare what the clocks show, which in the hour by
// which they are set back is the same for two moments, and for the hour by which
// they are set forward no moment's. What the server itself does of a zone is
// asked of it: its tables may be older or newer than anybody else's.
type zone struct {
	// days are those in which the clocks are set, since 1970-01-01, in order.
	days []int
	// end is the first day of which nothing is known.
	end int
}

const (
	// inDoubt says why a comparison with a TIMESTAMP is refused.
	inDoubt = "a moment of the session's time zone in which clocks are set is compared in two ways, by an index and without one"
	// maxZones bounds the zones that are kept.
	maxZones = 1000
	// stampDays is the last whole day of TIMESTAMP, longStampDays that of MariaDB
	// 11.5 and later.
	stampDays, longStampDays = 24854, 49709
)

// zone asks the server when it sets a zone's clocks. It compares their distance
// from UTC every six hours: no zone is known to be set and set back within a day.
func (k *catalog) zone(ctx context.Context, name string) (*once[zone], error) {
	get := func() *once[zone] {
		if len(k.zones) >= maxZones {
			k.dropZones()
		}
		return k.zones[name]
	}
	return load(ctx, k, get, func(o *once[zone]) { k.zones[name] = o }, func(ctx context.Context) (z zone, err error) {
		z.end = stampDays
		if k.config.Dialect == MariaDB && atLeast(k.config.Version, 11, 5) {
			z.end = longStampDays
		}
		rows, err := k.query(ctx, 1, zoneQuery(name, z.end))
		if err != nil {
			return z, err
		}
		for _, r := range rows {
			day, err := strconv.Atoi(text(r[0]))
			if err != nil || day < 0 {
				return z, errors.New("the server does not know the time zone")
			}
			z.days = append(z.days, day)
		}
		slices.Sort(z.days)
		return z, nil
	})
}

// zoneQuery lists the days after which a zone's clocks show another distance from
// UTC than before, -1 when the zone is not known.
func zoneQuery(name string, days int) string {
	digit := "(SELECT 0 n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) "
	local := func(t string) string {
		return "TIMESTAMPDIFF(SECOND, " + t + ", CONVERT_TZ(" + t + ", '+00:00', " + mysqlString(name) + "))"
	}
	const since = "TIMESTAMP'1970-01-01 00:00:01'"
	return "SELECT DISTINCT CASE WHEN x.a IS NULL OR x.b IS NULL THEN -1 ELSE x.h DIV 4 END FROM (SELECT t.h, " +
		local("("+since+" + INTERVAL 6 * t.h HOUR)") + " AS a, " + local("("+since+" + INTERVAL 6 * t.h + 6 HOUR)") + " AS b FROM (" +
		"SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n AS h FROM " +
		digit + "a, " + digit + "b, " + digit + "c, " + digit + "d, " + digit + "e, (SELECT 0 n UNION ALL SELECT 1) f) t WHERE t.h < " +
		strconv.Itoa(4*days) + ") x WHERE NOT (x.a <=> x.b) OR x.a IS NULL"
}

// dropZones is called with mu held.
func (k *catalog) dropZones() {
	for _, o := range k.zones {
		o.dropped.Store(true)
	}
	clear(k.zones)
}

// shifting is the session's zone if its clocks are ever set, and values of a
// column hang on it; nil if not.
func (h *holder) shifting(held canon.Held) *zone {
	if !held.Stamp || h.scope.Zone == "" {
		return nil
	}
	o, err := h.planner.catalog.zone(h.ctx, h.scope.Zone)
	if err != nil {
		h.catalogFailed(err)
		return nil
	}
	h.rely(&o.fact)
	if len(o.value.days) == 0 {
		return nil
	}
	return &o.value
}

// doubled tells whether two columns are compared by what the clocks show, or by
// what they mean, as the server likes.
func (h *holder) doubled(x, y *column) bool {
	if !x.held.Stamp && !y.held.Stamp {
		return false
	}
	if x.held.Stamp && y.held.Stamp && h.planner.config.Dialect == MariaDB {
		return false // which compares both in UTC
	}
	return h.shifting(canon.Held{Stamp: true}) != nil
}

// ranked refuses what tells TIMESTAMPs apart, or looks for the first or last:
// MySQL does so by what the clocks show without an index, and in UTC by one.
func (h *holder) ranked() {
	if h.planner.config.Dialect == MariaDB {
		return
	}
	for i := range h.analysis.Ranked {
		t := &h.analysis.Ranked[i]
		list := []query.Term{*t}
		if t.Kind == query.TermComputed {
			list = nil // not looked for in an index
		}
		for k := range list {
			s := h.side(&list[k], true)
			for _, x := range s.spots {
				if h.shifting(x.column().held) != nil {
					h.analysis.Refuse(x.column().name + " is grouped or ordered; " + inDoubt)
				}
			}
		}
	}
}

// sure tells whether a zone's clocks are not set about a day.
func (z *zone) sure(day int) bool {
	at, _ := slices.BinarySearch(z.days, day-1)
	return day > 0 && day < z.end && (at == len(z.days) || z.days[at] > day+1)
}

func (z *zone) sureOfText(text []byte) bool {
	day, ok := canon.DayOf(text)
	return ok && z.sure(day)
}

func (z *zone) sureOfParam(p *Param) bool {
	day, ok := canon.DayOfParam(p.Type, p.Data)
	return ok && z.sure(day)
}
