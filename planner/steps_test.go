package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
)

// TestStepChoices: the worst that a bound moves is what the kind of values leaves between two steps; coarser steps
// have less error and move bounds further.
func TestStepChoices(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Settings.OffGrid = plans.OffGridSnap
	cost := privacy.Cost{Epsilon: epsilon(t, "1")}
	for _, w := range []struct{ column, tenth, declared, tenfold string }{
		{"age", "", "nothing", "at most 9"}, {"income", "less than 100", "less than 1000", "less than 10000"}, {"hired", "", "nothing", "at most 9 days"},
		{"seen", "less than 6 minutes", "less than 1 hour", "less than 10 hours"},
	} {
		column := columnNamed(t, c, w.column)
		list := workload.StepChoices(column, cost)
		if len(list) != 3 || list[0].Rounding != w.tenth || list[1].Rounding != w.declared || list[2].Rounding != w.tenfold || list[0].Declared || !list[1].Declared {
			t.Errorf("%s: %+v", w.column, list)
		}
		for i := 1; i < len(list); i++ {
			if a, b := list[i-1], list[i]; a.Not == "" && b.Not == "" && (a.RMSE <= b.RMSE || a.Rows >= b.Rows || a.Cells <= b.Cells) {
				t.Errorf("%s: steps of %s and of %s: %+v, %+v", w.column, a.Step, b.Step, a, b)
			}
		}
	}
	whole := &policy.Domain{Min: int64(0), Step: policy.Step{Whole: 1000}}
	if text, rows := workload.WorstRounding(whole, 500); text != "at most 999" || rows != 499.5 {
		t.Errorf("whole numbers in steps of 1000: a bound moves by %s, %g rows", text, rows)
	}
}

// TestBucketsBeginWithSteps: of a column whose steps of an hour begin at half past, a key of hours would count half of
// each hour in the one before, in whatever type it is given; one of half hours begins with each step.
func TestBucketsBeginWithSteps(t *testing.T) {
	c := testContext(t, testPolicy(t, `{min: "2024-01-01 00:00:00Z"`, `{min: "2024-01-01 00:30:00Z"`))
	for key, answered := range map[string]bool{
		"date_trunc('hour', seen)": false, "floor(extract(epoch FROM seen) / 3600)": false, "floor(extract(epoch FROM seen)::float8 / 3600)": false, "trunc(extract(epoch FROM seen) / 3600)::int": false,
		"width_bucket(seen, ARRAY['2024-01-05 00:30Z', '2024-01-05 01:00Z', '2024-01-07 00:30Z']::timestamptz[])": false, "width_bucket(seen, ARRAY['2024-01-05 00:30Z', '2024-01-07 00:30Z']::timestamptz[])": true,
		"date_bin('30 minutes', seen, timestamptz '2024-01-01 00:00Z')": true, "floor(extract(epoch FROM seen) / 1800)": true,
	} {
		if p := planOrRefusal(t, c, "SELECT "+key+", count(*) FROM people GROUP BY 1"); (p != nil) != answered {
			t.Errorf("%s: answered %t", key, p != nil)
		}
	}
}

func columnNamed(t *testing.T, c reuse.Context, name string) *policy.Column {
	t.Helper()
	for _, table := range c.Dataset.Tables {
		for _, column := range table.Columns {
			if column.Name == name {
				return column
			}
		}
	}
	t.Fatalf("there is no column %s", name)
	return nil
}
