package predicate

import (
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// randomPred is a predicate on the cells of some columns of four cells each.
func randomPred(r *rand.Rand, columns []*policy.Column, depth int) Pred {
	if depth == 0 || r.IntN(3) == 0 {
		var spans []mechanisms.Span
		for cell := range 4 {
			if r.IntN(2) == 0 {
				spans = Unite(spans, One(cell))
			}
		}
		return Cells(columns[r.IntN(len(columns))], spans)
	}
	parts := []Pred{randomPred(r, columns, depth-1), randomPred(r, columns, depth-1)}
	if r.IntN(2) == 0 {
		return All(parts...)
	}
	return Any(parts...)
}

// TestImplied: what a predicate says of some columns holds wherever it does, reads no other column.
func TestImplied(t *testing.T) {
	r := rand.New(rand.NewPCG(155, 0))
	d, err := policy.Enumerate(policy.Text, []string{"a", "b", "c"}, policy.Rules{Nulls: policy.NullCell, Outside: policy.OutsideExclude})
	if err != nil {
		t.Fatal(err)
	}
	var columns, others []*policy.Column
	for _, name := range []string{"x", "y", "z"} {
		columns = append(columns, &policy.Column{Name: name, Type: policy.Text, Domain: d})
		others = append(others, &policy.Column{Name: "other " + name, Type: policy.Text, Domain: d})
	}
	excluded := 0
	for range 3000 {
		p := randomPred(r, columns, 3)
		some := Implied(p, func(c *policy.Column) bool { return c == columns[0] })
		if read, _ := Columns(some, nil); len(read) > 1 || len(read) == 1 && read[0] != columns[0] {
			t.Fatalf("%v says of x %v", p, some)
		}
		moved := Over(p, func(c *policy.Column) *policy.Column {
			for i := range columns {
				if c == columns[i] {
					return others[i]
				}
			}
			return nil
		})
		for n := range 64 {
			cells := map[*policy.Column]int{columns[0]: n % 4, columns[1]: n / 4 % 4, columns[2]: n / 16}
			cell := func(c *policy.Column) int { return cells[c] }
			holds := Satisfied(p, cell)
			if holds && !Satisfied(some, cell) {
				t.Fatalf("%v holds in %v, and not %v", p, n, some)
			}
			if !Satisfied(some, cell) {
				excluded++
			}
			if Satisfied(moved, func(c *policy.Column) int {
				for i := range others {
					if c == others[i] {
						return cells[columns[i]]
					}
				}
				return -1
			}) != holds {
				t.Fatalf("%v over other columns is %v", p, moved)
			}
		}
	}
	if excluded < 1000 {
		t.Errorf("%d combinations are excluded", excluded)
	}
}

// TestFactored: what is taken out of a disjunction and what is left hold together where it does.
func TestFactored(t *testing.T) {
	r := rand.New(rand.NewPCG(158, 0))
	d, err := policy.Enumerate(policy.Text, []string{"a", "b", "c"}, policy.Rules{Nulls: policy.NullCell, Outside: policy.OutsideExclude})
	if err != nil {
		t.Fatal(err)
	}
	var columns []*policy.Column
	for _, name := range []string{"x", "y", "z"} {
		columns = append(columns, &policy.Column{Name: name, Type: policy.Text, Domain: d})
	}
	split := 0
	for range 3000 {
		common := randomPred(r, columns, 1)
		any, ok := Any(All(common, randomPred(r, columns, 2)), All(common, randomPred(r, columns, 2)), All(common, randomPred(r, columns, 1))).(AnyOf)
		if !ok {
			continue
		}
		shared, rest := Factored(any)
		if len(shared) > 0 {
			split++
		}
		whole := All(append(shared, rest)...)
		for n := range 64 {
			cells := map[*policy.Column]int{columns[0]: n % 4, columns[1]: n / 4 % 4, columns[2]: n / 16}
			cell := func(c *policy.Column) int { return cells[c] }
			if Satisfied(any, cell) != Satisfied(whole, cell) {
				t.Fatalf("%v holds at %v, and %v does not, or the other way round", any, cells, whole)
			}
		}
	}
	if split < 300 {
		t.Errorf("%d disjunctions had a part in common", split)
	}
}
