package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// manyRegions has two rows of A, of one label, and one of B.
type manyRegions struct{ reuse.NoCache }

func (manyRegions) Rows(*policy.Table) ([][]policy.Value, bool) {
	return [][]policy.Value{{"A", "north"}, {"B", "south"}, {"A", "north"}, {"A", "west"}, {"Z", "none"}, {nil, "nowhere"}}, true
}

// TestMatchedClaims: a unit of three visits moves a join by three times the most matches that the conditions leave, and
// a group by as many as have its keys.
func TestMatchedClaims(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Public = manyRegions{}
	for _, s := range []struct {
		text     string
		l1, root int64 // L1, L2²
	}{
		{`SELECT count(*) FROM visits v JOIN regions r ON r.code = v.ward`, 9, 81},
		{`SELECT r.label, count(*) FROM visits v JOIN regions r ON r.code = v.ward GROUP BY 1`, 9, 45},
		{`SELECT r.label, count(*) FROM visits v JOIN regions r ON r.code = v.ward WHERE r.label <> 'north' GROUP BY 1`, 3, 9},
		{`SELECT r.label, v.ward, count(*) FROM visits v JOIN regions r ON r.code = v.ward AND r.label >= 'o' GROUP BY 1, 2`, 3, 9},
		{`SELECT r.code, count(*) FROM visits v JOIN regions r ON r.code = v.ward GROUP BY 1`, 9, 81},
		{`SELECT r.label, count(*) FROM visits v JOIN regions r ON r.code > v.ward GROUP BY 1`, 6, 18},
		{`SELECT r.label, count(v.person_id) FROM regions r LEFT JOIN visits v ON r.code = v.ward GROUP BY 1`, 9, 45},
		{`SELECT r.label, count(DISTINCT v.person_id) FROM visits v JOIN regions r ON r.code = v.ward GROUP BY 1`, 3, 3},
		{`SELECT r.label, count(*) FROM people p CROSS JOIN regions r GROUP BY 1`, 6, 12},
		{`SELECT r.label, v.day, count(*) FROM visits v JOIN regions r ON r.code = v.ward GROUP BY 1, 2`, 9, 45},
	} {
		p, refusal := planned(t, c, s.text)
		if refusal != nil {
			t.Errorf("%s: %s: %s", s.text, refusal.ID, refusal.Message)
			continue
		}
		for _, m := range p.Measures {
			if got := m.Spec.Sensitivity(m.Contribution()); got.L1 != s.l1 || got.L2Squared != s.root {
				t.Errorf("%s: L1 %d, L2² %d; want %d, %d", s.text, got.L1, got.L2Squared, s.l1, s.root)
			}
		}
	}
}

// TestMatchedRefuses: what counts public rows without a private one, or joins them further, or takes too many pairs.
func TestMatchedRefuses(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Public = manyRegions{}
	const kept = `regions r LEFT JOIN visits v ON v.ward = r.code`
	for text, want := range map[string]string{
		`SELECT r.label, count(*) FROM ` + kept + ` GROUP BY 1`:                                                     "public-outer-join",
		`SELECT count(r.label) FROM ` + kept:                                                                        "public-outer-join",
		`SELECT count(DISTINCT r.label) FROM ` + kept:                                                               "public-outer-join",
		`SELECT count(*) FROM ` + kept + ` WHERE v.person_id IS NULL`:                                               "public-outer-join",
		`SELECT count(*) FILTER (WHERE v.day IS NULL) FROM ` + kept:                                                 "public-outer-join",
		`SELECT mode() WITHIN GROUP (ORDER BY r.label) FROM ` + kept:                                                "public-outer-join",
		`SELECT count(v.day) FROM (` + kept + `) JOIN people p ON p.person_id = v.person_id`:                        "public-outer-join-below",
		`SELECT n, count(*) FROM (SELECT v.person_id, count(v.day) AS n FROM ` + kept + ` GROUP BY 1) t GROUP BY 1`: "public-outer-join-below",
		`SELECT count(*) FROM people p JOIN regions r ON p.income > length(r.label)`:                                "off-grid-expression",
		`SELECT count(*) FROM people NATURAL JOIN regions`:                                                          "natural-join-without-columns",
		`SELECT count(*) FROM people p JOIN regions r ON p.person_id = r.code`:                                      "join-key-only",
	} {
		if p, refusal := planned(t, c, text); refusal == nil {
			t.Errorf("%s: planned for %s", text, p.Cost)
		} else if refusal.ID != want {
			t.Errorf("%s: %s: %s, want %s", text, refusal.ID, refusal.Message, want)
		}
	}
	c.Public = crowd{n: derived.MaxMatches + 1}
	if _, refusal := planned(t, c, `SELECT count(*) FROM visits v JOIN regions r ON r.code = v.ward`); refusal == nil || refusal.ID != "public-join-fan-out" {
		t.Errorf("a row with too many matches: %v", refusal)
	}
	c.Public = crowd{n: derived.MaxMatches}
	if _, refusal := planned(t, c, `SELECT count(*) FROM visits v JOIN regions r ON r.code = v.ward`); refusal != nil {
		t.Errorf("a row with as many matches as may be: %v", refusal)
	}
}

// crowd is so many rows of one key.
type crowd struct {
	reuse.NoCache
	n int
}

func (n crowd) Rows(*policy.Table) ([][]policy.Value, bool) {
	var list [][]policy.Value
	for i := range n.n {
		list = append(list, []policy.Value{"A", fmt.Sprint(i)})
	}
	return list, true
}

// TestMatchedOrder: the order in which a public table is copied changes nothing, its rows do.
func TestMatchedOrder(t *testing.T) {
	c := testContext(t, testPolicy(t))
	digest := func(rows reuse.PublicRows) string {
		c.Public = rows
		p, refusal := planned(t, c, `SELECT r.label, count(*) FROM visits v JOIN regions r ON r.code = v.ward GROUP BY 1`)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return fmt.Sprintf("%x", p.Measures[0].Digest)
	}
	one := digest(manyRegions{})
	if digest(reversed{}) != one {
		t.Error("another order is another measure")
	}
	if digest(crowd{n: 3}) == one {
		t.Error("other rows are the same measure")
	}
	if !strings.Contains(fmt.Sprint(digest(crowd{n: 3})), digest(crowd{n: 3})) {
		t.Error("equal rows are different measures")
	}
}

type reversed struct{ reuse.NoCache }

func (reversed) Rows(t *policy.Table) ([][]policy.Value, bool) {
	list, _ := manyRegions{}.Rows(t)
	out := make([][]policy.Value, len(list))
	for i, row := range list {
		out[len(list)-1-i] = row
	}
	return out, true
}
