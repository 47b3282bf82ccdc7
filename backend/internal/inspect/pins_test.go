package inspect

import (
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/policy"
)

// TestPins: what was seen for a policy decides once it is in force; that of the one before serves its own tables still,
// and of others nothing is left.
func TestPins(t *testing.T) {
	t.Parallel()
	var p Pins[int]
	policies := make([]*policy.Policy, 5)
	for i := range policies {
		policies[i] = &policy.Policy{Datasets: []*policy.Dataset{{ID: "clinic"}}}
	}
	check := func(when string, deciding int, known ...int) {
		t.Helper()
		list := p.Deciding()
		for i, of := range policies {
			d := of.Datasets[0]
			got, has := p.Of(d)
			want := false
			for _, k := range known {
				want = want || k == i
			}
			if _, decides := list[d]; decides != (i == deciding) || has != want || has && got != i {
				t.Errorf("%s: of policy %d %d is known (%v), and decides (%v)", when, i, got, has, decides)
			}
		}
	}
	see := func(i int) { p.Note(policies[i], policies[i].Datasets[0], i) }
	check("at first", -1)
	see(0)
	check("inspected", -1, 0)
	p.Adopt(policies[0])
	check("in force", 0, 0)
	see(1)
	check("another inspected", 0, 0, 1)
	see(2)
	check("that refused, and a third inspected", 0, 0, 2)
	p.Adopt(policies[2])
	check("the third in force", 2, 0, 2)
	see(2)
	p.Adopt(policies[2])
	check("again", 2, 0, 2)
	see(3)
	check("a fourth inspected", 2, 0, 2, 3)
	p.Adopt(policies[3])
	check("the fourth in force", 3, 2, 3)
	see(4)
	p.Adopt(policies[3])
	check("a fifth refused", 3, 2, 3)
}

// TestPinsOfLevels: who is at a level reads tables of her own policy, of which nothing was inspected; what was seen for
// the whole one is held against her queries, and says which of the tables have versions.
func TestPinsOfLevels(t *testing.T) {
	t.Parallel()
	whole, err := policy.Parse([]byte(backendtest.LeveledPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	view := whole.For("dave")
	d, own := whole.Datasets[0], view.Datasets[0]
	if view == whole || own == d {
		t.Fatal("she has the whole policy")
	}
	var p Pins[int]
	p.Note(whole, d, 7)
	p.Adopt(whole)
	if got, known := p.Of(own); got != 7 || !known {
		t.Errorf("of her dataset %d is known (%v)", got, known)
	}
	if got := p.All(view); len(got) != 1 || got[d] != 7 {
		t.Errorf("of her policy %v is known", got)
	}
	next, err := policy.Parse([]byte(backendtest.LeveledPolicy+"# changed\n"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.Note(next, next.Datasets[0], 8)
	p.Adopt(next)
	if got, known := p.Of(own); got != 7 || !known || len(p.Deciding()) != 1 || p.Deciding()[d] != 0 {
		t.Errorf("her query under the policy before is held against %v (%v), others against %v", got, known, p.Deciding())
	}
}
