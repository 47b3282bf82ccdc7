package answers

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

var tpchScale = flag.Float64("tpch-scale", 0.01, "scale of the TPC-H-like database; docs/tpch.md is written at 0.01")

// tpchDraws is how many analysts ask a query with an answer of one row, each with noise of her own.
var tpchDraws = flag.Int("tpch-draws", 9, "analysts who ask a query, each with noise of her own")

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

%d of %d are answered.

| query | outcome | how, or why not |
| --- | --- | --- |
%s

What can be asked instead ([instead.sql](../examples/tpch/instead.sql)):

| query | outcome | how |
| --- | --- | --- |
%s

## How near

Errors are those of [shapes.md](shapes.md): the median over the answer's rows of |answer − truth| / |truth|, column by
column, and over analysts, %d where an answer has one row and five where it has more; at commit %s. By *rows* one
customer may have 128 line items at 110000 each: noise that hides all of them is small beside the revenue of a company,
and large beside that of one supplier in one quarter, or of two nations in one year. By the *ladder* what a customer adds in all is clamped, and not how many
rows she has: nobody has to guess the clamp. The *best clamp* is what only somebody who sees the rows could set. Queries
over small groups need more customers than this, or tighter declared bounds; their error falls as one over the scale.
A clamp bounds a column's values and no product of two, so that revenues are columns here; – is where a statement cannot
be clamped, and only the first table has those.
%s`

// tpchKeys is how many columns of each answer are keys, by which its rows are held against the truth.
var tpchKeys = map[string]int{"Q1": 2, "Q3": 2, "Q4": 1, "Q5": 1, "Q7": 3, "Q8": 1, "Q9": 2, "Q10": 1, "Q12": 1, "Q13": 1, "Q15": 4, "Q20": 1, "Q22": 1}

// tpchOutcome is a line of docs/tpch.md.
type tpchOutcome struct{ query, outcome, how string }

func (o tpchOutcome) String() string {
	return fmt.Sprintf("| %s | %s | %s |", o.query, o.outcome, o.how)
}

var (
	tpchMechanism = regexp.MustCompile(`(?m)Mechanism: (histogram of \d+ cells|[^;\n]*?)(?:;| with|$)`)
	tpchBound     = regexp.MustCompile(`at most (\d+ rows?) a unit|one row a unit`)
)

// tpchAsk explains one query and runs it.
func tpchAsk(t *testing.T, w *kit.Wire, e *example, q statement) tpchOutcome {
	t.Helper()
	number, _, _ := strings.Cut(q.name, " ")
	out := tpchOutcome{query: q.name}
	explained := w.Ask("EXPLAIN " + q.sql)
	if explained.Err != nil {
		out.outcome, out.how = "refused", tpchNotes[number]
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
	spent := w.Spent()
	answer := w.Ask(q.sql)
	if fault := answer.Err; fault != nil && fault.Code == "57014" &&
		strings.Contains(fault.Message, "statement_cpu") && w.Spent() == spent {
		out.outcome = "refused"
		out.how = tpchNotes[number] + " *It would take more than server.limits.statement_cpu.*"
		return out
	}
	if answer.Err != nil {
		t.Fatalf("%s: %v", q.name, answer.Err)
	}
	m := tpchMechanism.FindStringSubmatch(text)
	if m == nil {
		out.outcome, out.how = "answered exactly", "public tables alone"
		if truth := e.truth(t, q.sql); len(answer.Rows) != len(truth) {
			t.Errorf("%s: %d rows, the database has %d", q.name, len(answer.Rows), len(truth))
		}
		return out
	}
	rows := slices.Concat(tpchBound.FindStringSubmatch(kit.Words(text)), []string{"", ""})[1]
	out.outcome, out.how = "answered", fmt.Sprintf("%s; at most %s a customer", m[1], cmp.Or(rows, "one row"))
	return out
}

const tpchFile = "../../docs/tpch.md"

// TestTPCH runs the 22 queries through a proxy over a small database of TPC-H's shape, and holds what is answered, how,
// and what is refused against docs/tpch.md. With -update (make tpch) it measures errors too, and writes that file.
func TestTPCH(t *testing.T) {
	kit.Beside(t)
	e := &example{folder: "tpch"}
	e.generate(t, *tpchScale)
	w := e.serve(t, 1, unchanged).Connect("u0", "tpch")
	var lines, instead []string
	var private []statement
	answered := 0
	for _, q := range e.statements(t, "queries.sql") {
		o := tpchAsk(t, w, e, q)
		if o.outcome != "refused" {
			answered++
		}
		if o.outcome == "answered" {
			private = append(private, q)
		}
		lines = append(lines, o.String())
	}
	for _, q := range e.statements(t, "instead.sql") {
		o := tpchAsk(t, w, e, q)
		if o.outcome != "answered" {
			t.Errorf("%s is %s", q.name, o.outcome)
		}
		instead, private = append(instead, o.String()), append(private, q)
	}
	t.Logf("%d of %d answered\n%s", answered, len(lines), strings.Join(lines, "\n"))
	if *kit.Update {
		text := fmt.Sprintf(tpchText, *tpchScale, answered, len(lines), strings.Join(lines, "\n"),
			strings.Join(instead, "\n"), *tpchDraws, kit.Head(t), tpchNear(t, private))
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
		if !strings.Contains(string(written), "\n"+line+"\n") {
			t.Errorf("docs/tpch.md does not say\n%s", line)
		}
	}
}

// A clamp is a bound of a column's values, and of no product: where errors are measured, the products that queries add
// up are columns.
const tpchProducts = `ALTER TABLE lineitem ADD COLUMN l_revenue DECIMAL(15,4); ALTER TABLE lineitem ADD COLUMN l_saved DECIMAL(15,4);
UPDATE lineitem SET l_revenue = l_extendedprice * (1 - l_discount), l_saved = l_extendedprice * l_discount;`

var products = strings.NewReplacer("l_extendedprice * (1 - l_discount)", "l_revenue",
	"l_extendedprice * l_discount", "l_saved")

func declared(policy string) string {
	const tax = "          - {name: l_tax"
	domain := func(name string, top int) string {
		return fmt.Sprintf("          - {name: %s, type: \"numeric(15,4)\", domain: {min: 0, max: %d, step: 1000}, "+
			"outside: clamp}\n", name, top)
	}
	return strings.Replace(policy, tax, domain("l_revenue", 110000)+domain("l_saved", 11000)+tax, 1)
}

// tpchNear are tables of the errors of queries, by scale and ε. All are in the first, and in the others those that a
// clamp is of.
func tpchNear(t *testing.T, queries []statement) (text string) {
	for _, scale := range []float64{.01, .1} {
		e := &example{folder: "tpch", more: tpchProducts}
		e.generate(t, scale)
		for _, epsilon := range []float64{1, .1} {
			a := asker{t, e, e.serve(t, 2**tpchDraws*len(queries), declared), "tpch", epsilon, new(int)}
			var list []clamped
			var clampable []statement
			for _, q := range queries {
				number, _, _ := strings.Cut(q.name, " ")
				q.keys, q.sql = tpchKeys[number], products.Replace(q.sql)
				c := a.measure(q, *tpchDraws, true)
				if list = append(list, c); c.best != nil {
					clampable = append(clampable, statement{name: q.name, sql: q.sql})
				}
			}
			queries = clampable
			section := fmt.Sprintf("\n### Scale %g, ε %g\n\n%s", scale, epsilon, clampedTable(list, nil))
			t.Log(section)
			text += section
		}
	}
	return text
}
