package scalar

import (
	"strconv"
	"strings"
	"testing"
)

// TestCaseMappings compares lower, upper and initcap of every character with a server.
func TestCaseMappings(t *testing.T) {
	s := newServer(t)
	rows := s.column(t, `SELECT concat_ws(' ', i, lower(chr(i)), upper(chr(i)), initcap('x' || chr(i) || 'y'))
		FROM generate_series(33, 130000) AS g (i) WHERE i NOT BETWEEN 55296 AND 57343 AND i NOT IN (160, 5760, 8239, 8287, 12288)
		AND i NOT BETWEEN 127 AND 160 AND i NOT BETWEEN 8192 AND 8207 AND i NOT BETWEEN 8232 AND 8233`)
	different := 0
	for _, row := range rows {
		f := strings.Split(row, " ")
		i, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		c := string(rune(i))
		got := []string{lower(c), upper(c), f[3]}
		if v, err := initcap("x" + c + "y"); err == nil {
			got[2] = v.(string)
		}
		for k, got := range got {
			if got != f[k+1] {
				different++
				if different < 80 {
					t.Errorf("U+%04X: got %q, want %q", i, got, f[k+1])
				}
			}
		}
	}
	t.Logf("%d differences", different)
}
