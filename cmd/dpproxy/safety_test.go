package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/proxy"
)

// errorForms are expressions that fail in PostgreSQL on person 7 and on nobody else: each would be an exact bit if it ever
// reached the private database. %s stands where the form needs a boolean that tells her apart.
var errorForms = []string{
	`CASE WHEN hiv THEN 1/(uid-7) ELSE 1 END > 0`, `CASE WHEN hiv THEN 1/0 ELSE 1 END > 0`, `1/(age-25) > 0`, `10 % (age-25) > 0`,
	`CASE WHEN hiv THEN 2147483647 + age ELSE 1 END > 0`, `(9223372036854775807 * age) > 0`, `income * 1e308 * 1e308 > 0`,
	`DATE '5874897-12-31' + age > DATE '2000-01-01'`, `sqrt(24 - age) > 0`, `ln(age - 25) > 0`, `power(age - 25, -1) > 0`, `exp(age * 1000) > 0`,
	`note::int > 0`, `note::json IS NOT NULL`, `note::timestamptz > now()`, `city::date > now()`, `note::numeric > 0`, `(note || '-')::uuid IS NOT NULL`,
	`note ~ (city || '(')`, `note ~ '('`, `note LIKE (city || '\')`, `note LIKE 'a\'`, `substr(note, 1, 24 - age) = ''`, `chr(age - 25) = ''`,
	`repeat(note, 1000000000) = ''`, `lpad(note, 1000000000) = ''`, `make_date(age - 25, 1, 1) IS NOT NULL`, `to_date(note, 'YYYY') IS NOT NULL`,
	`width_bucket(income, 5, 5, 10) > 0`, `set_bit(B'0', age, 1) IS NOT NULL`, `decode(note, 'hex') IS NOT NULL`,
	`convert_from(note::bytea, 'UTF8') = ''`, `(SELECT age FROM people) > 0`, `age = (SELECT uid FROM people LIMIT 2)`,
	`CASE WHEN hiv THEN (SELECT count(*) FROM generate_series(1, 100000000)) > 0 ELSE true END`, `pg_sleep(CASE WHEN hiv THEN 5 ELSE 0 END) IS NULL`,
	`error(concat('x', note)) IS NULL`, `query_to_xml('select note from people', true, true, '') IS NOT NULL`, `hiv::int / (1 - hiv::int) = 0`,
	`nullif(1/(age-25), 0) IS NULL`, `generate_series(1, 1/(age-25)) > 0`, `ctid IS NOT NULL`, `uid = 7`, `tableoid > 0`,
}

// formPlaces are the places of a query where a form may stand.
var formPlaces = map[string]string{
	"WHERE":    `SELECT count(*) FROM people WHERE %s`,
	"GROUP BY": `SELECT (%s), count(*) FROM people GROUP BY 1`,
	"HAVING":   `SELECT count(*) FROM people HAVING bool_or(%s)`,
	"argument": `SELECT count(CASE WHEN %s THEN 1 END) FROM people`,
	"FILTER":   `SELECT count(*) FILTER (WHERE %s) FROM people`,
	"JOIN ON":  `SELECT count(*) FROM people JOIN people other ON %s`,
}

// pair is two proxies over neighbouring databases, with one policy and equal fresh ledgers.
type pair struct{ with, without *wire }

// sameShape is procedure P1: it asks both and returns the first difference but for noised cells. Nothing else may differ:
// kinds and order of frames, row descriptions, numbers of rows, tags, every field of errors and notices.
func (p pair) sameShape(sql string) string {
	return sameFrames(sql, p.with.ask(sql), p.without.ask(sql))
}

// sameExtended is sameShape through the extended protocol, with binary results.
func (p pair) sameExtended(sql string) string {
	return sameFrames("extended: "+sql, p.with.extended(sql), p.without.extended(sql))
}

func sameFrames(sql string, a, b answer) string {
	if slices.Equal(a.frames, b.frames) {
		return ""
	}
	for i := range min(len(a.frames), len(b.frames)) {
		if a.frames[i] != b.frames[i] {
			return fmt.Sprintf("%s\n  with:    %s\n  without: %s", sql, a.frames[i], b.frames[i])
		}
	}
	return fmt.Sprintf("%s: %d frames against %d", sql, len(a.frames), len(b.frames))
}

// canaries are cells of person 7, which no answer, error, notice or log may hold.
var canaries = []string{"abc", "Zzyzx"}

