package answers

import (
	"cmp"
	"database/sql"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

var tpchScale = flag.Float64("tpch-scale", 0.01, "scale of the TPC-H-like database; docs/tpch.md is written at 0.01")

// tpchDraws is how many analysts ask each query, each with noise of her own.
var tpchDraws = flag.Int("tpch-draws", 1, "analysts who ask each query; docs/tpch.md is written with 15")

type tpchQuery struct{ name, sql string }

// tpchNotes say of the queries that have no answer why, and what would have to be declared or asked instead.
var tpchNotes = map[string]string{
	"Q20": "PostgreSQL, which the sandbox is, evaluates the sub-query of released quantities once for each row.",
	"Q3":  "It lists single orders, and an order is one customer's: no noise hides a row that is there. Revenue by date or priority is answered.",
	"Q10": "It lists single customers. Revenue of returned items by nation or market segment is answered.",
	"Q17": "Each part has a threshold of its own, and 20,000 are more than one condition is made of. Two statements do it: the averages first, then a count with constants.",
	"Q18": "It lists single customers and orders. How many orders are that large is answered, by a sub-query grouped by order.",
}

// tpchText is docs/tpch.md.
const tpchText = `# TPC-H with the customer as the unit

The 22 queries of TPC-H over a database of its shape, with each customer protected: [generate.sql](../examples/tpch/generate.sql)
makes the rows, [policy.yaml](../examples/tpch/policy.yaml) declares them, [queries.sql](../examples/tpch/queries.sql) has
the queries with the specification's default parameters. This page is written by ` + "`make tpch`" + `, from one run at scale %g and
ε = 1 a query. The rows are not the benchmark's own, so nothing here compares with published TPC-H results.

%d of %d are answered. The error is the median over the answer's rows of |answer − truth| / |truth|, column by column
and over the answers of %d analysts, each with noise of her own. One customer may have 128 line items at 110000 each: noise that hides all of them is small beside the revenue of
a company, and large beside that of one supplier in one quarter, or of two nations in one year. Queries over small groups
need more customers than this, or tighter declared bounds; their error falls as one over the scale. The last column is
the same with ` + "`SET dp.contribution = ladder`" + `, where what a customer adds in all is clamped,
and not how many rows she has: nobody has to guess the clamp.

| query | outcome | how, or why not | error | of totals |
| --- | --- | --- | --- | --- |
%s

What can be asked instead ([instead.sql](../examples/tpch/instead.sql)):

| query | outcome | how | error | of totals |
| --- | --- | --- | --- | --- |
%s
`

func tpchQueries(t *testing.T, file string) []tpchQuery {
	t.Helper()
	text, err := os.ReadFile("../../examples/tpch/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var list []tpchQuery
	for _, block := range strings.Split(string(text), "\n-- Q")[1:] {
		name, query, _ := strings.Cut(block, "\n")
		list = append(list, tpchQuery{name: "Q" + name, sql: strings.TrimSpace(query)})
	}
	return list
}

// tpchDatabase generates the database and returns the policy's path.
func tpchDatabase(t *testing.T, scale float64) (policyPath string) {
	t.Helper()
	script, err := os.ReadFile("../../examples/tpch/generate.sql")
	if err != nil {
		t.Fatal(err)
	}
	dir := memory.Dir(t)
	db, err := sql.Open("duckdb", filepath.Join(dir, "tpch.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(fmt.Sprintf("SET VARIABLE scale = %g;\n%s", scale, script)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../examples/tpch/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`SCRAM-SHA-256[^"]*`)
	text = placeholder.ReplaceAll(text, []byte(strings.ReplaceAll(kit.Verifier(t, "analyst"), "$", "$$")))
	others := ""
	for i := 1; i < *tpchDraws; i++ {
		others += fmt.Sprintf("  - {name: analyst%d, password: %q}\n", i, kit.Verifier(t, fmt.Sprintf("analyst%d", i)))
	}
	changed := strings.NewReplacer("127.0.0.1:6432", "127.0.0.1:0", "\ndatasets:", "\n"+others+"datasets:", "{analyst: {epsilon: 50}}", `{"*": {epsilon: 200}}`,
		"cap: {epsilon: 100}", "cap: {epsilon: 100000}").Replace(string(text))
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tpchTruth runs a query on the database itself.
func tpchTruth(t *testing.T, policyPath, query string) [][]string {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(policyPath), "tpch.duckdb")+"?access_mode=read_only")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT COLUMNS(*)::VARCHAR FROM (" + query + ")")
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var list [][]string
	for rows.Next() {
		texts, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range into {
			into[i] = &texts[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, x := range texts {
			if row[i] = x.String; !x.Valid {
				row[i] = "NULL"
			}
		}
		list = append(list, row)
	}
	return list
}

// tpchKeys is how many columns of each answer are keys, by which its rows are held against the truth.
var tpchKeys = map[string]int{"Q1": 2, "Q3": 2, "Q4": 1, "Q5": 1, "Q7": 3, "Q8": 1, "Q9": 2, "Q10": 1, "Q12": 1, "Q13": 1, "Q15": 4, "Q20": 1, "Q22": 1}

// tpchOutcome is a line of docs/tpch.md.
type tpchOutcome struct{ query, outcome, how, errors, totals string }

func (o tpchOutcome) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", o.query, o.outcome, o.how, o.errors, cmp.Or(o.totals, "–"))
}

var (
	tpchMechanism = regexp.MustCompile(`(?m)Mechanism: (histogram of \d+ cells|[^;\n]*?)(?:;| with|$)`)
	tpchBound     = regexp.MustCompile(`at most (\d+ rows?) a unit|one row a unit`)
)

// tpchAsk explains one query and runs it for each analyst.
func tpchAsk(t *testing.T, analysts []*kit.Wire, policyPath string, q tpchQuery) tpchOutcome {
	t.Helper()
	w := analysts[0]
	number, _, _ := strings.Cut(q.name, " ")
	out := tpchOutcome{query: q.name}
	explained := w.Ask("EXPLAIN " + q.sql)
	if explained.Err != nil {
		out.outcome, out.how, out.errors = "refused", tpchNotes[number], "–"
		if answer := w.Ask(q.sql); answer.Err == nil || out.how == "" {
			t.Errorf("%s: %v, and nothing says why", q.name, explained.Err)
		}
		out.how += fmt.Sprintf(" *%s*", explained.Err.Message)
		return out
	}
	var plan []string
	for _, row := range explained.Rows {
		plan = append(plan, row[0])
	}
	text := strings.Join(plan, "\n")
	answers := make([]kit.Answer, len(analysts))
	for i, w := range analysts {
		spent := w.Spent()
		answers[i] = w.Ask(q.sql)
		if fault := answers[i].Err; fault != nil && fault.Code == "57014" && strings.Contains(fault.Message, "statement_cpu") && w.Spent() == spent {
			out.outcome, out.how, out.errors = "refused", tpchNotes[number]+" *It would take more than server.limits.statement_cpu.*", "–"
			return out
		}
		if answers[i].Err != nil {
			t.Fatalf("%s: %v", q.name, answers[i].Err)
		}
	}
	truth := tpchTruth(t, policyPath, q.sql)
	m := tpchMechanism.FindStringSubmatch(text)
	if m == nil {
		out.outcome, out.how, out.errors = "answered exactly", "public tables alone", "0"
		if len(answers[0].Rows) != len(truth) {
			t.Errorf("%s: %d rows, the database has %d", q.name, len(answers[0].Rows), len(truth))
		}
		return out
	}
	out.outcome = "answered"
	out.how = fmt.Sprintf("%s; at most %s a customer", m[1], cmp.Or(slices.Concat(tpchBound.FindStringSubmatch(text), []string{"", ""})[1], "one row"))
	out.errors = tpchErrors(answers, truth, tpchKeys[number])
	if *tpchDraws > 1 {
		out.totals = tpchErrors(tpchTotals(t, analysts, q), truth, tpchKeys[number])
	}
	return out
}

// tpchTotals are the answers where customers' totals are bounded, and not their rows.
func tpchTotals(t *testing.T, analysts []*kit.Wire, q tpchQuery) (answers []kit.Answer) {
	t.Helper()
	for _, w := range analysts {
		w.Ask("SET dp.contribution = ladder")
		got := w.Ask(q.sql)
		if got.Err != nil {
			t.Fatalf("%s, of totals: %v", q.name, got.Err)
		}
		answers = append(answers, got)
		w.Ask("SET dp.contribution = rows")
	}
	return answers
}

// tpchErrors is the median relative error of each column over the rows that the true answer has and over the answers.
func tpchErrors(answers []kit.Answer, truth [][]string, keys int) string {
	byKey := make([]map[string][]string, len(answers))
	for i, a := range answers {
		byKey[i] = map[string][]string{}
		for _, row := range a.Rows {
			byKey[i][strings.Join(row[:keys], "|")] = row
		}
	}
	var columns []string
	if len(truth) == 0 {
		return "no row in truth"
	}
	for c := keys; c < len(truth[0]); c++ {
		var errors []float64
		matched, nothing := false, true // some row is in an answer; none of these is anything of which an error could be a part
		for _, want := range truth {
			for _, rows := range byKey {
				got := rows[strings.Join(want[:keys], "|")]
				if got == nil {
					continue
				}
				x, err := strconv.ParseFloat(want[c], 64)
				matched, nothing = true, nothing && (err != nil || x == 0)
				y, also := strconv.ParseFloat(got[c], 64)
				if err == nil && also == nil && x != 0 {
					errors = append(errors, math.Abs(y-x)/math.Abs(x))
				}
			}
		}
		switch {
		case len(errors) == 0 && nothing && matched:
			columns = append(columns, "0 or NULL in truth")
			continue
		case len(errors) == 0:
			columns = append(columns, "the noise chose other rows")
			continue
		}
		slices.Sort(errors)
		columns = append(columns, percent(errors[len(errors)/2]))
	}
	return strings.Join(columns, ", ")
}

// percent writes a relative error to two digits.
func percent(x float64) string {
	if x > 10 {
		return "> 1000 %"
	}
	if x > 1 {
		return strconv.Itoa(10*int(math.Round(10*x))) + " %"
	}
	return strconv.FormatFloat(100*x, 'g', 2, 64) + " %"
}

const tpchFile = "../../docs/tpch.md"

// TestTPCH runs the 22 queries through a proxy over a small database of TPC-H's shape, and holds what is answered, how,
// and what is refused against docs/tpch.md. With -update (make tpch) it writes that file.
func TestTPCH(t *testing.T) {
	kit.Beside(t)
	path := tpchDatabase(t, *tpchScale)
	p := kit.Serve(t, path)
	analysts := []*kit.Wire{p.Connect("analyst", "tpch")}
	for i := 1; i < *tpchDraws; i++ {
		analysts = append(analysts, p.Connect(fmt.Sprintf("analyst%d", i), "tpch"))
	}
	var lines []string
	answered := 0
	for _, q := range tpchQueries(t, "queries.sql") {
		o := tpchAsk(t, analysts, path, q)
		if o.outcome != "refused" {
			answered++
		}
		lines = append(lines, o.String())
	}
	var instead []string
	for _, q := range tpchQueries(t, "instead.sql") {
		o := tpchAsk(t, analysts, path, q)
		if o.outcome != "answered" {
			t.Errorf("%s is %s", q.name, o.outcome)
		}
		instead = append(instead, o.String())
	}
	t.Logf("%d of %d answered\n%s", answered, len(lines), strings.Join(lines, "\n"))
	if *kit.Update {
		text := fmt.Sprintf(tpchText, *tpchScale, answered, len(lines), *tpchDraws, strings.Join(lines, "\n"), strings.Join(instead, "\n"))
		if err := os.WriteFile(tpchFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(tpchFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append(lines, instead...) {
		parts := strings.Split(line, " | ")
		if same := strings.Join(parts[:len(parts)-2], " | ") + " | "; !strings.Contains(string(written), "\n"+same) {
			t.Errorf("docs/tpch.md does not say\n%s", line)
		}
	}
}
