// Package metrics reads a running Freshet's own counters over HTTP.
package metrics

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Sample is one reading: a value for each series, by its name and labels as
// they stand in the text (`freshet_queries_total{dialect="mysql",…}`).
type Sample map[string]float64

// maxBytes bounds what is read.
const maxBytes = 4 << 20

// Read asks addr (host:port, or a URL) for /metrics.
func Read(ctx context.Context, addr string) (sample Sample, err error) {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(addr, "/")+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	return parse(io.LimitReader(resp.Body, maxBytes))
}

// parse reads the text format: name, labels, blank, value; # begins a comment.
func parse(r io.Reader) (Sample, error) {
	out := make(Sample)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", line, err)
		}
		out[line[:at]] = v
	}
	return out, lines.Err()
}

// Sum adds up the series called name that have every one of the labels, each
// as `key="value"`.
func (s Sample) Sum(name string, labels ...string) float64 {
	total := 0.0
series:
	for series, v := range s {
		have, rest, _ := strings.Cut(series, "{")
		if have != name {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue series
			}
		}
		total += v
	}
	return total
}

// Hits is how many answers came from memory.
func (s Sample) Hits() int64 { return int64(s.Sum("freshet_queries_total", `source="hit"`)) }
