package planner

import (
	"math/rand"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// periodPolicy has columns of each kind that expressions come round in: instants with changes of clocks among them, at
// steps that divide an hour and that do not, times and days from before 1970 on, whole numbers on both sides of 0 and
// near the end of their type.
var periodPolicy = policytest.Over("postgres://ro@127.0.0.1/shop") + `
  - id: shop
    unit: {name: person, key: orders.who}
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {"*": {epsilon: 100}}
    tables:
      - name: orders
        max_rows_per_unit: 2
        columns:
          - {name: at, type: timestamptz, domain: {min: "2025-01-01 00:00:00Z", max: "2025-11-30 23:59:59.999999Z", step: 1 hour}, offgrid: snap}
          - {name: odd, type: timestamptz, domain: {min: "2025-03-20 00:10:00Z", max: "2025-04-10 00:00:00Z", step: 25 minutes}, offgrid: snap}
          - {name: turn, type: timestamptz, domain: {min: "2025-03-29 00:00:00Z", max: "2025-03-30 20:00:00Z", step: 2 hours}, offgrid: snap}
          - {name: wall, type: timestamp, domain: {min: "1969-12-01 12:00:00", max: "1970-02-01 00:00:00", step: 30 minutes}, offgrid: snap}
          - {name: day, type: date, domain: {min: 1968-02-03, max: 1971-12-31, step: 1 day}}
          - {name: fortnight, type: date, domain: {min: 1950-02-03, max: 2010-12-31, step: 14 days}, offgrid: snap}
          - {name: n, type: integer, domain: {min: 0, max: 999, step: 1}}
          - {name: m, type: integer, domain: {min: -300, max: 301, step: 1}}
          - {name: threes, type: integer, domain: {min: 7, max: 2000, step: 3}, offgrid: snap}
          - {name: large, type: integer, domain: {min: 2147482000, max: 2147483000, step: 1}}
          - {name: status, type: text, domain: {values: [new, paid]}}
`

func periodContext(t *testing.T, zone string) reuse.Context {
	t.Helper()
	p, err := policy.Parse([]byte(periodPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := p.Datasets[0]
	d.Buying.Cells = 0 // a walk over cells finds no room around a question where it would look at too many
	c := reuse.Context{Policy: p, Dataset: d, User: "alice", Now: time.Date(2026, 6, 15, 10, 30, 0, 0, time.UTC),
		Settings: plans.Settings{Epsilon: d.Defaults.MaxEpsilon, Confidence: d.Defaults.Confidence, SearchPath: []string{"public"}}}
	if c.Settings.Zone, err = time.LoadLocation(zone); err != nil {
		t.Fatal(err)
	}
	return c
}

// zones have clocks that are set by an hour, by half of one, at different hours and never, an offset of no whole hours,
// and one beyond a day's half.
var zones = []string{"UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"}

// comesRoundOf draws an expression that may come round.
func comesRoundOf(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	at := pick("at", "at", "odd", "wall", "day", "fortnight", "at + interval '90 minutes'", "wall - interval '1 day 7 hours'", "day + 3", "at AT TIME ZONE 'Europe/Berlin'",
		"at AT TIME ZONE 'Asia/Kolkata'", "wall AT TIME ZONE 'America/St_Johns'", "odd AT TIME ZONE 'Australia/Lord_Howe'", "date_trunc('hour', at)", "date_trunc('week', wall)", "date_trunc('day', at)", "at::date", "wall::date",
		"day + interval '5 hours'", "at::timestamp", "wall::timestamptz", "date_trunc('day', at AT TIME ZONE 'Europe/Berlin')", "day + interval '1 month'")
	n := pick("n", "m", "threes", "large", "n + 5", "m + 300", "m + 299", "large + 600", "large + 700", "threes - 7", "n * 2", "7 - n", "n + threes")
	clock := "(" + pick("at", "at", "odd", "wall", "at + interval '90 minutes'", "at AT TIME ZONE 'Europe/Berlin'", "wall AT TIME ZONE 'America/St_Johns'", "date_trunc('hour', at)", "date_trunc('day', wall)") + ")::time"
	switch r.Intn(11) {
	case 9:
		return clock + pick(" < '12:00'", " >= '09:30'", " BETWEEN '02:00' AND '17:00'", " IN ('02:00', '03:30')", " = '00:00'", " - time '08:00' > interval '0'")
	case 10:
		return pick("extract(hour FROM "+clock+")", "to_char("+clock+", 'HH24')", "date_trunc('hour', at)::time", "extract(epoch FROM date_trunc('hour', wall)::time)", "CASE WHEN "+clock+" < '06:00' THEN 'night' END")
	case 0, 1, 2:
		return "extract(" + pick("hour", "hour", "minute", "second", "dow", "isodow", "day", "doy", "week", "month", "epoch") + " FROM " + at + ")"
	case 3:
		return "to_char(" + at + ", '" + pick("HH24", "HH12 AM", "Dy", "D", "DAY HH24:MI", "FMDay", "MM", "HH24 YYYY", "SSSS", "ID", `"at" HH24th`) + "')"
	case 4:
		return n + " % " + pick("2", "7", "10", "-4", "0", "1000")
	case 5:
		return "mod(" + n + ", " + pick("3", "12", "5") + ")"
	case 6:
		return "CASE WHEN extract(hour FROM " + at + ") < 12 THEN 'am' WHEN " + n + " % 3 = 1 THEN 'x' END"
	case 7:
		return "extract(dow FROM " + at + ") IN (0, 6)"
	}
	return pick("date_trunc('hour', ", "date_trunc('day', ", "date_trunc('week', ", "date_trunc('month', ") + at + ")"
}

// TestPeriodsHold: on cells of a stretch that are a period apart an expression has the same value, or fails alike, and
// is constant within both or neither: asked of each cell.
func TestPeriodsHold(t *testing.T) {
	r := rand.New(rand.NewSource(109))
	found, changes := 0, 0
	for n := range 400 {
		c := periodContext(t, zones[n%len(zones)])
		orders := c.Dataset.Tables[0]
		b := aggregate.NewBinder(c, &semantics.Parameters{})
		text := comesRoundOf(r)
		s := parsedText(t, "SELECT count(*) FROM orders WHERE ("+text+") IS NULL")[0]
		b.Text, b.Top = s.Text, s.Select()
		from, _ := b.FromRows(b.Top, nil)
		e, refusal := (&semantics.Translator{Env: b.Env, Params: b.Params, Columns: from.Column}).Expr(b.Top.WhereClause)
		if refusal != nil || len(e.Cols) != 1 {
			continue
		}
		e = e.Args[0]
		box, column := semantics.NewBox(orders, scalar.Env{Now: c.Now, Zone: c.Settings.Zone}), e.Cols[0]
		d := orders.Columns[column].Domain
		stretches := box.Stretches(column, []*semantics.Expr{e}, []int{d.Regular / 3}, false)
		if stretches == nil {
			continue
		}
		if found++; len(stretches) > 2 {
			changes++
		}
		at := 0
		for _, s := range stretches {
			if s.From != at || s.To < s.From {
				t.Fatalf("%s: stretches %v", text, stretches)
			}
			at = s.To
			for cell := s.From + s.Period; cell < s.To; cell++ {
				box.Set(column, cell-s.Period)
				want, wantSteady, wantRefusal := box.Value(e)
				box.Set(column, cell)
				got, steady, refusal := box.Value(e)
				last := cell == d.Regular-1 && steady // which may be shorter
				if (refusal == nil) != (wantRefusal == nil) || refusal == nil && (steady != wantSteady && !last || !semantics.Same(e.Type(), got, want)) {
					t.Fatalf("%s in %s: cell %d is %v (%t, %v), %d before it is %v (%t, %v); stretches %v", text, c.Settings.Zone, cell, got, steady, refusal, s.Period, want, wantSteady, wantRefusal, stretches)
				}
			}
		}
		if at != d.Regular {
			t.Fatalf("%s: stretches %v of %d cells", text, stretches, d.Regular)
		}
	}
	t.Logf("%d expressions come round, %d between changes of a clock", found, changes)
	if found < 120 || changes < 20 {
		t.Errorf("%d expressions come round, %d between changes of a clock", found, changes)
	}
}

// TestTwinPeriods plans charts by what comes round, and again by a walk over each cell: plans, digests, refusals, and
// where each cell is placed, are the same.
func TestTwinPeriods(t *testing.T) {
	defer func(few int) { semantics.FewRegular = few }(semantics.FewRegular)
	r := rand.New(rand.NewSource(110))
	conditions := []string{"", "", " WHERE at >= '2025-03-01 05:00:00Z'", " WHERE status = 'paid' AND n > 417", " WHERE wall < '1970-01-03' OR n < 20", " WHERE at NOT BETWEEN '2025-02-03' AND '2025-10-27'", " WHERE extract(hour FROM at) > 7", " WHERE n % 7 <> 3", " WHERE at::time >= '22:00' OR at::time < '06:10'", " WHERE wall::time BETWEEN '09:00' AND '17:00'"}
	planned, refused := 0, 0
	for n := range 160 {
		c := periodContext(t, zones[n%len(zones)])
		orders := c.Dataset.Tables[0]
		keys, by := comesRoundOf(r), "1"
		if n%3 == 0 {
			keys, by = keys+", "+[]string{"status", "n / 100", comesRoundOf(r)}[r.Intn(3)], "1, 2"
		}
		sql := "SELECT " + keys + ", count(*)" + []string{"", ", count(*) FILTER (WHERE n % 2 = 0)", ", count(*) FILTER (WHERE extract(dow FROM at) = 1 AND status = 'new')"}[r.Intn(3)] +
			" FROM orders" + conditions[r.Intn(len(conditions))] + " GROUP BY " + by
		semantics.FewRegular = 16
		p, refusal := Build(parsedText(t, sql)[0], nil, c)
		semantics.FewRegular = 1 << 30
		cells, other := Build(parsedText(t, sql)[0], nil, c)
		if other != nil && other.ID == "too-many-cells" {
			continue
		}
		if refusal != nil || other != nil {
			if refusal == nil || other == nil || refusal.ID != other.ID || refusal.Position != other.Position || refusal.Message != other.Message {
				t.Fatalf("%s: refused by what comes round with %v, by cells with %v", sql, refusal, other)
			}
			refused++
			continue
		}
		planned++
		if got, want := planText(p), planText(cells); got != want {
			t.Fatalf("%s\nby what comes round:\n%s\nby cells:\n%s", sql, got, want)
		}
		for i, m := range p.Measures {
			if m.Digest != cells.Measures[i].Digest {
				t.Fatalf("%s: measure %d has another digest", sql, i)
			}
			for _, cell := range randomCells(r, m, 200) {
				for counter := range max(len(m.Counters), 1) {
					if got, want := m.Place(cell, counter), cells.Measures[i].Place(cell, counter); got != want {
						t.Fatalf("%s: cells %d are placed at %d, by cells at %d", sql, cell, got, want)
					}
				}
			}
		}
		rows := randomRows(r, orders, 30)
		agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), answer(cells.Leaves[0], trueVectors(t, cells, rows)))
	}
	t.Logf("%d planned, %d refused", planned, refused)
	if planned < 60 {
		t.Errorf("%d planned, %d refused", planned, refused)
	}
}
