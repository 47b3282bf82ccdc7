package spark

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/test/kit"
)

var (
	sparkRows = flag.String("spark-rows", "1000000", "how many rows TestBenchSpark reads, one number after the other")
	sparkKeep = flag.String("spark-dir", "", "a directory for the rows, which stay there; by default one that is removed")
)

// measured are the leaves that are timed: one that counts a unit's rows, one that numbers them, and reads a column, three, or looks for a unit's first.
var measured = []string{
	"SELECT count(*) FROM visits",
	"SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward",
	"SELECT ward, sum(minutes), sum(cost) FROM visits WHERE minutes < 50 GROUP BY ward ORDER BY ward",
	"SELECT extract(month FROM day) AS m, count(*) FROM visits GROUP BY 1 ORDER BY 1",
	"SELECT count(DISTINCT who) FROM visits WHERE minutes > 55",
	"SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) AS t GROUP BY n ORDER BY n",
}

// TestBenchSpark: leaves over generated rows by Spark, with one executor and with two, are what DuckDB counts over the same files, and take so long.
// The rows are laid by DuckDB.
func TestBenchSpark(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("make spark-scale")
	}
	for _, rows := range strings.Fields(*sparkRows) {
		n, err := strconv.ParseInt(rows, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(rows, func(t *testing.T) {
			dir := *sparkKeep
			if dir == "" {
				dir = t.TempDir()
			}
			dir = filepath.Join(dir, rows)
			if files, _ := filepath.Glob(filepath.Join(dir, "*.parquet")); len(files) == 0 {
				layField(t, dir, n)
			}
			table := "a leaf over " + figures.Number(float64(n)) + " rows, with planning, charge and noise"
			want := map[string]string{}
			run := func(name, policy string) {
				p := kit.Serve(t, policy)
				w := p.Connect("alice", "field")
				w.Patience = time.Hour
				for _, q := range measured {
					began := time.Now()
					a, err := w.TryAsk(q)
					took := time.Since(began)
					if err != nil || a.Err != nil {
						t.Fatalf("%s: %v %v", q, err, a.Err)
					}
					got := fmt.Sprint(a.Rows)
					if want[q] == "" {
						want[q] = got
					} else if got != want[q] {
						t.Errorf("%s: %s says %s, and DuckDB %s", q, name, got, want[q])
					}
					figures.Row(table, "`"+q+"`", name, fmt.Sprintf("%.2f s", took.Seconds()))
				}
				if said := p.LogText(); strings.Contains(said, "privacy rule 5") {
					t.Errorf("a leaf failed:\n%s", said)
				}
				p.Stop(syscall.SIGKILL)
			}
			run("DuckDB", openField(t, nil, dir).onDuck)
			for executors := 1; executors <= 2; executors++ {
				server := sparktest.Cluster(t, executors)
				f := openField(t, server, dir)
				server.Exec(t, "SELECT ward, count(*) FROM field.visits WHERE minutes = 1 GROUP BY ward") // what was just started knows no code
				run(fmt.Sprintf("Spark, %d executors", executors), f.onSpark)
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
