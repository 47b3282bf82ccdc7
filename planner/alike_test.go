package planner

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// partList is a public table of parts: some keys are missing, values are NULL, equal numbers look otherwise (1.0 and
// 1.00, 0 and −0).
type partList struct {
	reuse.NoCache
	rows [][]policy.Value
}

func (p partList) Rows(*policy.Table) ([][]policy.Value, bool) { return p.rows, true }

func drawnParts(r *rand.Rand) partList {
	var p partList
	for part := int64(-3); part < 320; part++ {
		if r.Intn(9) == 0 {
			continue
		}
		scale := int32(r.Intn(3))
		price := policy.Numeric{Coefficient: new(big.Int).Mul(big.NewInt(int64(r.Intn(4))), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)), Scale: scale}
		row := []policy.Value{part, fmt.Sprint("Brand ", r.Intn(5)), int64(r.Intn(50)), price, []float64{0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(1)}[r.Intn(5)],
			policy.Date(19000 + r.Intn(400)), r.Intn(2) == 0}
		if at := 1 + r.Intn(20); at < len(row) {
			row[at] = nil
		}
		p.rows = append(p.rows, row)
	}
	return p
}

// partsContext is a session over lines, each of a part.
func partsContext(t *testing.T, parts reuse.PublicRows) reuse.Context {
	t.Helper()
	p, err := policy.Parse([]byte(policytest.Over("postgres://dpproxy@127.0.0.1/shop")+`
  - id: shop
    unit: {name: customer, key: lines.customer}
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {alice: {epsilon: 100}}
    tables:
      - name: lines
        expected_rows: 100000
        max_rows_per_unit: 10
        columns:
          - {name: part, type: integer, domain: {min: 1, max: 300, step: 1}, nulls: cell}
          - {name: shelf, type: bigint, domain: {min: 1, max: 300, step: 1}, outside: clamp}
          - {name: quantity, type: integer, domain: {min: 1, max: 50, step: 1}}
      - name: parts
        public: true
        columns: [{name: key, type: integer}, {name: brand, type: text}, {name: size, type: integer}, {name: price, type: numeric}, {name: weight, type: double precision}, {name: made, type: date}, {name: sold, type: boolean}]
`), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC), Holdings: &shelf{}, Public: parts}
	c.Settings = plans.Settings{Epsilon: epsilon(t, "1"), Confidence: c.Dataset.Defaults.Confidence, Zone: time.UTC}
	return c
}

// aboutParts draws a condition over what is looked up, beside conditions on the column that it is looked up by.
func aboutParts(r *rand.Rand, depth int) string {
	if depth > 0 && r.Intn(3) > 0 {
		a, b := aboutParts(r, depth-1), aboutParts(r, depth-1)
		return []string{"(" + a + " AND " + b + ")", "(" + a + " OR " + b + ")", "(NOT " + a + ")", "((" + a + ") IS NOT TRUE)"}[r.Intn(4)]
	}
	p := []string{"p", "s"}[r.Intn(2)]
	return strings.NewReplacer("@", p+".", "#", fmt.Sprint(r.Intn(50)), "~", fmt.Sprint(r.Intn(6))).Replace([]string{
		"@brand = 'Brand ~'", "@brand IN ('Brand ~', 'Brand 2')", "@brand LIKE '%~'", "@size BETWEEN ~ AND #",
		"@size % 7 = ~", "@price::text = '1.00'", "@price = ~", "@price > 1.5", "length(@price::text) = 3",
		"@weight::text = '-0'", "@weight = 0", "@weight > 1", "@made < date '2022-06-01'",
		"extract(dow FROM @made) = ~", "@sold", "@sold IS NULL", "@brand || @size = 'Brand ~7'", "@size + @price > #",
		"@key = l.part", "@key < #", "l.part > #", "l.part + @size > 100", "l.quantity > #", "CASE WHEN @size > 10 THEN @brand = 'Brand ~' ELSE @sold END", "coalesce(@brand, 'none') = 'none'", "100 / (@size - 1) > #"}[r.Intn(26)])
}

// TestTwinAlike plans random conditions on what is looked up by numbers of what is found, and again cell by cell: the
// plans are the same to the digest, and so is what is refused.
func TestTwinAlike(t *testing.T) {
	const seed = 158
	defer func(most int) { semantics.MaxAlike = most }(semantics.MaxAlike)
	most := semantics.MaxAlike
	r := rand.New(rand.NewSource(seed))
	planned, refused, spared := 0, 0, 0
	for n := range 400 {
		c := partsContext(t, drawnParts(r))
		sql := "SELECT count(*) FROM lines l LEFT JOIN parts p ON p.key = l.part LEFT JOIN parts s ON s.key = l.shelf WHERE " + aboutParts(r, r.Intn(4))
		if n%4 == 0 {
			sql = strings.ReplaceAll(strings.ReplaceAll(sql, "LEFT JOIN", "JOIN"), "count(*)", "p.brand, sum(quantity)") + " GROUP BY p.brand"
		}
		build := func(most int) (*plans.Plan, string, int64) {
			semantics.MaxAlike = most
			c.Work = reuse.NewWork(t.Context(), reuse.DefaultLimits)
			p, refusal := Build(parsedText(t, sql)[0], nil, c)
			return p, fmt.Sprint(refusal), c.Work.Taken().Steps
		}
		p, refusal, steps := build(most)
		cells, wanted, each := build(0)
		if refusal != wanted || (p == nil) != (cells == nil) {
			t.Fatalf("%s\nby numbers: %s\nby cells: %s", sql, refusal, wanted)
		}
		if p == nil {
			refused++
			continue
		}
		planned++
		if steps < each {
			spared++
		}
		if got, want := planText(p), planText(cells); got != want {
			t.Fatalf("%s\nby numbers:\n%s\nby cells:\n%s", sql, got, want)
		}
		for i, m := range p.Measures {
			if m.Digest != cells.Measures[i].Digest {
				t.Fatalf("%s: measure %d has another digest by numbers", sql, i)
			}
		}
	}
	t.Logf("seed %d: %d planned, %d with fewer steps, %d refused", seed, planned, spared, refused)
	if planned < 150 || spared < 75 || refused < 5 {
		t.Error("too few of them show anything")
	}
}
