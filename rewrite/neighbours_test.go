package rewrite_test

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// neighbourPolicy is joinPolicy with one more table, whose join key is unique nowhere, and releases.
var neighbourPolicy = strings.Replace(strings.Replace(joinPolicy, "max_rows_per_unit: 4\n", "max_rows_per_unit: 4\n        extremes: true\n", 1), "      - name: wards\n", `      - name: calls
        source: clinic.calls
        unit: calls.who = people.person_id
        max_rows_per_unit: 3
        columns:
          - {name: secs, type: double precision, domain: {min: 0, max: 60, step: 5}, outside: clamp}
          - {name: paid, type: bigint, domain: {min: -1000, max: 1000, step: 100}}
          - {name: moment, type: timestamp, domain: {min: 2025-01-01, max: "2025-01-07 23:59:59", step: 1 hour}}
          - {name: kind, type: text, domain: {values: [in, out]}}
          - {name: remark, source: kind, type: text, domain: any}
          - {name: visit, type: integer, keys: join}
        releases:
          - {kind: range, columns: [moment], epsilon: 0.1, insist: true}
          - {kind: histogram, columns: [kind, paid], epsilon: 1}
      - name: wards
`, 1)

// variants are the policies that the statements are measured under: both relations of neighbours, and all rules for
// values outside domains and for NULL. Tests share them, and change none.
func variants(t testing.TB, d dialect.Dialect) map[string]*policy.Policy {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.variants[d.PostgreSQLs] == nil {
		list := map[string]*policy.Policy{}
		for name, text := range variantTexts() {
			list[name] = parsedFor(t, text, d)
			shared.asked[list[name]] = plans.Contribution{
				Ladder: strings.HasSuffix(name, ", totals"), Rows: strings.Contains(name, ", by rows")}
			for _, table := range list[name].Datasets[0].Tables { // few enough rows that ends of domains are reached
				table.AnyRows = strings.HasSuffix(name, ", any rows") && table.MaxRowsPerUnit > 1
			}
		}
		shared.variants[d.PostgreSQLs] = list
	}
	return maps.Clone(shared.variants[d.PostgreSQLs])
}

// withBounds are the names of the variants that bound rows, in order: under the others most statements are refused.
func withBounds(all map[string]*policy.Policy) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
		return strings.HasSuffix(name, ", any rows")
	})
}

// shared is what tests have parsed, planned and rendered already: a dozen of them ask the same hundreds of statements
// under the same policies.
var shared = struct {
	sync.Mutex
	variants map[bool]map[string]*policy.Policy // by whether the private database speaks PostgreSQL
	plans    map[asking]*plans.Plan
	measures map[rendering][]measured
	asked    map[*policy.Policy]plans.Contribution // of variants: what bounds a unit
}{asked: map[*policy.Policy]plans.Contribution{},
	variants: map[bool]map[string]*policy.Policy{}, plans: map[asking]*plans.Plan{},
	measures: map[rendering][]measured{}}

// asking is all that the plan of a statement depends on in these tests.
type asking struct {
	policy    *policy.Policy
	statement string
	epsilon   privacy.Epsilon
	release   bool
}

type rendering struct {
	asking
	dialect dialect.Dialect
}

