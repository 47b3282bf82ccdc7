package planner

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// documented are the forms of docs/sql.md, each with an example that is planned when the page is written.
var documented = []struct {
	title    string
	examples []string
}{
	{"Counts and keys", []string{
		`SELECT count(*) FROM people WHERE age >= 30 AND sex = 'Female'`,
		`SELECT sex, count(*) FROM people GROUP BY sex HAVING count(*) > 100 ORDER BY 2 DESC LIMIT 5`,
		`SELECT date_trunc('month', day), count(*) FILTER (WHERE ward = 'A') FROM visits GROUP BY 1`,
		`SELECT count(*) FROM visits WHERE ward IN ('A', 'B') OR day BETWEEN '2025-02-01' AND '2025-02-28'`,
		`SELECT sex, active, count(*) FROM people GROUP BY ROLLUP (sex, active)`,
		`SELECT ward, count(DISTINCT person_id) FROM visits GROUP BY ward`,
		`SELECT count(DISTINCT day) FROM visits`,
	}},
	{"Sums, averages and what is made of them", []string{
		`SELECT sum(income) FROM people`,
		`SELECT sex, avg(income), stddev(age), variance(age) FROM people GROUP BY sex`,
		`SELECT sum(CASE WHEN active THEN income ELSE 0 END) FROM people`,
		`SELECT sum(income * (1 - score)) FROM people`,
		`SELECT sum(p.income * r.rate - p.kids) FROM people p JOIN (VALUES ('Female', 1.5), ('Male', 0.25)) r(sex, rate) ON r.sex = p.sex`,
		`SELECT sum(income * CASE WHEN age < 30 THEN 2 ELSE 1 END) FROM people`,
		`SELECT sum(2), sum(CASE WHEN active THEN 5 END) FROM people`,
		`SELECT sum(age - 2 * kids + 3) FROM people`,
		`SELECT sum(income - coalesce(kids, 0)), sum(coalesce(income * kids, 0)) FROM people`,
		`SELECT avg(hired - DATE '2000-01-01') FROM people`,
		`SELECT corr(age, income), regr_slope(income, age) FROM people`,
		`SELECT bit_or(kids), bit_and(kids) FROM people`,
		`SELECT percent_rank(50000) WITHIN GROUP (ORDER BY income), rank(40) WITHIN GROUP (ORDER BY age DESC) FROM people`,
		`SELECT sum(DISTINCT age), avg(DISTINCT age) FROM people`,
		`SELECT sex, sum(DISTINCT kids) FROM people GROUP BY sex`,
		`SELECT sex, bool_or(age > 100), every(active) FROM people GROUP BY sex`,
	}},
	{"Sums and differences of columns in conditions and keys", []string{
		`SELECT count(*) FROM people WHERE income > age * 1000`,
		`SELECT CASE WHEN income - 1000 * age >= 50000 THEN 'rich' WHEN income < 1000 * age THEN 'poor' END, count(*) FROM people GROUP BY 1`,
		`SELECT (v.day - p.hired) / 365 AS years, count(*) FROM people p JOIN visits v ON v.person_id = p.person_id GROUP BY 1`,
		`SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.person_id AND p.income < p.age * 100)`,
		`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v.day - p.hired) FROM people p JOIN visits v ON v.person_id = p.person_id`,
	}},
	{"Totals, averages and quantiles of intervals", []string{
		`SELECT sex, avg(timestamptz '2024-04-01' - seen), sum(timestamptz '2024-04-01' - seen) FROM people GROUP BY sex`,
		`SELECT avg(age(date '2026-01-01', hired)) FROM people`,
		`SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY timestamptz '2024-04-01' - seen) FROM people`,
		`SELECT avg(coalesce(timestamptz '2024-04-01' - seen, '1 day')) FROM people`,
	}},
	{"Times of the day", []string{
		`SELECT count(*) FROM people WHERE seen::time >= '22:00' OR seen::time < '06:00'`,
		`SELECT date_trunc('hour', seen)::time, count(*) FILTER (WHERE seen::time BETWEEN '09:00' AND '17:00') FROM people GROUP BY 1`,
		`SELECT CASE WHEN seen::time < '12:00' THEN 'morning' ELSE 'later' END, to_char(seen::time, 'HH12 AM'), count(*) FROM people GROUP BY 1, 2`,
		`SELECT sex, avg(seen::time), percentile_disc(0.5) WITHIN GROUP (ORDER BY date_trunc('hour', seen)::time) FROM people GROUP BY sex`,
	}},
	{"Texts that nobody declared (`domain: any`)", []string{
		`SELECT count(*) FROM visits WHERE note NOT LIKE '%special%requests%'`,
		`SELECT ward, count(*) FILTER (WHERE note ILIKE '%late%'), count(*) FILTER (WHERE note IS NULL), avg(length(note)) FROM visits GROUP BY ward`,
		`SELECT left(note, 2), count(*) FROM visits WHERE left(note, 2) IN ('13', '31') GROUP BY 1`,
		`SELECT CASE WHEN position('late' IN note) > 0 THEN 'late' WHEN starts_with(note, 'Re:') THEN 'reply' END, count(*) FROM visits GROUP BY 1`,
		`SELECT n, count(*) FROM (SELECT p.person_id, count(v.referral) AS n FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND v.note NOT LIKE 'cancel%' GROUP BY 1) t GROUP BY 1`,
		`SELECT count(*) FROM visits WHERE split_part(lower(trim(note)), '@', 2) = 'example.org'`,
	}},
	{"Values in the order of a column", []string{
		`SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM people`,
		`SELECT sex, percentile_disc(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY income) FROM people GROUP BY sex`,
		`SELECT mode() WITHIN GROUP (ORDER BY ward) FROM visits`,
	}},
	{"Public lists that private rows meet, and choices among them", []string{
		`SELECT v.fruit, count(*) FROM people, LATERAL (VALUES ('apple', active), ('banana', age > 40)) v(fruit, likes) WHERE likes GROUP BY v.fruit`,
		`SELECT v.fruit FROM people, LATERAL (VALUES ('apple', active), ('banana', age > 40), ('cherry', kids > 2)) v(fruit, likes) WHERE likes GROUP BY v.fruit ORDER BY count(*) DESC LIMIT 1`,
		`SELECT x.fruit FROM (SELECT 'apple' AS fruit, count(*) FILTER (WHERE active) AS n FROM people UNION ALL SELECT 'banana', count(*) FROM people WHERE age > 40) x ORDER BY n DESC LIMIT 1`,
		`SELECT p.price FROM generate_series(1000, 90000, 1000) p(price) JOIN people b ON b.income >= p.price GROUP BY 1 ORDER BY p.price * count(*) DESC LIMIT 1`,
		`SELECT p.price FROM (VALUES (10), (20), (50)) p(price), people b WHERE b.age >= p.price GROUP BY 1 ORDER BY p.price * sum(b.kids) DESC LIMIT 1`,
	}},
	{"Alarms, with SET dp.alarms = 3", []string{
		`SELECT count(*) > 500 FROM people WHERE age > 60`,
		`SELECT 'alarm' FROM visits WHERE ward = 'A' HAVING count(*) >= 100`,
		`SELECT bool_or(active), every(age > 18) FROM people`,
	}},
	{"Joins along the unit, and with public tables", []string{
		`SELECT p.sex, v.ward, count(*) FROM people p JOIN visits v ON v.person_id = p.person_id GROUP BY 1, 2`,
		`SELECT p.sex, count(v.person_id) FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND v.ward = 'A' GROUP BY 1`,
		`SELECT p.sex, count(v.person_id) FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND v.day < ` +
			`p.hired GROUP BY 1`,
		`SELECT coalesce(f.a, 0), count(*) FROM people p LEFT JOIN (SELECT DISTINCT person_id, 1 AS a FROM visits ` +
			`WHERE ward = 'A') f USING (person_id) GROUP BY 1`,
		`SELECT a.ward, b.ward, count(*) FROM visits a JOIN visits b ON a.person_id = b.person_id WHERE a.day < b.day GROUP BY 1, 2`,
		`SELECT r.label, count(*) FROM visits v JOIN regions r ON r.code = v.ward GROUP BY 1`,
		`SELECT r.label, count(*) FROM visits v JOIN regions r ON r.code >= v.ward GROUP BY 1`,
		`SELECT count(*) FROM visits v JOIN regions r ON r.code >= v.ward`,
		`SELECT r.label, count(v.person_id) FROM regions r LEFT JOIN visits v ON v.ward = r.code GROUP BY 1`,
		`SELECT count(*) FILTER (WHERE b.person_id IS NULL), count(*) FILTER (WHERE a.person_id IS NULL), count(*) FROM (SELECT person_id FROM visits WHERE ward = 'A' GROUP BY 1) a FULL JOIN (SELECT person_id FROM visits WHERE ward = 'B' GROUP BY 1) b ON b.person_id = a.person_id`,
		`SELECT d::date, count(v.person_id) FROM generate_series(date '2025-01-01', date '2025-01-31', interval '1 day') d LEFT JOIN visits v ON v.day = d::date GROUP BY 1`,
		`SELECT b.name, count(p.person_id) FROM (VALUES ('young', 0, 29), ('old', 60, 120)) b(name, low, high) LEFT JOIN people p ON p.age BETWEEN b.low AND b.high GROUP BY 1`,
		`SELECT sex, count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.ward = 'B') GROUP BY 1`,
		`SELECT count(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits)`,
	}},
	{"Sub-queries that are answered first", []string{
		`SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)`,
		`SELECT sex, count(*) FILTER (WHERE age > (SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FROM people)) FROM people GROUP BY sex`,
		`SELECT count(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY 1 ORDER BY count(*) DESC LIMIT 2)`,
		`SELECT count(*) FROM people WHERE age < ALL (SELECT avg(age) FROM people GROUP BY sex)`,
		`SELECT day, ward, count(*) FROM visits JOIN (SELECT ward AS w, count(*) FROM visits GROUP BY 1 ORDER BY 2 DESC LIMIT 2) AS top ON ward = w GROUP BY 1, 2`,
		`WITH means AS (SELECT sex, avg(income) AS mean FROM people GROUP BY 1) SELECT p.sex, count(*) FROM people p JOIN means m ON m.sex = p.sex WHERE p.income > m.mean GROUP BY 1`,
		`SELECT count(*) FROM people p WHERE income > (SELECT 1.2 * avg(o.income) FROM people o WHERE o.sex = p.sex)`,
		`SELECT count(*) FROM visits WHERE ward < (SELECT max(code) FROM regions)`,
	}},
	{"Set operations over private rows", []string{
		`SELECT what, count(*) FROM (SELECT 'hired' AS what, person_id, hired AS d FROM people UNION ALL SELECT 'visit', person_id, day FROM visits) t WHERE d >= '2025-03-01' GROUP BY what`,
		`SELECT date_trunc('month', d), count(*), count(DISTINCT person_id) FROM (SELECT person_id, hired AS d FROM people UNION ALL SELECT person_id, day FROM visits) t GROUP BY 1`,
		`SELECT count(*) FROM (SELECT person_id FROM people WHERE age > 60 UNION SELECT person_id FROM visits WHERE ward = 'A') t`,
		`SELECT count(*) FROM (SELECT person_id FROM visits WHERE ward = 'A' INTERSECT SELECT person_id FROM visits WHERE ward = 'B') t`,
		`SELECT count(*) FROM (SELECT person_id FROM people EXCEPT SELECT person_id FROM visits WHERE day >= '2025-06-01') t`,
		`SELECT count(*) FROM (SELECT person_id, day FROM visits WHERE ward = 'A' INTERSECT SELECT person_id, day FROM visits WHERE ward = 'B') t`,
		`SELECT l, count(*) FROM (SELECT v.person_id, r.label AS l FROM visits v JOIN regions r ON r.code = v.ward UNION ALL SELECT person_id, sex FROM people) t GROUP BY 1`,
		`SELECT kids FROM people WHERE age > 60 INTERSECT SELECT kids FROM people WHERE age < 30`,
	}},
	{"Aggregates of each unit's rows", []string{
		`SELECT n, count(*) FROM (SELECT person_id, count(*) AS n FROM visits GROUP BY person_id) t GROUP BY n`,
		`SELECT avg(n) FROM (SELECT person_id, count(DISTINCT ward) AS n FROM visits GROUP BY person_id) t`,
		`SELECT n, count(*) FROM (SELECT person_id, count(DISTINCT referral) AS n FROM visits GROUP BY person_id) t GROUP BY n`,
		`SELECT ward, count(*) FROM (SELECT DISTINCT person_id, ward FROM visits) t GROUP BY ward`,
		`SELECT avg(a) FROM (SELECT avg(length(note)) AS a FROM visits GROUP BY person_id) t`,
		`SELECT b, count(*) FROM (SELECT bool_or(ward = 'A') AS b FROM visits GROUP BY person_id) t GROUP BY b`,
		`SELECT w, count(*) FROM (SELECT min(ward) AS w FROM visits GROUP BY person_id) t GROUP BY w`,
	}},
	{"Sub-queries over the row's own unit", []string{
		`SELECT p.sex, sum(q.n) FROM people p, LATERAL (SELECT count(*) AS n FROM visits v WHERE v.person_id = p.person_id) q GROUP BY 1`,
		`SELECT count(*) FROM people p WHERE (SELECT count(*) FROM visits v WHERE v.person_id = p.person_id AND v.ward = 'A') > 1`,
		`SELECT (SELECT count(*) FROM visits v WHERE v.person_id = p.person_id) AS n, count(*) FROM people p GROUP BY 1`,
		`SELECT count(*) FROM visits v WHERE v.day = (SELECT min(day) FROM visits o WHERE o.person_id = v.person_id)`,
		`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.person_id = v.person_id AND o.day < v.day) GROUP BY 1`,
		`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.person_id = v.person_id AND ` +
			`o.day > v.day AND o.day <= v.day + 30) GROUP BY 1`,
		`SELECT ward, count(*) FROM visits v WHERE v.day = (SELECT max(day) FROM visits o WHERE o.person_id = ` +
			`v.person_id AND o.ward = v.ward) GROUP BY 1`,
		`SELECT count(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE ward = 'A' EXCEPT SELECT ` +
			`person_id FROM visits WHERE ward = 'B')`,
	}},
	{"Window functions over each unit's rows", []string{
		`SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) t GROUP BY n`,
		`SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) t WHERE n = 1 GROUP BY ward`,
		`SELECT date_trunc('month', day), count(*) FROM (SELECT DISTINCT ON (person_id) person_id, day FROM visits ORDER BY person_id, day) first GROUP BY 1`,
		`SELECT avg(gap) FROM (SELECT day - lag(day) OVER (PARTITION BY person_id ORDER BY day) AS gap FROM visits) t`,
		`WITH steps AS (SELECT ward, lead(ward) OVER (PARTITION BY person_id ORDER BY day) AS next FROM visits) SELECT ward, next, count(*) FROM steps GROUP BY 1, 2`,
		`SELECT n, count(*) FROM (SELECT count(*) FILTER (WHERE ward = 'A') OVER (PARTITION BY person_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS n FROM visits) t GROUP BY n`,
		`SELECT sum(n) FROM (SELECT rank() OVER (PARTITION BY person_id ORDER BY day DESC) AS n FROM visits) t`,
	}},
	{"Above the counts: any SQL", []string{
		`SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward = r.code) FROM regions r`,
		`SELECT sex, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM people GROUP BY sex`,
		`WITH w AS (SELECT ward, count(*) AS n FROM visits GROUP BY ward) SELECT ward, rank() OVER (ORDER BY n DESC) FROM w WHERE n > 10`,
		`SELECT 'people' AS what, count(*) FROM people UNION ALL SELECT 'visits', count(*) FROM visits`,
	}},
}

