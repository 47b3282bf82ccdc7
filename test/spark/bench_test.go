package spark

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
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
	sparkRows = flag.String("spark-rows", "1000000", "how many rows TestBenchSpark reads, numbers with commas between them")
	sparkKeep = flag.String("spark-dir", "", "a directory for the rows, which stay there; by default one that is removed")
)

// measured are the leaves that are timed: one that counts a unit's rows, one that numbers them, and reads a column,
// three, or looks for a unit's first.
var measured = []string{
	"SELECT count(*) FROM visits",
	"SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward",
	"SELECT ward, sum(minutes), count(*) FILTER (WHERE cost > 50) FROM visits WHERE minutes < 50 GROUP BY ward ORDER BY ward",
	"SELECT extract(month FROM day) AS m, count(*) FROM visits GROUP BY 1 ORDER BY 1",
	"SELECT count(DISTINCT who) FROM visits WHERE minutes > 55",
	"SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) AS t GROUP BY n ORDER BY n",
}

// growth is how many seconds each statement took, by engine and number of rows.
type growth struct {
	rows    []int64
	engines []string
	seconds map[string][]float64
}

func (g *growth) add(engine, statement string, seconds float64) {
	if !slices.Contains(g.engines, engine) {
		g.engines = append(g.engines, engine)
	}
	if g.seconds == nil {
		g.seconds = map[string][]float64{}
	}
	g.seconds[engine+statement] = append(g.seconds[engine+statement], seconds)
}

// print writes a table for each engine: seconds at each number of rows, and by what power they grow between the two
// largest.
func (g *growth) print() {
	for _, engine := range g.engines {
		for _, q := range measured {
			var cells []string
			list := g.seconds[engine+q]
			for i, seconds := range list {
				cells = append(cells, figures.Number(float64(g.rows[i]))+" rows", fmt.Sprintf("%.2f s", seconds))
			}
			if n := len(list); n > 1 {
				power := math.Log(list[n-1]/list[n-2]) / math.Log(float64(g.rows[n-1])/float64(g.rows[n-2]))
				cells = append(cells, "grows by the power", fmt.Sprintf("%.2f", power))
			}
			if len(cells) > 0 {
				figures.Row(engine+": planning, charge, leaf and noise", "`"+q+"`", cells...)
			}
		}
	}
}

// TestBenchSpark: leaves over generated rows by Spark, with one executor and with two, are what DuckDB counts over the
// same files, and take so long. The rows are laid by DuckDB.
func TestBenchSpark(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("make spark-scale")
	}
	var took growth
	defer took.print()
	for _, rows := range strings.Split(*sparkRows, ",") {
		n, err := strconv.ParseInt(rows, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		took.rows = append(took.rows, n)
		t.Run(rows, func(t *testing.T) {
			dir := *sparkKeep
			if dir == "" {
				dir = t.TempDir()
			}
			dir = filepath.Join(dir, rows)
			if files, _ := filepath.Glob(filepath.Join(dir, "*.parquet")); len(files) == 0 {
				layField(t, dir, n)
			}
			want := map[string]string{}
			run := func(name, policy string) {
				p := kit.Serve(t, policy)
				w := p.Connect("alice", "field")
				w.Patience = time.Hour
				for _, q := range measured {
					began := time.Now()
					a, err := w.TryAsk(q)
					seconds := time.Since(began).Seconds()
					if err != nil || a.Err != nil {
						t.Fatalf("%s: %v %v", q, err, a.Err)
					}
					got := fmt.Sprint(a.Rows)
					if want[q] == "" {
						want[q] = got
					} else if got != want[q] {
						t.Errorf("%s: %s says %s, and DuckDB %s", q, name, got, want[q])
					}
					took.add(name, q, seconds)
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
				run([]string{"", "Spark, one executor", "Spark, two executors"}[executors], f.onSpark)
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