func variantTexts() map[string]string {
	replaceOne := strings.NewReplacer("    accountant: pure\n", "    neighbors: replace-one\n    units: 50\n    accountant: pure\n")
	ruled := strings.NewReplacer("max: 9, step: 1}}\n          - {name: cost", "max: 9, step: 1}, outside: clamp}\n          - {name: cost",
		"max: 10, step: 0.5}}", "max: 10, step: 0.5}, outside: clamp, nulls: exclude}", "values: [A, B, C]}", "values: [A, B, C]}, outside: exclude, nulls: exclude",
		"values: [in, out]}", "values: [in, out]}, outside: exclude", "max: 1000, step: 100}", "max: 1000, step: 100}, outside: clamp, nulls: exclude")
	grouped := strings.NewReplacer("max_rows_per_unit: 4\n", "max_groups_per_unit: 2\n        max_rows_per_group: 2\n",
		"max_rows_per_unit: 3\n", "max_groups_per_unit: 3\n        max_rows_per_group: 1\n")
	// Keys that are declared unique and are not: the SQL must enforce them. In each of the two another one is.
	shared := strings.NewReplacer("        source: clinic.calls\n", "        source: clinic.calls\n        unique: [visit]\n")
	composite := strings.NewReplacer("        source: clinic.calls\n", "        source: clinic.calls\n        unique: [[kind, visit]]\n",
		"        source: clinic.doses\n", "        source: clinic.doses\n        unique: [visit]\n")
	ranked := strings.NewReplacer("visits.who = people.person_id\n", "visits.who = people.person_id\n        row_rank: rank\n", "calls.who = people.person_id\n", "calls.who = people.person_id\n        row_rank: rank\n")
	squares := strings.NewReplacer("accountant: pure", "accountant: zcdp", "cap: {epsilon: 20}",
		"cap: {epsilon: 20, delta: 1e-6}", "alice: {epsilon: 3}", "alice: {epsilon: 3, delta: 1e-7}")
	return map[string]string{"add-remove, squares, totals": squares.Replace(neighbourPolicy),
		"replace-one, squares, totals":  squares.Replace(replaceOne.Replace(neighbourPolicy)),
		"add-remove, any rows":          neighbourPolicy,
		"add-remove, by rows, any rows": neighbourPolicy,
		"replace-one, any rows":         replaceOne.Replace(neighbourPolicy), "add-remove, totals": neighbourPolicy,
		"replace-one, totals": replaceOne.Replace(neighbourPolicy),
		"add-remove, no units, totals": strings.Replace(neighbourPolicy,
			"    accountant: pure\n", "    accountant: pure\n    null_unit: each\n", 1),
		"add-remove, unique, totals": shared.Replace(neighbourPolicy),
		"add-remove":                 neighbourPolicy, "replace-one": replaceOne.Replace(neighbourPolicy),
		"add-remove, other rules": ruled.Replace(neighbourPolicy), "replace-one, other rules": ruled.Replace(replaceOne.Replace(neighbourPolicy)),
		"add-remove, no units":         strings.Replace(neighbourPolicy, "    accountant: pure\n", "    accountant: pure\n    null_unit: each\n", 1),
		"add-remove, no units, groups": strings.Replace(grouped.Replace(neighbourPolicy), "    accountant: pure\n", "    accountant: pure\n    null_unit: each\n", 1),
		"add-remove, no units, unique": strings.Replace(shared.Replace(neighbourPolicy), "    accountant: pure\n", "    accountant: pure\n    null_unit: each\n", 1),
		"add-remove, unique":           shared.Replace(neighbourPolicy), "replace-one, unique": composite.Replace(replaceOne.Replace(neighbourPolicy)),
		"add-remove, ranked": ranked.Replace(neighbourPolicy), "replace-one, ranked": ranked.Replace(replaceOne.Replace(neighbourPolicy)),
		"add-remove, groups": grouped.Replace(neighbourPolicy), "replace-one, groups": grouped.Replace(replaceOne.Replace(neighbourPolicy))}
}

// askedOfTexts are statements about texts that nobody declared.
var askedOfTexts = []string{
	`SELECT count(*) FROM calls WHERE remark LIKE '%n%'`,
	`SELECT left(remark, 1), count(*) FROM calls WHERE left(remark, 1) IN ('i', 'o', 'z') GROUP BY 1`,
	`SELECT remark LIKE 'i_', kind, count(*), sum(paid) FROM calls GROUP BY 1, 2`,
	`SELECT p.sex, count(*) FROM people p LEFT JOIN calls c ON c.who = p.person_id AND c.remark NOT LIKE '%o%u%' GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT p.person_id, count(c.visit) AS n FROM people p LEFT JOIN calls c ON c.who = p.person_id AND c.remark NOT LIKE 'o%' GROUP BY 1) t GROUP BY 1`,
	`SELECT sex, count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM calls c WHERE c.who = p.person_id AND c.remark ILIKE 'OUT') GROUP BY 1`,
	`SELECT sum(length(remark)), avg(strpos(remark, 't')) FROM calls`,
	`SELECT a.remark LIKE 'i%', count(*) FROM calls a JOIN calls b ON a.who = b.who WHERE right(b.remark, 1) = 't' GROUP BY 1`,
	`SELECT count(DISTINCT who) FROM calls WHERE split_part(substring(remark FROM 1 FOR 9), 'u', 2) = 't' OR trim(upper(remark)) = 'IN' OR remark IS NULL`,
	`SELECT count(*) FROM calls WHERE remark LIKE '%\_%' OR remark IN ('in', 'in ')`,
}

