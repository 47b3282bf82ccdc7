package rewrite_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// The twin counts row by row, from the policy's words and policy.Domain.Cell alone.

// endless is an infinite date or moment, signed.
type endless int

// beyond is a value of either database outside every domain, which Go's values do not reach.
type beyond struct {
	postgres, duck string
	side           int
}

// stored is one row: the unit and the raw value of each column in policy order. Values are policy values, endless,
// beyond, or float64 for numeric NaN and infinity.
type stored struct {
	unit policy.Value
	raw  []policy.Value
}

// normal applies the rules to one raw value; false means the row is left out.
func normal(c *policy.Column, raw policy.Value) (policy.Value, bool) {
	f, isFloat := raw.(float64)
	if raw == nil || isFloat && math.IsNaN(f) {
		return nil, c.Nulls == policy.NullCell
	}
	if b, ok := raw.(bool); ok {
		return b, true
	}
	if text, ok := raw.(string); ok {
		switch {
		case slices.Contains(c.Domain.Values, text):
			return text, true
		case c.Outside == policy.OutsideExclude:
			return nil, false
		case c.Type == policy.UUID:
			return nil, true
		default:
			return policy.OtherValue, true
		}
	}
	if n, isWhole := raw.(int64); isWhole && !c.Domain.Ordered() {
		listed := slices.Contains(c.Domain.Values, strconv.FormatInt(n, 10))
		return map[bool]policy.Value{true: raw}[listed], listed || c.Outside == policy.OutsideOther
	}
	side := 0
	far, isBeyond := raw.(beyond)
	switch e, isEndless := raw.(endless); {
	case isEndless:
		side = int(e)
	case isBeyond:
		side = far.side
	case isFloat && math.IsInf(f, 0):
		side = int(math.Copysign(1, f))
	case scalarOf(raw).Cmp(scalarOf(c.Domain.Min)) < 0:
		side = -1
	case scalarOf(raw).Cmp(scalarOf(c.Domain.Max)) > 0:
		side = 1
	}
	switch {
	case side == 0:
		return raw, true
	case c.Outside == policy.OutsideExclude:
		return nil, false
	case c.Outside == policy.OutsideOther:
		return nil, true
	case side < 0:
		return c.Domain.Min, true
	}
	return c.Domain.Max, true
}

