package planner

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// TestBenchPlanning prints what planning takes, by the cells of the columns and by the releases held (`make
// bench-planning`).
func TestBenchPlanning(t *testing.T) {
	if os.Getenv("DPPROXY_BENCH") == "" {
		t.Skip("set DPPROXY_BENCH=1")
	}
	var table strings.Builder
	sizes := []int64{1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000}
	fmt.Fprintf(&table, "\nms (KiB) to plan, by cells of each column (timestamps at most ten years of seconds)\n%-10s", "")
	for _, n := range sizes {
		fmt.Fprintf(&table, "%16s", fmt.Sprintf("10^%d", len(fmt.Sprint(n))-1))
	}
	table.WriteByte('\n')
	for i, sql := range large {
		fmt.Fprintf(&table, "%-10d", i+1)
		for _, n := range sizes {
			fmt.Fprintf(&table, "%16s", planningOf(t, vastContext(t, n), sql))
		}
		table.WriteByte('\n')
	}
	for i, sql := range large {
		fmt.Fprintf(&table, "%4d  %s\n", i+1, sql)
	}
	held := []int{10, 100, 1_000, 10_000}
	asked := []string{
		"SELECT count(*) FROM people WHERE kids = 3 AND hired < date '2000-01-01' + 4711",
		"SELECT kids, count(*) FROM people WHERE hired < date '2000-01-01' + 4711 GROUP BY kids",
		"SELECT date_trunc('month', hired), count(*), sum(income) FROM people GROUP BY 1",
		"SELECT count(*) FROM people WHERE score < 5 AND kids = 3 AND income >= 4711.5",
	}
	fmt.Fprintf(&table, "\nms (KiB) to plan, by releases held over the table\n%-10s", "")
	contexts := make([]reuse.Context, len(held))
	for i, n := range held {
		fmt.Fprintf(&table, "%16d", n)
		contexts[i] = manyHeld(t, true, n)
	}
	table.WriteByte('\n')
	for i, sql := range asked {
		fmt.Fprintf(&table, "%-10d", i+1)
		for _, c := range contexts {
			fmt.Fprintf(&table, "%16s", planningOf(t, c, sql))
		}
		table.WriteByte('\n')
	}
	for i, sql := range asked {
		fmt.Fprintf(&table, "%4d  %s\n", i+1, sql)
	}
	figures.Text(table.String())
}

// planningOf is the median time to plan a statement, and what it allocates. The first plan reads what is held.
func planningOf(t *testing.T, c reuse.Context, sql string) string {
	s := parsedText(t, sql)[0]
	var times []time.Duration
	var before, after runtime.MemStats
	for n := range 12 {
		runtime.ReadMemStats(&before)
		begun := time.Now()
		_, refusal := Build(s, nil, c)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		if refusal != nil {
			return refusal.ID
		}
		if n > 0 {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	return fmt.Sprintf("%.2f (%d)", float64(times[len(times)/2].Microseconds())/1000, (after.TotalAlloc-before.TotalAlloc)>>10)
}
