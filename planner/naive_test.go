package planner

import (
	"fmt"
	"slices"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// naive counts the rows of each key by evaluating the SQL's own expressions.
func naive(t *testing.T, c reuse.Context, sql string, rows []scalar.Row) map[string][]int64 {
	parsed, err := pg.Parse(sql)
	if err != nil {
		t.Fatal(err)
	}
	sel := parsed.Stmts[0].Stmt.GetSelectStmt()
	b := aggregate.NewBinder(c, &semantics.Parameters{})
	b.AsWritten = true
	from, refusal := b.FromRows(sel, nil)
	if refusal != nil {
		t.Fatal(refusal)
	}
	g, refusal := b.Group(sel, from)
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, tg := range g.Targets {
		ast.Holds(tg.Node, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
				if _, refusal := g.Aggregate(f); refusal != nil {
					t.Fatal(refusal)
				}
			}
			return false
		})
	}
	all := func(list []*semantics.Expr, row scalar.Row) bool {
		for _, e := range list {
			if v, err := e.Eval(row); err != nil {
				t.Fatal(err)
			} else if v != true {
				return false
			}
		}
		return true
	}
	low := func(e *semantics.Expr, row scalar.Row) policy.Value {
		v, err := e.Eval(row)
		if err != nil {
			t.Fatal(err)
		}
		if e.Form == semantics.FormColumn {
			d := g.Question.Table.Columns[e.Cols[0]].Domain
			cell, _ := d.Cell(v)
			v = d.Low(cell)
		}
		return v
	}
	out, seen := map[string][]int64{}, map[string]bool{}
	for _, row := range rows {
		if !all(g.Question.Where, row) {
			continue
		}
		for s, grouped := range g.Question.GroupingSets() {
			values := make([]policy.Value, len(g.Question.Keys))
			for k, e := range g.Question.Keys {
				if args, ok := g.Question.Levels[k]; ok {
					values[k] = linear.LevelOf(args, grouped)
				} else if slices.Contains(grouped, k) {
					values[k] = low(e, row)
				}
			}
			key := semantics.KeyText(values)
			if out[key] == nil {
				out[key] = make([]int64, len(g.Question.Counters))
			}
			for i, n := range g.Question.Counters {
				if n.Width != nil || !all(n.Where, row) { // a width is known, and counts nothing
					continue
				}
				if n.Values != nil {
					var list []policy.Value
					for _, e := range n.Values.Of {
						list = append(list, low(e, row))
					}
					name := fmt.Sprint(s, i, key, semantics.KeyText(list))
					if seen[name] || !n.Values.Row && list[0] == nil {
						continue
					}
					seen[name] = true
				}
				out[key][i]++
			}
		}
	}
	return out
}
