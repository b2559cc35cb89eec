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
}

// serveHealth answers 200 while some listener can serve, 503 otherwise.
// "degraded" means that statements are forwarded but the cache is not used.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	h := healthReport{Status: "ok", Version: Version}
	for _, u := range s.upstreams {
		uh := upstreamHealth{Listen: u.Listen, Upstream: u.Target.Address(), Kind: u.Server.Kind, Feed: "following"}
		if u.Feed == nil {
			uh.Feed, uh.Reason = "off", u.feedOff
			if u.mode != CacheOff {
				h.Status = "degraded"
			}
		} else {
			uh.LagSecs = u.lagSeconds()
			if st := u.Feed.Status(); !st.Up || uh.LagSecs > u.maxStaleness.Seconds() {
				uh.Feed, uh.Reason, h.Status = "down", st.LastError, "degraded"
			}
		}
		h.Upstreams = append(h.Upstreams, uh)
	}
	code := http.StatusOK
	if !s.serving.Load() {
		h.Status, code = "starting", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(h); err != nil {
		s.log.Debug("health", "cause", err)
	}
}

// lagSeconds is the age of the newest proof; a day when there never was one.
func (u *Upstream) lagSeconds() float64 {
	at := u.Feed.ProvenAt()
	if at == 0 {
		return 86400
	}
	return float64(feed.Now()-at) / 1e9
}
