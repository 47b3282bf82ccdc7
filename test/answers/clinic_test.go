package answers

import (
	"context"
	"errors"
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
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

var (
	clinicPersons = flag.Int("clinic-persons", 600, "persons of the clinic; docs/clinic.md is written with 30,000")
	clinicOnly    = flag.String("clinic-only", "", "questions to ask, with blanks between; all without it")
)

// clinicEpsilon is what a question may cost: all questions together have the most that a policy may name.
const (
	clinicEpsilon = 6_800
	clinicMost    = 1_000_000
)

const clinicFile = "../../docs/clinic.md"

// clinicText is docs/clinic.md.
const clinicText = `# A clinic in OMOP's shape

147 questions of the kinds that people who work with OMOP's Common Data Model store (prevalence by age and sex, eras of
drugs, quartiles of days of supply, first events, persistence, visits by kind, ancestors of a concept), in our own words
([questions.sql](../examples/clinic/questions.sql)), over a clinic of %d made-up persons
([generate.sql](../examples/clinic/generate.sql)) with each person protected
([policy.yaml](../examples/clinic/policy.yaml)). Concept ids are columns as they are: ` + "`domain: {keys_of: concept.concept_id, where: …}`" + `.
This page is written by ` + "`make clinic`" + `: each question is asked of dpproxy over PostgreSQL at an ε where noise vanishes or
nearly does, and of PostgreSQL itself, on the same rows.

%d of %d are answered, of which %d ask the public vocabulary alone; %d of the answers are PostgreSQL's own rows, in %d of them beside groups
that nobody is in, with counts of 0, and %d differ by noise, within the bounds that ` + "`dp.error_columns`" + ` shows. None differs otherwise. %d are
refused, each before it is charged.

| question | outcome | beside PostgreSQL, or why not |
| --- | --- | --- |
%s
`

// clinicNotes say of the questions that have no answer why, and what can be asked instead.
var clinicNotes = map[string]string{}

// clinicQuestion is a question of the file.
type clinicQuestion struct{ id, name, sql string }

func clinicQuestions(t *testing.T) (list []clinicQuestion) {
	t.Helper()
	text, err := os.ReadFile("../../examples/clinic/questions.sql")
	if err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`(?m)^-- ([A-Z]+\d+) (.*)$`).FindAllSubmatchIndex(text, -1)
	for i, at := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		q := clinicQuestion{string(text[at[2]:at[3]]), string(text[at[4]:at[5]]), strings.TrimSpace(string(text[at[1]:end]))}
		if *clinicOnly == "" || slices.Contains(strings.Fields(*clinicOnly), q.id) {
			list = append(list, q)
		}
	}
	return list
}

// clinic is the program over a database of the clinic, and the database itself.
type clinic struct {
	t       *testing.T
	program *kit.Program
	ledger  string
	proxy   *pgconn.PgConn
	plain   *pgconn.PgConn
}

