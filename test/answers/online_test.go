package answers

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// onlineRelease declares an online release of 234 cells with so many updates, which the histogram would beat.
func onlineRelease(updates int, more string) string {
	return fmt.Sprintf("          - {kind: online, name: o, columns: [{column: age, step: 10}, hiv, city], epsilon: 1, updates: %d%s}\n", updates, more)
}

// askAll asks until the release has stopped, or for so many questions, for no more than it costs, and returns the
// answers by statement.
func askAll(t *testing.T, w *kit.Wire, questions int) map[string]string {
	t.Helper()
	w.Ask("SET dp.max_cost = 1")
	told := map[string]string{}
	for i := range questions {
		q := fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d AND city = 'c%d'", 10*(1+i%9), i%4)
		a := w.Ask(q)
		if a.Err != nil {
			t.Fatalf("%s: %v", q, a.Err)
		}
		if strings.Contains(strings.Join(a.Notes, ""), "online release o has stopped") {
			break
		}
		if len(a.Notes) > 0 && strings.Contains(a.Notes[0], "online release o") {
			told[q] = a.Rows[0][0]
		}
	}
	return told
}

func explainText(t *testing.T, w *kit.Wire, q string) string {
	t.Helper()
	a := w.Ask("EXPLAIN " + q)
	if a.Err != nil {
		t.Fatalf("%s: %v", q, a.Err)
	}
	var lines []string
	for _, row := range a.Rows {
		lines = append(lines, row[0])
	}
	return kit.Words(strings.Join(lines, "\n"))
}

func spentBy(t *testing.T, w *kit.Wire) string {
	t.Helper()
	return w.Ask("SELECT spent FROM dp.budget").Rows[0][0]
}

// TestOnlineReleaseThroughSQL: EXPLAIN names mechanism, reason, cost and both errors; the first use costs all of it,
// within dp.epsilon; the same question has the same answer; then everything is free, until it stops, which it says, and
// it steps aside; what it said stays.
func TestOnlineReleaseThroughSQL(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDBReleasing(t, 0, onlineRelease(4, ", insist: true")))
	w := p.Connect("alice", "lab")
	const q = "SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'"
	if text := explainText(t, w, q); strings.Contains(text, "SET dp.epsilon = 1") {
		t.Errorf("a worse answer is offered: %s", text)
	}
	w.Ask("SET dp.epsilon = 1")
	text := explainText(t, w, q)
	for _, want := range []string{"online over public.people", "the policy insists on online release o: its answers are within ±", "a plain histogram of its 234 cells would be within ±", "multiplicative weights over 234 cells", "Cost: ε 1", "Error of count: ±"} {
		if !strings.Contains(text, want) {
			t.Errorf("EXPLAIN does not say %q:\n%s", want, text)
		}
	}
	if a := w.Ask("EXPLAIN (ALTERNATIVES) " + q); a.Err != nil {
		t.Error(a.Err)
	}
	first := w.Ask(q)
	if first.Err != nil || spentBy(t, w) != "1" || !strings.Contains(strings.Join(first.Notes, ""), "first use of online release o: ε 1") {
		t.Fatalf("%v, %q, spent %s", first.Err, first.Notes, spentBy(t, w))
	}
	if again := w.Ask(q); again.Err != nil || again.Rows[0][0] != first.Rows[0][0] || spentBy(t, w) != "1" {
		t.Errorf("asked again: %v %v, spent %s", again.Err, again.Rows, spentBy(t, w))
	}
	w.Ask("SET dp.epsilon = 0.1")
	for i := range 60 { // group by group: whatever it answers costs nothing
		a := w.Ask(fmt.Sprintf("SELECT city, count(*) FROM people WHERE age < %d GROUP BY 1", 10*(1+i%11)))
		if a.Err != nil {
			break
		}
		if strings.Contains(a.Notes[0], "cost") {
			break
		}
	}
	a := w.Ask("SELECT count(*) FROM people WHERE age BETWEEN 30 AND 69 AND city <> 'c2' AND NOT hiv")
	if a.Err != nil || !strings.Contains(strings.Join(a.Notes, ""), "online release o has stopped") || spentBy(t, w) == "1" {
		t.Errorf("stopped: %v %q, spent %s", a.Err, a.Notes, spentBy(t, w))
	}
	if rows := w.Ask("SELECT * FROM dp.people_made_up LIMIT 3"); rows.Err != nil || len(rows.Rows) != 3 || !strings.Contains(strings.Join(rows.Notes, ""), "synthetic") {
		t.Errorf("made-up rows of the hypothesis: %v %v %q", rows.Err, rows.Rows, rows.Notes)
	}
	if a := w.Ask("SELECT kind, paid FROM dp.releases WHERE name = 'o'"); a.Err != nil || len(a.Rows) != 1 || a.Rows[0][1] != "t" {
		t.Errorf("%v %v", a.Err, a.Rows)
	}
}

