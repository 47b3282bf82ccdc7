package rewrite_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

const gainsPolicy = `
  - id: shop
    unit: {name: person, key: gains.who}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: gains
        source: clinic.gains
        max_rows_per_unit: 9
        columns:
          - {name: kind, type: text, domain: {values: [a, b, c]}}
          - {name: gain, type: bigint, domain: {min: -1099511627776, max: 1099511627776, step: 1099511627776}}
`

// TestLadderedShares: what both engines add up is what totals.Shares says of each unit, of rows from 1 to 2^40 of both
// signs, so that parts are shared by sizes below 2^33, beyond them and beside them. Seed 233.
func TestLadderedShares(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(233, 0))
	type place struct{ unit, kind int }
	x, values := map[place]int64{}, []string{}
	for range stattest.Length(4000, 40000) {
		p := place{rnd.IntN(900), rnd.IntN(3)}
		gain := 1 + rnd.Int64N(1<<(p.unit%41))
		if p.unit%7 == 0 && p.kind < 2 { // comes to 2^33, and one less
			gain = (1<<33 - int64(p.kind)) / 2
		}
		if rnd.IntN(3) == 0 {
			gain = -gain
		}
		x[p] += gain
		values = append(values, fmt.Sprintf("(%d, '%c', %d)", p.unit, 'a'+p.kind, gain))
	}
	rows := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.gains (who bigint, kind text, gain bigint)",
		"INSERT INTO clinic.gains VALUES " + strings.Join(values, ", ")}
	for _, d := range []dialect.Dialect{dialect.DuckDB, dialect.PostgreSQL} {
		var run engine
		if d == dialect.DuckDB {
			run = duckQueries(duckDB(t, rows))
		} else {
			run = postgresQueries(postgresConn(t, rows))
		}
		head, _, _ := strings.Cut(groupPolicy, "datasets:")
		table := parsedFor(t, head+"datasets:"+gainsPolicy, d).Datasets[0].Tables[0]
		f, _ := semantics.FactorOf(table.Column("gain"), false, 1<<41)
		sum := &plans.Sum{Terms: plans.One([]plans.Factor{f})}
		sum.Bound, _ = plans.BoundOfTerms(sum.Terms)
		kind := derived.UnitKey{Column: table.Column("kind")}
		classed := derived.UnitKey{Column: kind.Column, First: derived.Singles(kind.Column.Domain.Size())}
		for _, keys := range [][]derived.UnitKey{nil, {kind}, {classed}} {
			l := &derived.Laddered{From: table, Keys: keys, Value: sum, Steps: totals.To(1 << 42), Signs: true}
			l.Root = len(keys) > 0 && keys[0].First != nil
			of := derived.NewLaddered(l)
			share := of.Columns[len(keys)+1]
			own := &plans.Sum{Bound: mechanisms.Bound{High: totals.Parts},
				Terms: plans.One([]plans.Factor{{Column: share, High: totals.Parts}})}
			m := &plans.Measure{Table: of, Grain: of.Columns[:len(keys)+1], Counters: []predicate.Pred{nil},
				Sums: []*plans.Sum{own}, Rows: 1, Place: func(cells []int32, _ int) int {
					at := 0
					for i, cell := range cells {
						at = at*of.Columns[i].Domain.Size() + int(cell)
					}
					return at
				}}
			m.Spec = mechanisms.Spec{Counters: 1, Cells: 1, Kind: &mechanisms.Counts{Sums: []mechanisms.Sum{{
				Bound: own.Bound, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteGaussian, Num: 1, Den: 1}}},
				Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}}}
			for _, c := range m.Grain {
				m.Spec.Cells *= c.Domain.Size()
			}
			q, err := rewrite.Render(m, d)
			if err != nil {
				t.Fatal(err)
			}
			got := map[[2]int64]int64{}
			for _, row := range run(t, q.SQL(), q.Args()) {
				cell := [2]int64{0, row[0]}
				if len(keys) > 0 {
					cell = [2]int64{row[0], row[1]}
				}
				got[cell] += row[len(keys)+1]
			}
			want := map[[2]int64]int64{}
			for unit := range 900 {
				vector := []int64{x[place{unit, 0}], x[place{unit, 1}], x[place{unit, 2}]}
				if keys == nil {
					vector = []int64{vector[0] + vector[1] + vector[2]}
				}
				addShares(l, vector, want)
			}
			for cell, n := range want {
				if n != got[cell] {
					t.Errorf("%s, %d keys, root %t: cell %v has %d, not %d", d, len(keys), l.Root, cell, got[cell], n)
				}
			}
		}
	}
}

// addShares adds the shares of a unit with these totals of its groups to cells by group and step.
func addShares(of *derived.Laddered, vector []int64, cells map[[2]int64]int64) {
	all, largest, l := new(big.Int), int64(0), of.Steps
	for _, x := range vector {
		all.Add(all, big.NewInt(max(x, -x)))
		largest = max(largest, x, -x)
	}
	if of.Root {
		all.SetInt64(totals.Norm(largest, all.Int64()))
	}
	for g, x := range vector {
		parts := new(big.Int).Mul(big.NewInt(max(x, -x)), big.NewInt(totals.Parts))
		if parts.Quo(parts, new(big.Int).Add(all, big.NewInt(int64(1-min(1, all.Sign()))))); len(vector) == 1 {
			parts.SetInt64(totals.Parts)
		}
		below, at, above := l.Shares(min(all.Int64(), totals.MaxTop), parts.Int64())
		behind := int64(0)
		if x < 0 {
			behind = int64(len(l))
		}
		if below > 0 {
			cells[[2]int64{int64(g), behind + int64(below) - 1}] += at
		}
		if below < len(l) {
			cells[[2]int64{int64(g), behind + int64(below)}] += above
		}
	}
}
