package planner

import (
	"context"
	"fmt"
	"testing"

	"freshet/bench/upstream"
)

// What a format of STR_TO_DATE is taken to give is what the servers give.
func TestFormatsGive(t *testing.T) {
	for _, kind := range []upstream.Kind{upstream.MariaDB, upstream.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			h := newHeldTest(t, kind)
			for _, format := range []string{"%Y-%m-%d", "%m/%d/%Y", "%y%m", "%c", "%M %d", "%b", "%H:%i", "%h:%i %p", "%T", "%r", "%k%l", "%S", "%s.%f", "%f", "%Y-%m-%d %H:%i:%s", "%m %H", "%H %y.%f", "%%", "%d", "%e %H", "%j", "%W", "x", ""} {
				h.exec("DROP TABLE IF EXISTS given")
				h.exec(fmt.Sprintf("CREATE TABLE given AS SELECT STR_TO_DATE(id, '%s') AS c FROM held0 LIMIT 0", format))
				var got string
				row := h.conn.QueryRowContext(context.Background(), "SELECT DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'given'")
				if err := row.Scan(&got); err != nil {
					t.Fatal(err)
				}
				if formatDated.gives(format) && got == "time" || formatOfDay.gives(format) && got != "time" {
					t.Errorf("%q gives a %s", format, got)
				}
			}
		})
	}
}