// sqlVariants are the policies whose sensitivities the page shows beside each other.
var sqlVariants = []struct{ title, old, new string }{
	{"add-remove, 3 rows", "", ""},
	{"replace-one, 3 rows", "    neighbors: add-remove\n", "    neighbors: replace-one\n    units: 100000\n"},
	{"add-remove, 3 groups of 1 row", "max_rows_per_unit: 3", "max_groups_per_unit: 3\n        max_rows_per_group: 1"},
}

type regionRows struct{ reuse.NoCache }

func (regionRows) Rows(*policy.Table) ([][]policy.Value, bool) {
	return [][]policy.Value{{"A", "north"}, {"B", "south"}}, true
}

// TestSQLDocument holds docs/sql.md equal to what the planner does.
func TestSQLDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(sqlHead)
	b.WriteString("## What is answered, and what one unit can move\n\n" + sqlSensitivities)
	contexts := make([]reuse.Context, len(sqlVariants))
	heads, rule := []string{"statement"}, []string{"---"}
	for i, v := range sqlVariants {
		contexts[i] = testContext(t, testPolicy(t, v.old, v.new))
		contexts[i].Public = regionRows{}
		heads, rule = append(heads, v.title), append(rule, "---")
	}
	for _, d := range documented {
		fmt.Fprintf(&b, "### %s\n\n%s| %s |\n| %s |\n", d.title, sqlNotes[d.title], strings.Join(heads, " | "), strings.Join(rule, " | "))
		for _, sql := range d.examples {
			cells := []string{"`" + strings.ReplaceAll(sql, "|", "\\|") + "`"}
			for _, c := range contexts {
				if strings.Contains(d.title, "dp.alarms") {
					c.Settings.Alarms = 3
				}
				cells = append(cells, movedText(t, c, sql))
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
		b.WriteString("\n")
	}
	b.WriteString(sqlTypes + operationsText(t))
	b.WriteString("## What is not answered\n\nEach refusal is free, has a word, a reason and a hint; [refusals.md](refusals.md) shows all of them with examples.\n\n| refusal | example |\n| --- | --- |\n")
	for _, e := range catalogue() {
		if e.SQLState == "DP002" && e.Example != "" {
			fmt.Fprintf(&b, "| [%s](refusals.md#%[1]s-%s) | `%s` |\n", e.ID, strings.ToLower(e.SQLState), strings.ReplaceAll(e.Example, "|", "\\|"))
		}
	}
	compareGolden(t, "../docs/sql.md", b.String())
}

// movedText is what one unit moves in the measures of a statement.
func movedText(t *testing.T, c reuse.Context, sql string) string {
	t.Helper()
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatal(refusal)
	}
	plan, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		t.Errorf("%s: %v", sql, refusal)
		return "refused"
	}
	var all []string
	for _, m := range plan.Bought() {
		var counters []string
		for i := range m.Spec.Counters {
			if text := counterText(m, i); !slices.Contains(counters, text) {
				counters = append(counters, text)
			}
		}
		all = append(all, strings.Join(counters, "; "))
	}
	return strings.Join(slices.Compact(all), "; ")
}

