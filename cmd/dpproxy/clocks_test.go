package main

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestT6ClocksInAnswers: a clock that is asked in a statement that reads rows shows a point of the grid and what follows it
// (one fresh step, then the next point), not the moment at which the rows had been counted and the answer drawn; so does the
// clock of the message's next statement.
func TestT6ClocksInAnswers(t *testing.T) {
	const grid = 300 * time.Millisecond
	l := lab{engine: "duckdb", timing: "{grid: 300ms, fresh: 300ms}",
		change: []string{"backend: {url:", "backend: {deadline: 200ms, url:", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}
	w := l.serve(t, 0).connect("alice", "lab")
	for i, form := range []string{
		`SELECT count(*), extract(epoch FROM clock_timestamp()) FROM people WHERE income < %d`,
		`SELECT count(*), extract(epoch FROM clock_timestamp()) FROM people WHERE income < %d GROUP BY city`,
		`SELECT count(*) FROM people WHERE income < %d; SELECT 0, extract(epoch FROM clock_timestamp())`,
	} {
		sent := time.Now()
		a := w.ask(fmt.Sprintf(form, 1000*(i+2)))
		if a.err != nil || len(a.rows) == 0 || len(a.rows[len(a.rows)-1]) != 2 {
			t.Errorf("%s: %v, %v", form, a.err, a.rows)
			continue
		}
		text := fmt.Sprint(a.rows[len(a.rows)-1][1])
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