// TestOnlineReleaseDrawnAsAHistogram: without insist the release that a histogram would beat is that histogram, for its
// cost, and answers everything from then on; EXPLAIN gives both figures.
func TestOnlineReleaseDrawnAsAHistogram(t *testing.T) {
	w := kit.Serve(t, kit.DuckDBReleasing(t, 0, onlineRelease(4, ""))).Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1; SET dp.release = on")
	const q = "SELECT count(*) FROM people WHERE age < 40 AND city = 'c1'"
	if text := explainText(t, w, q); !strings.Contains(text, "drawn as a plain histogram, which gives less error") || !strings.Contains(text, "would be within ±") || !strings.Contains(text, "histogram of 234 cells") {
		t.Error(text)
	}
	for _, q := range []string{q, "SELECT city, count(*) FROM people WHERE age < 70 GROUP BY 1", q} {
		if a := w.Ask(q); a.Err != nil || spentBy(t, w) != "1" {
			t.Errorf("%s: %v, spent %s", q, a.Err, spentBy(t, w))
		}
	}
}

// TestOnlineReleaseSurvivesKills: killed again and again between questions, a proxy never tells another hard answer for
// the same question, never charges again, and each life that asks takes one update; in the end the release has stopped.
func TestOnlineReleaseSurvivesKills(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDBReleasing(t, 0, onlineRelease(12, ", insist: true")))
	w := p.Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1")
	left := func() string {
		text := explainText(t, w, "SELECT count(*) FROM people WHERE age < 20 AND hiv")
		_, rest, found := strings.Cut(text, "with ")
		if n, _, ok := strings.Cut(rest, " of 12 updates left"); found && ok {
			return n
		}
		return "stopped"
	}
	const hardest = "SELECT count(*) FROM people WHERE hiv IS NULL"
	w.Ask("SELECT count(*) FROM people WHERE age < 20 AND hiv")
	hard := ""
	if a := w.Ask(hardest); a.Err == nil && strings.Contains(a.Notes[0], ": 1 from the rows") {
		hard = a.Rows[0][0]
	}
	seen := []string{left()}
	for range 14 {
		p.Stop(syscall.SIGKILL)
		p.Restart()
		w = p.Connect("alice", "lab")
		w.Ask("SET dp.max_cost = 0")
		a := w.Ask(hardest)
		if a.Err != nil {
			if a.Err.Code != "53400" {
				t.Fatal(a.Err)
			}
			break
		}
		if hard != "" && a.Rows[0][0] != hard {
			t.Errorf("the hard answer %s has become %s", hard, a.Rows[0][0])
		}
		seen = append(seen, left())
	}
	if spent := spentBy(t, w); spent != "1" {
		t.Errorf("spent %s", spent)
	}
	t.Log("updates left, life by life: ", seen)
	if last := seen[len(seen)-1]; len(seen) > 14 || slices.Contains(seen[:len(seen)-1], "stopped") || last != "1" && last != "stopped" {
		t.Errorf("updates left: %v", seen)
	}
}

