package planner

import (
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// chart is one of a dashboard's.
type chart struct{ name, sql string }

// dashboardCharts are those of testdata/dashboard.sql.
func dashboardCharts(t testing.TB) (list []chart) {
	t.Helper()
	text, err := os.ReadFile("testdata/dashboard.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n;;")[1:] {
		if name, sql, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(block), "-- "), "\n"); ok {
			list = append(list, chart{name, sql})
		}
	}
	return list
}

func dashboardContext(t testing.TB) reuse.Context {
	t.Helper()
	text, err := os.ReadFile("testdata/dashboard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(text, "testdata/dashboard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.Epsilon = p.Datasets[0].Defaults.Epsilon
	c.Now = time.Date(2026, 6, 15, 10, 30, 0, 0, time.UTC)
	return c
}

func answerable(t testing.TB, c reuse.Context, sql string) *plans.Plan {
	t.Helper()
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatal(sql, refusal)
	}
	p, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		t.Fatal(sql, refusal)
	}
	return p
}

// TestDashboardIsBoughtOnce: each chart is free once it has been asked, an hour and a month later too.
func TestDashboardIsBoughtOnce(t *testing.T) {
	c := dashboardContext(t)
	charts := dashboardCharts(t)
	if len(charts) != 30 {
		t.Fatalf("%d charts", len(charts))
	}
	bought := 0
	for _, chart := range charts {
		p := answerable(t, c, chart.sql)
		t.Logf("%s: %s", chart.name, p.Cost)
		if !p.Cost.IsZero() {
			bought++
		}
		c.Holdings.(*shelf).buy(p)
	}
	for _, later := range []time.Duration{0, time.Hour, 31 * 24 * time.Hour} {
		own := c
		own.Now = c.Now.Add(later)
		for _, chart := range charts {
			if p := answerable(t, own, chart.sql); !p.Cost.IsZero() {
				t.Errorf("%s costs %s again after %s", chart.name, p.Cost, later)
			}
		}
	}
	t.Logf("%d of %d charts bought something", bought, len(charts))
}

// BenchmarkDashboardTenThousandHeld plans each chart of a dashboard with ten thousand live releases over its tables,
// after the dashboard has been bought, and as a fresh question to the same holdings. max-cpu-ms is the slowest chart's.
func BenchmarkDashboardTenThousandHeld(b *testing.B) {
	for _, static := range []bool{false, true} {
		b.Run(fmt.Sprintf("static=%v", static), func(b *testing.B) {
			c := dashboardContext(b)
			for _, t := range c.Dataset.Tables {
				t.Static = static
			}
			shelf := c.Holdings.(*shelf)
			r := rand.New(rand.NewSource(1))
			bare := c
			bare.Holdings = nil
			bare.Dataset.Buying.Cells = 0
			for len(shelf.list) < 10_000 {
				from := r.Intn(700)
				sql := fmt.Sprintf("SELECT count(*) FROM orders WHERE qty = %d AND placed_at >= date '2025-01-01' + %d AND placed_at < date '2025-01-01' + %d", r.Intn(20), from, from+1+r.Intn(100))
				switch len(shelf.list) % 10 {
				case 0:
					sql = fmt.Sprintf("SELECT status, count(*) FROM orders WHERE amount < %d GROUP BY status", 10*r.Intn(1000))
				case 1:
					sql = fmt.Sprintf("SELECT sum(amount) FROM orders WHERE qty = %d AND placed_at < date '2025-01-01' + %d", r.Intn(20), from)
				case 2:
					sql = fmt.Sprintf("SELECT active, count(*) FROM users WHERE age < %d GROUP BY active", r.Intn(120))
				}
				shelf.buy(answerable(b, bare, sql))
			}
			for _, state := range []string{"fresh", "again"} {
				b.Run(state, func(b *testing.B) {
					for _, chart := range dashboardCharts(b) {
						if state == "again" {
							shelf.buy(answerable(b, c, chart.sql))
						}
					}
					for _, t := range c.Dataset.Tables {
						shelf.Views(t)
					}
					own := c
					own.Holdings = shelf.inventory
					timeCharts(b, own, state)
				})
			}
		})
	}
}

// timeCharts plans every chart of the dashboard again and again.
func timeCharts(b *testing.B, c reuse.Context, state string) {
	charts := dashboardCharts(b)
	parsed := make([]parse.Statement, len(charts))
	for i, chart := range charts {
		statements, refusal := parse.Parse(chart.sql)
		if refusal != nil {
			b.Fatal(refusal)
		}
		parsed[i] = statements[0]
	}
	spent := make([]time.Duration, len(charts))
	rounds := 0
	for b.Loop() {
		rounds++
		for i, s := range parsed {
			before := processorTime()
			if _, refusal := Build(s, nil, c); refusal != nil {
				b.Fatal(charts[i].name, refusal)
			}
			spent[i] += processorTime() - before
		}
	}
	most, all := 0, time.Duration(0)
	for i := range spent {
		if all += spent[i]; spent[i] > spent[most] {
			most = i
		}
		if os.Getenv("DPPROXY_BENCH") != "" {
			figures.Row("processor time a plan", charts[i].name, state, fmt.Sprintf("%.2f ms", spent[i].Seconds()*1000/float64(rounds)))
		}
	}
	b.ReportMetric(all.Seconds()*1000/float64(rounds*len(charts)), "cpu-ms/chart")
	b.ReportMetric(spent[most].Seconds()*1000/float64(rounds), "max-cpu-ms")
}