// moreStatements are measured besides those that are compared with the analyst's own SQL.
var moreStatements = append([]string{
	`SELECT count(*) FROM calls`,
	`SELECT kind, count(*), count(secs), sum(secs), avg(secs), sum(paid), avg(paid), stddev(secs) FROM calls GROUP BY 1`,
	`SELECT sum(paid) FILTER (WHERE secs > 20), sum(CASE WHEN kind = 'in' THEN 10 ELSE -5 END) FROM calls`,
	`SELECT extract(hour FROM moment) h, count(*) FROM calls WHERE paid BETWEEN -350 AND 275 GROUP BY 1`,
	`SELECT count(*) FROM calls WHERE moment >= '2025-01-02' AND moment < '2025-01-05'`,
	`SELECT h, count(*) FROM (SELECT DISTINCT who, date_bin('2 hours', moment, timestamp '2025-01-01') AS h FROM calls) t GROUP BY 1`,
	`SELECT kind, paid < 0, count(*) FROM calls GROUP BY 1, 2`,
	`SELECT c.kind, v.ward, count(*) FROM calls c JOIN visits v ON c.visit = v.visit GROUP BY 1, 2`,
	`SELECT a.kind, count(*) FROM calls a JOIN calls b ON a.visit = b.visit GROUP BY 1`,
	`SELECT a.kind, b.kind, count(*), sum(a.paid) FROM calls a JOIN calls b ON a.who = b.who AND a.visit = b.visit AND a.secs < 30 GROUP BY 1, 2`,
	`SELECT p.sex, count(*) FROM people p JOIN visits v ON p.person_id = v.who JOIN calls c ON c.who = v.who WHERE c.secs > 10 GROUP BY 1`,
	`SELECT p.sex, v.ward, c.kind, count(*) FROM people p LEFT JOIN visits v ON v.who = p.person_id LEFT JOIN calls c ON c.who = p.person_id GROUP BY 1, 2, 3`,
	`SELECT p.sex, count(*), count(v.who), sum(v.minutes) FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.ward = 'A' GROUP BY 1`,
	`SELECT c.kind, count(*) FROM calls c LEFT JOIN doses d ON d.visit = c.visit AND d.drug = 'x' GROUP BY 1`,
	`SELECT d.drug, count(*) FROM doses d JOIN calls c USING (visit) GROUP BY 1`,
	`SELECT a.drug, b.drug, count(*) FROM doses a JOIN doses b ON a.visit = b.visit GROUP BY 1, 2`,
	`SELECT count(*) FROM calls c JOIN visits v ON v.who = c.who WHERE c.moment - v.day > interval '3 days 5 hours'`,
	`SELECT kind, CASE WHEN a.moment - b.moment >= interval '1 hour' THEN a.drug END, count(*) FROM (SELECT c.who, c.kind, c.moment, d.drug FROM calls c JOIN doses d ON d.visit = c.visit) a JOIN (SELECT who, moment FROM calls) b ON a.who = b.who GROUP BY 1, 2`,
	`SELECT count(*), sum(CASE WHEN 3 * paid - minutes > 0 THEN 1 END), count(*) FILTER (WHERE paid > 100 * visits.room) FROM calls JOIN visits ON visits.who = calls.who`,
	`SELECT count(*) FROM (SELECT * FROM (SELECT who, minutes FROM visits WHERE minutes > 0) x WHERE minutes < 8) y`,
	`SELECT m, count(*) FROM (SELECT who, max(n) AS m FROM (SELECT who, ward, count(*) AS n FROM visits GROUP BY 1, 2) t GROUP BY who) u GROUP BY m`,
	`SELECT s, count(*) FROM (SELECT p.person_id, sum(v.minutes) AS s FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1) t GROUP BY s`,
	`SELECT n, count(*) FROM (SELECT who, visit, count(*) AS n FROM calls GROUP BY 1, 2 HAVING count(*) > 1) t GROUP BY 1`,
	`SELECT sum(n), avg(n), sum(n * n) FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t`,
	`SELECT sum(s), avg(s) FROM (SELECT who, sum(paid) AS s FROM calls GROUP BY who) t WHERE s > 50`,
	`SELECT a, b, count(*) FROM (SELECT who, min(secs) AS a, max(paid) AS b FROM calls WHERE kind = 'in' GROUP BY who) t GROUP BY 1, 2`,
	`SELECT d, count(*) FROM (SELECT who, count(DISTINCT day) AS d FROM visits GROUP BY who) t GROUP BY 1`,
	`SELECT d, count(*) FROM (SELECT who, count(DISTINCT visit) AS d FROM calls WHERE kind = 'in' GROUP BY who) t GROUP BY 1`,
	`SELECT m, w, n, count(*) FROM (SELECT who, extract(month FROM day)::int AS m, ward AS w, count(*) AS n FROM visits GROUP BY 1, 2, 3) t GROUP BY 1, 2, 3`,
	`SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM visits GROUP BY who HAVING count(*) > 2) GROUP BY 1`,
	`SELECT sex, count(*) FROM people WHERE person_id NOT IN (SELECT who FROM calls WHERE paid < 0) AND person_id IN (SELECT who FROM visits) GROUP BY 1`,
	`SELECT kind, count(*), sum(paid) FROM calls c WHERE EXISTS (SELECT 1 FROM calls o WHERE o.visit = c.visit AND o.kind = 'out') GROUP BY 1`,
	`SELECT ward, sum(cost), count(*) FILTER (WHERE visit IN (SELECT visit FROM calls)) FROM visits GROUP BY 1`,
	`SELECT t.n, p.sex, sum(p.age) FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t RIGHT JOIN people p ON p.person_id = t.who GROUP BY 1, 2`,
	`SELECT t.n, u.m, count(*) FROM (SELECT who, count(*) AS n FROM calls GROUP BY who) t JOIN (SELECT who, sum(minutes) AS m FROM visits GROUP BY who) u ON t.who = u.who GROUP BY 1, 2`,
	`WITH v AS (SELECT who, ward, cost FROM visits WHERE cost > 1), c AS (SELECT who, secs FROM calls) SELECT v.ward, sum(v.cost), sum(c.secs) FROM v JOIN c ON v.who = c.who GROUP BY 1`,
	`SELECT w.floor, sum(v.cost), avg(c.paid) FROM visits v JOIN wards w ON v.ward = w.code JOIN calls c ON c.who = v.who GROUP BY 1`,
	`SELECT day, count(*) FROM visits GROUP BY 1`,
	`SELECT count(*) FROM visits WHERE day BETWEEN '2025-01-10' AND '2025-02-20' UNION ALL SELECT count(*) FROM calls WHERE moment < '2025-01-03 04:00'`,
	`SELECT secs > 22.5 OR NULL, paid < 150 AND NULL, paid IN (150, NULL), count(*) FROM calls GROUP BY 1, 2, 3`,
	`SELECT cost NOT BETWEEN 3.3 AND NULL, count(*), sum(minutes) FROM visits GROUP BY 1`,
	`SELECT secs > 22.5, paid < 150 OR moment::time <= '22:30', count(*), sum(CASE WHEN secs < 7.25 THEN 10 ELSE -5 END) FROM calls GROUP BY 1, 2`,
	`SELECT count(*) FROM visits v JOIN (SELECT who, ward, count(*) AS n FROM visits GROUP BY 1, 2) g ON g.who = v.who`,
}, askedOfTexts...)