// openClinic generates the rows, and serves the example's policy with room for all questions.
func openClinic(t *testing.T) *clinic {
	t.Helper()
	script, err := os.ReadFile("../../examples/clinic/generate.sql")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../examples/clinic/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, fmt.Sprintf("SET clinic.persons = %d", *clinicPersons), string(script), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	t.Cleanup(func() { server.Exec(t, database, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM "+role) })
	c := &clinic{t: t, ledger: filepath.Join(memory.Dir(t), "clinic.ledger")}
	text = regexp.MustCompile(`SCRAM-SHA-256[^"]*`).ReplaceAll(text, []byte(strings.ReplaceAll(kit.Verifier(t, "analyst"), "$", "$$")))
	changed := strings.NewReplacer("127.0.0.1:6432", "127.0.0.1:0", "postgres://dpproxy@127.0.0.1/clinic", server.URLFor(role, database), "sqlite:clinic.ledger", "sqlite:"+c.ledger,
		"cap: {epsilon: 100}", fmt.Sprintf("cap: {epsilon: %d}", clinicMost), "{epsilon: 50}", fmt.Sprintf("{epsilon: %d}", clinicMost), "max_epsilon: 1,", fmt.Sprintf("max_epsilon: %d,", clinicMost)).Replace(string(text))
	path := filepath.Join(filepath.Dir(c.ledger), "policy.yaml")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	c.program = kit.Serve(t, path)
	c.plain = c.dial(server.URLFor("postgres", database), "SET jit = off")
	c.proxy = c.dial(c.program.URL("analyst", "clinic"), fmt.Sprintf("SET dp.epsilon = %d", clinicEpsilon))
	return c
}

func (c *clinic) dial(url, first string) *pgconn.PgConn {
	c.t.Helper()
	conn, err := pgconn.Connect(context.Background(), url)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if a := clinicAsk(conn, first); a.err != nil {
		c.t.Fatal(a.err)
	}
	return conn
}

// alone begins a ledger in which nothing is spent, for one question.
func (c *clinic) alone() *pgconn.PgConn {
	c.t.Helper()
	c.program.Stop(syscall.SIGTERM)
	files, err := filepath.Glob(c.ledger + "*")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range files {
		if err := os.RemoveAll(f); err != nil {
			c.t.Fatal(err)
		}
	}
	c.program.Restart()
	return c.dial(c.program.URL("analyst", "clinic"), fmt.Sprintf("SET dp.epsilon = %d", clinicMost))
}

// clinicAnswer is what one statement brought.
type clinicAnswer struct {
	names []string
	rows  [][]string
	err   *pgconn.PgError
	took  time.Duration
}

// clinicAsk asks one statement; a connection that is lost is an error 08006.
func clinicAsk(conn *pgconn.PgConn, sql string) (a clinicAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	results, err := conn.Exec(ctx, sql).ReadAll()
	a.took = time.Since(begin)
	if err != nil && !errors.As(err, &a.err) {
		a.err = &pgconn.PgError{Code: "08006", Message: err.Error()}
	}
	for _, r := range results {
		for _, f := range r.FieldDescriptions {
			a.names = append(a.names, f.Name)
		}
		for _, values := range r.Rows {
			row := make([]string, len(values))
			for i, v := range values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			a.rows = append(a.rows, row)
		}
	}
	return a
}

// bounds are where the columns _low and _high of an answer with dp.error_columns are, by the place of their column;
// shown is the answer without them.
func (a clinicAnswer) bounds() (shown clinicAnswer, bounds []clinicRow) {
	var own []int
	low := map[int]int{}
	for i, name := range a.names {
		switch {
		case i > 0 && name == a.names[i-1]+"_low" && i+1 < len(a.names) && a.names[i+1] == a.names[i-1]+"_high":
			low[len(own)-1] = i
		case i > 1 && low[len(own)-1] == i-1:
		default:
			own = append(own, i)
			shown.names = append(shown.names, name)
		}
	}
	for _, row := range a.rows {
		r := clinicRow{}
		for i, at := range own {
			r.values = append(r.values, row[at])
			if l, bounded := low[i]; bounded {
				r.low, r.high = append(r.low, row[l]), append(r.high, row[l+1])
			} else {
				r.low, r.high = append(r.low, row[at]), append(r.high, row[at])
			}
		}
		shown.rows, bounds = append(shown.rows, r.values), append(bounds, r)
	}
	return shown, bounds
}

// clinicRow is a row with the bounds of its values, which are the values where there are none.
type clinicRow struct{ values, low, high []string }

// is reports whether a row of PostgreSQL's is this one, within its bounds.
func (r clinicRow) is(want []string) bool {
	for i, w := range want {
		if w == r.values[i] {
			continue
		}
		x, err := strconv.ParseFloat(w, 64)
		low, also := strconv.ParseFloat(r.low[i], 64)
		high, too := strconv.ParseFloat(r.high[i], 64)
		if slack := 1e-9 * math.Abs(x); err != nil || also != nil || too != nil || x < low-slack || x > high+slack {
			return false
		}
	}
	return true
}

// hollow reports whether it may be of a group that nobody is in: a count is 0.
func (r clinicRow) hollow() bool { return slices.Contains(r.values, "0") || slices.Contains(r.values, "0.00") }

// clinicMatch holds an answer against PostgreSQL's: how many rows are of groups that nobody is in, and what differs.
func clinicMatch(got []clinicRow, want [][]string) (hollow int, differs string) {
	left := slices.Clone(want)
	for _, r := range got {
		switch i := slices.IndexFunc(left, r.is); {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case r.hollow():
			hollow++
		case differs == "":
			differs = fmt.Sprintf("has %q", r.values)
		}
	}
	if len(left) > 0 {
		differs = strings.TrimSpace(fmt.Sprintf("%s lacks %q", differs, left[0]))
	}
	return hollow, differs
}

// exact are rows without bounds.
func (a clinicAnswer) exact() (list []clinicRow) {
	for _, row := range a.rows {
		list = append(list, clinicRow{row, row, row})
	}
	return list
}

// clinicOutcome is a line of docs/clinic.md.
type clinicOutcome struct {
	question clinicQuestion
	outcome  string // answered, refused or WRONG
	noisy    bool   // it differs by noise
	hollow   int
	how      string
	took     time.Duration
}

func (o clinicOutcome) String() string {
	return fmt.Sprintf("| %s %s | %s | %s |", o.question.id, o.question.name, o.outcome, o.how)
}

// ask asks a question of both.
func (c *clinic) ask(q clinicQuestion) (o clinicOutcome) {
	o.question = q
	got, want := clinicAsk(c.proxy, q.sql), clinicAsk(c.plain, q.sql)
	o.took = got.took
	switch {
	case want.err != nil:
		c.t.Fatalf("%s: PostgreSQL says %v", q.id, want.err)
	case got.err != nil:
		o.outcome, o.how = "refused", strings.TrimSpace(fmt.Sprintf("%s *%s %s*", clinicNotes[q.id], got.err.Code, got.err.Message))
		return o
	}
	hollow, differs := clinicMatch(got.exact(), want.rows)
	if differs != "" {
		hollow, differs = c.bounded(c.proxy, q, want)
		o.noisy = true
	}
	if differs != "" {
		proxy := c.alone()
		got = clinicAsk(proxy, q.sql)
		hollow, differs = clinicMatch(got.exact(), want.rows)
		if o.noisy = differs != ""; o.noisy {
			hollow, differs = c.bounded(proxy, q, want)
		}
		c.proxy = c.dial(c.program.URL("analyst", "clinic"), fmt.Sprintf("SET dp.epsilon = %d", clinicEpsilon))
	}
	o.hollow = hollow
	if o.outcome, o.how = "answered", fmt.Sprintf("equal, rows: %d", len(want.rows)); o.noisy {
		o.how = fmt.Sprintf("within its bounds, rows: %d", len(want.rows))
	}
	if hollow > 0 {
		o.how += fmt.Sprintf("; and %d groups that nobody is in", hollow)
	}
	if differs != "" {
		o.outcome, o.how = "WRONG", differs
	}
	return o
}

// bounded asks it again, for nothing, with the bounds of each value.
func (c *clinic) bounded(conn *pgconn.PgConn, q clinicQuestion, want clinicAnswer) (hollow int, differs string) {
	clinicAsk(conn, "SET dp.error_columns = on")
	got := clinicAsk(conn, q.sql)
	clinicAsk(conn, "SET dp.error_columns = off")
	if got.err != nil {
		return 0, got.err.Error()
	}
	shown, bounds := got.bounds()
	if len(shown.names) != len(want.names) {
		return 0, fmt.Sprintf("columns %q for %q", shown.names, want.names)
	}
	return clinicMatch(bounds, want.rows)
}

// TestClinic asks a clinic of OMOP's shape 147 questions of the kinds that its community stores, through the program and
// of PostgreSQL itself, and holds what is answered and what is refused against docs/clinic.md. With -update and 30,000
// persons (make clinic) it writes that file.
func TestClinic(t *testing.T) {
	kit.Beside(t)
	c := openClinic(t)
	var lines, slow []string
	count := map[string]int{}
	for _, q := range clinicQuestions(t) {
		o := c.ask(q)
		lines = append(lines, o.String())
		if o.outcome == "WRONG" {
			t.Errorf("%s: %s\n%s", q.id, o.how, q.sql)
		}
		if o.took > 2*time.Second {
			slow = append(slow, fmt.Sprintf("%s took %v", q.id, o.took.Round(100*time.Millisecond)))
		}
		public := strings.HasPrefix(q.id, "G") && q.id != "G17" || q.id == "V1"
		for what, is := range map[string]bool{o.outcome: true, "noisy": o.noisy, "hollow": o.hollow > 0 && !o.noisy, "public": public && o.outcome == "answered"} {
			if is {
				count[what]++
			}
		}
	}
	t.Logf("%v of %d\n%s\n%s", count, len(lines), strings.Join(lines, "\n"), strings.Join(slow, "\n"))
	if *clinicOnly != "" || t.Failed() {
		return
	}
	if *kit.Update {
		answered := count["answered"]
		text := fmt.Sprintf(clinicText, *clinicPersons, answered, len(lines), count["public"], answered-count["noisy"], count["hollow"], count["noisy"], count["refused"], strings.Join(lines, "\n"))
		if err := os.WriteFile(clinicFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(clinicFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		same := line
		if !strings.Contains(line, "| refused |") { // how many rows there are is of this number of persons
			same = line[:strings.LastIndex(strings.TrimSuffix(line, " |"), "|")]
		}
		if !strings.Contains(string(written), "\n"+same) {
			t.Errorf("docs/clinic.md does not say\n%s", line)
		}
	}
}
