package policy

import (
	"strconv"
	"strings"
	"testing"
)

// TestLists: a policy that was read again with the keys of its public tables has them as domains, at each level, and
// until then answers nothing over their columns. Whole numbers that are too many for a list are all between their ends.
func TestLists(t *testing.T) {
	changes := []string{"- {name: active, type: boolean}",
		`- {name: region, type: integer, domain: {keys_of: regions.code, where: "code < 900"}}`,
		"- {name: code, type: text}", "- {name: code, type: bigint}", "columns: [sex, age]", "columns: [sex, region]"}
	parse := func(changes ...string) *Policy {
		p, err := Parse([]byte(strings.NewReplacer(changes...).Replace(base(t))), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, alone := parse(changes...), parse(changes[:4]...) // alone has no release over the keys
	lists := p.Lists()
	if len(lists) != 1 || lists[0].Of.Name != "regions" || lists[0].Key.Name != "code" ||
		lists[0].Where != "code < 900" || !lists[0].Column.Private {
		t.Fatalf("lists are %+v", lists)
	}
	many := make([]string, MaxListed+1)
	for i := range many {
		many[i] = strconv.Itoa(2 * i)
	}
	for _, c := range []struct {
		name            string
		of              *Policy
		keys            []string
		regular, size   int
		ordered, single bool
	}{
		{"a few", p, []string{"8532", "-7", "0"}, 3, 4, false, true},
		{"too many for a list", alone, many, 2*MaxListed + 1, 2*MaxListed + 2, true, true},
	} {
		q, err := c.of.WithLists(map[string][]string{lists[0].Name(): c.keys})
		if err != nil {
			t.Fatal(err)
		}
		col := q.Datasets[0].Table("public", "people").Column("region")
		if d := col.Domain; col.Private || d.Regular != c.regular || d.Size() != c.size ||
			d.Ordered() != c.ordered || d.Single() != c.single {
			t.Errorf("%s: %+v", c.name, d)
		}
		if q.SameLists(c.of) || q.Digest != c.of.Digest {
			t.Errorf("%s: the same lists, or another file", c.name)
		}
	}
	for _, wrong := range [][]string{{"12", "12"}, {"99999999999"}} {
		if _, err := p.WithLists(map[string][]string{lists[0].Name(): wrong}); err == nil {
			t.Errorf("keys %q are taken", wrong)
		}
	}
}
