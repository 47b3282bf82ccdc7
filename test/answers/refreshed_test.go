package answers

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

var dashboardRefreshes = flag.Int("dashboard-refreshes", 3, "how often each analyst of TestDashboardRefreshed looks at her dashboard")

// dashboardAnalysts is how many look at it.
var dashboardAnalysts = threats.ByNight(6, 20)

// shopSQL has 2,000 users and 10,000 orders; a user has three to seven, of which five count.
const shopSQL = `CREATE TABLE users AS SELECT i::INTEGER AS id, (18 + i % 70)::INTEGER AS age, i % 3 > 0 AS active FROM generate_series(1, 2000) AS s(i);
CREATE TABLE orders AS SELECT i AS id, CAST(1 + (i * 7919 + i // 2000) % 2000 AS INTEGER) AS user_id, CAST(((i * 37) % 900000) / 100.0 AS DECIMAL(10, 2)) AS amount,
  TIMESTAMPTZ '2025-01-01 00:00:00Z' + INTERVAL 1 MINUTE * ((i * 7907) % 1040000) AS placed_at,
  CASE i % 4 WHEN 0 THEN 'new' WHEN 1 THEN 'shipped' ELSE 'paid' END AS status, CAST(1 + i % 9 AS INTEGER) AS qty FROM generate_series(1, 10000) AS s(i)`