// measured is one measure of a statement, and its SQL: the bounded form, and where people are unique, the proven one.
type measured struct {
	statement string
	measure   *plans.Measure
	query     rewrite.Query
}

// fault changes the SQL or the claim: what a mistake in the code would do.
type fault struct {
	name     string
	sql      func(string) string
	claimed  int64 // what claims are divided by
	required []string
}

var sound = fault{name: "none", sql: func(s string) string { return s }, claimed: 1}

// measures plans statements and writes their SQL, each once in all tests.
func measures(t testing.TB, p *policy.Policy, d dialect.Dialect, statements []string, epsilon privacy.Epsilon) []measured {
	t.Helper()
	var list []measured
	for i, text := range statements {
		of := rendering{asking{p, text, epsilon, i%2 == 0}, d}
		shared.Lock()
		plan, its := shared.plans[of.asking], shared.measures[of]
		shared.Unlock()
		if its == nil {
			if plan == nil {
				if plan = of.plan(t); plan == nil {
					continue
				}
			}
			its = renderedFor(t, text, plan, d)
			shared.Lock()
			shared.plans[of.asking], shared.measures[of] = plan, its
			shared.Unlock()
		}
		list = append(list, its...)
	}
	return list
}

// plan is the plan of a statement, or nil where it is refused, which is an error of the test's.
func (a asking) plan(t testing.TB) *plans.Plan {
	t.Helper()
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	parsed, refusal := parse.Parse(a.statement)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := planner.Build(parsed[0], nil, reuse.Context{Policy: a.policy, Dataset: a.policy.Datasets[0], User: "alice", Now: time.Unix(0, 0), Public: publicRows{},
		Settings: plans.Settings{Epsilon: a.epsilon, Confidence: confidence, Zone: time.UTC, Release: a.release,
			Contribution: shared.asked[a.policy]}})
	if refusal != nil {
		t.Errorf("%s: %s: %s", a.statement, refusal.ID, refusal.Message)
		return nil
	}
	return plan
}

// renderedFor are a plan's measures, each alone and, where it is read with others, as part of their scan.
func renderedFor(t testing.TB, text string, plan *plans.Plan, d dialect.Dialect) (list []measured) {
	t.Helper()
	for _, m := range plan.Measures {
		q, err := rewrite.Render(m, d)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list = append(list, measured{text, m, q})
	}
	together, err := rewrite.RenderAll(t.Context(), plan.Measures, d)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for i, q := range together {
		if len(q.Measures()) > 1 {
			list = append(list, measured{text, plan.Measures[i], q})
		}
	}
	return list
}

// silent is a spec whose noise is 0 but with a probability of 10^-400000: its release is the vector whose sensitivity
// is claimed.
func silent(s mechanisms.Spec) mechanisms.Spec {
	return otherNoise(s, func(mechanisms.Noise) mechanisms.Noise {
		return mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1, Den: 1_000_000}
	})
}