// before orders normalised rows by their contents.
func before(table *policy.Table, a, b []policy.Value) int {
	for i, c := range table.Columns {
		if order := beforeAt(c, a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

// beforeAt orders normalised values of a column: NULL last, enumerated values by cell.
func beforeAt(c *policy.Column, a, b policy.Value) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case c.Domain.Ordered():
		return scalarOf(a).Cmp(scalarOf(b))
	}
	first, _ := c.Domain.Cell(a)
	second, _ := c.Domain.Cell(b)
	return first - second
}

// unitRows are each unit's normalised rows that the rules leave in the table.
func unitRows(table *policy.Table, rows []stored) [][]owned {
	byUnit := map[string][]owned{}
	var order []string
	for i, row := range rows {
		unit := fmt.Sprint(i)
		if table.UnitColumn != "" {
			if row.unit == nil {
				continue
			}
			unit = fmt.Sprint(row.unit)
		}
		values, keep := make([]policy.Value, len(row.raw)), true
		for j, c := range table.Columns {
			v, ok := normal(c, row.raw[j])
			values[j], keep = v, keep && ok
		}
		if !keep {
			continue
		}
		if byUnit[unit] == nil {
			order = append(order, unit)
		}
		byUnit[unit] = append(byUnit[unit], owned{row.unit, values})
	}
	var units [][]owned
	for _, unit := range order {
		units = append(units, byUnit[unit])
	}
	return units
}

// keptRows are the normalised rows that belong to the table: the first of each unit.
func keptRows(table *policy.Table, rows []stored) [][]policy.Value {
	var kept [][]policy.Value
	for _, list := range unitRows(table, rows) {
		if len(list) > int(table.MaxRowsPerUnit) {
			inOrder(table, list)
			list = list[:table.MaxRowsPerUnit]
		}
		for _, o := range list {
			kept = append(kept, o.row)
		}
	}
	return kept
}

func holds(t testing.TB, p predicate.Pred, table *policy.Table, row []policy.Value) bool {
	value := func(c *policy.Column) policy.Value { return row[slices.Index(table.Columns, c)] }
	switch p := p.(type) {
	case nil:
		return true
	case predicate.AllOf:
		return !slices.ContainsFunc(p, func(q predicate.Pred) bool { return !holds(t, q, table, row) })
	case predicate.AnyOf:
		return slices.ContainsFunc(p, func(q predicate.Pred) bool { return holds(t, q, table, row) })
	case predicate.InCells:
		cell := cellOf(t, p.Column, value(p.Column))
		return slices.ContainsFunc(p.Spans, func(s mechanisms.Span) bool { return s.From <= cell && cell < s.To })
	case predicate.Compare:
		v := value(p.Column)
		if v == nil {
			return false
		}
		order := scalarOf(v).Cmp(scalarOf(p.Value))
		return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "=": order == 0, "<>": order != 0}[p.Op]
	case predicate.Past:
		v := value(p.Column)
		if v == nil {
			return false
		}
		past := new(big.Rat).Sub(scalarOf(v), scalarOf(p.Column.Domain.Low(cellOf(t, p.Column, v))))
		order := past.Cmp(new(big.Rat).SetInt64(p.By))
		return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "=": order == 0, "<>": order != 0}[p.Op]
	case predicate.Sum:
		total := new(big.Rat)
		for _, term := range p.Terms {
			v := value(term.Column)
			if v == nil {
				return false
			}
			total.Add(total, new(big.Rat).Mul(scalarOf(v), big.NewRat(term.Times, 1)))
		}
		order := total.Cmp(scalarOf(p.Value))
		return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "=": order == 0, "<>": order != 0}[p.Op]
	case predicate.Between:
		a, b := value(p.Left), value(p.Right)
		if a == nil || b == nil {
			return false
		}
		order := scalarOf(a).Cmp(scalarOf(b))
		return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "=": order == 0, "<>": order != 0}[p.Op]
	}
	return false
}

func cellOf(t testing.TB, c *policy.Column, v policy.Value) int {
	cell, ok := c.Domain.Cell(v)
	if !ok {
		t.Fatalf("column %s: the rules gave %v, which lies in no cell", c.Name, v)
	}
	return cell
}

// twin answers a measure: counts by cells.
func twin(t testing.TB, m *plans.Measure, rows []stored) map[string][]int64 {
	answer := map[string][]int64{}
	if len(m.Grain) == 0 {
		answer[""] = make([]int64, len(m.Counters))
	}
	kept := keptRows
	if slices.ContainsFunc(m.Groups, func(g plans.Grouping) bool { return m.Table.BoundsGroups(g.Classes) }) {
		kept = func(_ *policy.Table, rows []stored) [][]policy.Value { return groupedRows(t, m, rows) }
	}
	for _, row := range kept(m.Table, rows) {
		if !holds(t, m.Where, m.Table, row) {
			continue
		}
		var key []string
		for i, c := range m.Grain {
			key = append(key, fmt.Sprint(m.Piece(i, cellOf(t, c, row[slices.Index(m.Table.Columns, c)]))))
		}
		at := strings.Join(key, ",")
		if answer[at] == nil {
			answer[at] = make([]int64, len(m.Counters))
		}
		for i, p := range m.Counters {
			if !holds(t, p, m.Table, row) {
				continue
			}
			if m.Sums == nil || m.Sums[i] == nil {
				answer[at][i]++
			} else if n, ok := added(m.Sums[i], m.Table, row); ok {
				answer[at][i] += n
			}
		}
	}
	return answer
}
