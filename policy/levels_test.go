package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// leveled is the base policy with levels, and releases of both kinds and a synthetic one.
func leveled(t *testing.T, accountant string) *Policy {
	t.Helper()
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(base), "    budgets:\n", "    levels: {staff: 0.5, guests: 0.001}\n    budgets:\n", 1)
	text = strings.Replace(text, `"*": {epsilon: 1, delta: 1e-7}`, `"*": {epsilon: 1, delta: 1e-7, level: guests}`, 1)
	text = strings.Replace(text, "accountant: pure", "accountant: "+accountant, 1)
	p, err := Parse([]byte(text), "testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPolicyOfALevel: who has no level reads the policy as it is; for the others it is the same but for the prices, and
// is made once.
func TestPolicyOfALevel(t *testing.T) {
	for accountant, want := range map[string]string{"pure": "[ε 0.5 ε 0.25 ε 0.0005]", "zcdp": "[ρ 0.125 ρ 0.03125 ρ 0.000000125]"} {
		p := leveled(t, accountant)
		whole, guest := p.For("alice"), p.For("somebody")
		if whole != p || guest == p || guest != p.For("somebody else") || guest.Digest != p.Digest {
			t.Fatalf("%p for alice, %p for others, of %p", whole, guest, p)
		}
		if whole.Whole() != p || guest.Whole() != p || guest.Datasets[0].Whole() != p.Datasets[0] || p.Datasets[0].Whole() != p.Datasets[0] {
			t.Error("it is not known of what policy this is a view")
		}
		if l := guest.Datasets[0].Level; l == nil || l.Name != "guests" || p.Datasets[0].Level != nil {
			t.Errorf("level %v", l)
		}
		found := 0
		for i, table := range p.Datasets[0].Tables {
			for j, r := range table.Releases {
				if r.Kind != RangeRelease || r.Epsilon.Micro() != 500_000 {
					continue
				}
				found++
				own := guest.Datasets[0].Tables[i].Releases[j]
				if fmt.Sprint(r.Levels) != want || fmt.Sprint(own.Levels) != want || r.Cost != r.Levels[0] || own.Cost != r.Levels[2] || own.Epsilon.Micro() != 500 {
					t.Errorf("%s: %s at %v, %s at %v", accountant, r.Cost, r.Levels, own.Cost, own.Levels)
				}
			}
		}
		if found == 0 {
			t.Error("no release was looked at")
		}
	}
}

// TestWarningOfTheWhole: everybody being at the whole by default is warned of.
func TestWarningOfTheWhole(t *testing.T) {
	p := leveled(t, "pure")
	const warning = "* names no level"
	if w := fmt.Sprint(p.Warnings()); strings.Contains(w, warning) {
		t.Error(w)
	}
	b := p.Datasets[0].Budgets["*"]
	b.Level = ""
	p.Datasets[0].Budgets["*"] = b
	if w := fmt.Sprint(p.Warnings()); !strings.Contains(w, warning) {
		t.Error(w)
	}
}
