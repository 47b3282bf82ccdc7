package planner

import "testing"

// TestNearestTable: the hint names the table so that the session's search_path finds it.
func TestNearestTable(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, e := range []struct {
		path []string
		want string
	}{
		{nil, `Perhaps you meant "people".`},
		{[]string{"public"}, `Perhaps you meant "people".`},
		{[]string{"foo"}, `Perhaps you meant "public.people".`},
		{[]string{"foo", "public"}, `Perhaps you meant "people".`},
	} {
		c.Settings.SearchPath = e.path
		if r := refused(c, "SELECT count(*) FROM poeple"); r == nil || r.ID != "unknown-table" || r.Hint != e.want {
			t.Errorf("search_path %v: %+v, want the hint %s", e.path, r, e.want)
		}
	}
	c.Settings.SearchPath = []string{"foo"}
	if r := refused(c, "SELECT count(*) FROM people"); r == nil || r.Hint != `Perhaps you meant "public.people".` {
		t.Errorf("the exact name outside search_path: %+v", r)
	}
}
