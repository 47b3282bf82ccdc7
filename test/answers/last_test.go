package answers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestLast: dp.last has what the notice of the session's last answer said, for clients that drop notices; asking for
// it, catalogs and refusals change nothing of it, and no session sees another's.
func TestLast(t *testing.T) {
	kit.Beside(t)
	s := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SET client_min_messages = warning`); err != nil {
		t.Fatal(err)
	}
	last := func() string {
		t.Helper()
		var text *string
		if err := conn.QueryRow(ctx, `SELECT concat_ws('|', cost, remaining, budget, error, confidence, notice) FROM dp.last`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return *text
	}
	const first = "0.1|9.9|10|30|0.95|cost ε 0.1; 9.9 of 10 left; error ±30 a value at 95 %"
	for _, step := range []struct{ sql, want string }{
		{`SELECT 1`, ""},
		{`SELECT count(*) FROM people WHERE age > 30`, first},
		{`SELECT relname FROM pg_class`, first},
		{`SELECT * FROM dp.budget`, first},
		{`SELECT * FROM people`, first},
		{`EXPLAIN SELECT count(*) FROM people`, first},
		{`SELECT count(*) + 0 FROM people WHERE age > 30`, "0|9.9|10|30|0.95|free: answered from people"},
		{`SELECT city, count(*) FROM people GROUP BY city`, "0.1|9.8|10|30|0.95|cost ε 0.1; 9.8 of 10 left"},
		{`SELECT avg(age) FROM people`,
			"0.1|9.7|10|0.95|cost ε 0.1; 9.7 of 10 left; error about ±"},
		{`SELECT avg(age) FROM people`, "0|9.7|10|0.95|free"},
	} {
		rows, err := conn.Query(ctx, step.sql)
		if err == nil {
			rows.Close()
		}
		if got := last(); !strings.HasPrefix(got, step.want) || step.want == "" && got != "" {
			t.Errorf("after %s: %q, want %q", step.sql, got, step.want)
		}
	}
	p := kit.StartPsql(t, s.Address, "alice", "lab")
	if text := p.Run(`SELECT cost IS NULL AS before, error FROM dp.last;`); !strings.Contains(text, " t      |") {
		t.Errorf("another session: %s", text)
	}
	noticed := p.Run(`SELECT count(*) FROM people WHERE age < 20;`)
	text := p.Run(`SELECT 'NOTICE:  ' || notice AS n, 'DETAIL:  ' || detail AS d FROM dp.last \gx`)
	for _, line := range strings.Split(noticed, "\n")[:2] {
		if line != "" && !strings.Contains(text, line) {
			t.Errorf("notice %q, dp.last: %s", line, text)
		}
	}
	p.Run(`DISCARD ALL;`)
	if text := p.Run(`SELECT cost IS NULL AS before, error FROM dp.last;`); !strings.Contains(text, " t      |") {
		t.Errorf("after DISCARD ALL: %s", text)
	}
}

// TestMostlyNoiseIsTold: at an ε at which noise is far above every count the answer says that it is mostly noise, in
// the notice and in dp.last; where noise vanishes it does not.
func TestMostlyNoiseIsTold(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "100", Cap: "1000"}, 0))
	w := p.Connect("alice", "lab")
	const counts = "SELECT age, count(*) FROM people GROUP BY 1"
	noisy := w.Ask("SET dp.epsilon = 0.001; " + counts)
	if noisy.Err != nil || len(noisy.Notes) != 1 || !strings.Contains(noisy.Notes[0], "; mostly noise: ±") || !strings.Contains(noisy.Notes[0], " on values near ") {
		t.Errorf("%+v %q", noisy.Err, noisy.Notes)
	}
	if last := w.Ask("SELECT notice FROM dp.last").Rows[0][0]; !strings.Contains(last, "; mostly noise: ±") {
		t.Errorf("dp.last: %q", last)
	}
	clear := w.Ask("SET dp.epsilon = 1; SELECT count(*) FROM people WHERE income >= 0")
	if clear.Err != nil || len(clear.Notes) != 1 || strings.Contains(clear.Notes[0], "mostly noise") {
		t.Errorf("%+v %q", clear.Err, clear.Notes)
	}
	sums := w.Ask("SELECT avg(age) FROM people")
	if sums.Err != nil || len(sums.Notes) != 1 || !strings.Contains(sums.Notes[0], "; error about ±") {
		t.Errorf("%+v %q", sums.Err, sums.Notes)
	}
}
