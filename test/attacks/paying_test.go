package attacks

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestTransactionsGiveNothingBack is threat T32: what a client does with her transaction, and losing the connection,
// takes no charge back.
func TestTransactionsGiveNothingBack(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "1000", Cap: "1000"}, 0))
	other, answers := p.Connect("alice", "lab"), 0
	for i := range 100 {
		w := p.Connect("alice", "lab")
		q := fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, i%50, 1000*(i/50+1))
		steps := [][]string{
			{`BEGIN`, q, `ROLLBACK`}, {`BEGIN`, `SAVEPOINT a`, q, `ROLLBACK TO a`, `COMMIT`}, {`BEGIN`, q, `SELECT nope`, `ROLLBACK`}, {`BEGIN`, q},
			{`BEGIN; ` + q + `; ROLLBACK`}, {`BEGIN; DECLARE c CURSOR FOR ` + q, `FETCH ALL c`, `ROLLBACK`}, {`BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY`, q, `ABORT`}, {`COPY (` + q + `) TO STDOUT`},
		}[i%8]
		answered := false
		for _, sql := range steps {
			a, err := w.TryAsk(sql)
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			answered = answered || len(a.Rows) > 0 || strings.HasPrefix(sql, "COPY") && a.Err == nil
		}
		if answered {
			answers++
		}
		_ = w.Conn.Close() // within the transaction, where there still is one
	}
	charged := other.Charges()
	if answers != 100 || charged != 100 {
		t.Errorf("%d answers, %d charges", answers, charged)
	}
	threats.Reached(t, "T32", "%d charges for %d answers in transactions that were rolled back, failed or lost", charged, answers)
}

// TestExecutedAgain is threat T33: each execution with other values is a release and a charge, each with the same
// values is the same answer for free; fetching goes about in what was drawn; describing draws nothing and asks the
// database nothing.
func TestExecutedAgain(t *testing.T) {
	kit.Beside(t)
	w := watch(t)
	alice, other := w.Connect("alice", "lab"), w.Connect("alice", "lab")
	hear := func(messages ...pgproto3.FrontendMessage) kit.Answer {
		t.Helper()
		for _, m := range append(messages, &pgproto3.Sync{}) {
			alice.Send(m)
		}
		a, err := alice.Hear()
		if err != nil || a.Err != nil {
			t.Fatal(err, a.Err)
		}
		return a
	}
	hear(&pgproto3.Parse{Name: "s", Query: `SELECT count(*) FROM people WHERE age < $1 AND income < $2`}, &pgproto3.Describe{ObjectType: 'S', Name: "s"})
	before := w.logged()
	for range 100 {
		hear(&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("40"), []byte("1000")}}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Describe{ObjectType: 'S', Name: "s"})
	}
	described := other.Charges()
	if text := w.since(before); text != "" || described != 0 {
		t.Errorf("describing: %d charges, and the database was asked %.300s", described, text)
	}
	first := map[string]string{}
	run := func() (same int) {
		for i := range 100 {
			values := [][]byte{[]byte(strconv.Itoa(20 + i%50)), []byte(strconv.Itoa(1000 * (1 + i/50)))}
			a := hear(&pgproto3.Bind{PreparedStatement: "s", Parameters: values}, &pgproto3.Execute{})
			key := fmt.Sprintf("%s", values)
			if first[key] == a.Rows[0][0] {
				same++
			}
			first[key] = a.Rows[0][0]
		}
		return same
	}
	run()
	charged := other.Charges()
	same := run()
	again := other.Charges()
	if charged != 100 || again != 100 || same != 100 {
		t.Errorf("%d charges for 100 executions; again: %d in all, %d equal answers", charged, again, same)
	}
	const rows = `SELECT age, count(*) FROM people WHERE hiv GROUP BY age`
	alice.Ask(`BEGIN`)
	hear(&pgproto3.Parse{Query: rows}, &pgproto3.Bind{DestinationPortal: "p"})
	fetched := 0
	for range 150 {
		a := hear(&pgproto3.Execute{Portal: "p", MaxRows: 1})
		fetched += len(a.Rows)
	}
	alice.Ask(`COMMIT`)
	whole, portal := alice.Ask(rows), other.Charges()-again
	if fetched != len(whole.Rows) || portal != 1 {
		t.Errorf("a portal: %d of %d rows, %d charges", fetched, len(whole.Rows), portal)
	}
	copied := other.Charges()
	for range 3 {
		alice.Ask(`COPY (` + rows + `) TO STDOUT`)
	}
	copied = other.Charges() - copied
	if copied != 0 {
		t.Errorf("copying what is held: %d charges", copied)
	}
	threats.Reached(t, "T33", "%d charges for 100 executions, %d of 100 repeated ones equal and %d charged; %d charge for a portal fetched 150 times; %d for 100 descriptions",
		charged, same, again-charged, portal, described)
}

// spellings of one question of 120 counts; the planner reads all of them alike.
var spellings = []string{`SELECT age, count(*) FROM people WHERE income < %d GROUP BY age`, `SELECT p.age AS a, count(*) AS n FROM people p WHERE p.income < %d GROUP BY 1`,
	`SELECT age, count(1) FROM public.people WHERE NOT (income >= %d) GROUP BY people.age`, `SELECT age, count(*) + 0 FROM people WHERE income < %d GROUP BY age`,
	`SELECT age, sum(n) FROM (SELECT age, count(*) AS n FROM people WHERE income < %d GROUP BY age) x GROUP BY age`, `SELECT age, count(*) FILTER (WHERE income < %d) FROM people GROUP BY age`,
	`SELECT age, count(CASE WHEN income < %d THEN 1 END) FROM people GROUP BY age`, `WITH x AS (SELECT age, income FROM people) SELECT age, count(*) FROM x WHERE income < %d GROUP BY age`,
	`SELECT age, count(*) FROM people WHERE age >= -7 AND income < %d GROUP BY age`, `SELECT /* again */ "age" , count ( * ) FROM "people" WHERE (income) < (%d) GROUP BY ("age")`}

