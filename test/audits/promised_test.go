package audits

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	mathrand "math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// What EXPLAIN promises is kept, for random policies, releases and questions: see TestExplainIsKept.

// promisedSQL has 150 units with up to rows rows each, all values inside their domains; unit 7 is absent, or other, in
// the neighbour.
const promisedSQL = `CREATE TABLE t AS SELECT u AS uid, CAST((u * 7 + i * 5) %% 20 AS INTEGER) AS a,
  CASE (u + i) %% 3 WHEN 0 THEN 'x' WHEN 1 THEN 'y' ELSE 'z' END AS b, DATE '2024-01-01' + CAST((u * 37 + i * 91) %% 366 AS INTEGER) AS d,
  CAST((u + i * 3) %% 10 AS INTEGER) AS v FROM generate_series(1, 150) AS s(u), generate_series(1, %d) AS g(i) WHERE i <= 1 + u %% %d;
%s`

// promised is one random policy over one of two neighbouring databases.
type promised struct {
	service *service.Service
	answers *pipeline.Answerer
	data    *policy.Dataset
}

// randomPolicy draws a policy and the two neighbouring databases that it is written over; both texts are equal.
func randomPolicy(t *testing.T, r *mathrand.Rand, users int) (sides [2]*promised, truth *sql.DB) {
	t.Helper()
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	rows, accountant, delta := 1+r.Intn(3), "pure", "0"
	if r.Intn(2) == 0 {
		accountant, delta = "zcdp", "1e-6"
	}
	neighbors, change := "add-remove", "DELETE FROM t WHERE uid = 7"
	if r.Intn(3) == 0 {
		neighbors, change = "replace-one\n    units: 150", "UPDATE t SET a = 19, b = 'z', v = 9, d = DATE '2024-12-31' WHERE uid = 7"
	}
	var releases strings.Builder
	for _, declared := range []string{"{kind: range, columns: [a], epsilon: %s}", "{kind: histogram, columns: [b], epsilon: %s}", "{kind: histogram, columns: [a, b], epsilon: %s}", "{kind: range, columns: [d], epsilon: %s}"} {
		if r.Intn(3) == 0 {
			fmt.Fprintf(&releases, "          - "+declared+"\n", pick("0.1", "0.2", "0.5"))
		}
	}
	of := ""
	if releases.Len() > 0 {
		of = "        releases:\n" + releases.String()
	}
	names := ""
	for i := range users {
		names += fmt.Sprintf("  - {name: u%d, password: %q}\n", i, kit.Verifier(t, "u"))
	}
	text := fmt.Sprintf(`version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: "duckdb:lab.duckdb"}
ledger: {url: "sqlite:ledger.db"}
users:
%[1]sdatasets:
  - id: lab
    unit: {name: person, key: t.uid}
    neighbors: %[2]s
    accountant: %[3]s
    cap: {epsilon: 100000, delta: %[9]s}
    budgets: {"*": {epsilon: 100, delta: %[9]s}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    buying: {after: %[4]s, cells: %[5]s}
    tables:
      - name: t
        source: main.t
        expected_rows: 300
        max_rows_per_unit: %[6]d
        static: %[7]s
        columns:
          - {name: a, type: integer, domain: {min: 0, max: 19, step: 1}, nulls: exclude, outside: exclude}
          - {name: b, type: text, domain: {values: [x, y, z]}, nulls: exclude, outside: exclude}
          - {name: d, type: date, domain: {min: 2024-01-01, max: 2024-12-31, step: 1 day}, nulls: exclude, outside: exclude}
          - {name: v, type: integer, domain: {min: 0, max: 9, step: 1}, nulls: exclude, outside: exclude}
%[8]s`, names, neighbors, accountant, pick("0", "1"), pick("0", "1024"), rows, pick("true", "false"), of, delta)
	return openSides(t, text, rows, change)
}

