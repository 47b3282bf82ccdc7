package answers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// hiresPolicy is over a table to which rows are added by date, three years of days; %[2]s is the accountant.
const hiresPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %[1]q}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %[3]q}
  - {name: bob, password: %[4]q}
datasets:
  - id: firm
    unit: {name: person, key: hires.uid}
    accountant: %[2]s
    cap: {epsilon: 5, delta: 1e-6}
    budgets: {"*": {epsilon: 3, delta: 1e-6}}
    defaults: {epsilon: 0.5, max_epsilon: 1}
    tables:
      - name: hires
        source: %[5]s.hires
        expected_rows: 16000
        rows_per_unit_total: 2
        appends: {column: hired, closes: 12h}
        columns:
          - {name: hired, type: date, domain: {min: 2024-01-01, max: 2026-12-31}, nulls: exclude, outside: exclude}
          - {name: ward, type: text, domain: {values: [north, south]}}
        releases:
          - {kind: range, columns: [hired], epsilon: 0.5, insist: true}
`

// hiresSQL has 8,000 people with two or three rows each, and rows without a date or outside of the domain.
const hiresSQL = `CREATE TABLE hires AS SELECT i %% 8000 AS uid, CASE WHEN i %% 997 = 0 THEN NULL
  WHEN i %% 991 = 0 THEN DATE '1999-01-01' ELSE DATE '2024-01-01' + CAST((i * 7919) %% 1096 AS INTEGER) END AS hired,
  CASE WHEN i %% 3 = 0 THEN 'north' ELSE 'south' END AS ward FROM generate_series(1, 20000) AS s(i) WHERE i <> %d`

// hiresTruth counts by day, of each person the first two rows.
const hiresTruth = `SELECT hired, count(*) FROM (SELECT hired, row_number() OVER (PARTITION BY uid ORDER BY hired, ward) AS r
  FROM hires WHERE hired BETWEEN DATE '2024-01-01' AND DATE '2026-12-31') AS s WHERE r <= 2 GROUP BY 1`

const hiresFirst = "2024-01-01"

func writeHires(t *testing.T, dir, backend, accountant, schema string) string {
	t.Helper()
	text := fmt.Sprintf(hiresPolicy, backend, accountant, kit.Verifier(t, "alice"), kit.Verifier(t, "bob"), schema)
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// duckHires writes database and policy, and returns the true counts by day since 2024.
func duckHires(t *testing.T, accountant string) (path string, truth []float64) {
	t.Helper()
	dir := memory.Dir(t)
	db, err := sql.Open("duckdb", filepath.Join(dir, "firm.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprintf(hiresSQL, 0)); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(hiresTruth)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	truth = make([]float64, 1096)
	for rows.Next() {
		var day time.Time
		var n float64
		if err := rows.Scan(&day, &n); err != nil {
			t.Fatal(err)
		}
		truth[int(day.Sub(date(hiresFirst)).Hours()/24)] = n
	}
	return writeHires(t, dir, "duckdb:firm.duckdb", accountant, "main"), truth
}

func date(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}

// dashboard is a proxy without the wire, whose time is set by hand.
type dashboard struct {
	t       *testing.T
	path    string
	now     time.Time
	service *service.Service
	answers *pipeline.Answerer
}

func (d *dashboard) open() {
	d.t.Helper()
	var h *service.Service
	var err error
	for range 100 { // a process that another test is just starting holds the lock that it was forked with until its program begins
		h, err = service.Open(context.Background(), d.path, ledger.Options{Clock: func() time.Time { return d.now }}, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "is open in another process") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.service, d.answers = h, pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
}

// ask returns the whole numbers of an answer's last column, and its notices.
func (d *dashboard) ask(user, statement string) (counts []float64, notices string) {
	d.t.Helper()
	p := d.service.Policy()
	data := p.Datasets[0]
	s := &pipeline.Session{User: user, Database: data.ID, Policy: p, Dataset: data}
	s.Settings.Settings = plans.Settings{Epsilon: data.Defaults.Epsilon, Confidence: data.Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC}
	statements, refusal := parse.Parse(statement)
	if refusal != nil {
		d.t.Fatal(refusal)
	}
	r, err := d.answers.Answer(context.Background(), s, statements[0], nil)
	if err != nil {
		d.t.Fatalf("%s on %s: %v", statement, d.now.Format(time.DateOnly), err)
	}
	for _, row := range r.Rows.Value().Data {
		counts = append(counts, float64(row[len(row)-1].(int64)))
	}
	for _, n := range r.Notices {
		notices += n.Message + "\n" + n.Detail + "\n"
	}
	return counts, notices
}

func (d *dashboard) spent(user string) string {
	d.t.Helper()
	b, err := d.service.Ledger.Balance(context.Background(), user, "firm")
	if err != nil {
		d.t.Fatal(err)
	}
	return b.Spent.String()
}

// TestDashboardOfThreeYears refreshes a dashboard on each day of three years, with restarts: all of it costs what the
// release cost, for each of two analysts, and for the cap once; and the errors are those that were shown. A dashboard
// that is refreshed afresh has a thousandth of the cost for each day. The roots of the mean squared errors of the sum
// so far and of months are expected at 62 and 44, with ρ at 13.2 and 12.4. They depend on few draws: the most is
// Chernoff's bound of the squares of normal noise, passed once in a million runs, the least a quarter below the other
// bound. Those of single days, expected at 16.1 and 7.6, depend on all draws, with standard deviations of 0.6 and 0.2 by
// simulation: noise a third too small or half too large shows there, and by chance at 5.5 of these.
func TestDashboardOfThreeYears(t *testing.T) {
	kit.Beside(t)
	for accountant, c := range map[string]struct {
		cost               string
		sofar, month, each [2]float64 // of errors: the least and the most
	}{"pure": {"ε 0.5", [2]float64{23, 223}, [2]float64{14, 80}, [2]float64{12.6, 19.6}}, "zcdp": {"ρ 0.125", [2]float64{5, 50}, [2]float64{3.8, 23}, [2]float64{6.4, 8.8}}} {
		t.Run(accountant, func(t *testing.T) {
			kit.Beside(t)
			path, truth := duckHires(t, accountant)
			d := &dashboard{t: t, path: path, now: date("2024-01-02").Add(6 * time.Hour)}
			d.open()
			defer func() { d.service.Close() }()
			sofar, months, each := 0.0, 0.0, 0.0
			refreshes, ranges := 0, 0
			before := 0.0
			for day := range 1096 {
				d.now = date(hiresFirst).AddDate(0, 0, day+1).Add(13 * time.Hour) // the day has closed an hour ago
				if day%100 == 99 {
					d.service.Close()
					d.open()
				}
				before += truth[day]
				if day%5 == 4 {
					n, notices := d.ask("alice", "SELECT count(*) FROM hires WHERE hired >= DATE '2024-01-01'")
					sofar += (n[0] - before) * (n[0] - before)
					refreshes++
					if day < 1095 && !strings.Contains(notices, date(hiresFirst).AddDate(0, 0, day+1).Format(time.DateOnly)+" or later are left out") {
						t.Fatalf("day %d: notices are %s", day, notices)
					}
				} else if threats.Night() { // each run asks about a day in five, and draws then what was closed
					d.ask("alice", "SELECT count(*) FROM hires WHERE hired < DATE '2025-01-01'")
				}
				if day%30 == 29 {
					n, _ := d.ask("alice", "SELECT hired, count(*) FROM hires GROUP BY hired ORDER BY hired")
					sum, all := 0.0, 0.0
					for i := max(0, day-29); i <= day; i++ {
						sum, all = sum+n[i], all+truth[i]
					}
					each = 0
					for i := range day + 1 {
						each += (n[i] - truth[i]) * (n[i] - truth[i]) / float64(day+1)
					}
					for i := day + 1; i < len(n); i++ {
						if n[i] != 0 {
							t.Fatalf("day %d is not closed on day %d, and counts %g", i, day, n[i])
						}
					}
					months += (sum - all) * (sum - all)
					ranges++
				}
			}
			if got := d.spent("alice"); !strings.HasPrefix(got, c.cost) {
				t.Errorf("alice has spent %s, must be %s", got, c.cost)
			}
			d.ask("bob", "SELECT count(*) FROM hires WHERE hired >= DATE '2024-01-01'")
			if got := d.spent("bob"); !strings.HasPrefix(got, c.cost) {
				t.Errorf("bob has spent %s, must be %s", got, c.cost)
			}
			if pool, _, err := d.service.Ledger.Cap(context.Background(), "firm"); err != nil || !strings.HasPrefix(pool.String(), c.cost) {
				t.Errorf("the cap has spent %s, %v, must be %s", pool, err, c.cost)
			}
			for _, e := range []struct {
				of      string
				squared float64
				within  [2]float64
			}{{"the sum so far", sofar / float64(refreshes), c.sofar}, {"the last 30 days", months / float64(ranges), c.month}, {"one day", each, c.each}} {
				off := math.Sqrt(e.squared)
				t.Logf("%s: %s is off by %.1f (root of the mean square)", accountant, e.of, off)
				if off < e.within[0] || off > e.within[1] {
					t.Errorf("%s: %s is off by %.1f, must be from %g to %g", accountant, e.of, off, e.within[0], e.within[1])
				}
			}
			if _, err := d.service.Ledger.Verify(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestADayAddsItsOwnNodes: when a day closes, its nodes are drawn and nothing else: what was known stays as it was,
// number by number, nobody is charged, and the same day draws once, whoever asks (privacy rule 19).
func TestADayAddsItsOwnNodes(t *testing.T) {
	for _, accountant := range []string{"pure", "zcdp"} {
		path, _ := duckHires(t, accountant)
		d := &dashboard{t: t, path: path, now: date(hiresFirst).AddDate(0, 0, 80).Add(13 * time.Hour)}
		d.open()
		const sofar = "SELECT count(*) FROM hires WHERE hired >= DATE '2024-01-01'"
		var known []int64
		var id int64
		spent := ""
		for day := 80; day < 100; day++ {
			d.now = date(hiresFirst).AddDate(0, 0, day).Add(13 * time.Hour)
			d.ask("alice", sofar)
			if day == 80 {
				id, spent = d.service.Ledger.Holdings("alice", "firm")[0].ID, d.spent("alice")
			}
			release, err := d.service.Ledger.Load(context.Background(), "alice", id)
			if err != nil {
				t.Fatal(err)
			}
			now, spec := release.Noisy.Value().Observations, release.Item.Spec
			if len(now) != spec.Known(day) || !slices.Equal(now[:len(known)], known) {
				t.Fatalf("%s, day %d: %d observations of %d, or what was known is another", accountant, day, len(now), spec.Known(day))
			}
			if added := spec.Known(day) - spec.Known(day-1); day > 80 && len(now)-len(known) != added || added < 1 || added > 3 {
				t.Errorf("%s, day %d added %d nodes, must be %d", accountant, day, len(now)-len(known), added)
			}
			known = slices.Clone(now)
			if day%2 == 0 {
				if d.ask("bob", sofar); day == 80 && len(d.service.Ledger.Holdings("bob", "firm")) != 1 {
					t.Error("bob has not bought it")
				}
			}
			again, err := d.service.Ledger.Load(context.Background(), "alice", id)
			if err != nil || !slices.Equal(again.Noisy.Value().Observations, known) {
				t.Errorf("%s, day %d was drawn twice, %v", accountant, day, err)
			}
		}
		if got := d.spent("alice"); got != spent {
			t.Errorf("%s: alice has spent %s, and %s after the first day", accountant, got, spent)
		}
		d.service.Close()
	}
}
