package answers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// eitherFirm is the firm of the levels under the accountant either, with (1, 1e-6) for each user, and nothing declared.
func eitherFirm(t *testing.T) string {
	t.Helper()
	path := duckTrust(t, "either")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "        releases:\n")
	before = strings.NewReplacer(", level: staff}", "}", ", level: guests}", "}", "{epsilon: 3, delta: 1e-6", "{epsilon: 1, delta: 1e-6", "    levels: {staff: 0.5, guests: 0.1}\n", "", "{epsilon: 0.5, max_epsilon: 1}", "{epsilon: 0.05, max_epsilon: 1}").Replace(before)
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEitherThroughTheWire: one budget of (1, 1e-6) holds twenty cheap questions of carol's in ρ and then nothing, and
// bob's three dear ones in ε; EXPLAIN says which and why, dp.budget and SHOW tell both sums, and so do `dpproxy
// budget`, `price` and a copy of the ledger.
func TestEitherThroughTheWire(t *testing.T) {
	kit.Beside(t)
	c := servedBy(t, eitherFirm(t), date("2025-06-01"))
	says := func(what, text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", what, want, text)
			}
		}
	}
	lines := func(a kit.Answer) string {
		var all []string
		for _, row := range a.Rows {
			all = append(all, strings.Join(row, "|"))
		}
		return strings.Join(append(all, a.Notes...), "\n")
	}
	carol, bob := c.Connect("carol", "firm"), c.Connect("bob", "firm")
	says("EXPLAIN of a cheap count", lines(carol.Ask("EXPLAIN SELECT count(*) FROM people WHERE age < 3")), "Cost: ρ 0.001217", "Priced: what is left holds about 20 such statements in ε, and", "Gaussian")
	says("EXPLAIN of a dear count", lines(bob.Ask("SET dp.epsilon = 0.3; EXPLAIN SELECT count(*) FROM people WHERE age < 3")), "Cost: ε 0.3", "Laplace")
	for i := range 20 {
		a := carol.Ask(fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d AND ward = 'north'", 10+20*i))
		if a.Err != nil {
			t.Fatalf("the %dth of carol's: %v", i+1, a.Err)
		}
		if i == 0 {
			says("the notice", lines(a), "5 % of your budget (ρ 0.001217", "; about 19 more such questions")
		}
	}
	if a := carol.Ask("SELECT count(*) FROM people WHERE age < 15"); a.Err == nil || a.Err.Code != "DP001" {
		t.Errorf("the 21st: %+v", a)
	} else {
		says("the refusal", a.Err.Detail, "you have spent ε 1 or ρ 0.02435", "of ε 1 or ρ 0.02435")
	}
	says("carol's dp.budget", lines(carol.Ask("SELECT accountant, spent, budget, remaining FROM dp.budget ORDER BY 1")), "either: ε|1|1|0\neither: ρ|0.02435", "|0.0000")
	for i := range 3 {
		if a := bob.Ask(fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d", 100+i)); a.Err != nil {
			t.Fatalf("the %dth of bob's: %v", i+1, a.Err)
		} else if i == 2 {
			says("the notice", lines(a), "30 % of your budget (ε 0.3); not enough is left for another")
		}
	}
	says("SHOW", lines(bob.Ask("SHOW dp.budget")), "ε 0.1 or ρ 0 of ε 1 or ρ 0.02435")
	says("bob's dp.last", lines(bob.Ask("SELECT cost, remaining, budget FROM dp.last")), "0.3|0.1|1")
	says("a cheap question of bob's", lines(bob.Ask("SET dp.epsilon = 0.01; EXPLAIN SELECT count(*) FROM people WHERE age < 7")), "Cost: ε 0.01")
	says("bob's dp.charges", lines(bob.Ask("SELECT cost FROM dp.charges")), "0.3\n0.3\n0.3")
	if a := bob.Ask("SELECT count(*) FROM people WHERE age < 100"); a.Err != nil || !strings.Contains(lines(a), "free") {
		t.Errorf("asked again: %+v", a)
	}
	c.stop()
	path := c.Policy
	budgets := kit.Run(t, "", "budget", "--policy", path)
	says("dpproxy budget", budgets.Stdout+budgets.Stderr, "bob", "ε 0.9 or ρ 0.135", "ε 1 or ρ 0.02435")
	price := kit.Run(t, "SELECT count(*) FROM people WHERE age < 9; SET dp.epsilon = 0.1; SELECT ward, count(*) FROM people GROUP BY 1;", "price", "--fresh", "--policy", path, "--user", "alice", "-")
	says("dpproxy price", price.Stdout+price.Stderr, "ρ 0.001217")
	h := dashboard{t: t, path: path, now: date("2025-06-02")}
	h.open()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := h.service.Ledger.Backup(context.Background(), copied); err != nil {
		t.Error(err)
	}
	if _, err := h.service.Ledger.Verify(context.Background()); err != nil {
		t.Error(err)
	}
	h.service.Close()
	t.Logf("%s\n%s", budgets.Stdout, price.Stdout)
	c.begin()
}

// TestEitherShowsNobodysChoices: what alice has spent, in ε or in ρ, changes no frame of carol's: the unit of a price
// follows what is left to herself (privacy rule 1).
func TestEitherShowsNobodysChoices(t *testing.T) {
	kit.Beside(t)
	ask := func(others ...string) (frames []string) {
		c := servedBy(t, eitherFirm(t), date("2025-06-01"))
		defer c.stop()
		for _, sql := range others {
			for _, name := range []string{"alice", "bob"} {
				if a := c.Connect(name, "firm").Ask(sql); a.Err != nil {
					t.Fatalf("%s: %v", sql, a.Err)
				}
			}
		}
		w := c.Connect("carol", "firm")
		for _, sql := range []string{"EXPLAIN SELECT count(*) FROM people WHERE age < 3", "SELECT count(*) FROM people WHERE age < 3", "SELECT cost FROM dp.charges", "SELECT * FROM dp.budget", "SHOW dp.budget",
			"SET dp.epsilon = 0.2; EXPLAIN SELECT ward, count(*) FROM people GROUP BY 1"} {
			a := w.Ask(sql)
			frames = append(frames, a.Frames...)
			if strings.Contains(sql, "EXPLAIN") || strings.Contains(sql, "dp.") {
				for _, row := range a.Rows {
					frames = append(frames, strings.Join(row, "|"))
				}
			}
		}
		return frames
	}
	none := ask()
	for _, others := range []string{"SELECT count(*) FROM people WHERE age < 3", "SET dp.epsilon = 0.7; SELECT count(*) FROM people WHERE age < 3"} {
		if got := ask(others); strings.Join(got, "\n") != strings.Join(none, "\n") {
			t.Errorf("after %q:\n%s\nand without it\n%s", others, strings.Join(got, "\n"), strings.Join(none, "\n"))
		}
	}
}
