package answers

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// trustPolicy has alice at the whole, bob and dora among the staff, and everybody else a guest; %[2]s is the
// accountant.
const trustPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %[1]q}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %[3]q, admin: true}
  - {name: bob, password: %[4]q}
  - {name: carol, password: %[5]q}
datasets:
  - id: firm
    unit: {name: person, key: people.uid}
    accountant: %[2]s
    cap: {epsilon: 9, delta: 1e-6}
    levels: {staff: 0.5, guests: 0.1}
    budgets:
      alice: {epsilon: 3, delta: 1e-6}
      bob: {epsilon: 3, delta: 1e-6, level: staff}
      "*": {epsilon: 3, delta: 1e-6, level: guests}
    defaults: {epsilon: 0.5, max_epsilon: 1}
    tables:
      - name: people
        source: %[6]s.people
        expected_rows: 200000
        max_rows_per_unit: 1
        columns:
          - {name: age, type: integer, domain: {min: 0, max: 499}}
          - {name: ward, type: text, domain: {values: [north, south]}}
        releases:
          - {kind: range, columns: [age], epsilon: 0.5, insist: true}
          - {kind: histogram, name: ages, columns: [age], epsilon: 0.5, insist: true}
          - {kind: synthetic, columns: [age, ward], mechanism: mwem, epsilon: 0.2, rows: 100}