// shopFixture writes the database and the policy of the dashboard, with its analysts and an administrator.
func shopFixture(t *testing.T) (path string) {
	t.Helper()
	dir := memory.Dir(t)
	db, err := sql.Open("duckdb", filepath.Join(dir, "shop.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(shopSQL); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../planner/testdata/dashboard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	users := fmt.Sprintf("users:\n  - {name: dba, password: %q, admin: true}\n", kit.Verifier(t, "dba"))
	for i := range dashboardAnalysts {
		name := analystNamed(i)
		users += fmt.Sprintf("  - {name: %s, password: %q}\n", name, kit.Verifier(t, name))
	}
	path = filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "users:\n", users, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func analystNamed(i int) string { return fmt.Sprintf("analyst%02d", i) }

// dashboardCharts are the statements of the dashboard, each with its comments.
func dashboardCharts(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../../planner/testdata/dashboard.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n;;")[1:] {
		if block = strings.TrimSpace(block); block != "" {
			list = append(list, block)
		}
	}
	return list
}

// TestDashboardRefreshed: six analysts, twenty in a night, refresh a dashboard of thirty charts, each as a business
// intelligence tool writes it, at the same time over the wire, with a restart of the proxy between. All
// refreshes cost each of them what the first one cost; the cap pays once for each release that the policy declares, and
// once for what each has bought of her own. `make dashboard` does it a thousand times.
func TestDashboardRefreshed(t *testing.T) {
	kit.Beside(t)
	path, charts := shopFixture(t), dashboardCharts(t)
	if len(charts) != 30 {
		t.Fatalf("%d charts", len(charts))
	}
	p := kit.Serve(t, path)
	refresh := func(times int) (spent []string) {
		spent = make([]string, dashboardAnalysts)
		t.Helper()
		var running sync.WaitGroup
		for i := range dashboardAnalysts {
			w := p.Connect(analystNamed(i), "shop")
			running.Go(func() {
				for range times {
					for n, sql := range charts {
						ask := w.TryAsk
						if (i+n)%2 == 1 {
							ask = w.TryExtended
						}
						if a, err := ask(sql); err != nil || a.Err != nil {
							t.Errorf("%s: %.80s: %v %v", analystNamed(i), sql, err, a.Err)
							return
						}
					}
				}
				a, err := w.TryAsk(`SELECT spent FROM dp.budget WHERE user_name = current_user`)
				if err != nil || len(a.Rows) != 1 {
					t.Errorf("%s: no balance: %v %v", analystNamed(i), err, a.Err)
					return
				}
				spent[i] = a.Rows[0][0]
			})
		}
		running.Wait()
		if t.Failed() {
			t.FailNow()
		}
		return spent
	}
	pool := func() string { return capSpent(t, p.Connect("dba", "shop")) }

	first, cap := refresh(1), pool()
	for i, s := range first {
		if s != first[0] {
			t.Errorf("the first refresh costs %s ε %s and %s ε %s", analystNamed(0), first[0], analystNamed(i), s)
		}
	}
	begun := time.Now()
	half := (*dashboardRefreshes - 1) / 2
	refresh(half)
	p.Stop(syscall.SIGTERM)
	p.Restart()
	after, later := refresh(*dashboardRefreshes-1-half), pool()
	took := time.Since(begun)
	if !slices.Equal(after, first) || later != cap {
		t.Errorf("after one refresh: spent %v, cap %s; after %d: %v, %s", first, cap, *dashboardRefreshes, after, later)
	}
	own, shared := chargesOf(t, p.Connect(analystNamed(0), "shop"))
	if got := fmt.Sprintf("%.1f", own+shared); got != decimal(first[0]) {
		t.Errorf("%s was charged %s, and has spent %s", analystNamed(0), got, first[0])
	}
	if want := fmt.Sprintf("%.1f", shared+float64(dashboardAnalysts)*own); want != decimal(cap) {
		t.Errorf("the cap has spent %s, must be %s: ε %.1f of declared releases once, ε %.1f of her own for each", cap, want, shared, own)
	}
	asked := dashboardAnalysts * (*dashboardRefreshes - 1) * len(charts)
	t.Logf("%d analysts, %d refreshes each of %d charts: each has spent ε %s, of which ε %.1f for declared releases; the cap ε %s, of which the same ε %.1f once. "+
		"%d free answers in %s, %.0f a second", dashboardAnalysts, *dashboardRefreshes, len(charts), first[0], shared, cap, shared, asked, took.Round(time.Second), float64(asked)/took.Seconds())
}

// TestPanelsOfOneMoment: the panels of a dashboard, each with another value in its condition and one with all of them
// as groups, are sent in the same moment by connections of their own. Nothing is held when any is planned; what is
// counted around one cell is what is counted around each, so they are one charge, and their numbers one draw.
func TestPanelsOfOneMoment(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
	panels := []string{`SELECT note, count(*) FROM people GROUP BY note ORDER BY note`}
	for i := range 5 {
		panels = append(panels, fmt.Sprintf(`SELECT count(*) FROM people WHERE note = 'n%d'`, i))
	}
	answers := make([][][]string, len(panels))
	var running sync.WaitGroup
	for i, sql := range panels {
		w := p.Connect("alice", "lab")
		running.Go(func() {
			a, err := w.TryAsk(sql)
			if err != nil || a.Err != nil {
				t.Errorf("%s: %v %v", sql, err, a.Err)
				return
			}
			answers[i] = a.Rows
		})
	}
	running.Wait()
	if t.Failed() {
		return
	}
	if spent := p.Connect("alice", "lab").Ask(`SELECT spent FROM dp.budget`).Rows[0][0]; decimal(spent) != "0.1" {
		t.Errorf("%d panels cost ε %s, one of them 0.1", len(panels), spent)
	}
	for i, rows := range answers[1:] {
		if rows[0][0] != answers[0][i][1] {
			t.Errorf("%s: %s, and among the groups %s", panels[i+1], rows[0][0], answers[0][i][1])
		}
	}
}

// TestDashboardOfATeam: the analysts are one group. All of them together cost the group, and the cap, what the
// dashboard costs one analyst; each sees who of them asked for what, and the same numbers.
func TestDashboardOfATeam(t *testing.T) {
	kit.Beside(t)
	charts := dashboardCharts(t)
	// serve starts a proxy for the dashboard, of which so many analysts are a group.
	serve := func(together int) *kit.Program {
		t.Helper()
		path, members := shopFixture(t), ""
		for i := range together {
			members += ", " + analystNamed(i)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		grouped := strings.Replace(string(text), "\ndatasets:\n", fmt.Sprintf("\ngroups:\n  - {name: team, members: [%s]}\ndatasets:\n", members[2:]), 1)
		if err := os.WriteFile(path, []byte(grouped), 0o600); err != nil {
			t.Fatal(err)
		}
		return kit.Serve(t, path)
	}
	refresh := func(p *kit.Program, i int) (rows [][][]string, budget []string) {
		w := p.Connect(analystNamed(i), "shop")
		for _, sql := range charts {
			a, err := w.TryAsk(sql)
			if err != nil || a.Err != nil {
				t.Errorf("%s: %.80s: %v %v", analystNamed(i), sql, err, a.Err)
				return nil, nil
			}
			rows = append(rows, a.Rows)
		}
		a, err := w.TryAsk(`SELECT user_name, spent FROM dp.budget`)
		if err != nil || len(a.Rows) != 1 {
			t.Errorf("%s: no balance: %v %v", analystNamed(i), err, a.Err)
			return nil, nil
		}
		return rows, a.Rows[0]
	}

	alone := serve(1)
	_, one := refresh(alone, 0)
	oneCap := capSpent(t, alone.Connect("dba", "shop"))

	team := serve(dashboardAnalysts)
	var running sync.WaitGroup
	for i := range dashboardAnalysts {
		running.Go(func() { refresh(team, i) })
	}
	running.Wait()
	seen, budget := refresh(team, 0)
	for i := range dashboardAnalysts {
		if rows, b := refresh(team, i); fmt.Sprint(rows) != fmt.Sprint(seen) || fmt.Sprint(b) != fmt.Sprint(budget) {
			t.Errorf("%s sees %v and %v, another %v and %v", analystNamed(i), rows, b, seen, budget)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	cap := capSpent(t, team.Connect("dba", "shop"))
	names := map[string]bool{}
	for _, row := range team.Connect(analystNamed(1), "shop").Ask(`SELECT user_name FROM dp.charges`).Rows {
		names[row[0]] = true
	}
	if len(names) == 0 || names["team"] {
		t.Errorf("charges are named %v", names)
	}
	number := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if budget[0] != "team" || one[0] != "team" || number(budget[1]) > 1.1*number(one[1]) || number(cap) > 1.1*number(oneCap) {
		t.Errorf("one analyst spends %v, the cap %s; a team of them %v, the cap %s", one, oneCap, budget, cap)
	}
	t.Logf("a dashboard of %d charts: one analyst has spent ε %s, the cap %s; a team of %d who ask at once ε %s, the cap %s: %.3f ×", len(charts), one[1], oneCap, dashboardAnalysts, budget[1], cap, number(cap)/number(oneCap))
}

// decimal writes a number of a balance with one digit.
func decimal(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%.1f", f)
}

// capSpent is what has been taken from the cap.
func capSpent(t *testing.T, dba *kit.Wire) string {
	t.Helper()
	a := dba.Ask(`SELECT spent FROM dp.budget WHERE user_name = '(cap)'`)
	if a.Err != nil || len(a.Rows) != 1 {
		t.Fatalf("no cap: %v %v", a.Err, a.Rows)
	}
	return a.Rows[0][0]
}

// chargesOf adds an analyst's charges up: of releases of her own, and of declared ones.
func chargesOf(t *testing.T, w *kit.Wire) (own, shared float64) {
	t.Helper()
	declared := map[string]bool{"orders_placed_at": true, "orders_status_qty": true, "orders_amount": true, "users_age": true}
	a := w.Ask(`SELECT name, cost FROM dp.charges`)
	if a.Err != nil || len(a.Rows) == 0 {
		t.Fatalf("no charges: %v", a.Err)
	}
	for _, row := range a.Rows {
		cost, err := strconv.ParseFloat(strings.TrimPrefix(row[1], "ε "), 64)
		if err != nil {
			t.Fatal(err)
		}
		if declared[row[0]] {
			shared += cost
		} else {
			own += cost
		}
	}
	return own, shared
}
