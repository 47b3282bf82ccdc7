package sandbox

import (
	"context"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// An outer query that only filters, sorts, cuts and computes goes without an engine: the planner compiled its
// expressions, and here they are evaluated over the rows of its one leaf. SELECT k, 2 * count(*) FROM t GROUP BY k
// HAVING count(*) > 5 ORDER BY 2 LIMIT 3 has a leaf of rows (k, n): those with n > 5 are kept, sorted by 2n, cut to
// three, and 2n is computed for these three.

// Direct evaluates an outer query that needs no engine over the rows of its leaf; a plan with Leaf −1 reads one empty
// row, whatever leaf is. A value that cannot be computed is a *scalar.Error. Select-list expressions are evaluated for
// the rows of the answer alone, after sorting and cutting. When ctx ends the work does, and its cause is the error.
func Direct(ctx context.Context, d *plans.Direct, columns []Column, leaf privacy.Released[Rows]) (privacy.Released[Rows], error) {
	if d.Leaf < 0 {
		leaf = privacy.Published(Rows{Data: [][]policy.Value{nil}})
	}
	var fault error
	answer := privacy.PostProcess(leaf, func(in Rows) Rows {
		rows, err := direct(ctx, d, in.Data)
		fault = err
		return Rows{Columns: columns, Data: rows}
	})
	if fault != nil {
		return privacy.Released[Rows]{}, fault
	}
	return answer, nil
}

func direct(ctx context.Context, d *plans.Direct, rows [][]policy.Value) ([][]policy.Value, error) {
	rows, err := having(ctx, d.Having, rows)
	if err != nil {
		return nil, err
	}
	if len(d.Sort) > 0 && len(rows) > 1 {
		if rows, err = order(ctx, d.Sort, rows); err != nil {
			return nil, err
		}
	}
	rows = cut(rows, d.Offset, d.Limit)
	out := make([][]policy.Value, len(rows))
	cells := make([]policy.Value, len(rows)*len(d.Items))
	for i, row := range rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out[i], cells = cells[:len(d.Items):len(d.Items)], cells[len(d.Items):]
		for j, item := range d.Items {
			if out[i][j], err = item.Eval(row); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// having keeps the rows for which the condition is true, neither false nor NULL.
func having(ctx context.Context, condition scalar.Expr, rows [][]policy.Value) ([][]policy.Value, error) {
	if condition == nil {
		return rows, nil
	}
	kept := make([][]policy.Value, 0, len(rows))
	for _, row := range rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v, err := condition.Eval(row)
		if err != nil {
			return nil, err
		}
		if v == true {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

// order sorts stably, so that rows with equal keys stay in the order of the leaf.
func order(ctx context.Context, keys []plans.SortKey, rows [][]policy.Value) ([][]policy.Value, error) {
	type keyed struct{ row, by []policy.Value }
	sorted := make([]keyed, len(rows))
	for i, row := range rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		by := make([]policy.Value, len(keys))
		for j, key := range keys {
			v, err := key.By.Eval(row)
			if err != nil {
				return nil, err
			}
			by[j] = v
		}
		sorted[i] = keyed{row, by}
	}
	sort.SliceStable(sorted, func(a, b int) bool {
		if ctx.Err() != nil {
			return false // to be over soon
		}
		for j, key := range keys {
			if c := compare(key, sorted[a].by[j], sorted[b].by[j]); c != 0 {
				return c < 0
			}
		}
		return false
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out := make([][]policy.Value, len(rows))
	for i := range sorted {
		out[i] = sorted[i].row
	}
	return out, nil
}

// compare orders two values of one sort key: −1, 0, 1.
func compare(key plans.SortKey, a, b policy.Value) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return side(key.NullsFirst)
	case b == nil:
		return -side(key.NullsFirst)
	}
	c := scalar.Compare(key.By.Type(), a, b)
	if key.Descending {
		return -c
	}
	return c
}

func side(first bool) int {
	if first {
		return -1
	}
	return 1
}

func cut(rows [][]policy.Value, offset, limit int64) [][]policy.Value {
	if offset > 0 {
		rows = rows[min(offset, int64(len(rows))):]
	}
	if limit >= 0 && limit < int64(len(rows)) {
		rows = rows[:limit]
	}
	return rows
}
