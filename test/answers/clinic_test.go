package answers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	clinicEvery   = flag.Int("clinic-every", 8, "every how manieth question is asked; docs/clinic.md is written with 1")
	clinicOnly    = flag.String("clinic-only", "", "questions to ask, with blanks between; all without it")
)

// clinicEpsilon is what a question may cost: all questions together have the most that a policy may name.
const (
	clinicEpsilon = 6_000
	clinicMost    = 1_000_000
)

const clinicFile = "../../docs/clinic.md"

// clinicText is docs/clinic.md.
const clinicText = `# A clinic in OMOP's shape

147 questions of the kinds that people who work with OMOP's Common Data Model store (prevalence by age and sex, eras of
drugs, quartiles of days of supply, first events, persistence, visits by kind, ancestors of a concept), in our own words
([questions.sql](../examples/clinic/questions.sql)), over a clinic of %d made-up persons
([generate.sql](../examples/clinic/generate.sql)), each of whom is protected
([policy.yaml](../examples/clinic/policy.yaml)). Concept ids are columns as they are, by
` + "`domain: {keys_of: concept.concept_id, where: …}`" + `. This page is written by ` + "`make clinic`" + `: each question is asked
of dpproxy over PostgreSQL, at an ε where noise vanishes or nearly does, and of PostgreSQL, on the same rows.

%d of %d are answered; %d of these ask public tables alone. %d answers are PostgreSQL's own rows, in %d of them but
for quantiles, min and max that lie between the row of their rank and the next one, as a notice says (rank error ±1),
and in %d beside groups that nobody is in, with counts of 0; %d differ by noise, within the bounds that
` + "`dp.error_columns`" + ` shows. %d are refused, each before it is charged.

| question | outcome | beside PostgreSQL, or why not |
| --- | --- | --- |
%s

What can be asked instead ([instead.sql](../examples/clinic/instead.sql)):

| question | outcome | beside PostgreSQL |
| --- | --- | --- |
%s
`

// clinicNotes say of the questions that have no answer why, and what can be asked instead.
var clinicNotes = map[string]string{
	"OP10": "Each month is held against two dates at once. Months as columns are answered: count(DISTINCT " +
		"person_id) FILTER (WHERE begins < … AND ends >= …).",
	"OP12": "A rank among all rows. percentile_disc(0.25) WITHIN GROUP (ORDER BY days) is answered.",
	"OP13": "The band reads two columns, and a person may have several observations in one band. Counted by " +
		"observations it is answered.",
	"CO6":  "One person's conditions: no noise hides them.",
	"CO17": "A rank among all persons. percentile_disc(0.25) WITHIN GROUP (ORDER BY n) is answered.",
	"CE4": "The decade reads two columns. A sub-query of each person's different years of era and birth is " +
		"answered, counted by (year - born) / 10.",
	"CE7": "Two rows' conditions are compared with each other; each compared with the condition that is " +
		"asked about is answered.",
	"CC6": "Two comparisons with the row around EXISTS; as a join, counted by count(DISTINCT person_id), " +
		"it is answered.",
	"DX2": "The age reads two columns. A sub-query of each person's different years of exposure and birth " +
		"is answered, counted by year - born.",
	"DX10": "Two rows' drugs are compared with each other; each compared with the drug that is asked about " +
		"is answered.",
	"DX16": "A quotient of two sums of each person's. The sums of both over all persons are answered, and " +
		"their quotient.",
	"DX26": "A rank among all rows. percentile_disc(0.25) WITHIN GROUP (ORDER BY day) is answered.",
	"DE1":  "One person's rows.",
	"DE4":  "One person's share.",
	"DE14": "Each month is held against two dates at once. Months as columns are answered: count(DISTINCT " +
		"person_id) FILTER (WHERE begins < … AND ends >= …).",
	"DE15": "The decade reads two columns. A sub-query of each person's different years of era and birth is " +
		"answered, counted by (year - born) / 10.",
}

// clinicQuestion is a question of the file.
type clinicQuestion struct{ id, name, sql string }

func clinicQuestions(t *testing.T, file string) (list []clinicQuestion) {
	t.Helper()
	all := questionsOf([]byte(script(t, "clinic/"+file)))
	for i, q := range all {
		if *clinicOnly == "" && i%*clinicEvery == 0 || slices.Contains(strings.Fields(*clinicOnly), q.id) {
			list = append(list, q)
		}
	}
	return list
}

// questionsOf are the questions of a file, each behind a comment of its number and its words.
func questionsOf(text []byte) (list []clinicQuestion) {
	heads := regexp.MustCompile(`(?m)^-- ([A-Z]+\d+) (.*)$`).FindAllSubmatchIndex(text, -1)
	for i, at := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		q := clinicQuestion{id: string(text[at[2]:at[3]]), name: string(text[at[4]:at[5]])}
		q.sql = strings.TrimSpace(string(text[at[1]:end]))
		list = append(list, q)
	}
	return list
}

