package gate

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// hits reads how many answers the proxy at addr has given from memory, from
// its metrics; -1 when addr is empty.
func hits(ctx context.Context, addr string) (total int64, err error) {
	if addr == "" {
		return -1, nil
	}
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(addr, "/")+"/metrics", nil)
	if err != nil {
		return -1, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return -1, fmt.Errorf("--http: %w", err)
	}
	defer func() {
		if cerr := resp.Body.Close(); err == nil {
			err = cerr
		}
	}()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok || !strings.HasPrefix(name, "freshet_queries_total{") || !strings.Contains(name, `source="hit"`) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return -1, fmt.Errorf("--http: metric %s: %w", name, err)
		}
		total += int64(n)
	}
	return total, lines.Err()
}
