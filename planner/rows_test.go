package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/planner/reuse"
)

// TestRowsCompared: a comparison of rows is one column by column, written out by hand here, so one measure answers
// both.
func TestRowsCompared(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, e := range []struct{ rows, plain string }{
		{"(age, sex) IN ((30, 'Male'), (31, 'Female'))", "age = 30 AND sex = 'Male' OR age = 31 AND sex = 'Female'"},
		{"(age, sex) NOT IN ((30, 'Male'))", "NOT (age = 30 AND sex = 'Male')"},
		{"(age, sex) = (30, 'Male')", "age = 30 AND sex = 'Male'"},
		{"ROW(age, sex) <> ROW(30, 'Male')", "age <> 30 OR sex <> 'Male'"},
		{"(age, kids) < (30, 2)", "age < 30 OR age = 30 AND kids < 2"},
		{"(age, kids) <= (30, 2)", "age < 30 OR age = 30 AND kids <= 2"},
		{"(30, 2) < (age, kids)", "age > 30 OR age = 30 AND kids > 2"},
		{"(sex, age, kids) >= ('Male', 30, 2)", "sex > 'Male' OR sex = 'Male' AND (age > 30 OR age = 30 AND kids >= 2)"},
		{"NOT (age, kids) > (30, 2)", "NOT (age > 30 OR age = 30 AND kids > 2)"},
	} {
		if rows, plain := digestOf(t, c, e.rows), digestOf(t, c, e.plain); rows != plain {
			t.Errorf("%s is not %s", e.rows, e.plain)
		}
	}
	if digestOf(t, c, "(age, kids) < (30, 2)") == digestOf(t, c, "(age, kids) <= (30, 2)") {
		t.Error("< and <= are one")
	}
	for text, id := range map[string]string{"(age, sex) = (SELECT 30, 'Male')": "no-private-form", "(age, sex) IN (30, 31)": "no-private-form", "(age, sex) < (30, 'Male', 1)": "row-lengths",
		"(age, sex) ~ ('a', 'b')": "no-private-form", "(age, sex) IS DISTINCT FROM (1, 'Male')": "no-private-form"} {
		if r := refused(c, "SELECT count(*) FROM people WHERE "+text); r == nil || r.ID != id {
			t.Errorf("%s: %+v, want %s", text, r, id)
		}
	}
	if r := refused(c, "SELECT sex, count(*) FROM people GROUP BY sex HAVING (sex, 1) IN (('Male', 1))"); r != nil {
		t.Errorf("over counts: %+v", r)
	}
}

func digestOf(t *testing.T, c reuse.Context, where string) [32]byte {
	t.Helper()
	plan, r := planned(t, c, "SELECT count(*) FROM people WHERE "+where)
	if r != nil {
		t.Fatalf("%s: %s", where, r.Message)
	}
	return plan.Measures[0].Digest
}
