package planner

import (
	"fmt"
	"slices"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// naive counts the rows of each key by evaluating the SQL's own expressions.
func naive(t *testing.T, c Context, sql string, rows []scalar.Row) map[string][]int64 {
	parsed, err := pg.Parse(sql)
	if err != nil {
		t.Fatal(err)
	}
	sel := parsed.Stmts[0].Stmt.GetSelectStmt()
	b := newBinder(c, &parameters{})
	b.asWritten = true
	from, refusal := b.fromRows(sel, nil)
	if refusal != nil {
		t.Fatal(refusal)
	}
	g, refusal := b.group(sel, from)
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, tg := range g.targets {
		ast.Holds(tg.node, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
				if _, refusal := g.aggregate(f); refusal != nil {
					t.Fatal(refusal)
				}
			}
			return false
		})
	}
	all := func(list []*expr, row scalar.Row) bool {
		for _, e := range list {
			if v, err := e.Eval(row); err != nil {
				t.Fatal(err)
			} else if v != true {
				return false
			}
		}
		return true
	}
	low := func(e *expr, row scalar.Row) policy.Value {
		v, err := e.Eval(row)
		if err != nil {
			t.Fatal(err)
		}
		if e.form == formColumn {
			d := g.q.table.Columns[e.cols[0]].Domain
			cell, _ := d.Cell(v)
			v = d.Low(cell)
		}
		return v
	}
	out, seen := map[string][]int64{}, map[string]bool{}
	for _, row := range rows {
		if !all(g.q.where, row) {
			continue
		}
		for s, grouped := range g.q.groupingSets() {
			values := make([]policy.Value, len(g.q.keys))
			for k, e := range g.q.keys {
				if args, ok := g.q.levels[k]; ok {
					values[k] = levelOf(args, grouped)
				} else if slices.Contains(grouped, k) {
					values[k] = low(e, row)
				}
			}
			key := keyText(values)
			if out[key] == nil {
				out[key] = make([]int64, len(g.q.counters))
			}
			for i, n := range g.q.counters {
				if !all(n.where, row) {
					continue
				}
				if n.values != nil {
					var list []policy.Value
					for _, e := range n.values.of {
						list = append(list, low(e, row))
					}
					name := fmt.Sprint(s, i, key, keyText(list))
					if seen[name] || !n.values.row && list[0] == nil {
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
