package proxy

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the loops' tallies when it is asked; nothing is pushed to it.
type collector struct{ server *Server }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("freshet_"+name, help, append([]string{"listener"}, labels...), nil)
}

var (
	descQueries     = describe("queries_total", "Statements answered, by where the answer came from.", "dialect", "source")
	descHit         = describe("hit_seconds", "Time from reading a batch of requests to having written its hits.", "dialect")
	descForward     = describe("forward_seconds", "Time from sending a statement upstream to the end of its reply.", "dialect")
	descEntries     = describe("entries", "Cached answers.")
	descBytes       = describe("store_bytes", "Bytes the store takes, everything included.")
	descLimit       = describe("store_limit_bytes", "Bytes the store may take.")
	descEvictions   = describe("evictions_total", "Entries dropped to make room.")
	descInvalidated = describe("invalidations_total", "Dependencies marked by the feed.", "kind")
	descLag         = describe("feed_lag_seconds", "Age of the newest moment whose changes are proven to be applied.")
	descPosition    = describe("feed_position", "Ordered position applied.")
	descUp          = describe("feed_up", "1 while the change stream is connected.")
	descFrom        = describe("feed_from_info", "Always 1: the server that the change stream comes from, upstream or replica.", "role", "address")
	descBypass      = describe("stale_bypass_total", "Answers that were cached but not served.", "reason")
	descConns       = describe("connections", "Client connections.")
	descLinks       = describe("links", "Upstream connections.", "state")
	descOpened      = describe("links_opened_total", "Upstream connections opened or tried.")
	descErrors      = describe("protocol_errors_total", "Bytes from a client that were not its protocol.", "dialect")
	descBuild       = prometheus.NewDesc("freshet_build_info", "Always 1.", []string{"version", "go"}, nil)
)

// Describe sends nothing: the collector is unchecked, for its label values
// come and go with the upstreams.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(descBuild, prometheus.GaugeValue, 1, Version, runtime.Version())
	for _, u := range c.server.upstreams {
		m := sink{ch, u.Listen}
		c.sessions(m, u)
		if u.Store != nil {
			m.store(u)
		}
		if u.Feed != nil {
			m.feed(u)
		} else {
			m.gauge(descUp, 0)
		}
	}
}

// sink sends the metrics of one listener.
type sink struct {
	ch     chan<- prometheus.Metric
	listen string
}

func (m sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	m.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{m.listen}, labels...)...)
}

func (m sink) counter(d *prometheus.Desc, v uint64, labels ...string) {
	m.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{m.listen}, labels...)...)
}

func (c *collector) sessions(m sink, u *Upstream) {
	dialect := u.Target.Dialect
	t := u.sourceTotals()
	for _, s := range []Source{SourceHit, SourceFill, SourceJoin, SourceForward} {
		m.counter(descQueries, t[s], dialect, s.String())
	}
	var bypass [bypasses]uint64
	var errors uint64
	u.stats.each(func(st *laneStats) {
		for i := range bypass {
			bypass[i] += st.bypasses[i].get()
		}
		errors += st.errors.get()
	})
	for i, n := range bypass {
		m.counter(descBypass, n, Bypass(i).String())
	}
	m.counter(descErrors, errors, dialect)
	m.histogram(descHit, u, func(st *laneStats) *histogram { return &st.hits }, dialect)
	m.histogram(descForward, u, func(st *laneStats) *histogram { return &st.forwards }, dialect)
	idle, busy, opened := u.links(c.server)
	m.gauge(descLinks, float64(idle), "idle")
	m.gauge(descLinks, float64(busy), "busy")
	m.counter(descOpened, uint64(opened))
	var conns int64
	for _, l := range c.server.allLoops() {
		conns += l.laneOf(u).connections.Load()
	}
	m.gauge(descConns, float64(conns))
}

func (m sink) histogram(d *prometheus.Desc, u *Upstream, which func(*laneStats) *histogram, labels ...string) {
	var counts [28]uint64
	var nanos uint64
	u.stats.each(func(st *laneStats) {
		h := which(st)
		for i := range counts {
			counts[i] += h.buckets[i].get()
		}
		nanos += h.sum.get()
	})
	buckets := map[float64]uint64{}
	var total uint64
	for i, n := range counts {
		total += n
		if i < len(counts)-1 {
			buckets[float64(uint64(1)<<i)/1e6] = total
		}
	}
	m.ch <- prometheus.MustNewConstHistogram(d, total, float64(nanos)/1e9, buckets, append([]string{m.listen}, labels...)...)
}

func (m sink) store(u *Upstream) {
	st := u.Store.Stats()
	m.gauge(descEntries, float64(st.Entries))
	m.gauge(descBytes, float64(st.Bytes))
	m.gauge(descLimit, float64(st.LimitBytes))
	m.counter(descEvictions, st.Evictions)
}

func (m sink) feed(u *Upstream) {
	st := u.Feed.Status()
	up := 0.0
	if st.Up {
		up = 1
	}
	m.gauge(descUp, up)
	m.gauge(descFrom, 1, feedRole(st), st.From)
	m.gauge(descLag, u.lagSeconds())
	m.gauge(descPosition, float64(u.Store.Applied()))
	for kind, n := range map[string]uint64{"key": st.Marked.Key, "range": st.Marked.Range, "table": st.Marked.Table + st.Marked.Shape,
		"database": st.Marked.Database, "all": st.Marked.All} {
		m.counter(descInvalidated, n, kind)
	}
}
