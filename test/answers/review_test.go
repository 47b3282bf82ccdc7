package answers

import (
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestReviewIsPlainSQL: more statements of the kinds of ADR 117 to 119, held against PostgreSQL's own answers.
func TestReviewIsPlainSQL(t *testing.T) {
	kit.Beside(t)
	fresh, direct := plainFixture(t)
	answersOf(t, fresh, direct, "testdata/review.sql")
}

// TestSubqueriesStayFreeWhenTheBudgetIsSpent: what was paid for is answered again, though nothing is left.
func TestSubqueriesStayFreeWhenTheBudgetIsSpent(t *testing.T) {
	kit.Beside(t)
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "1", Cap: "90"}, 0)).Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 1`)
	const q = `SELECT count(*) FROM people WHERE age > (SELECT avg(age) FROM people)`
	first := w.Ask(q)
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if again := w.Ask(q); again.Err != nil || again.Rows[0][0] != first.Rows[0][0] {
		t.Errorf("asked again when nothing is left: %v, %q then %q", again.Err, first.Rows, again.Rows)
	}
}
