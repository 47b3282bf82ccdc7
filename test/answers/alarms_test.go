package answers

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestAlarmsThroughSQL: one charge buys a run; each no is free, each yes is counted down, also by a process that was
// killed between two answers; after the last the next question buys anew. At an ε so large that answers are those of
// the rows.
func TestAlarmsThroughSQL(t *testing.T) {
	kit.Beside(t)
	t.Run("DuckDB", func(t *testing.T) { alarmsThroughSQL(t, kit.DuckDB(t, kit.Budgets{User: "900000", Cap: "900000"}, 0)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		path, _ := kit.Postgres(t, pgtest.Shared(t), kit.Budgets{User: "900000", Cap: "900000"}, 0)
		alarmsThroughSQL(t, path)
	})
}

func alarmsThroughSQL(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "max_epsilon: 1,", "max_epsilon: 900000,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	program := kit.Serve(t, path)
	w := program.Connect("alice", "lab")
	setUp := func() {
		w.Ask(`SET dp.epsilon = 9000`)
		w.Ask(`SET dp.alarms = 4`)
	}
	setUp()
	plan := kit.Plan(w.Ask(`EXPLAIN VERBOSE SELECT count(*) > 5000 FROM people`))
	for _, part := range []string{"alarms over public.people", "sparse vector (AboveThreshold)", "ends at yes number 4", "Cost: ε 9000", "an answer is right where the count is at least", "SELECT"} {
		if !strings.Contains(plan, part) {
			t.Errorf("EXPLAIN does not say %q:\n%.1500s", part, plan)
		}
	}
	before := w.Spent()
	ask := func(sql, want, note string) {
		t.Helper()
		a := w.Ask(sql)
		if a.Err != nil {
			t.Fatalf("%s: %v", sql, a.Err)
		}
		if got := rowsText(a); got != want || !strings.Contains(strings.Join(a.Notes, "\n"), note) {
			t.Errorf("%s: %q, want %q with %q\n%s", sql, got, want, note, strings.Join(a.Notes, "\n"))
		}
	}
	ask(`SELECT count(*) > 5000 FROM people`, "f", "people_alarms: no, which is free; 4 of the run's 4 yes answers are left")
	bought := w.Spent()
	if before == bought {
		t.Error("a run costs nothing")
	}
	ask(`SELECT 'fire' FROM people WHERE city = 'c1' HAVING count(*) > 900`, "", "no, which is free; 4 of")
	ask(`SELECT bool_or(age > 110) AS old, 990 > count(*) AS few FROM people`, "f|f", "yes; 3 of the run's 4 are left") // few is the opposite of a yes
	ask(`SELECT 'fire' FROM people HAVING count(*) >= 900`, "fire", "yes; 2 of the run's 4 are left")
	if w.Spent() != bought {
		t.Error("an answer of a run changed the balance")
	}
	if plan := kit.Plan(w.Ask(`EXPLAIN SELECT count(*) > 100 FROM people`)); !strings.Contains(plan, "2 of 4 yes answers are left") {
		t.Errorf("EXPLAIN does not say how many yes answers are left:\n%.1500s", plan)
	}
	program.Stop(syscall.SIGKILL)
	program.Restart()
	w = program.Connect("alice", "lab")
	setUp()
	ask(`SELECT count(*) > 5000 FROM people`, "f", "1 of the run's 4 yes answers are left")
	ask(`SELECT count(*) > 500, count(*) > 600 FROM people`, "t|NULL", "yes, the last of the run's 4: it has ended")
	if w.Spent() != bought {
		t.Error("a restart changed the balance")
	}
	ask(`SELECT count(*) > 500 FROM people`, "t", "yes; 3 of the run's 4 are left")
	if w.Spent() == bought {
		t.Error("a second run costs nothing")
	}
	bob := program.Connect("bob", "lab")
	bob.Ask(`SET dp.alarms = 4`)
	if a := bob.Ask(`SELECT count(*) > 5000 FROM people`); !strings.Contains(strings.Join(a.Notes, "\n"), "cost ε 0.1") {
		t.Errorf("another analyst uses a run that she has not paid for: %v", a.Notes)
	}
}
