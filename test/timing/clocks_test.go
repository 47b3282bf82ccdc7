package timing

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestT6ClocksInAnswers: a clock that is asked in a statement that reads rows shows a point of the grid and what
// follows it (one fresh step, then the next point), not the moment at which the rows had been counted and the answer
// drawn; so does the clock of the message's next statement.
func TestT6ClocksInAnswers(t *testing.T) {
	kit.Beside(t)
	const grid = 300 * time.Millisecond
	l := kit.Lab{Engine: "duckdb", Timing: "{grid: 300ms, fresh: 300ms}",
		Change: []string{"backend: {url:", "backend: {deadline: 200ms, url:", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}
	w := l.Serve(t, 0).Connect("alice", "lab")
	for i, form := range []string{
		`SELECT count(*), extract(epoch FROM clock_timestamp()) FROM people WHERE income < %d`,
		`SELECT count(*), extract(epoch FROM clock_timestamp()) FROM people WHERE income < %d GROUP BY city`,
		`SELECT count(*) FROM people WHERE income < %d; SELECT 0, extract(epoch FROM clock_timestamp())`,
	} {
		sent := time.Now()
		a := w.Ask(fmt.Sprintf(form, 1000*(i+2)))
		if a.Err != nil || len(a.Rows) == 0 || len(a.Rows[len(a.Rows)-1]) != 2 {
			t.Errorf("%s: %v, %v", form, a.Err, a.Rows)
			continue
		}
		text := fmt.Sprint(a.Rows[len(a.Rows)-1][1])
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		if after := time.Unix(0, int64(seconds*1e9)).Sub(sent); after < 2*grid-time.Millisecond {
			t.Errorf("%s: its clock shows %s after the question, must be %s at least", form, after, 2*grid)
		}
	}
}
