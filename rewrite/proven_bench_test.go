package rewrite_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// provenCases need no bounding: a constraint proves that a person has one row.
var provenCases = []string{
	`SELECT count(*) FROM people`,
	`SELECT count(*) FROM people WHERE age > 40`,
	`SELECT count(*) FROM people WHERE age BETWEEN 20 AND 39`,
	`SELECT count(*) FROM people WHERE sex = 'f'`,
	`SELECT count(*) FROM people WHERE sex = 'f' AND age >= 65`,
	`SELECT sex, count(*) FROM people GROUP BY sex`,
	`SELECT age, count(*) FROM people GROUP BY age`,
	`SELECT sex, age, count(*) FROM people WHERE age < 65 GROUP BY sex, age`,
}

// TestBenchProven prints what the SQL costs that is sent where a constraint proves the bound, beside her own.
func TestBenchProven(t *testing.T) {
	rows := benchRows(t)
	head, _, _ := strings.Cut(groupPolicy, "datasets:")
	p, err := policy.Parse([]byte(head+"datasets:"+strings.Replace(benchColumns, "BOUNDS", "max_rows_per_unit: 1", 1)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []dialect.Dialect{dialect.DuckDB, dialect.PostgreSQL} {
		run, cpu := benchEngine(t, d, rows)
		if d == dialect.DuckDB {
			reopened(run)
		}
		for _, text := range provenCases {
			_, sqls, args := planned(t, p, d, text)
			var times, works [2][]float64
			for range 15 {
				for i := range times {
					start, before := time.Now(), cpu()
					run(sqls[i], args[i])
					times[i], works[i] = append(times[i], float64(time.Since(start).Microseconds())/1000), append(works[i], cpu()-before)
				}
			}
			for i := range times {
				slices.Sort(times[i])
				slices.Sort(works[i])
			}
			figures.Row(rows+" people of one row", "`"+text+"`", d.String()+": own, ours (of processor time)", fmt.Sprintf("%s, %s ms: %.2f × (%.2f ×)", figures.Number(times[0][7]), figures.Number(times[1][7]),
				times[1][7]/times[0][7], works[1][7]/works[0][7]))
		}
	}
}

// worked is how many milliseconds processors have worked for this process, which others on the machine change less than
// the time that passes.
func worked() float64 {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e6
}

// workedBy is the same of a PostgreSQL session and of the parallel workers that have ended, in hundredths of a second.
func workedBy(t *testing.T, pid uint32) float64 {
	own, all := statOf(t, strconv.Itoa(int(pid))), 0.0
	all = number64(own[13]) + number64(own[14])
	parent := statOf(t, own[3])
	return 10 * (all + number64(parent[15]) + number64(parent[16]))
}

// statOf are the fields of a process that Linux shows; the name in the second has no blanks here.
func statOf(t *testing.T, pid string) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Skip("the work of a server is read from /proc")
	}
	fields := strings.Fields(string(text))
	if len(fields) < 17 {
		t.Fatal("/proc shows fewer fields than Linux does")
	}
	return fields
}

func number64(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}
