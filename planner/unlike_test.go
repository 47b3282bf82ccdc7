package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
)

// TestUnlikeCellsTellAsMuchAsAll: whatever is asked of a release, it is read in the same way, or not at all, when one
// of each kind of cells is looked at as when all are.
func TestUnlikeCellsTellAsMuchAsAll(t *testing.T) {
	defer func(was int) { linear.MaxPlain = was }(linear.MaxPlain)
	c := testContext(t, instancePolicy(t, onlineText))
	c.Settings.Epsilon = epsilon(t, "1")
	bought, refusal := planSession(t, c, "SELECT count(*) FROM people WHERE income < 50000")
	if refusal != nil {
		t.Fatal(refusal)
	}
	c.Holdings.(*shelf).buy(bought)
	random := rand.New(rand.NewPCG(1, 5))
	conditions := []func() string{
		func() string { return fmt.Sprintf("income < %d", 5000*random.IntN(41)) },
		func() string { return fmt.Sprintf("income >= %d", 10000*random.IntN(21)) },
		func() string { return "income IS NULL" },
		func() string { return "sex = 'Female'" },
		func() string { return "sex <> 'Male'" },
		func() string {
			return fmt.Sprintf("(income BETWEEN %d AND 99999.99 OR sex IS NULL)", 10000*random.IntN(10))
		},
		func() string { return fmt.Sprintf("age < %d", random.IntN(90)) },
	}
	condition := func() string {
		var and []string
		for range 1 + random.IntN(3) {
			and = append(and, conditions[random.IntN(len(conditions))]())
		}
		return strings.Join(and, []string{" AND ", " OR "}[random.IntN(2)])
	}
	forms := []string{"SELECT count(*) FROM people WHERE %s", "SELECT sex, count(*), count(*) FILTER (WHERE %s) FROM people GROUP BY 1", "SELECT width_bucket(income, 0, 200000, 20), count(*) FROM people WHERE %s GROUP BY 1"}
	online := 0
	for range 40 {
		q := fmt.Sprintf(forms[random.IntN(len(forms))], condition())
		var seen [2]any
		for i, most := range []int{math.MaxInt, 0} {
			linear.MaxPlain = most
			p, refusal := planSession(t, c, q)
			if refusal != nil {
				seen[i] = refusal.ID
				continue
			}
			if len(p.Measures) == 0 { // nothing can be true
				continue
			}
			if i == 0 && mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) {
				online++
			}
			seen[i] = []any{p.Cost, len(p.Measures), p.Measures[0].Digest, p.Measures[0].Why, p.Leaves[0].Counts}
		}
		if !reflect.DeepEqual(seen[0], seen[1]) {
			t.Errorf("%s:\n%+v\n%+v", q, seen[0], seen[1])
		}
	}
	if online < 8 {
		t.Errorf("%d questions were read from the release: the test tested little", online)
	}
}

// TestOnlineReleasesOfFineDomains: a release of few cells answers, however many combinations of values its columns
// have.
func TestOnlineReleasesOfFineDomains(t *testing.T) {
	c := testContext(t, instancePolicy(t, "{kind: online, name: o, columns: [sex, {column: score, step: 5}, {column: age, step: 10}, {column: income, step: 100000}], epsilon: 1, updates: 20, insist: true}"))
	c.Settings.Epsilon = epsilon(t, "1")
	p, refusal := planSession(t, c, "SELECT sex, count(*) FROM people WHERE income < 100000 AND age >= 40 AND score < 5 GROUP BY 1")
	if refusal != nil || !mechanisms.Is[*mechanisms.Online](p.Measures[0].Spec) {
		t.Errorf("%v %+v", refusal, p)
	}
}