// counterText is what one counter of a measure is moved by.
func counterText(m *plans.Measure, counter int) string {
	if mechanisms.Is[*mechanisms.Alarm](m.Spec) {
		return fmt.Sprintf("a run of alarms: each count moves by %d", m.Spec.Kind.(*mechanisms.Alarm).Contribution.Rows)
	}
	if mechanisms.Is[*mechanisms.Choice](m.Spec) && m.Spec.Spread() > 0 {
		return fmt.Sprintf("a choice: one score moves by %d more than another", m.Spec.Spread())
	}
	if mechanisms.Is[*mechanisms.Choice](m.Spec) {
		return fmt.Sprintf("a choice: scores of %d rows", m.Contribution().Rows)
	}
	s := m.Spec.Only(counter).Sensitivity(m.Contribution())
	text := fmt.Sprintf("%d, √%d", s.L1, s.L2Squared)
	if root := math.Sqrt(float64(s.L2Squared)); root == math.Trunc(root) {
		text = fmt.Sprintf("%d, %.0f", s.L1, root)
	}
	if m.Spec.Counts().Sums != nil && m.Spec.Counts().Sums[counter].Bound != (mechanisms.Bound{Low: 0, High: 1}) {
		return fmt.Sprintf("%s of [%d, %d]", text, m.Spec.Counts().Sums[counter].Low, m.Spec.Counts().Sums[counter].High)
	}
	return text
}