// openSides opens a policy over a database and over its neighbour, and the first as it is without dpproxy.
func openSides(t *testing.T, text string, rows int, change string) (sides [2]*promised, truth *sql.DB) {
	t.Helper()
	for i, changed := range []string{"", change} {
		dir := memory.Dir(t)
		db, err := sql.Open("duckdb", filepath.Join(dir, "lab.duckdb"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(fmt.Sprintf(promisedSQL, rows, rows, changed)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if truth, err = sql.Open("duckdb", ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { truth.Close() })
			if _, err := truth.Exec(fmt.Sprintf(promisedSQL, rows, rows, "")); err != nil {
				t.Fatal(err)
			}
		}
		db.Close()
		path := filepath.Join(dir, "policy.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
		h, err := service.Open(context.Background(), path, ledger.Options{Clock: func() time.Time { return now }}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		sides[i] = &promised{h, pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics()), h.Policy().Datasets[0]}
	}
	return sides, truth
}

// question is a random statement with its session's settings.
type question struct {
	sql      string
	epsilon  string
	maxError float64
	release  bool
}

func randomQuestion(r *mathrand.Rand) question {
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	condition := func() string {
		switch r.Intn(6) {
		case 0:
			return fmt.Sprintf("a < %d", 1+r.Intn(19))
		case 1:
			return fmt.Sprintf("a BETWEEN %d AND %d", r.Intn(10), 10+r.Intn(10))
		case 2:
			return pick("b = 'x'", "b IN ('x', 'y')", "b <> 'z'", "NOT b = 'y'")
		case 3:
			return fmt.Sprintf("d >= date '2024-01-01' + %d", r.Intn(300))
		case 4:
			return fmt.Sprintf("v = %d OR a = %d", r.Intn(10), r.Intn(20))
		}
		return fmt.Sprintf("v > %d AND b = 'x'", r.Intn(9))
	}
	q := question{epsilon: pick("0.1", "0.2", "0.5"), maxError: []float64{0, 0, 0, 60, 20, 1}[r.Intn(6)], release: r.Intn(4) == 0}
	switch r.Intn(8) {
	case 0:
		q.sql = "SELECT b, count(*) AS n FROM t WHERE " + condition() + " GROUP BY b ORDER BY b"
	case 1:
		q.sql = "SELECT count(*) FILTER (WHERE " + condition() + ") AS n, count(*) AS m FROM t"
	case 2:
		q.sql = "SELECT extract(month FROM d) AS k, count(*) AS n FROM t GROUP BY 1 ORDER BY 1"
	case 3:
		q.sql = pick("SELECT sum(v) AS n FROM t WHERE ", "SELECT avg(v) AS n FROM t WHERE ", "SELECT min(uid) AS n FROM t WHERE ", "SELECT a FROM t WHERE ") + condition()
	default:
		q.sql = "SELECT count(*) AS n FROM t WHERE " + condition()
	}
	return q
}

// ask answers a statement, and returns its rows, and what the ledger says that it cost.
func (p *promised) ask(t *testing.T, user int, q question, prefix string) (rows [][]policy.Value, cost string, refused string) {
	t.Helper()
	ctx, name := context.Background(), fmt.Sprintf("u%d", user)
	s := &pipeline.Session{User: name, Database: p.data.ID, Policy: p.service.Policy(), Dataset: p.data}
	e, err := privacy.ParseEpsilon(q.epsilon)
	if err != nil {
		t.Fatal(err)
	}
	s.Settings.Settings = plans.Settings{Epsilon: e, Confidence: p.data.Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC, MaxError: q.maxError, Release: q.release}
	before, err := p.service.Ledger.Balance(ctx, name, p.data.ID)
	if err != nil {
		t.Fatal(err)
	}
	statements, refusal := parse.Parse(prefix + q.sql)
	if refusal != nil {
		t.Fatal(refusal)
	}
	r, err := p.answers.Answer(ctx, s, statements[0], nil)
	after, failed := p.service.Ledger.Balance(ctx, name, p.data.ID)
	if failed != nil {
		t.Fatal(failed)
	}
	spent := after.Spent
	spent.Epsilon = privacy.MicroEpsilon(spent.Epsilon.Micro() - before.Spent.Epsilon.Micro())
	spent.Rho = privacy.PicoRho(spent.Rho.Pico() - before.Spent.Rho.Pico())
	if cost = spent.String(); spent.IsZero() {
		cost = "nothing"
	}
	if err != nil {
		var told *refuse.Refusal
		if refused = err.Error(); errors.As(err, &told) {
			refused += " " + told.Hint
		}
		return nil, cost, refused
	}
	return r.Rows.Value().Data, cost, ""
}

// told is what EXPLAIN (FORMAT JSON) says.
type told struct {
	Plan struct {
		Cost   string
		Leaves []struct {
			Kind string
			From string `json:"Answered From"`
		} `json:"Plans"`
		Columns []struct {
			Name  string
			Error string `json:"Expected Error"`
		}
	}
}

var plusMinus = regexp.MustCompile(`^±(\d+) a value`)

// fresh is how far a row of a fresh count is off, and how far EXPLAIN says that it is.
func (e told) fresh(t *testing.T, truth *sql.DB, q question, rows [][]policy.Value, row int) (off, width float64, ok bool) {
	t.Helper()
	for _, l := range e.Plan.Leaves {
		if l.From != "a fresh count" || l.Kind == "range" {
			return 0, 0, false
		}
	}
	at := len(e.Plan.Columns) - 1
	if e.Plan.Columns[0].Name == "n" {
		at = 0
	}
	k := plusMinus.FindStringSubmatch(e.Plan.Columns[at].Error)
	if k == nil {
		return 0, 0, false
	}
	row %= len(rows)
	width, err := strconv.ParseFloat(k[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return float64(rows[row][at].(int64)) - trueCount(t, truth, q.sql, row, at), width, true
}

// judged counts answers that are further off than EXPLAIN says, and those that are as far off as it says or further.
type judged struct{ asked, beyond, reached int }

func (j *judged) see(off, k float64) {
	j.asked++
	if off < 0 {
		off = -off
	}
	if off > k {
		j.beyond++
	}
	if off >= k {
		j.reached++
	}
}

// verdict: k is the least with P(|X| > k) ≤ 5 %, so answers are beyond it with at most that chance, and reach it with
// more. Both are judged as binomials, each alarming falsely with probability at most a.
func (j judged) verdict(a stattest.Alarm) error {
	if err := (stattest.Coverage{Hits: j.asked - j.beyond, Trials: j.asked, Claim: .95}).AtLeast(a); err != nil {
		return fmt.Errorf("the errors told are too small: %w", err)
	}
	if err := (stattest.Coverage{Hits: j.reached, Trials: j.asked, Claim: .05}).AtLeast(a); err != nil {
		return fmt.Errorf("the errors told are too large: %w", err)
	}
	return nil
}

// TestExplainIsKept: for random policies, releases and questions, EXPLAIN's cost is what the ledger charges; over two
// neighbouring databases EXPLAIN, the costs and the refusals are equal, byte for byte; and the errors are those that
// EXPLAIN says. Many users ask the same, so that each fresh count is drawn many times; a declared release is drawn once
// and is not judged. Two judgements alarm falsely with probability at most 10⁻⁶ each; that they catch errors half and
// twice as large is shown on the same answers.
func TestExplainIsKept(t *testing.T) {
	kit.Beside(t)
	const seed, users, policies, questions = 11, 16, 4, 14
	r := mathrand.New(mathrand.NewSource(seed))
	var fair, small, large judged
	free, bought, refusals := 0, 0, 0
	for range policies {
		sides, truth := randomPolicy(t, r, users)
		for range questions {
			q := randomQuestion(r)
			var plans, costs, refused [2]string
			for i, side := range sides {
				rows, _, why := side.ask(t, 0, q, "EXPLAIN (FORMAT JSON) ")
				plans[i] = why + fmt.Sprint(rows)
				_, costs[i], refused[i] = side.ask(t, 0, q, "")
			}
			if plans[0] != plans[1] || costs[0] != costs[1] || refused[0] != refused[1] {
				t.Errorf("seed %d, %+v: over neighbouring databases\n%s %s %s\n%s %s %s", seed, q, plans[0], costs[0], refused[0], plans[1], costs[1], refused[1])
			}
			if refused[0] != "" {
				if refusals++; costs[0] != "nothing" {
					t.Errorf("%+v is refused and costs %s", q, costs[0])
				}
				continue
			}
			for u := 1; u < users; u++ {
				plan, _, why := sides[0].ask(t, u, q, "EXPLAIN (FORMAT JSON) ")
				if why != "" {
					t.Fatal(why)
				}
				var says []told
				if err := json.Unmarshal([]byte(plan[0][0].(string)), &says); err != nil || len(says) != 1 {
					t.Fatal(err, plan)
				}
				rows, cost, _ := sides[0].ask(t, u, q, "")
				if cost != says[0].Plan.Cost {
					t.Errorf("%+v: EXPLAIN says %s, charged %s", q, says[0].Plan.Cost, cost)
				}
				if cost == "nothing" {
					free++
					continue
				}
				bought++
				if off, width, ok := says[0].fresh(t, truth, q, rows, u); ok {
					fair.see(off, width)
					small.see(off, float64(int(width/2)))
					large.see(off, 2*width)
				}
			}
		}
	}
	t.Logf("seed %d: %d bought, %d free, %d refused; of %d fresh counts %d are further off than EXPLAIN says (5 %% are %d), %d as far or further",
		seed, bought, free, refusals, fair.asked, fair.beyond, fair.asked/20, fair.reached)
	if err := fair.verdict(1e-6); err != nil {
		t.Error(err)
	}
	if small.verdict(1e-6) == nil || large.verdict(1e-6) == nil {
		t.Errorf("errors half or twice as large would not be found: %+v %+v", small, large)
	}
	if fair.asked < 300 || free == 0 || refusals == 0 {
		t.Errorf("too little was tried")
	}
}

// trueCount is a cell of a statement's answer without noise.
func trueCount(t *testing.T, db *sql.DB, statement string, row, column int) float64 {
	t.Helper()
	rows, err := db.Query(statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; rows.Next(); i++ {
		values := make([]any, len(columns))
		for c := range values {
			values[c] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		if i == row {
			switch n := (*values[column].(*any)).(type) {
			case int64:
				return float64(n)
			case *big.Int: // a sum
				f, _ := new(big.Float).SetInt(n).Float64()
				return f
			case nil: // a sum to which no row belongs, which is 0 for analysts
				return 0
			default:
				t.Fatalf("%s: %v", statement, n)
			}
		}
	}
	return 0
}
