package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// TestTwinClocks: times around the hour that a zone's clocks show twice are counted as the SQL says. Paraguay's went
// back from 24:00 to 23:00 on 23 March 2024, which is 03:00 UTC on the 24th.
func TestTwinClocks(t *testing.T) {
	zone, err := time.LoadLocation("America/Asuncion")
	if err != nil {
		t.Fatal(err)
	}
	answered, refused := 0, 0
	for _, step := range []string{"10 minutes", "30 minutes", "1 hour", "4 hours", "1 day"} {
		c := testContext(t, testPolicy(t, "step: 1 hour}", "step: "+step+"}"))
		c.Settings.Zone = zone
		people := c.Dataset.Tables[0]
		seen := plans.ColumnIndex(people, people.Column("seen"))
		var rows []scalar.Row
		for at := time.Date(2024, 3, 22, 12, 0, 0, 0, time.UTC); at.Before(time.Date(2024, 3, 26, 0, 0, 0, 0, time.UTC)); at = at.Add(5 * time.Minute) {
			row := make(scalar.Row, len(people.Columns))
			for i, column := range people.Columns {
				row[i] = column.Domain.Low(0)
			}
			row[seen] = policy.Timestamptz(at.UnixMicro())
			rows = append(rows, row)
		}
		for _, where := range []string{
			"seen::timestamp::timestamptz < '2024-03-22 20:00'", "timezone('America/Asuncion', seen AT TIME ZONE 'UTC') < '2024-03-24 05:00Z'",
			"seen::timestamp < '2024-03-23 23:30'", "seen::timestamp >= '2024-03-23 23:10'", "seen AT TIME ZONE 'America/Asuncion' <= '2024-03-23 23:40'",
			"seen AT TIME ZONE 'Europe/Berlin' < '2024-03-24 05:30'", "timezone('UTC', seen) < '2024-03-24 03:30'",
			"seen::date < '2024-03-24'", "date(seen) <= '2024-03-23'",
			"date_trunc('day', seen) < '2024-03-24'", "date_trunc('hour', seen)::timestamp <= '2024-03-23 23:00'",
			"extract(hour FROM seen) = 23", "extract(day FROM seen) = 23",
			"seen + interval '1 day' < '2024-03-24 23:30'", "seen - interval '1 month' < '2024-02-23 23:30'",
			"seen + interval '20 minutes' < '2024-03-24 00:00'",
			"(seen - interval '2 hours')::timestamp < '2024-03-23 23:30'",
			"date_trunc('day', seen AT TIME ZONE 'UTC') = '2024-03-24'", "seen::timestamp = '2024-03-23 23:30'",
			"seen::timestamp::timestamptz < '2024-03-23 23:30'",
			"seen::timestamp - timestamptz '2024-03-23 23:30' < interval '0'",
			"seen::timestamp + interval '1 month' < '2024-04-23 23:30'",
			"seen < '2024-03-24 00:00'", "seen < '2024-03-24 03:30+00'", "seen::date + 1 > '2024-03-24'",
			"date_part('hour', seen::timestamp) < 23",
			"to_char(seen, 'HH24') = '23'", "to_char(seen, 'YYYY-MM-DD') = '2024-03-24'",
			"to_char(seen, 'Dy HH12 PM') = 'Sat 11 PM'", "to_char(seen, 'HH24:MI') < '23:30'",
			"to_char(seen AT TIME ZONE 'UTC', 'FMDD\"th\" Day') LIKE '24%'", "to_char(seen, 'HH24 OF') = '23 -03'",
			"to_char(seen, 'MS') = '000'",
		} {
			for _, sql := range []string{"SELECT count(*) FROM people WHERE " + where, "SELECT " + where + ", count(*) FROM people GROUP BY 1"} {
				plan := planOrRefusal(t, c, sql)
				if plan == nil {
					refused++
					continue
				}
				answered++
				if n := strings.Join(plan.Notes, " "); strings.Contains(n, "snap") { // not what was asked, and said so
					continue
				}
				agree(t, step+": "+sql, answer(plan.Leaves[0], trueVectors(t, plan, rows)), naive(t, c, sql, rows))
			}
		}
	}
	t.Logf("%d answered, %d refused", answered, refused)
	if answered < 90 {
		t.Errorf("only %d answered", answered)
	}
}
