package answers

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// totalsQuestions are counts and sums that are asked of people's totals, over people with up to 40 events where the
// policy's bound is 5.
var totalsQuestions = []string{
	`SELECT count(*) FROM events`,
	`SELECT count(*) FROM events WHERE amount > 20`,
	`SELECT sum(amount) FROM events`,
	`SELECT sum(amount) FROM events WHERE day < '2024-01-11'`,
	`SELECT sum(amount - 40) FROM events`,
	`SELECT avg(amount), sum(amount) FROM events`,
	`SELECT stddev(amount), avg(amount - 30) FROM events WHERE day < '2024-02-01'`,
	`SELECT extract(month FROM day) AS m, count(*) FROM events GROUP BY 1 ORDER BY 1`,
	`SELECT extract(month FROM day) AS m, count(*), sum(amount), avg(amount) FROM events WHERE day < '2024-03-01'
		GROUP BY 1 ORDER BY 1`,
	`SELECT p.age / 20 AS a, sum(e.amount) FROM events e JOIN people p ON p.uid = e.uid GROUP BY 1 ORDER BY 1`,
	`SELECT count(*) FILTER (WHERE amount > 50), sum(amount) FILTER (WHERE amount <= 50) FROM events`,
}

// TestTotals: where noise vanishes, counts and sums of units' totals are PostgreSQL's own over all rows of all units,
// however many there are beyond the bound of rows. At ε 0.1 each is within what its notice says.
func TestTotals(t *testing.T) {
	kit.Beside(t)
	plain, _ := kit.Lab{Engine: "postgres"}.Lay(t, 0)
	for _, engine := range []string{"postgres", "duckdb"} {
		t.Run(engine, func(t *testing.T) {
			change := append([]string{"max_epsilon: 1,", "max_epsilon: 20000,"}, kit.Undeclared...)
			lab := kit.Lab{Engine: engine, Change: change, Budgets: kit.Budgets{User: "400000", Cap: "900000"}}
			s := lab.Serve(t, 0)
			alice := s.Connect("alice", "lab")
			for _, set := range []string{"SET dp.contribution = ladder", "SET dp.epsilon = 10000"} {
				if got := alice.Ask(set); got.Err != nil {
					t.Fatal(got.Err)
				}
			}
			for _, question := range totalsQuestions {
				got := alice.Ask(question)
				if got.Err != nil {
					t.Errorf("%s: %v", question, got.Err)
					continue
				}
				if !strings.Contains(strings.Join(got.Notes, " "), "however many there are") {
					t.Errorf("%s: is not of totals: %q", question, got.Notes)
				}
				want := rowsOf(t, plain, question)
				if len(want) > len(got.Rows) {
					t.Errorf("%s: %d rows, PostgreSQL has %d", question, len(got.Rows), len(want))
					continue
				}
				for r, row := range want {
					for c, value := range row {
						mine, err := strconv.ParseFloat(got.Rows[r][c], 64)
						exact, _ := strconv.ParseFloat(value, 64)
						if err != nil || math.Abs(mine-exact) > 4+math.Abs(exact)*3e-4 {
							t.Errorf("%s: row %d has %s, PostgreSQL %s", question, r, got.Rows[r][c], value)
						}
					}
				}
			}
			alice.Ask("SET dp.contribution = 100.5")
			for clamped, question := range map[string]string{
				`SELECT sum(least(s, 100.5)) FROM (SELECT sum(amount) s FROM events GROUP BY uid) t`: totalsQuestions[2],
				`SELECT sum(least(n, 100)) FROM (SELECT count(*) n FROM events GROUP BY uid) t`:      totalsQuestions[0],
			} {
				got := alice.Ask(question)
				if got.Err != nil {
					t.Fatalf("%s: %v", question, got.Err)
				}
				exact, _ := strconv.ParseFloat(rowsOf(t, plain, clamped)[0][0], 64)
				if mine, err := strconv.ParseFloat(got.Rows[0][0], 64); err != nil || math.Abs(mine-exact) > 1 {
					t.Errorf("clamped to 100.5 a unit: %s: %s, PostgreSQL %g", question, got.Rows[0][0], exact)
				}
			}
			alice.Ask("SET dp.contribution = ladder")
			alice.Ask("SET dp.epsilon = 0.001")
			none := 0
			for day := range 4 { // in each of which noise alone passes for units with a probability of 0.02
				got := alice.Ask(fmt.Sprintf(`SELECT sum(amount) FROM events WHERE day = '2024-01-0%d'`, 3+day))
				if got.Rows[0][0] == "NULL" && strings.Contains(strings.Join(got.Notes, " "), "too few persons show") {
					none++
				}
			}
			if none < 2 {
				t.Errorf("of next to no ε: only %d of 4 answers are NULL", none)
			}
			alice.Ask("SET dp.epsilon = 0.1")
			for _, question := range totalsQuestions[:4] {
				got := alice.Ask(question)
				said := totalOff.FindStringSubmatch(strings.Join(got.Notes, " "))
				if got.Err != nil || said == nil {
					t.Errorf("%s: %v %q", question, got.Err, got.Notes)
					continue
				}
				off, _ := strconv.ParseFloat(said[1], 64)
				mine, _ := strconv.ParseFloat(got.Rows[0][0], 64)
				exact, _ := strconv.ParseFloat(rowsOf(t, plain, question)[0][0], 64)
				if math.Abs(mine-exact) > 2*off { // twice, so that a sound answer is not within it once in a thousand
					t.Errorf("%s: %g ± %g, PostgreSQL has %g", question, mine, off, exact)
				}
				alice.Ask("SET dp.error_columns = on")
				if got = alice.Ask(question); len(got.Rows[0]) != 3 {
					t.Fatalf("%s: %v", question, got.Rows)
				}
				low, _ := strconv.ParseFloat(got.Rows[0][1], 64)
				high, _ := strconv.ParseFloat(got.Rows[0][2], 64)
				if math.Abs(mine-off-low)+math.Abs(mine+off-high) > .01*off {
					t.Errorf("%s: %g ± %g, from %g to %g", question, mine, off, low, high)
				}
				alice.Ask("SET dp.coverage = 'all'")
				if got = alice.Ask(question); len(got.Rows[0]) == 3 {
					if wider, _ := strconv.ParseFloat(got.Rows[0][2], 64); wider <= high {
						t.Errorf("%s: up to %g, and of all up to %g", question, high, wider)
					}
				}
				alice.Ask("RESET dp.coverage")
				alice.Ask("RESET dp.error_columns")
			}
		})
	}
}

