package planner

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

func microsIn(v policy.Value) int64 {
	if at, ok := v.(policy.Timestamp); ok {
		return int64(at)
	}
	return int64(v.(policy.Timestamptz))
}

// TestTimesWithinCells: a condition on the time of the day, lowered to cells and to places within them, holds of each
// moment for which it is true: near the ends of cells, where clocks are set, around the constants.
func TestTimesWithinCells(t *testing.T) {
	r := rand.New(rand.NewSource(185))
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	lowered, divided, refused := 0, 0, 0
	for n := range 600 {
		c := periodContext(t, []string{"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "Asia/Kolkata"}[n%5])
		orders := c.Dataset.Tables[0]
		for _, column := range orders.Columns {
			column.Snap = false
		}
		clock := "(" + pick("at", "turn", "turn", "wall", "at AT TIME ZONE 'America/New_York'", "odd", "turn::timestamp", "at AT TIME ZONE 'UTC'") + ")::time"
		text := clock + pick(" < ", " <= ", " > ", " >= ", " = ", " <> ") + fmt.Sprintf("'%02d:%02d'", hourOf(r), 10*r.Intn(6))
		switch r.Intn(4) {
		case 0:
			text = clock + pick(" BETWEEN ", " NOT BETWEEN ") + "'02:20:00.5' AND '17:00'"
		case 1:
			text = "NOT " + text
		}
		b := aggregate.NewBinder(c, &semantics.Parameters{})
		s := parsedText(t, "SELECT count(*) FROM orders WHERE "+text)[0]
		b.Text, b.Top = s.Text, s.Select()
		from, _ := b.FromRows(b.Top, nil)
		e, refusal := (&semantics.Translator{Env: b.Env, Params: b.Params, Columns: from.Column}).Expr(b.Top.WhereClause)
		if refusal != nil {
			t.Fatal(text, refusal)
		}
		env := scalar.Env{Now: c.Now, Zone: c.Settings.Zone}
		l := semantics.Lowerer{Table: orders, Env: env, Box: semantics.NewBox(orders, env), Notes: &semantics.Notes{}}
		truth, ok, refusal := l.Lower(e)
		if refusal != nil {
			t.Fatal(text, refusal)
		}
		if !ok {
			refused++
			continue
		}
		if lowered++; strings.Contains(strings.Join(*l.Notes, ""), "inside a step") {
			divided++
		}
		at := e.Cols[0]
		d := orders.Columns[at].Domain
		row, position := make(scalar.Row, len(orders.Columns)), map[*policy.Column]int{orders.Columns[at]: at}
		for range 400 {
			cell := r.Intn(d.Regular)
			low, high := microsIn(d.Low(cell)), microsIn(d.High(cell))
			v := low + []int64{0, min(1, high-low), high - low, r.Int63n(high - low + 1), min(high-low, r.Int63n(61)*60_000_000)}[r.Intn(5)]
			if row[at] = policy.Timestamptz(v); d.Type == policy.TimestampT {
				row[at] = policy.Timestamp(v)
			}
			want, err := e.Eval(row)
			if got := holdsOn(t, truth.Holds, row, position); err != nil || got != (want == true) {
				t.Fatalf("%s in %s at %v: %v, lowered %v (%v)", text, c.Settings.Zone, env.FormatText(d.Type, row[at]), want, got, err)
			}
		}
		row[at] = nil
		if holdsOn(t, truth.Holds, row, position) {
			t.Fatalf("%s holds of NULL", text)
		}
	}
	t.Logf("%d lowered, %d of them within cells, %d refused", lowered, divided, refused)
	if divided < 300 || refused < 100 {
		t.Errorf("%d lowered, %d of them within cells, %d refused", lowered, divided, refused)
	}
}

// hourOf is an hour, often one at which clocks are set.
func hourOf(r *rand.Rand) int { return []int{0, 1, 2, 3, r.Intn(24)}[r.Intn(5)] }
