package answers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/test/kit"
)

const (
	mechanismsDocument = "../../docs/mechanisms.md"
	mechanismsGolden   = "testdata/mechanisms.txt"
	demoReport         = "../../examples/demo/report.sql"
)

// mechanismRow is a row of docs/mechanisms.md's table: SQL, and what EXPLAIN must say of it, the mechanism above all.
type mechanismRow struct {
	section string
	set     string
	sql     []string
	says    []string // of the plan of each
}

var mechanismRows = []mechanismRow{
	{"A count", "", []string{`SELECT count(*) FROM people WHERE education = 'master' AND income > 60500 AND hired < '2020-06-01'`},
		[]string{"count over public.people", "Mechanism: discrete Laplace noise of scale 10", "Error of count: ±30"}},
	{"Counts by key", "", []string{`SELECT region, education, count(*) FROM people GROUP BY region, education`, `SELECT kind, count(*) FROM visits GROUP BY kind`},
		[]string{"histogram over public.", "Mechanism: histogram of "}},
	{"Ranges", "SET dp.epsilon = 0.5; SET dp.release = on", []string{
		`SELECT count(*) FROM people WHERE age BETWEEN 30 AND 40`, `SELECT count(*) FROM people WHERE age < 18`, `SELECT count(*) FROM people WHERE age >= 65`,
		`SELECT age / 10 AS decade, count(*) FROM people GROUP BY 1`, `SELECT age, sum(count(*)) OVER (ORDER BY age) FROM people GROUP BY age`,
		`SELECT width_bucket(income, 0, 250000, 10), count(*) FROM people GROUP BY 1`,
	}, []string{"range over public.people", "least squares", "every such question is free after it|which you have paid for"}},
	{"Quantiles", "", []string{
		`SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits`, `SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY hired) FROM people`,
		`SELECT median(minutes) FROM visits WHERE kind = 'lab'`, `SELECT sex, median(minutes) FROM visits JOIN people USING (person_id) GROUP BY sex`,
	}, []string{"quantile over public.", "Mechanism: exponential mechanism", "rank error ±"}},
	{"The most frequent", "", []string{
		`SELECT minutes FROM visits GROUP BY minutes ORDER BY count(*) DESC LIMIT 1`, `SELECT mode() WITHIN GROUP (ORDER BY minutes) FROM visits`,
		`SELECT fruit FROM (SELECT 'apple' AS fruit, count(*) FILTER (WHERE apple) AS n FROM likes UNION ALL SELECT 'banana', count(*) FILTER (WHERE banana) FROM likes) x ORDER BY n DESC LIMIT 1`,
		`SELECT c.fruit FROM likes CROSS JOIN LATERAL (VALUES ('apple', apple), ('banana', banana), ('cherry', cherry), ('fig', fig)) c(fruit, yes) WHERE yes GROUP BY c.fruit ORDER BY count(*) DESC LIMIT 2`,
	}, []string{"top over public.|mode over public.|popular over public.", "Mechanism: noisy max", "moves one candidate's score by at most"}},
	{"Pricing", "", []string{`SELECT p.price FROM prices p JOIN bids b ON b.bid >= p.price GROUP BY 1 ORDER BY p.price * count(*) DESC LIMIT 1`},
		[]string{"dearest over public.bids", "Mechanism: exponential mechanism", "by at most 100 more than another's"}},
	{"The census table", "", []string{
		`SELECT age / 10 AS decade, sex, education, region, count(*) FROM people GROUP BY GROUPING SETS ((decade, sex), (sex, education), (region, decade), ())`,
		`SELECT region, education, count(*), avg(income), median(income) FROM people GROUP BY CUBE (region, education)`,
	}, []string{"marginals|exponential mechanism"}},
	{"Alarms", "SET dp.alarms = 3", []string{`SELECT count(*) > 5000000 FROM visits WHERE kind = 'lab'`, `SELECT 'alarm' FROM visits HAVING count(*) > 9000000`, `SELECT bool_or(minutes > 239) FROM visits WHERE kind = 'checkup'`},
		[]string{"alarms over public.visits", "Mechanism: sparse vector (AboveThreshold)", "the run ends at yes number 3"}},
	{"Online releases", "SET dp.epsilon = 1", []string{`SELECT count(*) FROM likes WHERE apple AND NOT banana`},
		[]string{"online over public.likes", "Mechanism: multiplicative weights over ", "a plain histogram of its 16 cells would be within"}},
	{"Raw rows", "SET dp.epsilon = 1", []string{`SELECT count(*) FROM dp.people_made_up`, `SELECT * FROM dp.people_made_up LIMIT 3`, `SELECT age, region FROM dp.people_made_up WHERE age < 40 ORDER BY age LIMIT 3`},
		[]string{"synthetic over public.people", "Mechanism: 2000 made-up rows by MWEM", "none is that of a person"}},
	{"Sums and averages", "", []string{
		`SELECT sum(minutes), avg(minutes), stddev(minutes), variance(minutes) FROM visits WHERE kind = 'lab'`, `SELECT kind, avg(minutes) FROM visits GROUP BY kind`},
		[]string{"sum of whole numbers from -120 to 120 with discrete Laplace noise"}},
	{"What a person adds in all", "SET dp.contribution = ladder", []string{
		`SELECT sum(minutes) FROM visits`, `SELECT kind, count(*), sum(minutes) FROM visits GROUP BY kind`},
		[]string{"in which each unit has a share of the two steps around its total; discrete Laplace noise",
			"× its clamp, which is chosen"}},
	{"Reports known up front", "", nil, nil},
}