// TestOnlineReleaseIsHerOwn: whatever another analyst asks of the same declared release leaves every byte that she sees
// equal, but for the noised cells: notices, EXPLAIN, her releases and her charges.
func TestOnlineReleaseIsHerOwn(t *testing.T) {
	kit.Beside(t)
	var seen [2][]string
	for i := range seen {
		p := kit.Serve(t, kit.DuckDBReleasing(t, 0, onlineRelease(3, ", insist: true")))
		bob := p.Connect("bob", "lab")
		bob.Ask("SET dp.epsilon = 1")
		if i == 1 {
			askAll(t, bob, 80)
		}
		w := p.Connect("alice", "lab")
		w.Ask("SET dp.epsilon = 1")
		const q = "SELECT count(*) FROM people WHERE age < 60 AND city = 'c1'"
		for _, ask := range []string{"SELECT name, kind, paid FROM dp.releases ORDER BY 1", "EXPLAIN " + q, "SELECT user_name, spent FROM dp.budget"} {
			a := w.Ask(ask)
			seen[i] = append(seen[i], fmt.Sprint(a.Rows, a.Err, a.Notes))
		}
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("bob's questions show:\n%s\n%s", seen[0], seen[1])
	}
}

// TestOnlineReleaseAtOnce: racing sessions of one analyst open the release once, at its cost, and take no more updates
// than declared.
func TestOnlineReleaseAtOnce(t *testing.T) {
	p := kit.Serve(t, kit.DuckDBReleasing(t, 0, onlineRelease(5, ", insist: true")))
	done := make(chan string, 8)
	for i := range cap(done) {
		w := p.Connect("alice", "lab")
		go func() {
			w.Send(simpleQuery("SET dp.epsilon = 1; SET dp.max_cost = 1"))
			if _, err := w.Hear(); err != nil {
				done <- err.Error()
				return
			}
			for k := range 12 {
				a, err := w.TryAsk(fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d AND city = 'c%d'", 10*(1+(k+i)%9), k%4))
				if err != nil || a.Err != nil && a.Err.Code != "DP001" && a.Err.Code != "53400" {
					done <- fmt.Sprint(err, a.Err)
					return
				}
			}
			done <- ""
		}()
	}
	for range cap(done) {
		if text := <-done; text != "" {
			t.Error(text)
		}
	}
	w := p.Connect("alice", "lab")
	if a := w.Ask("SELECT count(*) FROM dp.charges WHERE kind = 'online'"); a.Err != nil || a.Rows[0][0] != "1" {
		t.Errorf("opened %v times: %v", a.Rows, a.Err)
	}
}

// TestOnlineReleaseHasOneInstance: sessions that wait for another to open the release, and ask it at once, ask the one
// instance that was opened: no restart takes an update, so that the updates that are left and the hard answers released
// make all.
func TestOnlineReleaseHasOneInstance(t *testing.T) {
	const updates, racing = 40, 8
	p := kit.Serve(t, kit.DuckDBReleasing(t, 0, onlineRelease(updates, ", insist: true")))
	told := regexp.MustCompile(`online release o: (\d) from the rows`)
	for _, user := range []string{"alice", "bob"} {
		var all []*kit.Wire
		for range racing {
			all = append(all, p.Connect(user, "lab"))
			all[len(all)-1].Ask("SET dp.epsilon = 1")
		}
		done := make(chan string, racing)
		for i, w := range all {
			go func() {
				a, err := w.TryAsk(fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d AND city = 'c1'", 10*(1+i)))
				done <- fmt.Sprint(err, a.Err, a.Notes)
			}()
		}
		hard, left := 0, 0
		for range racing {
			text := <-done
			m := told.FindStringSubmatch(text)
			if m == nil {
				t.Fatal(text)
			}
			if m[1] == "1" {
				hard++
			}
		}
		_, rest, _ := strings.Cut(explainText(t, all[0], "SELECT count(*) FROM people WHERE age < 20 AND hiv"), "with ")
		fmt.Sscan(rest, &left)
		if left+hard != updates || spentBy(t, all[0]) != "1" {
			t.Errorf("%s: %d of %d updates left after %d hard answers, spent %s", user, left, updates, hard, spentBy(t, all[0]))
		}
	}
}

// TestMediansBesideOnline: where an online release says how many rows a group has, it says of which the median is NULL.
func TestMediansBesideOnline(t *testing.T) {
	kit.Beside(t)
	release := strings.Replace(onlineRelease(4, ", insist: true"), "{column: age, step: 10}", "{column: income, step: 10000}", 1)
	w := kit.Serve(t, kit.DuckDBReleasing(t, 0, release)).Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 1")
	w.Ask("SELECT count(*) FROM people WHERE income < 40000 AND city = 'c1'")
	const sql = `SELECT hiv, median(income) FROM people GROUP BY 1`
	if text := explainText(t, w, sql); !strings.Contains(text, "online over public.people") {
		t.Error(text)
	}
	for range 2 {
		if a := w.Ask(sql); a.Err != nil || len(a.Rows) < 2 {
			t.Errorf("%v, %v", a.Err, a.Rows)
		}
	}
}

// TestMedianBasicThroughSQL: the median mechanism over small databases needs a public number of rows and δ, pays both,
// and answers so many questions.
func TestMedianBasicThroughSQL(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(strings.NewReplacer("unit: {name: person, key: people.uid}", "unit: row", "neighbors: add-remove", "neighbors: replace-one\n    units: 4000000",
		"epsilon: 10, delta: 0", "epsilon: 10, delta: 1e-5", "epsilon: 20, delta: 0", "epsilon: 20, delta: 1e-4", "max_epsilon: 1,", "max_epsilon: 2,",
		"        max_rows_per_unit: 1\n", "", "expected_rows: 1000", "expected_rows: 4000000").Replace(string(data)), "        columns:")
	text += `        columns:
          - {name: city, type: text, domain: {values: [c0, c1, c2]}, outside: exclude, nulls: exclude}
        releases:
          - {kind: online, name: b, columns: [city], mechanism: median-basic, epsilon: 2, delta: 1e-6, updates: 8, queries: 150, insist: true}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kit.ExecDuckDB(t, path, "CREATE OR REPLACE TABLE people AS SELECT i AS uid, 'c' || least(i % 5, 2) AS city FROM range(4000000) AS r(i)")
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	w.Ask("SET dp.epsilon = 2")
	if text := explainText(t, w, "SELECT count(*) FROM people WHERE city = 'c1'"); !strings.Contains(text, "median mechanism over small databases over 3 cells") || !strings.Contains(text, "δ") {
		t.Error(text)
	}
	answered := 0
	w.Ask("SELECT count(*) FROM people WHERE city = 'c0'")
	w.Ask("SET dp.max_cost = 0")
	for i := range 200 {
		a := w.Ask(fmt.Sprintf("SELECT count(*) FROM people WHERE city IN ('c%d', 'c%d')", i%3, (i/3)%3))
		if a.Err != nil {
			if a.Err.Code != "53400" {
				t.Fatal(a.Err)
			}
			break
		}
		if answered++; answered == 1 {
			t.Log(a.Rows, a.Notes)
		}
	}
	t.Log(answered, "answered")
	if spent := spentBy(t, w); answered < 10 || spent != "2" {
		t.Errorf("answered %d, spent %s", answered, spent)
	}
	p.Stop(syscall.SIGKILL)
	p.Restart()
	w = p.Connect("alice", "lab")
	w.Ask("SET dp.max_cost = 0")
	if a := w.Ask("SELECT city, count(*) FROM people GROUP BY 1"); a.Err != nil && a.Err.Code != "53400" || spentBy(t, w) != "2" {
		t.Errorf("%v, spent %s", a.Err, spentBy(t, w))
	}
}

// TestDemoIsNoWorseForMore: in the demo a count for ε 1 is within ±3, whatever is declared, and what is held for less
// is free at less.
func TestDemoIsNoWorseForMore(t *testing.T) {
	kit.Beside(t)
	w := smallDemo(t).Connect("analyst", "demo")
	const q = "SELECT sex, count(*) FROM people GROUP BY sex"
	for _, c := range []struct{ epsilon, says, spent string }{
		{"0.1", "error ±30 a value", "0.1"}, {"1", "error ±3 a value", "1"}, {"1", "free: ", "1"}, {"0.5", "free: ", "1"}, {"0.1", "free: ", "1"},
	} {
		w.Ask("SET dp.epsilon = " + c.epsilon)
		a := w.Ask(q)
		if text := strings.Join(a.Notes, "\n"); a.Err != nil || !strings.Contains(text, c.says) || spentBy(t, w) != c.spent || strings.Contains(text, "people_online") {
			t.Errorf("ε %s: %v %s, spent %s", c.epsilon, a.Err, text, spentBy(t, w))
		}
	}
}