// otherNoise is a spec of counts with other noise.
func otherNoise(s mechanisms.Spec, by func(mechanisms.Noise) mechanisms.Noise) mechanisms.Spec {
	own := s.Counts()
	if own.Sums = slices.Clone(own.Sums); own.Sums == nil {
		own.Noise = by(own.Noise)
	}
	for i := range own.Sums {
		own.Sums[i].Noise = by(own.Sums[i].Noise)
	}
	s.Kind = &own
	return s
}

// groups runs a measure.
func (m measured) groups(t *testing.T, run engine, f fault, proven bool) []privacy.Group {
	t.Helper()
	text, args := m.query.SQL(), m.query.Args()
	for _, s := range m.query.Proven() {
		if proven && len(s.Ranks) == 0 && !slices.ContainsFunc(s.Needs, func(u rewrite.Unique) bool { return u.Table.Name != "people" }) {
			text, args = s.SQL(), s.Args()
		}
	}
	var groups []privacy.Group
	within := f.name == sound.name
	for _, row := range ofMeasure(t, m.query, run(t, f.sql(text), args)) {
		g := privacy.Group{Cells: make([]int32, m.query.Grain()), Counts: row[m.query.Grain():]}
		for i := range g.Cells {
			if g.Cells[i] = int32(row[i]); within && (row[i] < 0 || row[i] >= int64(m.measure.Size(i))) {
				t.Errorf("%s: cell %d of %d", m.statement, row[i], m.measure.Size(i))
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// observed is what a release observes of groups before noise.
func (m measured) observed(t *testing.T, groups []privacy.Group) []int64 {
	t.Helper()
	noisy, err := mechanisms.Release(silent(m.measure.Spec), m.measure.Place, mechanisms.Weighed(m.measure.Spec, privacy.Seal(groups), m.measure.Weigh), rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return noisy.Value().Observations
}

// shares holds two observations against the claim, counter by counter and together: 1 is what is claimed.
func (m measured) shares(one, other []int64, f fault) (l1, l2 float64) {
	spec, contribution := m.measure.Spec, m.measure.Contribution()
	hold := func(one, other []int64, spec mechanisms.Spec) {
		distance, squares := new(big.Int), new(big.Int)
		for i := range one {
			d := big.NewInt(max(one[i]-other[i], other[i]-one[i]))
			distance.Add(distance, d)
			squares.Add(squares, d.Mul(d, d))
		}
		if l, is := m.measure.Table.Derived.(*derived.Laddered); is && l.Root { // noise is by the squares alone
			distance.SetInt64(0)
		}
		l1 = max(l1, float(distance)*float64(f.claimed)/float64(spec.Sensitivity(contribution).L1))
		l2 = max(l2, float(squares)*float64(f.claimed*f.claimed)/float(spec.L2Squared(contribution)))
	}
	hold(one, other, spec)
	width := len(one) / spec.Counters
	for c := range spec.Counters {
		hold(one[c*width:(c+1)*width], other[c*width:(c+1)*width], spec.Only(c))
	}
	return l1, l2
}

func float(n *big.Int) float64 {
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}

// database runs queries, and takes new rows.
type database struct {
	dialect dialect.Dialect
	run     engine
	load    func(script string) error
}

func duckDatabase(t *testing.T) database {
	db := duckDB(t, neighbourTables)
	return remembering(dialect.DuckDB, duckQueries(db), func(script string) error { _, err := db.Exec(script); return err })
}

func postgresDatabase(t *testing.T) database {
	conn := postgresConn(t, neighbourTables)
	return remembering(dialect.PostgreSQL, postgresQueries(conn), func(script string) error {
		_, err := conn.PgConn().Exec(context.Background(), script).ReadAll()
		return err
	})
}

// snapshotDatabase has, beside the rows, a snapshot of them under variants of the policy, made anew when rows are
// loaded.
func snapshotDatabase(t *testing.T, names ...string) database {
	all, db := variants(t, dialect.DuckDB), duckDB(t, append(slices.Clone(neighbourTables), "CREATE SCHEMA stage"))
	var list []rewrite.Extraction
	var fields []rewrite.Staged
	seen := map[string]bool{}
	for _, name := range names {
		for _, table := range all[name].Datasets[0].Tables {
			if table.Public || table.Analysed() || seen[rewrite.Copied(table)] {
				continue
			}
			seen[rewrite.Copied(table)] = true
			e, err := rewrite.Extract(table, dialect.DuckDB)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range e.Fields {
				if f.OfUnit {
					fields = append(fields, rewrite.Staged{Table: fmt.Sprintf("private.stage.t%d", len(list)), Field: f.Name})
				}
			}
			list = append(list, e)
		}
	}
	var copying []string
	const units = "private.stage.units"
	for i, e := range list {
		text := e.SQL()
		for at, arg := range slices.Backward(e.Args()) {
			text = strings.ReplaceAll(text, fmt.Sprintf("$%d", at+1), dialect.QuoteText(fmt.Sprint(arg)))
		}
		copying = append(copying, fmt.Sprintf("CREATE OR REPLACE TABLE private.stage.t%d AS %s", i, text))
	}
	number, err := rewrite.Number(list[0].Table, fields, units)
	if err != nil {
		t.Fatal(err)
	}
	copying = append(copying, strings.Replace(number, "CREATE TABLE", "CREATE OR REPLACE TABLE", 1))
	for i, e := range list {
		arrange, err := e.Arrange(rewrite.Arrangement{Staged: fmt.Sprintf("private.stage.t%d", i), Numbers: units, Heavy: "private.stage.heavy", Most: int64(i%2) * 2, Parts: i % 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(arrange, marginalsOf(t, e)...) {
			copying = append(copying, strings.Replace(text, "CREATE TABLE", "CREATE OR REPLACE TABLE", 1))
		}
	}
	return remembering(dialect.Snapshot, duckQueries(db), func(script string) error {
		for _, text := range append([]string{script}, copying...) {
			if _, err := db.Exec(text); err != nil {
				return fmt.Errorf("%w\n%.600s", err, text)
			}
		}
		return nil
	})
}

// opened is an engine by its name; a snapshot is one under these variants of the policy.
func opened(t *testing.T, name string, names ...string) database {
	switch name {
	case "DuckDB":
		return duckDatabase(t)
	case "PostgreSQL":
		return postgresDatabase(t)
	}
	return snapshotDatabase(t, names...)
}

// remembering has a query run once on the rows that are loaded: many statements are counted by the same SQL.
func remembering(d dialect.Dialect, run engine, load func(script string) error) database {
	known := map[string][][]int64{}
	return database{d, func(t *testing.T, text string, args []any) [][]int64 {
		key := fmt.Sprintf("%s\n%#v", text, args)
		rows, asked := known[key]
		if !asked {
			rows = run(t, text, args)
			known[key] = rows
		}
		return rows
	}, func(script string) error {
		clear(known)
		return load(script)
	}}
}

// turns are into how many parts the short audits divide what has to be tried with what: each statement under a fourth
// of the variants, each variant with a fourth of the statements; half of them in a night.
var turns = threats.ByNight(4, stattest.Length(2, 1))

// byTurns is the part of a list whose turn it is: all of it in the long audits.
func byTurns[T any](list []T, turn int) (part []T) {
	for i, item := range list {
		if i%turns == turn%turns {
			part = append(part, item)
		}
	}
	return part
}

// worst is the largest share of its claim that each statement's observations differed by.
type worst map[string]float64

// compare draws pairs of neighbouring databases and holds every measure against its claim. A fault is looked for until
// it has been found in each statement.
func (db database) compare(t *testing.T, r *rand.Rand, rounds int, statements []string, f fault, names []string) worst {
	t.Helper()
	all, list := variants(t, db.dialect), map[string][]measured{}
	for _, name := range names {
		list[name] = measures(t, all[name], db.dialect, statements, privacy.MicroEpsilon(100_000))
	}
	found := worst{}
	for round := range rounds {
		name := names[round%len(names)]
		unique := r.IntN(2) == 0
		both := nobody(r, 6)
		for id := range 4 {
			both.add(person(r, id, 6, unique))
		}
		sides := [2]tuples{{}, {}}
		for i := range sides {
			sides[i].add(both)
		}
		if strings.Contains(name, "no units") && r.IntN(3) > 0 { // one row that names nobody
			sides[0].add(stranger(r))
		} else {
			sides[0].add(person(r, 4, 14, unique))
		}
		if strings.HasPrefix(name, "replace-one") {
			sides[1].add(person(r, 4, 14, unique))
		}
		var observed [2][][]int64
		for i, side := range sides {
			if err := db.load(side.script(r)); err != nil {
				t.Fatal(err)
			}
			for _, m := range list[name] {
				observed[i] = append(observed[i], m.observed(t, m.groups(t, db.run, f, false)))
				if unique {
					observed[i] = append(observed[i], m.observed(t, m.groups(t, db.run, f, true)))
				}
			}
		}
		forms := len(observed[0]) / len(list[name])
		for i, m := range list[name] {
			for form := range forms {
				l1, l2 := m.shares(observed[0][i*forms+form], observed[1][i*forms+form], f)
				found[m.statement] = max(found[m.statement], l1, l2)
			}
		}
		if !slices.ContainsFunc(f.required, func(s string) bool { return found[s] <= 1 }) && len(f.required) > 0 {
			break
		}
	}
	return found
}

var variantNames = []string{
	"add-remove", "add-remove, ranked", "replace-one", "replace-one, ranked", "add-remove, other rules",
	"replace-one, other rules", "add-remove, groups", "replace-one, groups", "add-remove, no units",
	"add-remove, no units, groups", "add-remove, unique", "replace-one, unique", "add-remove, totals",
	"replace-one, totals", "add-remove, unique, totals",
	"add-remove, no units, totals",
}

// TestAuditNeighbours: what a unit's rows move, whatever they are, is at most what the plan claims, in every statement,
// on both engines, under both relations of neighbours.
func TestAuditNeighbours(t *testing.T) {
	t.Parallel()
	const seed = 4411
	t.Logf("seed %d", seed)
	rounds := stattest.Length(len(variantNames)/3, 1200)
	statements := slices.Concat(joinStatements, viewStatements, lookupStatements, matchStatements, usingStatements, sumStatements, moreStatements, unitStatements, windowStatements, tiedStatements, unionStatements, listStatements, listedStatements, jointStatements, fullStatements)
	for _, name := range []string{"DuckDB", "PostgreSQL", "snapshot"} {
		t.Run(name, func(t *testing.T) {
			names := variantNames
			if rounds < len(names) { // a third of them on each engine
				names = nil
				for i, variant := range variantNames {
					if (i+i/6)%3 == slices.Index([]string{"DuckDB", "PostgreSQL", "snapshot"}, name) {
						names = append(names, variant)
					}
				}
			}
			db, found := opened(t, name, names...), worst{}
			for turn := range turns {
				r := rand.New(rand.NewPCG(seed, uint64(len(name)+turn)))
				maps.Copy(found, db.compare(t, r, rounds/turns, byTurns(statements, turn), sound, byTurns(names, turn)))
			}
			attained, half := 0, 0
			for _, s := range statements {
				switch share := found[s]; {
				case share > 1:
					t.Errorf("%s\nmoves by %.3f times its claim", s, share)
				case share == 0 && rounds > 100:
					t.Errorf("%s\nis moved by nothing: the test shows nothing", s)
				case share == 1:
					attained++
				case share >= 0.5:
					half++
				}
			}
			t.Logf("%d statements, %d pairs of databases: %d statements moved by all that they claim, %d more by half of it", len(statements), rounds, attained, half)
			if attained < len(statements)/4 {
				t.Errorf("only %d of %d statements were moved by their claim: the databases are too tame", attained, len(statements))
			}
		})
	}
}

var (
	bounds     = regexp.MustCompile(`(\.r <=|LEAST\(s\.k,) \d+`)
	scanBounds = regexp.MustCompile(`(?s)^(WITH scan AS .*\.r <=) \d+`)
	unitsEqual = regexp.MustCompile(`\(a\d+\.u OPERATOR\(pg_catalog\.=\) b\d+\.u\)|\(CAST\(a\d+\.u AS VARCHAR\) = CAST\(b\d+\.u AS VARCHAR\)\)`)
	matches    = regexp.MustCompile(`(unnest\((?:'\{|CAST\('?\[))([0-9, ]+)()(\]|\}')`)
	rowOrder   = regexp.MustCompile(`(PARTITION BY b\.u) ORDER BY .*? NULLS LAST\)`) // all of it: the hash and the contents
	partition  = regexp.MustCompile(`(PARTITION BY )a\d+\.u`)
	tieOrder   = regexp.MustCompile(`(PARTITION BY a\d+\.u) ORDER BY .*? NULLS LAST\)`)
	// What keeps minutes within their domain: where they are normalised, and where they are added up. Not what the hash
	// counts them from.
	minutesClamps = regexp.MustCompile(`.*t\."minutes".*|LEAST\([^,]*, (?:CAST\('9' AS BIGINT\)|'9'::pg_catalog\.int8)\), (?:CAST\('-5' AS|'-5'::)`)
	minutesEnds   = strings.NewReplacer("'-5'::", "'-3000'::", "'9'::", "'3000'::", "CAST('-5' AS", "CAST('-3000' AS", "CAST('9' AS", "CAST('3000' AS")
)

// strangers puts a constant in the place of both units of a membership, or of a mark's join.
func strangers(s string) string {
	for pattern, with := range map[string]string{
		`(ROW\(|WHEN )a\d+\.u(,| OPERATOR)`: "${1}0$2", `\(CAST\(a\d+\.u AS VARCHAR\)(,|\) IN)`: "(0$1",
		`((?:ANY|IN) \(SELECT )(?:CAST\(b\d+\.u AS VARCHAR\)|b\d+\.u)`: "${1}0",
		`(SELECT DISTINCT )b\d+\.u( AS u)`:                             "${1}0$2", `(\(h\d+\.u OPERATOR\(pg_catalog\.=\) )a\d+\.u`: "${1}0", // where it is a join
	} {
		s = regexp.MustCompile(pattern).ReplaceAllString(s, with)
	}
	return s
}

// faults are found in the statements that they name.
var faults = []fault{
	{"bounding is switched off", func(s string) string { return bounds.ReplaceAllString(s, "$1 1000000") }, 1,
		[]string{sumStatements[1], joinStatements[0], joinStatements[10], moreStatements[0], joinStatements[7], viewStatements[0]}},
	{"sensitivity is halved", sound.sql, 2, []string{sumStatements[1], viewStatements[6], joinStatements[10], moreStatements[0], moreStatements[8]}},
	{"joins do not equate units", func(s string) string { return unitsEqual.ReplaceAllString(s, "true") }, 1,
		[]string{joinStatements[0], joinStatements[3]}},
	{"semi-joins do not equate units", strangers, 1, []string{joinStatements[11]}},
	{"each match is made twice", func(s string) string { return matches.ReplaceAllString(s, "${1}${2}${3},${2}${4}") }, 1,
		[]string{matchStatements[0], matchStatements[1], listedStatements[11]}},
	{"a clamp is dropped", func(s string) string { return minutesClamps.ReplaceAllStringFunc(s, minutesEnds.Replace) }, 1,
		[]string{sumStatements[1], sumStatements[9]}},
	{"rows are kept as they lie", func(s string) string { return rowOrder.ReplaceAllString(s, "$1)") }, 1,
		[]string{moreStatements[1]}},
	{"windows look across units", func(s string) string { return partition.ReplaceAllString(s, "${1}0") }, 1,
		[]string{windowStatements[10], windowStatements[14]}},
	{"rows that tie are numbered as they lie", func(s string) string { return tieOrder.ReplaceAllString(s, "$1)") }, 1,
		[]string{tiedStatements[0], tiedStatements[3]}},
	{"bounding is switched off where rows are read for several measures", func(s string) string { return scanBounds.ReplaceAllString(s, "$1 1000000") }, 1,
		[]string{jointStatements[0], jointStatements[1], jointStatements[5]}},
}

// ofTotals are found where counts and sums are of units' totals.
var ofTotals = []fault{
	{"each group is a unit", func(s string) string {
		return strings.ReplaceAll(s, "PARTITION BY t.u)", "PARTITION BY t.u, t.n1)")
	}, 1, []string{moreStatements[1], joinStatements[4]}},
	{"shares are of all parts for each step", func(s string) string { return partsLeft.ReplaceAllString(s, "t.q") }, 1,
		[]string{moreStatements[0], moreStatements[1], sumStatements[1]}},
	{"joins do not equate units", func(s string) string { return unitsEqual.ReplaceAllString(s, "true") }, 1,
		[]string{joinStatements[0]}},
	{"sensitivity is halved", sound.sql, 2, []string{moreStatements[0], sumStatements[1]}},
}

var partsLeft = regexp.MustCompile(`\(t\.q (?:-|OPERATOR\(pg_catalog\.-\)) t\.r\)`)

// inSnapshots is how many of the faults are in the SQL of a query over a snapshot.
const inSnapshots = 2

// TestAuditNeighboursFindsFaults plants the faults that the comparison is there for: each must move some statements
// beyond their claim.
func TestAuditNeighboursFindsFaults(t *testing.T) {
	const seed = 77
	t.Logf("seed %d", seed)
	for engine, name := range []string{"DuckDB", "PostgreSQL", "snapshot"} {
		db := opened(t, name, "add-remove", "replace-one")
		for i, f := range append(slices.Clone(faults), ofTotals...) {
			totals := i >= len(faults)
			if db.dialect.Ready && i >= inSnapshots {
				continue // it is in what makes a snapshot, or in how texts are compared
			}
			if !db.dialect.Ready && !threats.Night() && i%2 != engine {
				continue // each on one of the two
			}
			t.Run(name+", "+f.name, func(t *testing.T) {
				names := []string{"add-remove", "replace-one"}
				if slices.Contains(f.required, tiedStatements[0]) {
					names = []string{"add-remove, ranked", "replace-one, ranked"} // elsewhere numbering for the bound leaves rows sorted already
				}
				if totals {
					names = []string{"add-remove, totals", "replace-one, totals"}
				}
				found := db.compare(t, rand.New(rand.NewPCG(seed, 5)), 16, f.required, f, names)
				for _, s := range f.required {
					if found[s] <= 1 {
						t.Errorf("not found: %s\nmoves by %.3f times its claim", s, found[s])
					}
				}
			})
		}
	}
}
