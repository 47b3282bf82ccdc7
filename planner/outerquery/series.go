package outerquery

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Above the counts generate_series stands as it is, if it does not make too many rows.

// maxSeriesRows bounds what one generate_series of an outer query makes: a year of minutes has 527,040. Both engines
// make all rows before any is used, so that LIMIT does not help.
const maxSeriesRows = 1 << 20

// seriesBounded refuses generate_series with constant ends that makes more rows. What its ends are only when it runs is
// bounded by the sandbox's time and memory.
func seriesBounded(b *aggregate.Binder, f *pg.FuncCall) *refuse.Refusal {
	name, _ := ast.FunctionName(f)
	if name != "generate_series" || len(f.Args) < 2 || len(f.Args) > 3 {
		return nil
	}
	quiet := &semantics.Parameters{Values: b.Params.Values, Types: slices.Clone(b.Params.Types), Describing: b.Params.Describing}
	t := &semantics.Translator{Env: b.Env, Params: quiet, Place: "generate_series"}
	ends, _, refusal := t.All(f.Args)
	if refusal != nil {
		return nil
	}
	steps := []*big.Rat{nil, nil, big.NewRat(1, 1)}
	for i, e := range ends {
		for _, of := range ends[:2] {
			typ := of.Type()
			if i == 2 {
				typ = policy.IntervalT
			}
			if semantics.IsMoment(of.Type()) && e.Type() == policy.Unknown {
				typed, err := b.Env.Coerce(e.Expr, typ)
				if err != nil {
					return nil
				}
				e = semantics.Node(semantics.FormOther, "cast", typed, e.Pos)
			}
		}
		v, refusal := e.Value(nil)
		if refusal != nil {
			return nil
		}
		if steps[i] = semantics.StepsOf(v); steps[i] == nil {
			return nil
		}
	}
	span, step := new(big.Rat).Sub(steps[1], steps[0]), steps[2]
	if step.Sign() == 0 || span.Sign()*step.Sign() < 0 {
		return nil // PostgreSQL's error, or no rows
	}
	if span.Quo(span, step).Cmp(big.NewRat(maxSeriesRows-1, 1)) > 0 {
		rows := new(big.Int).Quo(span.Num(), span.Denom())
		return seriesLong.At(int(f.Location), rows.Add(rows, big.NewInt(1)), maxSeriesRows)
	}
	return nil
}