// operationsText lists the operators and functions with their types, as they are known to the evaluator.
func operationsText(t *testing.T) string {
	text, err := os.ReadFile("scalar/catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	lists := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "operator" && f[0] != "function" || known[f[0]+f[1]] {
			continue
		}
		var forms []string
		for _, signature := range f[2:] {
			args, _, _ := strings.Cut(signature, "=")
			if form, ok := formText(args); ok && !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
		if len(forms) > 0 {
			known[f[0]+f[1]] = true
			lists[f[0]] = append(lists[f[0]], fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(f[1], "|", "\\|"), strings.Join(forms, ", ")))
		}
	}
	slices.Sort(lists["operator"])
	slices.Sort(lists["function"])
	return "### Operators\n\n| operator | operands |\n| --- | --- |\n" + strings.Join(lists["operator"], "") +
		"\n### Functions\n\n| function | arguments |\n| --- | --- |\n" + strings.Join(lists["function"], "") + "\n"
}

// formText names the types of a signature; false where an expression cannot have one of them.
func formText(args string) (string, bool) {
	if args == "" {
		return "none", true
	}
	var names []string
	for _, a := range strings.Split(args, "+") {
		n, err := strconv.Atoi(strings.TrimPrefix(a, "v"))
		name := policy.Type(n).Name()
		if err != nil || strings.HasPrefix(name, "type ") {
			return "", false
		}
		names = append(names, name)
	}
	return "(" + strings.Join(names, ", ") + ")", true
}

