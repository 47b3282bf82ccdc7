package rewrite_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestDecimalDomains takes numeric columns of many widths to the ends of what they store: no value fails, and each lies
// in the cell that the policy says.
func TestDecimalDomains(t *testing.T) {
	specs := []spec{
		{kind: "numeric(18,0)", min: "-999999999999999999", max: "999999999999999999", step: "1999999999999999998"},
		{kind: "numeric(18,0)", min: "0", max: "999999999999999999", step: "1000000000000"},
		{kind: "numeric(18,8)", min: "-1", max: "1", step: "0.00000200"},
		{kind: "numeric(18,9)", min: "0", max: "999999999", step: "1000"},
		{kind: "numeric(19,1)", min: "922337203685477580", max: "922337203685477589.9", step: "0.1"},
		{kind: "numeric(38,0)", min: "-99999999999999999999999999999999999999", max: "0", step: "1000000000000000000000000000000000"},
		{kind: "numeric(38,18)", min: "0", max: "1", step: "0.000001"},
		{kind: "numeric(38,20)", min: "0", max: "99999999", step: "100"},
		{kind: "numeric(38,20)", min: "0", max: "1", step: "0.5"},
		{kind: "numeric(4,4)", min: "0", max: "0.9999", step: "0.0001"},
		{kind: "numeric", min: "0.000000001", max: "1", step: "0.000001"},
		{kind: "numeric", min: "-0.000000001", max: "1", step: "0.000001"},
		{kind: "numeric(20,12)", min: "-12345678", max: "-0.5", step: "12.5"},
	}
	for i, s := range specs {
		s.name, s.nulls, s.outside = "v", cell, clamp
		table := table(t, &policy.Dataset{Unit: policy.Unit{Row: true}}, fmt.Sprintf("d%d", i), "", 1, []spec{s})
		c := table.Columns[0]
		rows := decimalRows(c)
		m := &plans.Measure{Table: table, Grain: table.Columns, Counters: []predicate.Pred{nil}}
		q, err := rewrite.Render(m, dialect.DuckDB)
		if err != nil {
			t.Errorf("%s from %s to %s: %v", s.kind, s.min, s.max, err)
			continue
		}
		fill := schemaSQL(table, "u", []spec{s}, rows, true)
		fill = append([]string{"CREATE SCHEMA clinic"}, fill...)
		got := map[string]int64{}
		for _, row := range duckEngine(t, fill)(t, q.SQL(), q.Args()) {
			got[fmt.Sprint(row[0])] = row[1]
		}
		for key, n := range twin(t, m, rows) {
			if got[key] != n[0] {
				t.Errorf("%s from %s to %s: cell %s has %d rows, the twin counts %d", s.kind, s.min, s.max, key, got[key], n[0])
			}
		}
	}
}

// decimalRows are the ends of the column's type and of its domain, their neighbours, and some boundaries of cells.
func decimalRows(c *policy.Column) []stored {
	precision, scale := policy.NumericTypmod(c.Typmod)
	if precision < 0 {
		precision, scale = 38, 9
	}
	most, _ := new(big.Int).SetString(strings.Repeat("9", int(precision)), 10)
	list := []policy.Numeric{{Coefficient: most, Scale: scale}, {Coefficient: new(big.Int).Neg(most), Scale: scale}}
	d := c.Domain
	for _, at := range []policy.Value{d.Min, d.Max, d.Low(0), d.Low(d.Regular / 2), d.Low(d.Regular / 3), d.Low(d.Regular - 1)} {
		for _, by := range []int64{-1, 0, 1} {
			n := at.(policy.Numeric).Rescale(scale)
			n.Coefficient = new(big.Int).Add(n.Coefficient, big.NewInt(by))
			if n.Coefficient.CmpAbs(most) <= 0 {
				list = append(list, n)
			}
		}
	}
	var rows []stored
	for _, n := range list {
		rows = append(rows, stored{unit: int64(1), raw: []policy.Value{n}})
	}
	return rows
}
