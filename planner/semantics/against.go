package semantics

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A column compared with what is looked up by another one. Of
//
//	price > (SELECT 1.2 * avg(o.price) FROM sales o WHERE o.item = s.item)
//
// whose right side is one number for each item once the averages are known (ADR 127), price may have a million cells or wide steps, so that
// the two columns' cells are not looked at together. The condition is item IN (…) AND price > 41.7 OR item IN (…) AND price > 39.2 …: for each value
// of the right side the cells of item that have it, and a comparison with a constant, which the database makes exactly.

// maxAgainst bounds the values of such a right side, and the runs of cells that have them: each is a part of the SQL, and engines take more than a part's time for each
// of many. Of one that is answered first (docs/adr/0117) it bounds the cells, whatever is released of them: what is
// planned before that is known is not refused after it was paid for. Cells that another part of the condition rules out do not count: of p_brand = 'Brand#23' AND
// p_partkey = l_partkey AND quantity < (…) those of the brand do.
const maxAgainst = 1 << 11

// against is such a comparison; not ok: it is another one, or cells can be looked at together.
func (l *Lowerer) against(e *Expr) (t truth, ok bool, refusal *refuse.Refusal) {
	if len(e.Args) != 2 || len(e.Cols) != 2 || len(e.Args[0].Cols) != 1 || len(e.Args[1].Cols) != 1 {
		return truth{}, false, nil
	}
	size := func(i int) int {
		c := l.Table.Columns[e.Args[i].Cols[0]]
		if c.Domain == nil || c.Open != nil || e.Args[i].Form == FormColumn {
			return plans.MaxCells + 1
		}
		return c.Domain.Size()
	}
	at := 1 // the side whose values are listed
	if size(0) < size(1) {
		at = 0
	}
	by, compared := e.Args[at], l.Table.Columns[e.Args[1-at].Cols[0]]
	if size(at) > plans.MaxCells || compared.Domain == nil || compared.Domain.Single() && compared.Domain.Size() <= plans.MaxCells/size(at) && !l.Box.Below {
		return truth{}, false, nil
	}
	values, cells, refusal := l.valuesOf(by)
	if values == nil || refusal != nil {
		return truth{}, false, refusal
	}
	column := l.Table.Columns[by.Cols[0]]
	holds, fails := make([]predicate.Pred, 0, len(values)), make([]predicate.Pred, 0, len(values))
	for i, v := range values {
		args := []*Expr{e.Args[1-at], ConstantExpr(v, by.Type(), e.Pos)}
		if at == 0 {
			slices.Reverse(args)
		}
		s, err := l.Env.Call(e.Op, args[0].Expr, args[1].Expr)
		if err != nil {
			return truth{}, false, ScalarRefusal(err, e.Pos)
		}
		one := Node(FormCompare, e.Op, s, e.Pos, args...)
		one.order(l.Env, e.Op)
		own, ok, refusal := l.Lower(one)
		if !ok || refusal != nil {
			return truth{}, ok, refusal
		}
		in := predicate.Cells(column, cells[i])
		holds, fails = append(holds, predicate.All(in, own.Holds)), append(fails, predicate.All(in, own.fails))
	}
	return truth{predicate.Any(holds...), predicate.Any(fails...)}, true, nil
}

// valuesOf are the different values of an expression over one column but for NULL, and the cells that have each; nil: they are too many, or it varies within a
// cell.
func (l *Lowerer) valuesOf(e *Expr) (values []policy.Value, cells []SpansOf, refusal *refuse.Refusal) {
	spans, narrowed := l.matter[e.Cols[0]]
	if !narrowed {
		spans = predicate.FromTo(0, l.Table.Columns[e.Cols[0]].Domain.Size())
	}
	if e.Answered && plans.CellsIn(spans) > maxAgainst {
		return nil, nil, nil
	}
	at, runs := map[string]int{}, 0
	values = []policy.Value{}
	for _, span := range spans {
		for cell := span.From; cell < span.To; cell++ {
			l.Env.Work.Step(1)
			l.Box.Set(e.Cols[0], cell)
			v, steady, refusal := l.Box.Value(e)
			if refusal != nil || !steady {
				return nil, nil, refusal
			}
			if v == nil {
				continue
			}
			text := KeyText([]policy.Value{v})
			i, known := at[text]
			if !known {
				i = len(values)
				at[text], values, cells = i, append(values, v), append(cells, nil)
			}
			before := len(cells[i])
			if cells[i].Add(cell); len(cells[i]) > before {
				runs++
			}
			if runs > maxAgainst {
				return nil, nil, nil
			}
		}
	}
	return values, cells, nil
}