const sqlHead = `# The SQL that is answered

Analysts write PostgreSQL's SQL (and MySQL's, [mysql.md](mysql.md)). A statement is cut at the privacy boundary: aggregations
over private rows are measured, with noise; everything above them is any SQL over the noisy results and costs nothing. This
page is generated from the planner (` + "`go test ./planner -run TestSQLDocument -update`" + `): every example is planned, every
sensitivity is the one that its noise is made of.

`

const sqlSensitivities = `Noise is scaled to how far one unit's rows can move what is measured: L1 for ε (pure), L2 for ρ (zCDP). The tables show
"L1, L2" of each different counter of a statement, on a policy where people has one row a person and visits three, under
the neighbour relations, and where visits is bounded by groups instead. A sum has its grid: "of [low, high]" is what a row
can add, in whole numbers of the grid's step. With g groups a unit and m rows in each, L1 is g·m and L2 is √g·m; a unit that
is replaced moves a histogram twice as far in L1 and √2 times in L2, and a count within a predicate no further. Joins
multiply the bounds of both sides, but where one side has a row a unit, or a key that a constraint proves unique. A public
table multiplies by the most of its rows that one private row matches, which is known exactly; where these are in different
groups, L2 grows with the root of their number. The neighbour tests (package rewrite) hold these numbers against random
databases that differ in one unit, on both engines.

`