`

// trustSQL has 400 people of each age.
const trustSQL = `CREATE TABLE people AS SELECT i AS uid, CAST(i % 500 AS INTEGER) AS age, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END AS ward
  FROM generate_series(1, 200000) AS s(i)`

func writeTrust(t *testing.T, dir, backend, accountant, schema string) string {
	t.Helper()
	text := fmt.Sprintf(trustPolicy, backend, accountant, kit.Verifier(t, "alice"), kit.Verifier(t, "bob"), kit.Verifier(t, "carol"), schema)
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func duckTrust(t *testing.T, accountant string) string {
	t.Helper()
	dir := memory.Dir(t)
	db, err := sql.Open("duckdb", filepath.Join(dir, "firm.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(trustSQL); err != nil {
		t.Fatal(err)
	}
	return writeTrust(t, dir, "duckdb:firm.duckdb", accountant, "main")
}

// TestLevelsThroughPsql: EXPLAIN names the level, its cost and error; each analyst is charged her level, once; the cap
// is charged the finest, once, whoever came first; what is not drawn for her level she does not have.
func TestLevelsThroughPsql(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	role := server.Role(t, "")
	database := server.Database(t)
	server.Exec(t, database, trustSQL, `GRANT SELECT ON public.people TO `+role)
	c := servedBy(t, writeTrust(t, memory.Dir(t), server.URLFor(role, database), "pure", "public"), date("2025-06-01"))
	const adults = "SELECT count(*) FROM people WHERE age BETWEEN 18 AND 64;"
	carol := kit.StartPsql(t, c.Address, "carol", "firm")
	told := kit.Words(carol.Run("EXPLAIN " + adults))
	for _, want := range []string{"Answered from: release people_age, bought by this query", "you have it at level guests: with more noise on top, for 0.1 of its ε", "Cost: ε 0.05"} {
		if !strings.Contains(told, want) {
			t.Errorf("EXPLAIN does not say %q:\n%s", want, told)
		}
	}
	for _, who := range []struct{ name, cost string }{{"carol", "0.05"}, {"bob", "0.25"}, {"alice", "0.5"}} {
		s := kit.StartPsql(t, c.Address, who.name, "firm")
		first, again := s.Run(adults), s.Run(adults)
		if !strings.Contains(first, "first use of release people_age: ε "+who.cost+"; every range over age is free from now on") {
			t.Errorf("%s's first use:\n%s", who.name, first)
		}
		if countIn(again) != countIn(first) || !strings.Contains(again, "free: answered from people_age") {
			t.Errorf("%s again:\n%s\nand\n%s", who.name, first, again)
		}
		t.Logf("%s: %s", who.name, first)
	}
	alice := c.Connect("alice", "firm")
	spent := map[string]string{}
	for _, row := range alice.Ask("SELECT * FROM dp.budget").Rows {
		spent[row[0]] = strings.Join(row, " ")
	}
	t.Logf("%v", spent)
	if got := carol.Run("SELECT age, ward FROM people LIMIT 3;"); !strings.Contains(got, "ERROR") {
		t.Errorf("made-up rows for a guest:\n%s", got)
	}
	if rows := c.Connect("carol", "firm").Ask("SELECT name FROM dp.releases ORDER BY name").Rows; fmt.Sprint(rows) != "[[ages] [people_age]]" {
		t.Errorf("a guest sees %v", rows)
	}
}

// TestLevelsShowNobodysChoices: what the others have bought, at whatever level, changes no frame that bob gets, nor
// what he is charged and holds (privacy rule 1).
func TestLevelsShowNobodysChoices(t *testing.T) {
	kit.Beside(t)
	for _, accountant := range []string{"pure", "zcdp", "either"} {
		ask := func(others ...string) (frames []string) {
			c := servedBy(t, duckTrust(t, accountant), date("2025-06-01"))
			defer c.stop()
			for _, name := range others {
				if a := c.Connect(name, "firm").Ask("SELECT age, count(*) FROM people GROUP BY 1"); a.Err != nil {
					t.Fatalf("%s: %v", name, a.Err)
				}
				if a := c.Connect(name, "firm").Ask("SELECT count(*) FROM people WHERE age < 30"); a.Err != nil {
					t.Fatalf("%s: %v", name, a.Err)
				}
			}
			w := c.Connect("bob", "firm")
			for _, sql := range []string{"SELECT * FROM dp.releases", "EXPLAIN (ALTERNATIVES) SELECT age, count(*) FROM people GROUP BY 1", "SELECT count(*) FROM people WHERE age < 40",
				"SELECT age, count(*) FROM people GROUP BY 1", "SELECT * FROM dp.releases", "SELECT * FROM dp.charges", "SHOW dp.budget", "SET dp.max_error = 1; SELECT count(*) FROM people WHERE age < 40"} {
				a := w.Ask(sql)
				frames = append(frames, a.Frames...)
				if strings.HasPrefix(sql, "EXPLAIN") || strings.Contains(sql, "dp.") {
					for _, row := range a.Rows {
						frames = append(frames, strings.Join(row, "|"))
					}
				}
			}
			return frames
		}
		none := ask()
		before := [][]string{{"alice"}, {"carol"}, {"carol", "alice"}}
		if accountant != "pure" { // each alone is asked for in a night
			before = before[threats.ByNight(2, 0):]
		}
		for _, others := range before {
			got := ask(others...)
			for i := range max(len(got), len(none)) {
				if i >= len(got) || i >= len(none) || got[i] != none[i] {
					t.Errorf("%s: after %v frame %d differs:\n%v\nand without them\n%v", accountant, others, i, got[min(i, len(got)-1):min(i+1, len(got))], none[min(i, len(none)-1):min(i+1, len(none))])
					break
				}
			}
			if slices.Equal(got, nil) {
				t.Error("nothing was asked")
			}
		}
	}
}

// TestLevelsAreOneDraw: at each level the noise has the variance that the price buys, whoever comes first; a coarser
// level is nearer to the finer one than to the truth by just what that knows; the cap pays the finest. The mean square
// of 500 cells of variance V is from 0.55 V to 1.9 V, with ρ from 0.64 V to 1.36 V: simulated a million times, the
// squares of 500 Laplace draws lay from 0.62 to 1.69, those of normal ones from 0.71 to 1.33; what a coarser level has
// beyond a finer one has a kurtosis of up to 8 instead of 6. Less than one false alarm in a hundred thousand for each
// of 20.
func TestLevelsAreOneDraw(t *testing.T) {
	kit.Beside(t)
	for _, accountant := range []string{"pure", "zcdp", "either"} {
		for _, order := range [][]string{{"alice", "bob", "carol"}, {"carol", "bob", "alice"}} {
			c := servedBy(t, duckTrust(t, accountant), time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC))
			noise := map[string][]float64{}
			for _, name := range order {
				a := c.Connect(name, "firm").Ask("SELECT count(*) FROM people WHERE ward IS NOT NULL OR ward IS NULL GROUP BY age ORDER BY age")
				for _, row := range a.Rows[:500] {
					n, err := strconv.ParseFloat(row[0], 64)
					if err != nil {
						t.Fatal(err)
					}
					noise[name] = append(noise[name], n-400)
				}
			}
			variance := map[string]float64{}
			for name, e := range map[string]float64{"alice": .5, "bob": .25, "carol": .05} {
				q := math.Exp(-e)
				if variance[name] = 2 * q / (1 - q) / (1 - q); accountant == "zcdp" {
					variance[name] = 1 / (e * e)
				}
			}
			least, most := .55, 1.9
			if accountant == "zcdp" {
				least, most = .64, 1.36
			}
			check := func(what string, list []float64, v float64) {
				sum := 0.0
				for _, x := range list {
					sum += x * x
				}
				if got := sum / float64(len(list)); got < least*v || got > most*v {
					t.Errorf("%s, %v: %s has the mean square %.1f, must be about %.1f", accountant, order, what, got, v)
				}
			}
			for name, list := range noise {
				check(name, list, variance[name])
			}
			for _, pair := range [][2]string{{"bob", "alice"}, {"carol", "bob"}} {
				more := make([]float64, 500)
				for i := range more {
					more[i] = noise[pair[0]][i] - noise[pair[1]][i]
				}
				check(pair[0]+" beyond "+pair[1], more, variance[pair[0]]-variance[pair[1]])
			}
			c.stop()
			h := dashboard{t: t, path: c.Policy, now: date("2025-06-02")}
			h.open()
			want := map[string]string{"pure": "ε 0.5", "zcdp": "ρ 0.125", "either": "ε 0.5 or ρ 0.125"}[accountant]
			if pool, _, err := h.service.Ledger.Cap(context.Background(), "firm"); err != nil || pool.String() != want {
				t.Errorf("%v: the cap has spent %s, %v, must be %s", order, pool, err, want)
			}
			if _, err := h.service.Ledger.Verify(context.Background()); err != nil {
				t.Error(err)
			}
			h.service.Close()
			c.begin()
		}
	}
}

// TestReleaseCommandAtLevels: `dpproxy release` charges each user her level; `dpproxy check` says what levels do not
// have, and `dpproxy price` prices at hers.
func TestReleaseCommandAtLevels(t *testing.T) {
	path := duckTrust(t, "pure")
	out := kit.Run(t, "", "release", "--policy", path, "--user", "carol", "--user", "alice", "--user", "bob", "--name", "people_age")
	for _, want := range []string{"carol: charged ε 0.05", "alice: charged ε 0.5", "bob: charged ε 0.25"} {
		if !strings.Contains(out.Stdout, want) {
			t.Errorf("not said: %q\n%s%s", want, out.Stdout, out.Stderr)
		}
	}
	if got := kit.Run(t, "", "release", "--policy", path, "--user", "bob", "--name", "people_age_ward_synthetic"); got.Code == 0 || !strings.Contains(got.Stdout, "bob: does not have it at level staff") {
		t.Errorf("made-up rows for the staff: %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := kit.Run(t, "", "check", "--policy", path); !strings.Contains(got.Stdout, "release people_age_ward_synthetic is not there at level staff, guests") {
		t.Errorf("check:\n%s%s", got.Stdout, got.Stderr)
	}
	if got := kit.Run(t, "SELECT age, count(*) FROM people GROUP BY age;", "price", "--fresh", "--policy", path, "--user", "carol", "-"); !strings.Contains(got.Stdout, "Cost together: ε 0.05") {
		t.Errorf("price:\n%s%s", got.Stdout, got.Stderr)
	}
}
