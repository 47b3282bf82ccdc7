package planner

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// TestTwinRuns: keys that are classified by the runs on which they are constant are what the SQL says, in zones whose
// clocks change too, with conditions on the same column and on others.
func TestTwinRuns(t *testing.T) {
	const seed = 6
	r := rand.New(rand.NewSource(seed))
	keys := []string{"date_trunc('month', hired)", "date_trunc('week', hired), date_trunc('year', hired)", "date_trunc('quarter', hired) + interval '1 day'", "floor(income / 2500)",
		"width_bucket(age, 3, 77, 9)", "age / 7", "seen::date", "date_trunc('hour', seen)", "date_trunc('week', seen + interval '1 hour')", "hired > date '2011-03-01'", "floor(age / 10), age > 33", "COALESCE(age / 9, 3)"}
	answered := 0
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/St_Johns"} {
		c := testContext(t, testPolicy(t))
		var err error
		if c.Settings.Zone, err = time.LoadLocation(zone); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			sql := "SELECT count(*) FROM people WHERE " + condition(r, 1) + " GROUP BY " + keys[r.Intn(len(keys))]
			p := planOrRefusal(t, c, sql)
			if p == nil {
				continue
			}
			answered++
			rows := randomRows(r, c.Dataset.Tables[0], 60)
			agree(t, fmt.Sprint(zone, ": ", sql), answer(p.Leaves[0], trueVectors(t, p, rows)), naive(t, c, sql, rows))
		}
	}
	if answered < 120 {
		t.Errorf("seed %d: only %d of 180 statements were answered", seed, answered)
	}
}