// errorOracle asks every form in each place on both sides (T1), and looks for cells in what comes back (T2).
func errorOracle(p pair, forms []string) (found findings, refused, answered int) {
	for place, query := range formPlaces {
		for _, form := range forms {
			sql := fmt.Sprintf(query, form)
			if d := p.sameShape(sql); d != "" {
				found.add("%s: %s", place, d)
			}
			again := p.with.ask(sql)
			if again.err != nil {
				refused++
			} else {
				answered++
			}
			for _, canary := range canaries {
				if strings.Contains(fmt.Sprint(again.frames), canary) {
					found.add("%s: %s: a cell of person 7 in %v", place, sql, again.frames)
				}
			}
		}
	}
	return found, refused, answered
}

// TestT1ErrorOracle: on both engines each form in each place is refused, or answered alike on neighbours; no text holds a cell (T2);
// charges are equal, and so is what the database sees, in which nothing fails.
func TestT1ErrorOracle(t *testing.T) {
	beside(t)
	forms, refused, answered, errors := 0, 0, 0, 0
	for _, engine := range []string{"duckdb", "postgres"} {
		with, without := lab{engine: engine, budgets: budgets{"1000", "1000"}}.pair(t)
		p := pair{with.connect("alice", "lab"), without.connect("alice", "lab")}
		found, no, yes := errorOracle(p, errorForms)
		found.none(t)
		forms, refused, answered = forms+len(errorForms)*len(formPlaces), refused+no, answered+yes
		for _, table := range []string{`SELECT * FROM dp.budget`, `SELECT charge, kind, name, cost FROM dp.charges`, `SELECT name, kind FROM dp.releases`} {
			a, b := p.with.ask(table), p.without.ask(table)
			if fmt.Sprint(a.rows) != fmt.Sprint(b.rows) || len(a.rows) == 0 {
				t.Errorf("%s: %v with, %v without", table, a.rows, b.rows)
			}
		}
		for _, canary := range canaries {
			if strings.Contains(with.logText(), canary) {
				t.Errorf("the log holds %q, a cell of person 7", canary)
			}
		}
		errors += sameHeard(t, with, without)
	}
	if refused == 0 {
		t.Error("no form was refused")
	}
	threats.Reached(t, "T1", "%d forms × places × engines: %d refused, %d answered, 0 differences, %d errors of the database", forms, refused, answered, errors)
}

// TestT1CatchesForwarding: a proxy that hands the text to the database, and its error text to the client, is found.
func TestT1CatchesForwarding(t *testing.T) {
	b := budgets{"10", "10"}
	with, without := forwarder(t, duckFixture(t, b, 0)), forwarder(t, duckFixture(t, b, 7))
	p := pair{with.connect("alice", "lab"), without.connect("alice", "lab")}
	found, _, _ := errorOracle(p, []string{`CASE WHEN hiv THEN note::int ELSE 1 END > 0`})
	found.some(t, "an error on one side, with a cell in its text")
	cells := 0
	for _, f := range found {
		if strings.Contains(f, "a cell of person 7") {
			cells++
		}
	}
	if cells == 0 || cells == len(found) {
		t.Errorf("of %d findings %d are cells in texts: must be some, and some others", len(found), cells)
	}
}

// TestT23RacingClients: 16 connections ask distinct questions at 0.1 each under a budget of 10: exactly 100 answers.
func TestT23RacingClients(t *testing.T) {
	beside(t)
	for _, b := range []budgets{{user: "10", cap: "100"}, {user: "100", cap: "10"}} {
		p := serveProcess(t, duckFixture(t, b, 0))
		race(p, 100).none(t)
	}
}

// TestT23CatchesReadThenWrite: a pipeline that reads the balance and writes it later overspends, and is found.
func TestT23CatchesReadThenWrite(t *testing.T) {
	p := inProcess(t, duckFixture(t, budgets{"10", "100"}, 0), &readThenWrite{left: 10_000_000}, proxy.Limits{})
	race(p, 100).some(t, "a balance that is read first and written later")
}