var totalOff = regexp.MustCompile(`error ±([0-9.]+) a value at 95 % of what persons add up to`)

// rowsOf are PostgreSQL's own rows.
func rowsOf(t *testing.T, s kit.Side, question string) (rows [][]string) {
	t.Helper()
	all := s.Query(t, `SELECT string_agg(t::text, ';') FROM (`+question+`) t`)
	for row := range strings.SplitSeq(all, ";") {
		rows = append(rows, strings.Split(strings.Trim(row, "()"), ","))
	}
	return rows
}

// TestTotalsTogether: what is asked of totals and what is asked by rows are not mixed in one number, or taken for each
// other: an average is of one kind of rows, of what has one row by the policy that one is read, and what is remembered
// of a statement is not the answer under another dp.contribution. Of groups of nobody there is no average. Pairs of
// which a unit may have as many as a product of its rows are asked by rows.
func TestTotalsTogether(t *testing.T) {
	kit.Beside(t)
	change := append([]string{"max_epsilon: 1,", "max_epsilon: 200000,"}, kit.Undeclared...)
	twice := []string{"INSERT INTO people SELECT * FROM people WHERE uid % 3 = 0"}
	lab := kit.Lab{Engine: "duckdb", Change: change, Budgets: kit.Budgets{User: "900000", Cap: "900000"}, With: twice}
	alice := lab.Serve(t, 0).Connect("alice", "lab")
	ask := func(question string) kit.Answer {
		t.Helper()
		got := alice.Ask(question)
		if got.Err != nil {
			t.Fatalf("%s: %v", question, got.Err)
		}
		return got
	}
	about := func(want float64, question string, column int) {
		t.Helper()
		got := ask(question)
		if mine, err := strconv.ParseFloat(got.Rows[0][column], 64); err != nil || math.Abs(mine-want) > want/20 {
			t.Errorf("%s: %v, want about %g: %q", question, got.Rows, want, got.Notes)
		}
	}
	ask("SET dp.epsilon = 10000")
	count := `SELECT count(*) FROM events`
	about(4630, count, 0)
	about(4630, count, 0) // and is remembered
	ask("SET dp.contribution = ladder")
	about(19816, count, 0)
	about(.482, `SELECT avg(CASE WHEN amount > 50 THEN 1 ELSE 0 END) FROM events`, 0)
	ask("SET dp.epsilon = 200000") // an average of few rows, which 10000 leaves too much noise
	about(.453, `SELECT e.day, floor(amount) AS a, avg(amount) + .0 * sum(amount) FROM events e
		WHERE e.day = '2024-01-02' AND amount < 1 GROUP BY 1, 2 ORDER BY 1, 2`, 2)
	ask("SET dp.epsilon = 10000")
	about(44.2025e6, `SELECT sum(income), count(*), avg(income) FROM people`, 0)
	about(44202.5, `SELECT count(*), avg(income) FROM people`, 1)
	pairs := ask(`SELECT count(*) FROM events a JOIN events b ON a.uid = b.uid`)
	if !strings.Contains(strings.Join(pairs.Notes, " "), "at most 5 rows of each person") {
		t.Errorf("all pairs of a person's rows are made, however many there are: %q", pairs.Notes)
	}
	if made := ask(`SELECT sum(amount) * 2 - count(*) AS made FROM events`); !strings.Contains(
		strings.Join(made.Notes, " "), "error ±") {
		t.Errorf("of what is made of two totals the notice does not say how far it is off: %q", made.Notes)
	}
	ask("SET dp.contribution = 10")
	about(8635, count, 0)
	about(1000, `SELECT count(*) FROM people`, 0)
	about(28.9, `SELECT stddev(amount) FROM events`, 0)
	ask("SET dp.contribution = rows")
	about(4630, count, 0)
	ask("SET dp.contribution = ladder")
	ask("SET dp.epsilon = 1")
	nobody := 0
	months := ask(`SELECT extract(month FROM day) AS m, avg(amount) FROM events GROUP BY 1 ORDER BY 1`).Rows
	for _, row := range months[2:12] {
		if row[1] != "NULL" {
			nobody++
		}
	}
	if nobody > 4 { // of ten, each with a probability of a fortieth
		t.Errorf("%d months of nobody have an average", nobody)
	}
}