// clinic is the program over a database of the clinic or of another example, and the database itself.
type clinic struct {
	t       *testing.T
	program *kit.Program
	dataset string
	notes   map[string]string // why questions are refused, each; nil means nothing is held to say so
	ledger  string
	proxy   *pgconn.PgConn
	plain   *pgconn.PgConn
	ledgers int    // that were begun anew
	said    string // what notices have said since a question began
}

// openClinic makes rows on PostgreSQL by statements, and serves the policy of an example with room for all questions.
func openClinic(t *testing.T, name string, statements ...string) *clinic {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + name + "/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := pgtest.Shared(t)
	role, database := server.Role(t, ""), server.Database(t)
	server.Exec(t, database, append(statements, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)
	t.Cleanup(func() { server.Exec(t, database, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM "+role) })
	c := &clinic{t: t, dataset: name, ledger: filepath.Join(memory.Dir(t), name+".ledger")}
	text = regexp.MustCompile(`SCRAM-SHA-256[^"]*`).ReplaceAll(text,
		[]byte(strings.ReplaceAll(kit.Verifier(t, "analyst"), "$", "$$")))
	changed := strings.NewReplacer("127.0.0.1:6432", "127.0.0.1:0",
		"postgres://dpproxy@127.0.0.1/"+name, server.URLFor(role, database),
		"sqlite:"+name+".ledger", "sqlite:"+c.ledger,
		"cap: {epsilon: 100}", fmt.Sprintf("cap: {epsilon: %d}", clinicMost),
		"{epsilon: 50}", fmt.Sprintf("{epsilon: %d}", clinicMost),
		"max_epsilon: 1,", fmt.Sprintf("max_epsilon: %d,", clinicMost)).Replace(string(text))
	path := filepath.Join(filepath.Dir(c.ledger), "policy.yaml")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	c.program = kit.Serve(t, path)
	c.plain = c.dial(server.URLFor("postgres", database), "SET jit = off")
	c.proxy = c.dial(c.program.URL("analyst", name), fmt.Sprintf("SET dp.epsilon = %d", clinicEpsilon))
	return c
}

// script is a file of the examples.
func script(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c *clinic) dial(url, first string) *pgconn.PgConn {
	c.t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		c.t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { c.said += n.Message + "\n" + n.Detail + "\n" }
	conn, err := pgconn.ConnectConfig(context.Background(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if a := clinicAsk(conn, first); a.err != nil {
		c.t.Fatal(a.err)
	}
	return conn
}

// renew begins a ledger in which nothing is spent, and a session of which a question may cost so much.
func (c *clinic) renew(epsilon int) {
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
	c.ledgers++
	c.proxy = c.dial(c.program.URL("analyst", c.dataset), fmt.Sprintf("SET dp.epsilon = %d", epsilon))
}

// wanted are PostgreSQL's rows; ranked: with the neighbours of what is chosen.
func (c *clinic) wanted(sql string, want clinicAnswer, ranked bool) (list []clinicWanted) {
	below, above := want, want
	if ranked {
		below, above = clinicAsk(c.plain, clinicNeighbour(sql, false)), clinicAsk(c.plain, clinicNeighbour(sql, true))
		if below.err != nil || above.err != nil ||
			len(below.rows) != len(want.rows) || len(above.rows) != len(want.rows) {
			c.t.Fatalf("%v %v\n%s", below.err, above.err, clinicNeighbour(sql, true))
		}
	}
	for i, row := range want.rows {
		list = append(list, clinicWanted{row, below.rows[i], above.rows[i]})
	}
	return list
}

// clinicOutcome is a line of docs/clinic.md.
type clinicOutcome struct {
	question clinicQuestion
	outcome  string // answered, refused or WRONG
	noisy    bool   // it differs by noise
	ranked   bool   // what it chooses by rank lies at the next rank, as a notice says
	hollow   int
	how      string
	took     time.Duration
}

func (o clinicOutcome) String() string {
	return fmt.Sprintf("| %s %s | %s | %s |", o.question.id, o.question.name, o.outcome, o.how)
}

// ask asks a question of both.
func (c *clinic) ask(q clinicQuestion) (o clinicOutcome) {
	o.question, c.said = q, ""
	got, want := clinicAsk(c.proxy, q.sql), clinicAsk(c.plain, q.sql)
	o.took = got.took
	switch {
	case want.err != nil:
		c.t.Fatalf("%s: PostgreSQL says %v", q.id, want.err)
	case got.err != nil && c.notes != nil && c.notes[q.id] == "":
		c.t.Errorf("%s is refused, and nothing says why: %v", q.id, got.err)
		fallthrough
	case got.err != nil:
		o.outcome, o.how = "refused", strings.TrimSpace(fmt.Sprintf("%s *%s %s*",
			c.notes[q.id], got.err.Code, got.err.Message))
		return o
	}
	near := c.wanted(q.sql, want, false)
	hollow, differs := clinicMatch(got.exact(), near)
	if differs != "" && strings.Contains(c.said, clinicRanks) {
		o.ranked, near = true, c.wanted(q.sql, want, true)
		hollow, differs = clinicMatch(got.exact(), near)
	}
	if differs != "" {
		o.noisy = true
		hollow, differs = c.bounded(q, want, near)
	}
	if differs != "" {
		c.renew(clinicMost)
		hollow, differs = clinicMatch(clinicAsk(c.proxy, q.sql).exact(), near)
		if o.noisy = differs != ""; o.noisy {
			hollow, differs = c.bounded(q, want, near)
		}
		c.renew(clinicEpsilon)
	}
	o.hollow = hollow
	switch o.outcome = "answered"; {
	case differs != "":
		o.outcome, o.how = "WRONG", differs
	case o.noisy:
		o.how = fmt.Sprintf("within its bounds, rows: %d", len(want.rows))
	case o.ranked:
		o.how = fmt.Sprintf("equal to the next rank, rows: %d", len(want.rows))
	default:
		o.how = fmt.Sprintf("equal, rows: %d", len(want.rows))
	}
	if hollow > 0 {
		o.how += fmt.Sprintf("; and %d groups that nobody is in", hollow)
	}
	return o
}

// bounded asks it again, for nothing, with the bounds of each value.
func (c *clinic) bounded(q clinicQuestion, want clinicAnswer, near []clinicWanted) (hollow int, differs string) {
	var got clinicAnswer
	for _, sql := range []string{"SET dp.confidence = " + clinicBounds, "SET dp.error_columns = on", q.sql,
		"RESET dp.error_columns", "RESET dp.confidence"} {
		if a := clinicAsk(c.proxy, sql); sql == q.sql {
			got = a
		} else if a.err != nil {
			c.t.Fatalf("%s: %v", sql, a.err)
		}
	}
	if got.err != nil {
		return 0, got.err.Error()
	}
	shown, bounds := got.bounds()
	if len(shown.names) != len(want.names) {
		return 0, fmt.Sprintf("columns %q for %q", shown.names, want.names)
	}
	return clinicMatch(bounds, near)
}

// TestClinic asks a clinic of OMOP's shape 147 questions of the kinds that its community stores, through the program
// and of PostgreSQL itself, and holds what is answered and what is refused against docs/clinic.md. With -update and 30,000
// persons (make clinic) it writes that file.
func TestClinic(t *testing.T) {
	kit.Beside(t)
	begin := time.Now()
	c := openClinic(t, "clinic", fmt.Sprintf("SET clinic.persons = %d", *clinicPersons), script(t, "clinic/generate.sql"))
	c.notes = clinicNotes
	opened := time.Since(begin)
	var lines, slow []string
	count := map[string]int{}
	for _, q := range clinicQuestions(t, "questions.sql") {
		o := c.ask(q)
		lines = append(lines, o.String())
		if o.outcome == "WRONG" {
			t.Errorf("%s: %s\n%s", q.id, o.how, q.sql)
		}
		if o.took > 2*time.Second {
			slow = append(slow, fmt.Sprintf("%s took %v", q.id, o.took.Round(100*time.Millisecond)))
		}
		public := strings.HasPrefix(q.id, "G") && q.id != "G17" || q.id == "V1"
		for what, is := range map[string]bool{o.outcome: true, "noisy": o.noisy,
			"ranked": o.ranked && !o.noisy, "hollow": o.hollow > 0 && !o.noisy, "public": public && o.outcome == "answered"} {
			if is {
				count[what]++
			}
		}
	}
	var instead []string
	for _, q := range clinicQuestions(t, "instead.sql") {
		o := c.ask(q)
		if instead = append(instead, o.String()); o.outcome != "answered" {
			t.Errorf("%s instead is %s: %s", q.id, o.outcome, o.how)
		}
	}
	t.Logf("opened in %v, asked in %v with %d new ledgers", opened, time.Since(begin)-opened, c.ledgers)
	t.Logf("%v of %d\n%s\n%s\n%s", count, len(lines), strings.Join(lines, "\n"), strings.Join(instead, "\n"),
		strings.Join(slow, "\n"))
	if *clinicOnly != "" || t.Failed() {
		return
	}
	if *kit.Update {
		answered := count["answered"]
		text := fmt.Sprintf(clinicText, *clinicPersons, answered, len(lines), count["public"],
			answered-count["noisy"], count["ranked"], count["hollow"], count["noisy"], count["refused"],
			strings.Join(lines, "\n"), strings.Join(instead, "\n"))
		if err := os.WriteFile(clinicFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(clinicFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Concat(lines, instead) {
		same := line
		if !strings.Contains(line, "| refused |") { // how many rows there are depends on the number of persons
			same = line[:strings.LastIndex(strings.TrimSuffix(line, " |"), "|")]
		}
		if !strings.Contains(string(written), "\n"+same) {
			t.Errorf("docs/clinic.md does not say\n%s", line)
		}
	}
}