// race has 16 connections ask until the budget is spent and counts the answers.
func race(p *program, want int64) (found findings) {
	const connections, each = 16, 30
	var all sync.WaitGroup
	var answers atomic.Int64
	wrong := make(chan string, connections)
	for c := range connections {
		w := p.connect("alice", "lab")
		all.Add(1)
		go func() {
			defer all.Done()
			for q := range each {
				a, err := w.tryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, c+1, 1000*(q+1)))
				switch {
				case err != nil:
					wrong <- fmt.Sprintf("connection %d: %v", c, err)
					return
				case a.err == nil && len(a.rows) == 1:
					answers.Add(1)
				case a.err == nil || a.err.Code != "DP001":
					wrong <- fmt.Sprintf("neither an answer nor DP001: %v", a.err)
					return
				}
			}
		}()
	}
	all.Wait()
	close(wrong)
	for text := range wrong {
		found.add("%s", text)
	}
	if answers.Load() != want {
		found.add("%d answers, must be exactly %d", answers.Load(), want)
	}
	return found
}

// TestT25Kills: kill -9 at random moments. At each restart: answers seen <= charges <= budget, and a question that was
// answered is free and answered alike.
func TestT25Kills(t *testing.T) {
	beside(t)
	kills := threats.Length(50, 500)
	if testing.Short() {
		kills = 3
	}
	p := serveProcess(t, duckFixtureIn(t, t.TempDir(), budgets{"10000", "10000"}, 0))
	found, slowest := killed(p, kills)
	found.none(t)
	if slowest > restartTime && threats.Full() {
		t.Errorf("a restart took %v", slowest)
	}
	threats.Reached(t, "T25", "%d kills: %d answers without a charge, slowest restart %s", kills, len(found), slowest.Round(10*time.Millisecond))
}

// restartTime is what a restart may take. It is asserted where nothing else runs.
const restartTime = 2 * time.Second

// TestT25CatchesAnswerBeforeCharge: a pipeline that answers first and charges afterwards is found.
func TestT25CatchesAnswerBeforeCharge(t *testing.T) {
	p := startProcess(t, standInLateCharge, "", duckFixtureIn(t, t.TempDir(), budgets{"1000", "1000"}, 0))
	found, _ := killed(p, 3)
	found.some(t, "answers before their charges")
}

// killed kills a process at random moments and audits it after each restart. It returns the slowest restart too: from the
// start of the process to the port being open.
func killed(p *program, kills int) (found findings, slowest time.Duration) {
	journal := map[string]string{}
	random := rand.New(rand.NewPCG(25, 25))
	for k := range kills {
		w := p.connect("alice", "lab")
		process := p.cmd.Process
		time.AfterFunc(time.Duration(random.Int64N(int64(50*time.Millisecond))), func() { _ = process.Signal(syscall.SIGKILL) })
		for q := 0; ; q++ {
			sql := fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, k%100, 100*(q%100+1)+10000*(k/100))
			a, err := w.tryAsk(sql)
			if err != nil {
				break
			}
			if a.err == nil {
				journal[sql] = a.rows[0][0]
			}
		}
		p.stop(syscall.SIGKILL)
		began := time.Now()
		p.restart()
		slowest = max(slowest, time.Since(began))
		found = append(found, audit(p, journal, 60)...)
	}
	found = append(found, audit(p, journal, len(journal))...)
	if len(journal) == 0 {
		found.add("no answer arrived before any kill: the test tested nothing")
	}
	p.t.Logf("%d kills, %d answers", kills, len(journal))
	return found, slowest
}

// audit is procedure P4 for one user who asks at 0.1 a question: a saved answer is free and the same, and the charges cover
// every answer that was seen. Of the saved answers it asks again so many, whichever the map gives first.
func audit(p *program, journal map[string]string, again int) (found findings) {
	w := p.connect("alice", "lab")
	const charges = `SELECT count(*), coalesce(sum(cost), 0) FROM dp.charges`
	before := w.ask(charges)
	if before.err != nil {
		found.add("%v", before.err)
		return found
	}
	var rows int
	fmt.Sscan(before.rows[0][0], &rows)
	if rows < len(journal) {
		found.add("%d answers were seen, %d charges are in the ledger", len(journal), rows)
	}
	for sql, value := range journal {
		if again--; again < 0 {
			break
		}
		if a := w.ask(sql); a.err != nil || a.rows[0][0] != value {
			found.add("%s: %s before the kill, %v after it (%v)", sql, value, a.rows, a.err)
		}
	}
	if after := w.ask(charges); fmt.Sprint(after.rows) != fmt.Sprint(before.rows) {
		found.add("asking again was charged: %v, then %v", before.rows, after.rows)
	}
	return found
}
