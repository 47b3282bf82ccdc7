package answers

import (
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
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

// tpcdsExtension is where `make tpcds` puts DuckDB's extension, which has the queries and makes the rows.
const tpcdsExtension = "../../bin/tpcds/tpcds.duckdb_extension"

const tpcdsFile = "../../docs/tpcds.md"

// tpcdsOnly are the queries that -update asks anew, as in 16,52; the others' lines stay. Empty: all.
var tpcdsOnly = flag.String("tpcds-only", "", "numbers of the TPC-DS queries to ask, with commas; all where it is empty")

// tpcdsNotes say of the queries that have no answer why, and what would have to be declared or asked instead.
var tpcdsNotes = map[int]string{
	1:  "It lists single customers: no noise hides one who is there. How many customers return more than the average is answered.",
	4:  "It lists single customers: no noise hides one who is there. Sums over sums of several columns of one customer are not answered either.",
	8:  "A list that is made of counts of customers is joined with sales: the codes first, and then a statement with them.",
	11: "It lists single customers: no noise hides one who is there. Sums over sums of several columns of one customer are not answered either.",
	23: "It lists single customers: no noise hides one who is there. A customer's own sum is of a product, which is not answered below a count.",
	24: "It lists single customers: no noise hides one who is there.",
	30: "It lists single customers: no noise hides one who is there. How many customers return more than their state's average is answered.",
	34: "It lists single customers: no noise hides one who is there. How many tickets are that large is answered by ticket.",
	46: "It lists single customers: no noise hides one who is there. Amounts by city are answered.",
	64: "A list that is made of sums is joined with sales, and the answer is one row for each pair of addresses.",
	68: "It lists single customers: no noise hides one who is there. Amounts by city are answered.",
	72: "One sale meets as many rows of the inventory as there are weeks and warehouses: one customer could move too many counts.",
	73: "It lists single customers: no noise hides one who is there. How many tickets are that large is answered by ticket.",
	74: "It lists single customers: no noise hides one who is there.",
	75: "UNION leaves out rows that are equal, of whichever customers they are: with UNION ALL each is a customer's own.",
	78: "It lists single customers: no noise hides one who is there. It computes above an outer join of each customer's sums.",
	79: "It lists single customers: no noise hides one who is there. Amounts by city are answered.",
	81: "It lists single customers: no noise hides one who is there. How many customers return more than their state's average is answered.",
	84: "It lists single customers: no noise hides one who is there. It joins sales by demographic class, not by customer.",
	93: "It lists single customers: no noise hides one who is there. The sum by reason is answered.",
}

// tpcdsText is docs/tpcds.md.
const tpcdsText = `# TPC-DS with the customer as the unit

The 99 queries of TPC-DS over its rows at scale 0.01, with each customer protected. Queries and rows are those of DuckDB's
tpcds extension, which PyPI carries and ` + "`make tpcds`" + ` fetches; nothing of them is here. [generate.sql](../examples/tpcds/generate.sql)
says what is changed in the rows so that each is one customer's, [policy.yaml](../examples/tpcds/policy.yaml) declares them. This page
is written by ` + "`make tpcds`" + `. The rows are not the benchmark's own, so nothing here compares with published TPC-DS results.

%d of 99 are planned. The errors are medians over the true answer's rows of |answer − truth| / |truth|, column by column, without the query's
LIMIT: at ε = 1 a query, where 900 customers together weigh less than what one of them may change; and at ε = 10^6, where what is left of the noise
is that of sums whose bound is far above their values.

| query | outcome | how, or why not | error at ε 1 | error at ε 10^6 |
| --- | --- | --- | --- | --- |
%s
`

// tpcdsDatabase makes the rows and returns the queries, in order.
func tpcdsDatabase(t *testing.T, dir string) (queries []string) {
	t.Helper()
	script, err := os.ReadFile("../../examples/tpcds/generate.sql")
	if err != nil {
		t.Fatal(err)
	}
	extension, err := filepath.Abs(tpcdsExtension)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("duckdb", filepath.Join(dir, "tpcds.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"LOAD '" + extension + "'", "CALL dsdgen(sf = 0.01)", string(script)} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.Query("SELECT query FROM tpcds_queries() ORDER BY query_nr")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var query string
		if err := rows.Scan(&query); err != nil {
			t.Fatal(err)
		}
		queries = append(queries, strings.TrimSuffix(strings.TrimSpace(query), ";"))
	}
	return queries
}

// tpcdsPolicy writes the example's policy for a database, with a cap, of which one statement may have all.
func tpcdsPolicy(t *testing.T, dir string, cap int) (path string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/tpcds/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`SCRAM-SHA-256[^"]*`).ReplaceAll(text, []byte(strings.ReplaceAll(kit.Verifier(t, "analyst"), "$", "$$")))
	ledger := filepath.Join(memory.Dir(t), "tpcds.ledger")
	changed := strings.NewReplacer("listen: 127.0.0.1:6432", "listen: 127.0.0.1:0", "duckdb:tpcds.duckdb", "duckdb:"+filepath.Join(dir, "tpcds.duckdb"),
		"sqlite:tpcds.ledger", "sqlite:"+ledger, "cap: {epsilon: 1000}", fmt.Sprintf("cap: {epsilon: %d}", cap), "{analyst: {epsilon: 500}}", fmt.Sprintf("{analyst: {epsilon: %d}}", cap),
		"max_epsilon: 1,", fmt.Sprintf("max_epsilon: %d,", cap)).Replace(string(text))
	path = filepath.Join(dir, fmt.Sprintf("policy%d.yaml", cap))
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tpcdsTruth are a query's columns and rows as the database itself has them.
func tpcdsTruth(t *testing.T, dir, query string) (names []string, list [][]string) {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(dir, "tpcds.duckdb")+"?access_mode=read_only")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	names, _ = rows.Columns()
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range into {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, v := range values {
			switch v := v.(type) {
			case nil:
				row[i] = "NULL"
			case interface{ Float64() float64 }: // a decimal
				row[i] = strconv.FormatFloat(v.Float64(), 'f', -1, 64)
			default:
				row[i] = fmt.Sprint(v)
			}
		}
		list = append(list, row)
	}
	return names, list
}

// tpcdsLimit is the end of a query that takes the first rows of its answer.
var tpcdsLimit = regexp.MustCompile(`(?i)\sLIMIT\s+\d+$`)

// tpcdsNamed are columns of numbers that are keys, by their names.
var tpcdsNamed = regexp.MustCompile(`(?i)(_sk|_id|zip|year\d?|_moy|_qoy|_seq\d?|month|lochierarchy|segment|t_hour|t_minute|promo|bucket|manager|current_price|_size|sq_ft|dep_count|dep_employed|dep_college|estimate|tpcds)$`)

// tpcdsErrors is the median relative error of each column that is no key, over the rows of the true answer.
func tpcdsErrors(names []string, truth, answer [][]string) string {
	if len(truth) == 0 {
		return "no row in truth"
	}
	var keys []int
	for c, name := range names {
		number := !slices.ContainsFunc(truth, func(row []string) bool {
			_, err := strconv.ParseFloat(row[c], 64)
			return err != nil && row[c] != "NULL"
		})
		if !number || tpcdsNamed.MatchString(name) {
			keys = append(keys, c)
		}
	}
	if len(keys) == len(names) {
		keys = nil
	}
	keyOf := func(row []string) string {
		var b strings.Builder
		for _, c := range keys {
			text := row[c]
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				text = strconv.FormatFloat(x, 'f', 4, 64)
			}
			b.WriteString(text + "|")
		}
		return b.String()
	}
	byKey := map[string][]string{}
	for _, row := range answer {
		byKey[keyOf(row)] = row
	}
	missing, seen := 0, map[string]int{}
	for _, row := range truth {
		seen[keyOf(row)]++
	}
	whole := len(truth)
	truth = slices.DeleteFunc(slices.Clone(truth), func(row []string) bool { return seen[keyOf(row)] > 1 })
	if len(truth) == 0 {
		return "rows that are not told apart"
	}
	for _, row := range truth {
		if byKey[keyOf(row)] == nil {
			missing++
		}
	}
	var columns []string
	for c := range names {
		if slices.Contains(keys, c) {
			continue
		}
		var errors []float64
		for _, want := range truth {
			got := byKey[keyOf(want)]
			if got == nil {
				continue
			}
			x, err := strconv.ParseFloat(want[c], 64)
			y, also := strconv.ParseFloat(got[c], 64)
			if err == nil && also == nil && x != 0 {
				errors = append(errors, math.Abs(y-x)/math.Abs(x))
			}
		}
		if len(errors) == 0 {
			columns = append(columns, "–")
			continue
		}
		slices.Sort(errors)
		columns = append(columns, percent(errors[len(errors)/2]))
	}
	text := strings.Join(columns, ", ")
	if missing > 0 {
		text += fmt.Sprintf(" (%d of %d rows are not in it)", missing, whole)
	}
	return text
}

