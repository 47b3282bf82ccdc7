package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestListsAreTold: a list is what its numbers are, in the digest of what is counted over it and in the name of its
// column; one that names a combination twice, which would double rows, is no table, nor is one of more combinations
// than are sent.
func TestListsAreTold(t *testing.T) {
	t.Parallel()
	p := parsedFor(t, joinPolicy, dialect.DuckDB)
	tables := p.Datasets[0].Tables
	buys := tables[slices.IndexFunc(tables, func(t *policy.Table) bool { return t.Name == "buys" })]
	list := func(combinations []int32, values ...int32) *policy.Table {
		return derived.NewTabulated(&derived.Tabulated{From: buys, Args: []*policy.Column{buys.Columns[0], buys.Columns[1]}, Combinations: combinations,
			Columns: []derived.TabulatedColumn{{Name: "listed", Type: policy.Int4, Values: values}}})
	}
	one, other := list([]int32{0, 5}, 3, 4), list([]int32{0, 5}, 3, 5)
	last := len(one.Columns) - 1
	if string(one.Fingerprint()) == string(other.Fingerprint()) || one.Columns[last].Name == other.Columns[last].Name || string(one.Fingerprint()) == string(list([]int32{0, 6}, 3, 4).Fingerprint()) {
		t.Error("lists of other numbers, or of other combinations, are the same")
	}
	if one.MaxRowsPerUnit != buys.MaxRowsPerUnit {
		t.Errorf("%d rows a unit", one.MaxRowsPerUnit)
	}
	if d := one.Columns[last].Domain; d.Low(0) != int64(3) || d.Regular != 2 || d.Null < 0 {
		t.Errorf("the numbers are from %v on, %d of them", d.Low(0), d.Regular)
	}
	for what, bad := range map[string][]int32{"a combination that is listed twice": {5, 5}, "combinations that do not ascend": {5, 0}, "a combination that no cells have": {0, 3000 * 3000}} {
		if list(bad, 3, 4) != nil {
			t.Error(what)
		}
	}
	if many := make([]int32, derived.MaxTabulated+1); list(many, many...) != nil {
		t.Error("too many combinations")
	}
}

// TestListsAreSentOnce: what one statement looks up in one public row is one list, and the database is sent what it
// uses of it.
func TestListsAreSentOnce(t *testing.T) {
	t.Parallel()
	p := parsedFor(t, joinPolicy, dialect.PostgreSQL)
	for text, unnests := range map[string]int{
		listedStatements[1]: 3, // combinations, the row's number, the fee
		`SELECT o.grade, count(*) FROM buys b JOIN offers o USING (part, maker) GROUP BY 1`:                                       2,
		`SELECT count(*) FROM buys b LEFT JOIN offers o USING (part, maker) WHERE b.amount > 1`:                                   0,
		`SELECT sum(b.price * o.fee), avg(b.price * o.fee), sum(b.price * o.least) FROM buys b JOIN offers o USING (part, maker)`: 4,
	} {
		for _, m := range measures(t, p, dialect.PostgreSQL, []string{text}, privacy.MicroEpsilon(1_000_000)) {
			if n := strings.Count(m.query.SQL(), "unnest"); n != unnests {
				t.Errorf("%s\n%d lists are sent, not %d: %s", text, n, unnests, m.query.SQL())
			}
		}
	}
}
