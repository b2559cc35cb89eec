package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"freshet/cache/feed"
)

// httpServer serves /health and /metrics.
type httpServer struct {
	server   *http.Server
	listener net.Listener
}

func (s *Server) startHTTP() error {
	s.http = &httpServer{}
	if s.config.HTTP == "" || s.config.HTTP == "off" {
		return nil
	}
	ln, err := net.Listen("tcp", s.config.HTTP)
	if err != nil {
		return fmt.Errorf("--http %s: %w", s.config.HTTP, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{s})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.serveHealth)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s.http.listener = ln
	s.http.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		if err := s.http.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("http", "cause", err)
		}
	}()
	return nil
}

// HTTPAddress is where HTTP is served, "" for nowhere.
func (s *Server) HTTPAddress() string {
	if s.http == nil || s.http.listener == nil {
		return ""
	}
	return s.http.listener.Addr().String()
}

func (h *httpServer) close() error {
	if h == nil || h.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return h.server.Shutdown(ctx)
}

type healthReport struct {
	Status    string           `json:"status"`
	Version   string           `json:"version"`
	Upstreams []upstreamHealth `json:"upstreams"`
}

type upstreamHealth struct {
	Listen   string  `json:"listen"`
	Upstream string  `json:"upstream"`
	Kind     string  `json:"kind"`
	Feed     string  `json:"feed"` // following, down or off
	Reason   string  `json:"reason,omitempty"`
	LagSecs  float64 `json:"feed_lag_seconds"`
	FeedFrom string  `json:"feed_from,omitempty"` // the replica that the feed comes from
	// Reachable: the upstream answers.
	Reachable bool `json:"reachable"`
}

// serveHealth answers 200 while some listener can serve, 503 otherwise: before
// the first and after the last client is let in, and while no upstream answers.
// "degraded" means that statements are forwarded but the cache is not used, or
// not even that, for some upstream.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	h := healthReport{Status: "ok", Version: Version}
	code := http.StatusServiceUnavailable
	for _, u := range s.upstreams {
		uh, good := u.health()
		if !good {
			h.Status = "degraded"
		}
		if uh.Reachable {
			code = http.StatusOK
		}
		h.Upstreams = append(h.Upstreams, uh)
	}
	if !s.serving.Load() {
		h.Status, code = "starting", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(h); err != nil {
		s.log.Debug("health", "cause", err)
	}
}

// health tells how one upstream is, and whether that is as it should be.
func (u *Upstream) health() (h upstreamHealth, good bool) {
	h = upstreamHealth{Listen: u.Listen, Upstream: u.Target.Address(), Kind: u.Server.Kind, Feed: "following", Reachable: !u.unreachable.Load()}
	good = h.Reachable
	if u.Feed == nil {
		h.Feed, h.Reason = "off", u.feedOff
		return h, good && u.mode == CacheOff
	}
	h.LagSecs = u.lagSeconds()
	st := u.Feed.Status()
	if st.Replica {
		h.FeedFrom = st.From
	}
	if !st.Up || h.LagSecs > u.maxStaleness.Seconds() {
		h.Feed, h.Reason, good = "down", st.LastError, false
	}
	return h, good
}

// lagSeconds is the age of the newest proof; a day when there never was one.
func (u *Upstream) lagSeconds() float64 {
	at := u.Feed.ProvenAt()
	if at == 0 {
		return 86400
	}
	return float64(feed.Now()-at) / 1e9
}