// TestAveragingGainsNothing is threat T34: many spellings of one question are one release; their mean is as far off as
// what was charged allows. Of the mean square error of n Laplace draws the relative standard error is √(5/n): below 0.9
// of the theory's root would come by chance with less than 10⁻³ at CI length.
func TestAveragingGainsNothing(t *testing.T) {
	kit.Beside(t)
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "100000", Cap: "100000"}, 0))
	w := p.Connect("alice", "lab")
	questions, draws, different, squares := threats.Length(18, 60), 0, 0, 0.0
	for q := range questions {
		below, sums, firsts := 1000*(q+1), map[string]float64{}, map[string]string{}
		for _, form := range spellings {
			a := w.Ask(fmt.Sprintf(form, below))
			if a.Err != nil {
				t.Fatalf("%s: %v", form, a.Err)
			}
			for _, row := range a.Rows {
				v, err := strconv.ParseFloat(row[1], 64)
				if err != nil {
					t.Fatal(err)
				}
				if sums[row[0]] += v; firsts[row[0]] == "" {
					firsts[row[0]] = row[1]
				} else if firsts[row[0]] != row[1] {
					different++
				}
			}
		}
		truth := map[string]int{}
		for i := 1; i <= 1000; i++ {
			if 1000*(i%90) < below {
				truth[strconv.Itoa(18+i%60)]++
			}
		}
		for age, sum := range sums {
			off := sum/float64(len(spellings)) - float64(truth[age])
			squares += off * off
			draws++
		}
	}
	spent, err := strconv.ParseFloat(w.Spent(), 64)
	if err != nil {
		t.Fatal(err)
	}
	epsilon := spent / float64(questions) // of all spellings of a question together
	theory := math.Sqrt(2*math.Exp(-epsilon)) / (1 - math.Exp(-epsilon))
	ratio := math.Sqrt(squares/float64(draws)) / theory
	if ratio < 0.9 || draws < 100*questions {
		t.Errorf("the means of %d spellings of %d counts are %.2f times as far off as ε %.3f allows", len(spellings), draws, ratio, epsilon)
	}
	threats.Reached(t, "T34", "%d questions of %d counts in %d spellings: %d charges, ε %.3f a question, root mean square error of the means %.2f of the theory's, %d counts of spellings differ",
		questions, draws, len(spellings), w.Charges(), epsilon, ratio, different)
}

// badEpsilons are no ε, for a session and for a policy.
var badEpsilons = []string{"0", "-1", "-0.1", "NaN", "Infinity", "-Infinity", "inf", "1e-320", "1e400", "1e999999999", "0.0000001", "1000001", "2", "0x1p-3", "1_0", "one", "", " ", "0,1", "0.1.2", "--1",
	"1e", strings.Repeat("9", 5000), "0." + strings.Repeat("0", 5000) + "1", "٠.١", "0.1; SET role dba", "0.1\x00", "1/10"}

// TestBadEpsilons is threat T40: none of them is accepted, by any way, and the ledger stays as it is.
func TestBadEpsilons(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	accepted, tried := 0, 0
	for _, bad := range badEpsilons {
		quoted := strings.ReplaceAll(bad, "'", "''")
		for _, sql := range []string{`SET dp.epsilon = '` + quoted + `'`, `SET LOCAL dp.epsilon TO '` + quoted + `'`, `SELECT set_config('dp.epsilon', '` + quoted + `', false)`, `SET dp.epsilon = ` + quoted} {
			if strings.HasPrefix(sql, "SET dp.epsilon = 1/") || strings.HasSuffix(sql, "= 0.1; SET role dba") {
				continue // other statements
			}
			tried++
			if a, err := w.TryAsk(sql); err != nil {
				w = p.Connect("alice", "lab")
			} else if a.Err == nil {
				t.Errorf("accepted: %.100s: %v", sql, a.Rows)
				accepted++
			}
		}
		tried++
		if conn, err := p.Dial("alice", "lab"); err == nil {
			a := conn.Ask(`SHOW dp.epsilon`)
			if len(a.Rows) != 1 || a.Rows[0][0] != "0.1" {
				t.Errorf("a session begins with %v", a.Rows)
			}
			_ = conn.Conn.Close()
		}
	}
	for _, bad := range []string{"0", "-1", ".nan", ".inf", "1e-320", "1e400", strings.Repeat("9", 400), "0.0000001", `""`} {
		for _, key := range []string{"epsilon: 0.1,", "cap: {epsilon: 10,"} {
			other := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
			kit.Edit(t, other, key, key[:strings.LastIndex(key, ":")+2]+bad+",")
			tried++
			if out := kit.Run(t, "", "check", "--policy", other); out.Code != 3 {
				t.Errorf("%s with %s: exit %d", key, bad, out.Code)
				accepted++
			}
		}
	}
	if w.Spent() != "0" || w.Charges() != 0 || w.Ask(`SHOW dp.epsilon`).Rows[0][0] != "0.1" {
		t.Error("something was charged or set")
	}
	threats.Reached(t, "T40", "%d of %d bad values accepted, the ledger unchanged", accepted, tried)
}
