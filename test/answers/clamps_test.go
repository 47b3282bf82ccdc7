package answers

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

// statement is one of an example's. So many first columns of its answer as keys says name a row.
type statement struct {
	name, sql string
	keys      int
}

// example is a folder of examples: generate.sql makes a DuckDB file of some scale, policy.yaml declares it.
type example struct {
	folder string
	more   string // SQL, after generate.sql
	dir    string // of the database that was made
}

func (e *example) read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + e.folder + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// statements are those of a file, each below a line of two hyphens and its name.
func (e *example) statements(t *testing.T, file string) (list []statement) {
	t.Helper()
	for _, block := range strings.Split("\n"+e.read(t, file), "\n-- ")[1:] {
		name, query, _ := strings.Cut(block, "\n")
		if strings.HasPrefix(query, "SELECT") || strings.HasPrefix(query, "WITH") {
			list = append(list, statement{name: name, sql: strings.TrimSpace(query)})
		}
	}
	return list
}

// generate makes the database.
func (e *example) generate(t *testing.T, scale float64) {
	t.Helper()
	e.dir = memory.Dir(t)
	db, err := sql.Open("duckdb", filepath.Join(e.dir, e.folder+".duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	script := fmt.Sprintf("SET VARIABLE scale = %g;\n%s%s", scale, e.read(t, "generate.sql"), e.more)
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
}

// serve starts a proxy over the database for so many users, u0, u1 and so on, who may spend what they like. change
// is made of the policy.
func (e *example) serve(t *testing.T, users int, change func(policy string) string) *kit.Program {
	t.Helper()
	others := "users:"
	for i := range users {
		others += fmt.Sprintf("\n  - {name: u%d, password: %q}", i, kit.Verifier(t, fmt.Sprintf("u%d", i)))
	}
	text := e.read(t, "policy.yaml")
	for _, change := range [][2]string{{`(?s)users:\n.*?\ndatasets`, others + "\ndatasets"},
		{`cap: \{epsilon: \d+`, "cap: {epsilon: 1000000"},
		{`budgets: \{analyst: \{epsilon: \d+`, `budgets: {"*": {epsilon: 10000`}} {
		text = regexp.MustCompile(change[0]).ReplaceAllLiteralString(text, change[1])
	}
	ledger := filepath.Join(memory.Dir(t), "ledger")
	text = strings.NewReplacer("127.0.0.1:6432", "127.0.0.1:0", "sqlite:"+e.folder+".ledger", "sqlite:"+ledger,
		"duckdb:"+e.folder+".duckdb", "duckdb:"+filepath.Join(e.dir, e.folder+".duckdb")).Replace(change(text))
	path := filepath.Join(filepath.Dir(ledger), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kit.Serve(t, path)
}

func unchanged(policy string) string { return policy }

// truth runs a query on the database itself.
func (e *example) truth(t *testing.T, query string) [][]string {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(e.dir, e.folder+".duckdb")+"?access_mode=read_only")
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

// off is by how much a column of answers differs from the truth: the median of |answer − truth| / |truth| over the rows
// that the truth and an answer have, and over the answers. NULL is as far off as 0.
type off struct {
	by   float64
	none string // why there is no such figure
}

func (o off) String() string {
	if o.none != "" {
		return o.none
	}
	return percent(o.by)
}

// offs are those of each column that is no key.
func offs(answers [][][]string, truth [][]string, keys int) (columns []off) {
	if len(truth) == 0 {
		return []off{{math.Inf(1), "no row in truth"}}
	}
	byKey := make([]map[string][]string, len(answers))
	for i, rows := range answers {
		byKey[i] = map[string][]string{}
		for _, row := range rows {
			byKey[i][strings.Join(row[:keys], "|")] = row
		}
	}
	for c := keys; c < len(truth[0]); c++ {
		var errors []float64
		matched := false // some row is in an answer
		for _, want := range truth {
			x, err := strconv.ParseFloat(want[c], 64)
			for _, rows := range byKey {
				got := rows[strings.Join(want[:keys], "|")]
				matched = matched || got != nil
				if got == nil || err != nil || x == 0 {
					continue
				}
				y, err := strconv.ParseFloat(got[c], 64)
				if err != nil {
					y = 0
				}
				errors = append(errors, math.Abs(y-x)/math.Abs(x))
			}
		}
		switch slices.Sort(errors); {
		case len(errors) > 0:
			columns = append(columns, off{by: errors[len(errors)/2]})
		case matched:
			columns = append(columns, off{math.Inf(1), "0 or NULL in truth"})
		default:
			columns = append(columns, off{math.Inf(1), "the noise chose other rows"})
		}
	}
	return columns
}

// percent writes a relative error to two digits.
func percent(x float64) string {
	if x > 10 {
		return "> 1000 %"
	}
	if x >= .995 {
		return strconv.Itoa(10*int(math.Round(10*x))) + " %"
	}
	return strconv.FormatFloat(100*x, 'g', 2, 64) + " %"
}

// clamped is what a statement's columns are off by as one bounds what units add: by the policy's rows, by a ladder, and
// with the clamp that is best for each column, which only somebody who sees the rows could set.
type clamped struct {
	name               string
	rows, ladder, best []off
	at                 []float64 // the best clamps
	average            bool
}

// asker asks a served example at one ε, each statement by users who have asked nothing else.
type asker struct {
	t       *testing.T
	example *example
	program *kit.Program
	dataset string
	epsilon float64
	users   *int // who have asked
}

// fresh are sessions of so many users.
func (a asker) fresh(n int) (list []*kit.Wire) {
	for range n {
		list = append(list, a.program.Connect(fmt.Sprintf("u%d", *a.users), a.dataset))
		*a.users++
	}
	return list
}

// ask asks each session once, at a share of ε.
func (a asker) ask(sessions []*kit.Wire, query, contribution string, share float64) (answers [][][]string) {
	a.t.Helper()
	for _, w := range sessions {
		w.Ask(fmt.Sprintf("SET dp.epsilon = %g", a.epsilon*share))
		w.Ask("SET dp.contribution = " + contribution)
		got := w.Ask(query)
		if got.Err != nil {
			a.t.Fatalf("%s, dp.contribution %s: %v", query, contribution, got.Err)
		}
		answers = append(answers, got.Rows)
	}
	return answers
}

// averaged is the one number of a statement.
var averaged = regexp.MustCompile(`^(SELECT (?:\w+, )?)avg(\(\w+\) FROM)`)

// number writes a clamp.
func number(clamp float64) string { return strconv.FormatFloat(clamp, 'f', 2, 64) }

// best asks a statement with the clamps that are best for its columns, which are found with other noise than the errors
// are of. An average is a sum and a count, each at half of ε and with its own best clamp.
func (a asker) best(finding, asking []*kit.Wire, s statement, share float64) (at []float64, answers [][][][]string) {
	a.t.Helper()
	if averaged.MatchString(s.sql) {
		sum, count := s, s
		sum.sql = averaged.ReplaceAllString(s.sql, "${1}sum$2")
		count.sql = averaged.ReplaceAllString(s.sql, "${1}count$2")
		at, sums := a.best(finding, asking, sum, .5)
		_, counts := a.best(finding, asking, count, .5)
		return at, [][][][]string{quotients(sums[0], counts[0])}
	}
	truth := a.example.truth(a.t, s.sql)
	at = bestClamps(func(clamp float64) []off {
		return offs(a.ask(finding, s.sql, number(clamp), share), truth, s.keys)
	})
	for _, clamp := range at {
		answers = append(answers, a.ask(asking, s.sql, number(clamp), share))
	}
	return at, answers
}

// canClamp reports whether a clamp bounds what a statement asks for: not if that is a sum of products.
func canClamp(w *kit.Wire, s statement) bool {
	w.Ask("SET dp.contribution = 1000")
	for _, row := range w.Ask("EXPLAIN " + s.sql).Rows {
		if strings.Contains(row[0], "clamped to what dp.contribution") {
			return true
		}
	}
	return averaged.MatchString(s.sql)
}

// quotients divides the last columns of answers of the same rows; NULL where there is nothing to divide by.
func quotients(sums, counts [][][]string) [][][]string {
	for i, answer := range counts {
		for r, row := range answer {
			last := len(row) - 1
			n, _ := strconv.ParseFloat(row[last], 64) // 0 where it is NULL
			x, err := strconv.ParseFloat(sums[i][r][last], 64)
			if sums[i][r][last] = "NULL"; err == nil && n > 0 {
				sums[i][r][last] = strconv.FormatFloat(x/n, 'g', -1, 64)
			}
		}
	}
	return sums
}

// measure asks a statement in each way. The more rows an answer has, the fewer are drawn: draws where there is one.
func (a asker) measure(s statement, draws int, search bool) clamped {
	a.t.Helper()
	begin, truth := time.Now(), a.example.truth(a.t, s.sql)
	draws = max(draws/max(1, len(truth)), min(draws, 5))
	sessions := a.fresh(2 * draws)
	for _, w := range sessions {
		defer w.Conn.Close()
	}
	finding, asking := sessions[:draws], sessions[draws:]
	c := clamped{name: s.name, average: averaged.MatchString(s.sql)}
	c.rows = offs(a.ask(asking, s.sql, "rows", 1), truth, s.keys)
	c.ladder = offs(a.ask(asking, s.sql, "ladder", 1), truth, s.keys)
	if search && !slices.ContainsFunc(c.ladder, func(o off) bool { return o.none != "" }) && canClamp(finding[0], s) {
		at, answers := a.best(finding, asking, s, 1)
		c.at = at
		for i, of := range answers {
			c.best = append(c.best, offs(of, truth, s.keys)[i])
		}
	}
	a.t.Logf("%s: %v, %v, %v, %d draws, %v", s.name, c.rows, c.ladder, c.best, draws, time.Since(begin).Round(time.Second))
	return c
}

// bestClamps searches powers of 1.5 for the clamp with the least error of each column: every third first, until all
// columns are off by four times their least, and then those beside the best of these.
func bestClamps(ask func(clamp float64) []off) (at []float64) {
	tried := map[int][]off{}
	try := func(step int) []off {
		if tried[step] == nil {
			tried[step] = ask(math.Pow(1.5, float64(step)))
		}
		return tried[step]
	}
	best := make([]int, len(try(0)))
	for step, risen := 0, false; !risen && step <= 69; step += 3 {
		risen = true
		for c, o := range try(step) {
			if o.by < tried[best[c]][c].by {
				best[c] = step
			}
			risen = risen && (o.none != "" || o.by > 4*tried[best[c]][c].by)
		}
	}
	for c, around := range best {
		for step := max(0, around-2); step <= around+2; step++ {
			if try(step)[c].by < tried[best[c]][c].by {
				best[c] = step
			}
		}
		at = append(at, math.Pow(1.5, float64(best[c])))
	}
	return at
}

// clampedTable is a table of measured statements; wide: the same where the policy's bounds are far too large, or none.
// Below it are the medians over all columns of statements.
func clampedTable(list, wide []clamped) string {
	var b strings.Builder
	columns := "| statement | rows | ladder |"
	if wide != nil {
		columns += " rows, wide | ladder, wide |"
	}
	columns += " best clamp | ladder / best |\n"
	b.WriteString(columns + strings.Repeat("|---", strings.Count(columns, "|")-1) + "|\n")
	var exact, averages gains
	for i, c := range list {
		fmt.Fprintf(&b, "| %s | %s | %s |", c.name, joined(c.rows), joined(c.ladder))
		if wide != nil {
			fmt.Fprintf(&b, " %s | %s |", joined(wide[i].rows), joined(wide[i].ladder))
		}
		best, times := []string{"–"}, []string{"–"}
		if c.best != nil {
			best, times = nil, nil
		}
		for n, o := range c.best {
			if o.none != "" || c.ladder[n].none != "" || o.by == 0 {
				best, times = append(best, o.String()), append(times, "–")
				continue
			}
			best = append(best, fmt.Sprintf("%v (%.0f)", o, c.at[n]))
			times = append(times, fmt.Sprintf("%.2g", c.ladder[n].by/o.by))
			of := &exact
			if c.average {
				of = &averages
			}
			of.add(c.rows[n].by, c.ladder[n].by, o.by)
		}
		fmt.Fprintf(&b, " %s | %s |\n", strings.Join(best, ", "), strings.Join(times, ", "))
	}
	return b.String() + exact.say("counts and sums") + averages.say("averages")
}

// gains are errors by rows over those by the ladder, and these over the best clamp's.
type gains struct{ today, beside []float64 }

func (g *gains) add(rows, ladder, best float64) {
	g.today, g.beside = append(g.today, rows/ladder), append(g.beside, ladder/best)
}

// say writes what they come to.
func (g *gains) say(what string) string {
	n := len(g.today)
	if n == 0 {
		return ""
	}
	slices.Sort(g.today)
	slices.Sort(g.beside)
	worse := sort.SearchFloat64s(g.today, 1)
	text := fmt.Sprintf("\nOf %d %s the ladder's error is %.2g times the best clamp's in the median, %.2g at worst;\n"+
		"that of rows is %.2g times the ladder's in the median.", n, what, g.beside[n/2], g.beside[n-1], g.today[n/2])
	if worse > 0 {
		text += fmt.Sprintf(" %d of them are nearer by rows, by %.2g times at most.", worse, 1/g.today[0])
	}
	return text + "\n"
}

func joined(list []off) string {
	var texts []string
	for _, o := range list {
		texts = append(texts, o.String())
	}
	return strings.Join(texts, ", ")
}