// tpcdsOutcome is a line of docs/tpcds.md.
type tpcdsOutcome struct {
	query        int
	outcome, how string
	private      bool
}

func (o tpcdsOutcome) same() string {
	return fmt.Sprintf("| Q%d | %s | %s |", o.query, o.outcome, o.how)
}

// tpcdsPlan explains one query.
func tpcdsPlan(t *testing.T, w *kit.Wire, number int, query string) tpcdsOutcome {
	t.Helper()
	out := tpcdsOutcome{query: number}
	explained := w.Ask("EXPLAIN " + query)
	if explained.Err != nil {
		out.outcome, out.how = "refused", tpcdsNotes[number]
		if out.how == "" {
			t.Errorf("Q%d is refused, and nothing says why: %v", number, explained.Err)
		}
		out.how += fmt.Sprintf(" *%s*", strings.Join(strings.Fields(strings.ReplaceAll(explained.Err.Message, "|", `\|`)), " "))
		return out
	}
	var plan []string
	for _, row := range explained.Rows {
		plan = append(plan, row[0])
	}
	text := strings.Join(plan, "\n")
	m := tpchMechanism.FindStringSubmatch(text)
	switch {
	case m != nil:
		rows := tpchBound.FindStringSubmatch(kit.Words(text))
		out.private, out.outcome, out.how = true, "answered", m[1]
		if len(rows) > 1 && rows[1] != "" {
			out.how += "; at most " + rows[1] + " a customer"
		}
	case strings.Contains(text, "leaf_"):
		out.outcome, out.how = "answered exactly", "the public tables leave no private row at this scale"
	default:
		out.outcome, out.how = "answered exactly", "public tables alone"
	}
	return out
}