// sqlNotes are what is before the examples of a title.
var sqlNotes = map[string]string{
	"Sub-queries over the row's own unit": `Count, count(DISTINCT column), sum, avg, min, max, bool_or and bool_and over the rows whose key equals that of the row around them: 0 or NULL where there are none. LATERAL sub-queries of such aggregates are that too. Columns may equal those of the
row around them as well. EXISTS and ` + "`(key, column) IN (SELECT …)`" + ` compare columns with the row around them in any way that a join does, and what is in the list of IN may be UNION, INTERSECT or EXCEPT.

`,
	"Sub-queries that are answered first": `A sub-query in a condition on private rows, in FILTER, in an aggregate's argument or in GROUP BY, that reads no row around it, is a statement of its own: it is
answered first, with noise, and the rest is counted for what was released of it. Each of them has an equal part of ` + "`dp.epsilon`" + `, and the notice tells the released values. EXPLAIN and the
budget's check take the rest at its whole part, the most that it may cost; asked again, all of it is free. What comes first is spent where the released value makes the rest fail
(a division by it). A sub-query or WITH query of FROM that aggregates and is joined with private rows is one too: its rows are a list of the statement's own. One that equates columns with the row around it is answered for all rows at once, in groups, in which each row looks its own up. Where its rows are a list (IN, ANY, ALL, EXISTS, a join) groups whose count is within its error are no rows of it. One that reads public tables alone, several of them and aggregated ones too, is exact and costs nothing. Up to three stand in one another. A sub-query above the counts (in SELECT, HAVING, a condition on counts) is counted beside them. In the table, what comes first stands first.

`,
	"Sums and differences of columns in conditions and keys": `Sums of whole numbers, numerics, dates and moments, each times a constant, are columns of their own where their columns' cells are too
many to look at together (more than 2^20 combinations), or hold several values each: they are exact whatever the columns' steps are, are
NULL where one of them is, cost what a column costs, and what is bought over one answers later statements over it, however it is written:
` + "`a < b + 3` and `b - a > -3`" + ` are one question. EXPLAIN shows the sum as the grain. Not answered: sums of floating columns, products of
columns, parts of an interval that change within a step as a key (` + "`extract(day FROM a - b)`; a comparison of it is, and so is\n`floor(extract(epoch FROM a - b) / 86400)`" + `). Months in an interval are thirty days where intervals are compared, as in PostgreSQL, and
are not moved over (docs/adr/0059).

`,
	"Times of the day": `The time of a timestamp with a zone is that of the session's clock. A condition in WHERE, FILTER or a sum's CASE may compare it with any time: where that lies inside a step, the rows
of that step are compared one by one, in a count of their own (or moved to the step where the policy says ` + "`offgrid: snap`" + `). A key must fall on the steps. Where midnight lies inside a step, as in zones of half an hour over steps of an hour, a time cannot be asked.

`,
	"Totals, averages and quantiles of intervals": `An interval between two moments is added up and chosen by its seconds, and shown in days and less than a day; PostgreSQL's sums and averages of such intervals are equal to that, and may have more than a day beside their days.
What is made of such intervals by -, +, COALESCE, constant intervals without months and constant numbers is one too. Of intervals with months (age, a constant that has some), which must be of one column's values, months are added up beside the rest. Sums beyond what an interval can be are NULL.

`,
	"Texts that nobody declared (`domain: any`)": `What is asked of each text by itself, with constants: LIKE, ILIKE, =, <>, IN, IS NULL, starts_with, left, right, substring, split_part, lower, upper, trim, length, strpos and
position, four of them in one another. Texts are compared by their bytes, lower, upper and ILIKE change the letters A to Z alone, and of a text its first 16,384 characters are read. A text itself may be grouped by where a condition names the
values that it may have. What another statement asks by the same words is read from what was bought (docs/adr/0145).

`,
	"Window functions over each unit's rows": `In a sub-query whose rows are aggregated, ` + "`PARTITION BY`" + ` the unit's key, alone or with more columns, or a key through which units are found. The functions
see the rows that are left within the bound, and where rows tie in the window's order they have one order of all that plain SQL may take, by a hash of their
contents. A condition on a ` + "`row_number`" + ` of all of a unit's rows, and ` + "`DISTINCT ON`" + ` the key, make the bound as small as what they leave (docs/adr/0120).

`,
	"Set operations over private rows": `A unit's rows in all parts count together, under the sum of the bounds. Each part has a plain column, a constant, or what is looked up in a public table or
made of one column's few values in each place, and a key where the others have one. UNION, INTERSECT and EXCEPT go along the unit where a key is among the columns, and a unit has as many rows of INTERSECT and EXCEPT as one side
has (docs/adr/0121, 0147).

`,
	"Joins along the unit, and with public tables": `A key that is NULL equals none: ` + "`key IN (SELECT key …)`" + ` is then NULL and so is NOT IN, as in PostgreSQL. But a NULL among the keys
of the sub-query, which may be another unit's, is passed over, where PostgreSQL's NOT IN then holds for no row, and NOT
IN holds for no NULL where the sub-query has no row, as it does in PostgreSQL: notices say so.

`,
	"Counts and keys": `A GROUP BY over declared domains has a row for every key of the domain, NULL and 'other' too where the policy gives them a
cell: a group that nobody is in has a count of 0, and noise. Which keys occur is private, so none is left out. PostgreSQL has
only the keys that occur. So where groups are counted, averaged or listed by a query above them (` + "`avg(n)`, `min(n)`,\n`count(*)`" + ` over a sub-query that groups, IN), those whose count is within its error take no part, and the notice says
so; HAVING count(*) >= 0 in the sub-query keeps them. Sums of counts leave none out, nor does an aggregate whose FILTER or argument
passes over groups that nobody is in. Where such groups decide by a window function, or a LIMIT that does not begin with the
most, the notice names the condition that leaves them out. In the policy ` + "`nulls: exclude` and `outside: exclude`" + ` take the two extra rows away
(docs/adr/0055), and ` + "`other: hide`" + ` hides the second while its rows stay in totals (docs/adr/0074).

The number of different values of a column that has few declared ones would be lost in its noise. It is then made of the counts
of each, at the cost of a GROUP BY: how many values have more rows than twice the error of their counts, which the notice says. It
may miss rarer ones. Where the number itself is exact enough, it is counted; ` + "`min` and `max`" + ` of a column with ` + "`extremes: declared`" + ` are
the ends of its domain, and cost nothing.

`,
	"Sums, averages and what is made of them": `A sum to which no row belongs is 0, where PostgreSQL says NULL: whether a row belongs to it is private. Squares, of which
variances and deviations are made, are rounded to whole squares of a step, which is a power of ten: the finest with which the
domain's ends lie at most 46,340 such steps from its middle, and of a unit of n rows at most √(2^40/n). A variance is off by
half of such a square by that, or by a whole one where it is of two values. corr, covar and regr are of values that are
rounded to such steps. Sums are rounded likewise where values may be above 2^31 of the type's own steps. A notice says where
values are rounded; ± does not cover it.

An average is a sum divided by a count. Where that count is at most its own error, at the session's confidence, noise alone
may have made it: avg, variance, stddev, corr, covar, regr, percent_rank and cume_dist of such a group are NULL, and the
notice says how many rows that is. Divisions that you write yourself are as you write them. Where noise vanishes only
groups without
rows are NULL, as in PostgreSQL, whose percent_rank and cume_dist among no rows are 0 and 1.

bit_and and bit_or of a column of whole numbers are told digit by digit, by a count for each binary digit that the domain leaves
open: a digit is told where the rows that have it (bit_and: have it not) are above twice their own error, so that one that few rows
have goes unseen. So are bool_or, bool_and and every, of rows that have (have not) what they ask for.

(DISTINCT x) in sum, avg, variance and stddev adds up each value once that some row has: of a column with wider steps each step, as its
low end. Few values would be lost in noise that is made for the largest: they are then counted each, as for count(DISTINCT x), and those
that more rows have than twice the error of their counts are added up (docs/adr/0114).

count(DISTINCT x) of a column with more than 64 declared values is counted, and charged, even where the rows of each
value have been paid for: these cannot tell a value that nobody has from one that few have, and no ± could be said.
What they do tell is free: SELECT count(*) FROM (SELECT age FROM people GROUP BY age HAVING count(*) > 60) t, with
twice the ± of the counts in the place of 60.

`,
}

