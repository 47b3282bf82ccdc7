package planner

import "testing"

// TestRowsCompared: the hint is the same question without rows, and that is answered.
func TestRowsCompared(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, e := range []struct{ rows, hint, plain string }{
		{"(age, sex) IN ((30, 'Male'), (31, 'Female'))", "Compare column by column: a = 1 AND b = 2 OR a = 3 AND b = 4.", "age = 30 AND sex = 'Male' OR age = 31 AND sex = 'Female'"},
		{"(age, sex) NOT IN ((30, 'Male'))", "Compare column by column: NOT (a = 1 AND b = 2 OR a = 3 AND b = 4).", "NOT (age = 30 AND sex = 'Male')"},
		{"(age, sex) = (30, 'Male')", "Compare column by column: a = 1 AND b = 2.", "age = 30 AND sex = 'Male'"},
		{"ROW(age, sex) <> ROW(30, 'Male')", "Compare column by column: NOT (a = 1 AND b = 2).", "NOT (age = 30 AND sex = 'Male')"},
	} {
		if r := refused(c, "SELECT count(*) FROM people WHERE "+e.rows); r == nil || r.ID != "no-private-form" || r.Hint != e.hint {
			t.Errorf("%s: %+v, want the hint %s", e.rows, r, e.hint)
		}
		if r := refused(c, "SELECT count(*) FROM people WHERE "+e.plain); r != nil {
			t.Errorf("%s: %+v", e.plain, r)
		}
	}
	if r := refused(c, "SELECT sex, count(*) FROM people GROUP BY sex HAVING (sex, 1) IN (('Male', 1))"); r != nil {
		t.Errorf("over counts: %+v", r)
	}
}