// TestTPCDS plans the 99 queries, and holds what is answered, how, and what is refused against docs/tpcds.md. With
// -update (make tpcds) it asks them too, with noise and with hardly any, and writes that file.
func TestTPCDS(t *testing.T) {
	kit.Beside(t)
	if _, err := os.Stat(tpcdsExtension); err != nil {
		t.Skip("no TPC-DS: make tpcds fetches DuckDB's extension into bin/tpcds")
	}
	dir := memory.Dir(t)
	queries := tpcdsDatabase(t, dir)
	p := kit.Serve(t, tpcdsPolicy(t, dir, 1000))
	w := p.Connect("analyst", "tpcds")
	var lines []string
	answered := 0
	before, _ := os.ReadFile(tpcdsFile) // none the first time
	asked := strings.Split(*tpcdsOnly, ",")
	for i, query := range queries {
		o := tpcdsPlan(t, w, i+1, query)
		if o.outcome != "refused" {
			answered++
		}
		if !*kit.Update {
			lines = append(lines, o.same())
			continue
		}
		if rest, found := cutLine(string(before), o.same()); found && *tpcdsOnly != "" && !slices.Contains(asked, strconv.Itoa(i+1)) {
			lines = append(lines, o.same()+rest)
			continue
		}
		line := o.same() + " – | – |"
		if o.outcome != "refused" {
			line = o.same() + " 0 | 0 |"
		}
		if o.private {
			whole := tpcdsLimit.ReplaceAllString(query, "")
			names, truth := tpcdsTruth(t, dir, whole)
			line = fmt.Sprintf("%s %s | %s |", o.same(), tpcdsAsk(p, "1", whole, names, truth), tpcdsExact(t, dir, whole, names, truth))
		}
		t.Log(line)
		lines = append(lines, line)
	}
	t.Logf("%d of %d planned", answered, len(queries))
	if *kit.Update {
		if err := os.WriteFile(tpcdsFile, fmt.Appendf(nil, tpcdsText, answered, strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(tpcdsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(string(written), "\n"+line) {
			t.Errorf("docs/tpcds.md does not say\n%s", line)
		}
	}
}

// cutLine is the rest of the line that begins so.
func cutLine(text, begin string) (rest string, found bool) {
	_, rest, found = strings.Cut(text, "\n"+begin)
	rest, _, _ = strings.Cut(rest, "\n")
	return rest, found
}

// tpcdsAsk asks one query, and tells its error.
func tpcdsAsk(p *kit.Program, epsilon, query string, names []string, truth [][]string) string {
	w := p.Connect("analyst", "tpcds")
	defer w.Conn.Close()
	w.Ask("SET dp.epsilon = " + epsilon)
	a, err := w.TryAsk(query)
	switch {
	case err != nil:
		return "its whole answer takes more than a minute"
	case a.Err != nil:
		return "*" + a.Err.Message + "*"
	}
	return tpcdsErrors(names, truth, a.Rows)
}

// tpcdsExact asks it of a proxy of its own, for all that this has.
func tpcdsExact(t *testing.T, dir, query string, names []string, truth [][]string) string {
	p := kit.Serve(t, tpcdsPolicy(t, dir, 1000000))
	defer p.Stop(syscall.SIGKILL)
	return tpcdsAsk(p, "1000000", query, names, truth)
}