// TestMechanismsThroughSQL walks the rows of docs/mechanisms.md's table over the wire: each statement's plan names the
// mechanism and is the golden one to the letter, asking it is answered, and it costs what the plan says.
func TestMechanismsThroughSQL(t *testing.T) {
	kit.Beside(t)
	p := smallDemo(t)
	w := p.Connect("analyst", "demo")
	var golden strings.Builder
	for _, row := range mechanismRows {
		golden.WriteString("## " + row.section + "\n")
		if row.set != "" {
			w.Ask(row.set)
			golden.WriteString(row.set + "\n")
		}
		for _, sql := range row.sql {
			golden.WriteString("\n" + sql + "\n----\n" + row.walk(t, w, sql))
		}
		w.Ask("RESET ALL")
		golden.WriteString("\n\n")
	}
	p.Stop(syscall.SIGTERM)
	out := kit.Run(t, "", "price", "--policy", p.Policy, "--user", "analyst", demoReport)
	for _, part := range []string{"8 statements: 8 answered", "As a batch:", "marginals"} {
		if out.Code != 0 || !strings.Contains(out.Stdout, part) {
			t.Errorf("dpproxy price, exit %d, does not say %q:\n%s%s", out.Code, part, out.Stdout, out.Stderr)
		}
	}
	golden.WriteString("dpproxy price report.sql\n----\n" + fromRoot(out.Stdout))
	if *kit.Update {
		if err := os.WriteFile(mechanismsGolden, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(mechanismsGolden)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, same := firstLinesApart(string(want), golden.String()); !same {
		t.Errorf("%s differs; run with -update and read the difference\nwant %s\ngot  %s", mechanismsGolden, a, b)
	}
}

// firstLine is how a plan begins, as PostgreSQL's do.
var firstLine = regexp.MustCompile(`^Result  \(cost=0\.00\.\.\d+\.\d\d+ rows=\d+ width=\d+\)$`)

// walk explains and asks one statement.
func (row mechanismRow) walk(t *testing.T, w *kit.Wire, sql string) (plan string) {
	t.Helper()
	a := w.Ask("EXPLAIN " + sql)
	for i, r := range a.Rows {
		if plan += r[0] + "\n"; utf8.RuneCountInString(r[0]) > 98 || i == 0 && !firstLine.MatchString(r[0]) {
			t.Errorf("EXPLAIN of %s has the line %q", sql, r[0])
		}
	}
	for _, says := range row.says {
		if !slices.ContainsFunc(strings.Split(says, "|"), func(one string) bool { return strings.Contains(kit.Words(plan), one) }) {
			t.Errorf("%s: EXPLAIN of %s does not say %q:\n%.1500s", row.section, sql, says, plan)
		}
	}
	_, cost, _ := strings.Cut(plan, "\n  Cost: ")
	cost, _, _ = strings.Cut(cost, "\n")
	before := w.Spent()
	a = w.Ask(sql)
	switch note := strings.Join(a.Notes, "\n"); {
	case a.Err != nil:
		t.Errorf("%s: %s: %v", row.section, sql, a.Err)
	case cost == "nothing" && (w.Spent() != before || !strings.HasPrefix(note, "free: ")):
		t.Errorf("%s: %s is not free, as EXPLAIN said: %s", row.section, sql, note)
	case cost != "nothing" && !strings.HasPrefix(note, "cost "+cost+"; "):
		t.Errorf("%s: %s: EXPLAIN said %s, the notice %q", row.section, sql, cost, note)
	}
	return plan
}

// TestMechanismsDocument replays docs/mechanisms.md through the real psql: plans, costs, errors and refusals are those
// that are there, to the letter. With -update it writes the document, from a million people.
func TestMechanismsDocument(t *testing.T) {
	kit.Beside(t)
	text, err := os.ReadFile(mechanismsDocument)
	if err != nil {
		t.Fatal(err)
	}
	p := smallDemo(t)
	var session *kit.Psql
	answer := func(statement string) string {
		if command, ok := strings.CutPrefix(statement, shellMark); ok {
			if session != nil {
				p.Stop(syscall.SIGTERM)
				session = nil
			}
			return shell(t, p, command)
		}
		if session == nil {
			if !p.Alive() {
				p.Restart()
			}
			session = kit.StartPsql(t, p.Address, "analyst", "demo")
		}
		return session.Run(statement)
	}
	written := answeredAnew(string(text), answer, func(statement, wanted, out string) {
		if *kit.Update {
			return
		}
		if a, b, same := firstLinesApart(publicLines(statement, wanted), publicLines(statement, out)); !same {
			t.Errorf("%s\nwant %s\ngot  %s", statement, a, b)
		}
	})
	if *kit.Update {
		if err := os.WriteFile(mechanismsDocument, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMechanismsAreTheTables: the document has the rows that are walked over the wire, in its table and as its
// sections.
func TestMechanismsAreTheTables(t *testing.T) {
	text, err := os.ReadFile(mechanismsDocument)
	if err != nil {
		t.Fatal(err)
	}
	var sections, rows, linked, walked []string
	for _, row := range mechanismRows {
		rows = append(rows, row.section)
		walked = append(walked, "#"+strings.ReplaceAll(strings.ToLower(row.section), " ", "-"))
	}
	for line := range strings.Lines(string(text)) {
		if section, ok := strings.CutPrefix(line, "## "); ok {
			sections = append(sections, strings.TrimSpace(section))
		}
		if _, anchor, ok := strings.Cut(line, "](#"); ok && strings.HasPrefix(line, "| ") {
			anchor, _, _ = strings.Cut(anchor, ")")
			linked = append(linked, "#"+anchor)
		}
	}
	if !slices.Equal(sections, rows) {
		t.Errorf("sections %q, walked %q", sections, rows)
	}
	slices.Sort(linked)
	slices.Sort(walked)
	if !slices.Equal(linked, walked) {
		t.Errorf("the table links %q, walked %q", linked, walked)
	}
}

// shell runs a line of the document's: cat, or dpproxy.
func shell(t *testing.T, p *kit.Program, line string) string {
	t.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		switch {
		case word == "demo/policy.yaml":
			words[i] = p.Policy
		case strings.HasPrefix(word, "examples/"):
			words[i] = filepath.Join("../..", word)
		}
	}
	if words[0] == "cat" {
		text, err := os.ReadFile(words[1])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	out := kit.Run(t, "", words[1:]...)
	if out.Code != 0 {
		t.Fatalf("%s: exit %d\n%s%s", line, out.Code, out.Stdout, out.Stderr)
	}
	return fromRoot(out.Stdout)
}

func fromRoot(text string) string { return strings.ReplaceAll(text, "../../examples/", "examples/") }

// publicLines are what of an answer is a function of the policy and her own questions: the whole of a plan, of a
// command and of a refusal, the notice of others.
func publicLines(statement, out string) string {
	if strings.HasPrefix(statement, "EXPLAIN") || strings.HasPrefix(statement, shellMark) || strings.HasPrefix(out, "ERROR:") {
		return out
	}
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "NOTICE:") {
			lines = append(lines, kit.BesideValues(line))
		}
	}
	return strings.Join(lines, "")
}

// firstLinesApart are the first lines in which two texts differ.
func firstLinesApart(a, b string) (inA, inB string, same bool) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		inA, inB = "no line", "no line"
		if i < len(x) {
			inA = x[i]
		}
		if i < len(y) {
			inB = y[i]
		}
		if inA != inB {
			return inA, inB, false
		}
	}
	return "", "", true
}
