package metrics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRead(t *testing.T) {
	body := "# HELP freshet_entries Cached answers.\nfreshet_entries{listen=\"a\"} 3\nfreshet_up 1\n" +
		"freshet_queries_total{dialect=\"mysql\",source=\"hit\"} 7\nfreshet_queries_total{dialect=\"postgres\",source=\"hit\"} 1e+01\nfreshet_queries_total{dialect=\"mysql\",source=\"fill\"} 2\n"
	code := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		if _, err := w.Write([]byte(body)); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	sample, err := Read(context.Background(), s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if sample.Hits() != 17 || sample.Sum("freshet_up") != 1 || sample.Sum("freshet_queries_total", `dialect="mysql"`) != 9 || sample.Sum("freshet") != 0 {
		t.Errorf("read %v", sample)
	}
	body = "freshet_up one\n"
	if _, err := Read(context.Background(), s.URL); err == nil {
		t.Error("a value that is no number was read")
	}
	code = http.StatusServiceUnavailable
	if _, err := Read(context.Background(), s.URL); err == nil {
		t.Error("a refusal was read")
	}
}