// TestFoundKeysOfAnyRows: keys are found in a table that bounds no rows, of each person of one, under ρ of four, and all rows of each
// are counted and added up by them, and by what functions make of them.
func TestFoundKeysOfAnyRows(t *testing.T) {
	kit.Beside(t)
	change := append([]string{"max_epsilon: 1,", "max_epsilon: 20000,", "delta: 0", "delta: 1e-3",
		"max_rows_per_unit: 5\n        ", "", "- {name: uid, type: bigint, keys: join}\n          - {name: day,",
		"- {name: uid, type: bigint, keys: join}\n          - {name: town, type: text, keys: discover}\n          - {name: day,",
	}, kit.Undeclared...)
	towns := []string{"ALTER TABLE events ADD COLUMN town text", // most people have all five
		"UPDATE events SET town = 'T' || ((uid + (day - DATE '2024-01-01')) % 5)",
		"UPDATE events SET town = 'of one' WHERE uid = 8"}
	for _, of := range [][4]string{{"postgres", "pure", "one", "10000"}, {"duckdb", "zcdp", "4", "300"}} {
		t.Run(of[0]+", "+of[1], func(t *testing.T) {
			lab := kit.Lab{Engine: of[0], Change: append([]string{"accountant: pure", "accountant: " + of[1]}, change...),
				Budgets: kit.Budgets{User: "400000", Cap: "900000"}, With: towns}
			plain, _ := kit.Lab{Engine: "postgres", With: towns}.Lay(t, 0)
			alice := lab.Serve(t, 0).Connect("alice", "lab")
			for _, set := range []string{"SET dp.epsilon = 1", "EXPLAIN SELECT town, count(*) FROM events GROUP BY 1",
				"SELECT town, count(*) FROM events GROUP BY 1",
				"SET dp.epsilon = " + of[3]} {
				got := alice.Ask(set)
				if got.Err != nil {
					t.Fatal(set, got.Err)
				}
				if explained := kit.Plan(got); strings.HasPrefix(set, "SELECT") && len(got.Rows) != 5 ||
					strings.HasPrefix(set, "EXPLAIN") && !strings.Contains(explained, "of whose keys "+of[2]+" each") {
					t.Errorf("%s: %s", set, explained)
				}
			}
			for _, question := range []string{
				`SELECT town, count(*) FROM events WHERE town <> 'of one' GROUP BY 1 ORDER BY 1`,
				`SELECT town, sum(amount), avg(amount) FROM events WHERE town <> 'of one' GROUP BY 1 ORDER BY 1`,
				`SELECT lower(town), count(DISTINCT uid) FROM events WHERE town <> 'of one' GROUP BY 1 ORDER BY 1`,
				`SELECT lower(left(town, 1)), count(*) FROM events WHERE town <> 'of one' GROUP BY 1 ORDER BY 1`,
				`SELECT right(town, 1), count(*) FROM events e JOIN people p ON p.uid = e.uid
					WHERE town <> 'of one' AND p.age < 40 GROUP BY 1 ORDER BY 1`,
			} {
				got, want := alice.Ask(question), rowsOf(t, plain, question)
				if got.Err != nil || len(got.Rows) != len(want) {
					t.Errorf("%s: %v %v, PostgreSQL has %v", question, got.Rows, got.Err, want)
					continue
				}
				for r, row := range want {
					for c, value := range row {
						mine, err := strconv.ParseFloat(got.Rows[r][c], 64)
						exact, no := strconv.ParseFloat(value, 64)
						if no != nil && value != got.Rows[r][c] ||
							no == nil && (err != nil || math.Abs(mine-exact) > 4+math.Abs(exact)*3e-4) {
							t.Errorf("%s: row %d has %s, PostgreSQL %s", question, r, got.Rows[r][c], value)
						}
					}
				}
			}
		})
	}
}
