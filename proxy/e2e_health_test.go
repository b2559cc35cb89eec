package proxy_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"

	"freshet/bench/upstream"
	"freshet/proxy"
)

// A load balancer that asks /health is told when no client can be served, and
// when one can again.
func TestHealthWithoutAnUpstream(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.Postgres15} {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t, upstream.Own(t, kind), proxy.Config{})
			health := func(code int, status string) {
				t.Helper()
				until(t, "health "+status, func() (bool, string) {
					resp, err := http.Get("http://" + r.http + "/health")
					if err != nil {
						return false, err.Error()
					}
					defer resp.Body.Close()
					b, err := io.ReadAll(resp.Body)
					var h struct {
						Status    string
						Upstreams []struct{ Reachable bool }
					}
					if err != nil || json.Unmarshal(b, &h) != nil || len(h.Upstreams) != 1 {
						return false, string(b)
					}
					good := resp.StatusCode == code && h.Status == status && h.Upstreams[0].Reachable == (code == http.StatusOK)
					return good, strconv.Itoa(resp.StatusCode) + " " + string(b)
				})
			}
			health(http.StatusOK, "ok")
			if err := r.server.Kill(); err != nil {
				t.Fatal(err)
			}
			health(http.StatusServiceUnavailable, "degraded")
			if err := r.server.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
			health(http.StatusOK, "ok")
		})
	}
}
