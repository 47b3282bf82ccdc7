package rewrite_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

var stepPolicy = policytest.Over("duckdb:firm.duckdb") + `
  - id: firm
    unit: {name: person, key: hires.uid}
    accountant: ACCOUNTANT
    cap: {epsilon: 20, delta: 1e-6}
    budgets: {alice: {epsilon: 3, delta: 1e-6}}
    defaults: {epsilon: 1}
    tables:
      - name: hires
        source: SCHEMA.hires
        rows_per_unit_total: 3
        appends: hired
        columns:
          - {name: ward, type: text, domain: {values: [a, b, c]}}
          - {name: hired, type: date, domain: {min: 2024-01-01, max: 2024-01-24}}
        releases: [{kind: range, columns: [hired], epsilon: 1, insist: true}]
`

// hire is a row: of a person, on a day, seen from the end of another day on.
type hire struct {
	uid, day, added int
	ward            string
}

const stepDays = 24

// stepRelease is the measure of the release, as it is read when all days are closed.
func stepRelease(t *testing.T, accountant, schema string) *plans.Measure {
	t.Helper()
	return stepReleaseOf(t, stepPolicy, accountant, schema)
}

func stepReleaseOf(t *testing.T, text, accountant, schema string) *plans.Measure {
	t.Helper()
	p, err := policy.Parse([]byte(strings.NewReplacer("ACCOUNTANT", accountant, "SCHEMA", schema).Replace(text)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	statements, refusal := parse.Parse("SELECT count(*) FROM hires WHERE hired >= DATE '2024-01-02'")
	if refusal != nil {
		t.Fatal(refusal)
	}
	confidence, err := mechanisms.NewConfidence(.95)
	if err != nil {
		t.Fatal(err)
	}
	d := p.Datasets[0]
	plan, refusal := planner.Build(statements[0], nil, reuse.Context{Policy: p, Dataset: d, User: "alice", Now: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		Settings: plans.Settings{Epsilon: d.Defaults.Epsilon, Confidence: confidence, Zone: time.UTC}})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	if m := plan.Measures[0]; m.Continual == nil || m.Continual.Through != stepDays {
		t.Fatalf("measure %s has growth %+v", m.Name, m.Continual)
	}
	return plan.Measures[0]
}

// stepDatabase runs queries over a table that is filled anew.
type stepDatabase struct {
	schema string
	exec   func(text string)
	run    engine
}

func stepDatabases(t *testing.T) map[dialect.Dialect]stepDatabase {
	const table = `CREATE TABLE hires (uid integer, hired date, ward varchar)`
	db := duckDB(t, []string{table})
	conn := postgresConn(t, []string{strings.Replace(table, "hires", "public.hires", 1)})
	return map[dialect.Dialect]stepDatabase{
		dialect.DuckDB: {"main", func(text string) {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}, duckQueries(db)},
		dialect.PostgreSQL: {"public", func(text string) {
			if _, err := conn.Exec(context.Background(), text); err != nil {
				t.Fatal(err)
			}
		}, postgresQueries(conn)},
	}
}

func (db stepDatabase) fill(rows []hire, through int) {
	values := []string{"(NULL, NULL, NULL)"}
	for _, h := range rows {
		if h.added < through {
			values = append(values, fmt.Sprintf("(%d, DATE '2024-01-01' + %d, '%s')", h.uid, h.day, h.ward))
		}
	}
	db.exec("DELETE FROM " + db.schema + ".hires")
	db.exec("INSERT INTO " + db.schema + ".hires VALUES " + strings.Join(values, ", "))
}

// firstByDate is the order of a person's rows in a step's SQL: by date, and those of one date by their hash and
// contents.
var firstByDate = regexp.MustCompile(`ORDER BY b\.n2 ASC NULLS LAST, (.*? NULLS LAST)\)`)

// groups counts by day what a step reads; fault changes the SQL, where it is not nil.
func (db stepDatabase) groups(t *testing.T, m *plans.Measure, d dialect.Dialect, p mechanisms.Step, fault func(string) string) []privacy.Group {
	t.Helper()
	step, err := m.Step(p)
	if err != nil {
		t.Fatal(err)
	}
	q, err := rewrite.Render(step, d)
	if err != nil {
		t.Fatal(err)
	}
	text := q.SQL()
	if fault != nil {
		text = fault(text)
	}
	var groups []privacy.Group
	for _, row := range db.run(t, text, q.Args()) {
		groups = append(groups, privacy.Group{Cells: []int32{int32(row[0])}, Counts: row[1:]})
	}
	return groups
}

// counted is the twin: the first three rows of each person by day, of those that are there.
func counted(rows []hire, through, from, to int) map[int32]int64 {
	own := map[int][]int{}
	for _, h := range rows {
		if h.added < through {
			own[h.uid] = append(own[h.uid], h.day)
		}
	}
	out := map[int32]int64{}
	for _, days := range own {
		slices.Sort(days)
		for _, day := range days[:min(3, len(days))] {
			if day >= from && day < to {
				out[int32(day)]++
			}
		}
	}
	return out
}

// TestStepsOfNeighbours grows a release over random histories on both engines. What each step counts is what the twin
// counts of the days that the step reaches; and a person who has rows on many days, some of them added late, moves all
// observations together by no more than the release was calibrated to. Where a person's first rows by ward or by hash
// are counted instead of the first by date, more.
func TestStepsOfNeighbours(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	faults := []struct{ name, order string }{
		{"by ward", "ORDER BY b.n1 DESC NULLS LAST, b.n2 DESC NULLS LAST)"},
		{"by hash", "ORDER BY $1, b.n2 ASC NULLS LAST)"},
	}
	for d, db := range stepDatabases(t) {
		for _, accountant := range []string{"pure", "zcdp"} {
			t.Run(d.String()+" "+accountant, func(t *testing.T) {
				m, random, beyond := stepRelease(t, accountant, db.schema), rand.New(rand.NewPCG(seed, map[dialect.Dialect]uint64{dialect.PostgreSQL: 1, dialect.DuckDB: 2}[d])), map[string]bool{}
				limit := m.Continual.Spec.Sensitivity(m.Contribution())
				for range 12 {
					rows := history(random)
					others := slices.DeleteFunc(slices.Clone(rows), func(h hire) bool { return h.uid == 1 })
					moves := func(fault func(string) string) (l1, l2 int64) {
						with, without := db.observed(t, m, d, rows, fault, random), db.observed(t, m, d, others, nil, random)
						for i := range with {
							by := with[i] - without[i]
							l1, l2 = l1+max(by, -by), l2+by*by
						}
						return l1, l2
					}
					if l1, l2 := moves(nil); l1 > limit.L1 || l2 > limit.L2Squared {
						t.Fatalf("a person moves the observations by %d, %d, must be at most %v: %v", l1, l2, limit, rows)
					}
					for _, f := range faults {
						l1, l2 := moves(func(sql string) string {
							if !firstByDate.MatchString(sql) {
								t.Fatalf("a person's rows are not ordered by date: %s", sql)
							}
							return firstByDate.ReplaceAllString(sql, f.order)
						})
						beyond[f.name] = beyond[f.name] || l1 > limit.L1 || l2 > limit.L2Squared
					}
				}
				for _, f := range faults {
					if !beyond[f.name] {
						t.Errorf("not found: a person's rows are not counted by date, but %s", f.name)
					}
				}
			})
		}
	}
}

// TestStepsCountRowsOfNobody: where rows that name no unit are each a unit of their own, every step counts them, also
// steps that do not reach back to the first day.
func TestStepsCountRowsOfNobody(t *testing.T) {
	for d, db := range stepDatabases(t) {
		m := stepReleaseOf(t, strings.Replace(stepPolicy, "    cap:", "    null_unit: each\n    cap:", 1), "pure", db.schema)
		db.fill([]hire{{uid: 1, day: 20}, {uid: 1, day: 21}, {uid: 2, day: 3}}, stepDays)
		db.exec("INSERT INTO " + db.schema + ".hires VALUES (NULL, DATE '2024-01-21', 'a'), (NULL, DATE '2024-01-21', 'a'), (NULL, DATE '2024-01-05', 'a')")
		p := mechanisms.Step{From: 20, To: 21}
		for _, g := range db.groups(t, m, d, p, nil) {
			if g.Cells[0] == 20 && g.Counts[0] != 3 {
				t.Errorf("%s: the step counts %d rows of the last day, must be 3", d, g.Counts[0])
			}
		}
	}
}

// TestStepsOfNobodyTakeLinearWork: with as little work_mem as a server can have, a step over rows of which some name
// nobody reads the units of its days once, and not anew for each row, as it does with them in a sub-query beside OR.
func TestStepsOfNobodyTakeLinearWork(t *testing.T) {
	conn := postgresConn(t, []string{"CREATE TABLE public.hires (uid integer, hired date, ward varchar)",
		"INSERT INTO public.hires SELECT nullif(i % 20000, 0), DATE '2024-01-01' + i % 24, 'a' FROM generate_series(1, 60000) i", "ANALYZE", "SET work_mem = '64kB'", "SET enable_nestloop = off"})
	m := stepReleaseOf(t, strings.Replace(stepPolicy, "    cap:", "    null_unit: each\n    cap:", 1), "pure", "public")
	step, err := m.Step(mechanisms.Step{From: 20, To: 23})
	if err != nil {
		t.Fatal(err)
	}
	again := func(d dialect.Dialect) (plans []string, again int) {
		q, err := rewrite.Render(step, d)
		if err != nil {
			t.Fatal(err)
		}
		if d == dialect.PostgreSQL && !q.Joins() {
			t.Error("nested loops are not left out")
		}
		plans = marksPlans(t, conn, q)
		for _, plan := range plans {
			again += len(subPlan.FindAllString(plan, -1)) - len(hashedPlan.FindAllString(plan, -1)) + len(byPairs.FindAllString(plan, -1))
		}
		return plans, again
	}
	if plans, n := again(dialect.PostgreSQL); n > 0 {
		t.Errorf("what is read for each row\n%s", strings.Join(plans, "\n"))
	}
	if _, n := again(inExpressions()); n == 0 {
		t.Error("the memory is not small, or what is to be avoided does not happen")
	}
}

// history has 6 people with up to 9 rows each, some late; person 1 has most.
func history(random *rand.Rand) (rows []hire) {
	for uid := 1; uid <= 6; uid++ {
		for range 9 / min(uid, 3) {
			day := random.IntN(stepDays)
			rows = append(rows, hire{uid, day, day + max(0, random.IntN(9)-5), string(rune('a' + random.IntN(3)))})
		}
	}
	return rows
}

// observed is all that a release observes while it grows, without noise. Without a fault, it is held against the twin.
func (db stepDatabase) observed(t *testing.T, m *plans.Measure, d dialect.Dialect, rows []hire, fault func(string) string, random *rand.Rand) (all []int64) {
	t.Helper()
	spec := silent(m.Continual.Spec)
	for from := 0; from < stepDays; from += 4 {
		p := mechanisms.Step{From: from, To: from + 4}
		db.fill(rows, p.To)
		groups := db.groups(t, m, d, p, fault)
		reach, err := spec.Reach(p)
		if err != nil {
			t.Fatal(err)
		}
		if fault == nil {
			want := counted(rows, p.To, reach, p.To)
			for _, g := range groups {
				if want[g.Cells[0]] != g.Counts[0] {
					t.Fatalf("step %v counts %d on day %d, must be %d", p, g.Counts[0], g.Cells[0], want[g.Cells[0]])
				}
				delete(want, g.Cells[0])
			}
			if len(want) > 0 {
				t.Fatalf("step %v misses %v", p, want)
			}
		}
		part, err := mechanisms.Grow(spec, p, m.Place, privacy.Seal(groups), reader{random})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part.Value().Observations...)
	}
	return all
}

// reader reads random bytes.
type reader struct{ random *rand.Rand }

var _ io.Reader = reader{}

func (r reader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.random.Uint32())
	}
	return len(p), nil
}

// TestStepsReadAWindow holds the SQL of steps: with rows numbered, and where a constraint proves that each person has
// one.
func TestStepsReadAWindow(t *testing.T) {
	m := stepRelease(t, "pure", "public")
	step, err := m.Step(mechanisms.Step{From: 20, To: 21})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "step", step)
	m = stepReleaseOf(t, strings.Replace(stepPolicy, "    cap:", "    null_unit: each\n    cap:", 1), "pure", "public")
	if step, err = m.Step(mechanisms.Step{From: 20, To: 21}); err != nil {
		t.Fatal(err)
	}
	golden(t, "step_nobody", step)
}