const sqlTypes = `## Expressions over private columns

Conditions, keys and arguments of aggregates may be any expression of the operators and functions below, CASE, COALESCE,
NULLIF, GREATEST, LEAST, IN, BETWEEN, LIKE, IS [NOT] NULL, IS [NOT] DISTINCT FROM, casts and AT TIME ZONE. They are evaluated
on the declared values when the statement is planned, as PostgreSQL evaluates them, and never sent to the database; so one
that fails on some value fails for everybody, before anything is charged ([functions.md](functions.md): what fails by which
values, and what the private database is sent instead). Above the boundary the sandbox's functions may be
used as well: window functions, arrays, JSON, regular expressions, and all aggregates.

Constants may be written with these, too. What reads no row is answered first by the sandbox, for nothing, and its
value, or each element of an array, is in the statement as a constant: ` + "`region = ANY (string_to_array($1, ','))`" + `,
` + "`<> ALL (ARRAY(SELECT code FROM regions))`" + `, ` + "`age IN (SELECT generate_series(20, 30))`" + `, ` + "`IN (VALUES ('a'), ('b'))`" + `,
` + "`= (ARRAY['a', 'b'])[1]`" + `, and in FROM ` + "`JOIN unnest($1::text[]) WITH ORDINALITY x(code, n) ON region = x.code`" + `. A
function that has another value for each row (random) is no constant.

These are written out as comparisons: ` + "`(a, b) OVERLAPS (c, d)`" + `, ` + "`num_nulls`" + `, ` + "`num_nonnulls`" + `, ` + "`format`" + ` (%s, %L),
` + "`array_position`" + ` of constants, ` + "`range @> column`" + ` and ` + "`column <@ range`" + ` of a constant range of the column's type.
Infinite dates and timestamps are open ends: a comparison with one is the same for all values, and NULL for NULL, as is
that of ` + "`coalesce(left_at, 'infinity')`" + ` where it is one. A sum of one column and constants is compared in the column,
within a step too: ` + "`now() - visited_at < interval '90 days'`" + `.

`
