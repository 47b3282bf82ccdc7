package bind

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// generate_series as a public list. FROM generate_series(10, 50, 10) v(n) JOIN people p ON p.age >= v.n has five candidates; above the
// counts a series may stand as it is, if it does not make too many rows.

// seriesCandidates are the values of generate_series, or of unnest of an array; nil for other functions.
func (b *Binder) seriesCandidates(f *pg.FuncCall) (*candidates, *refuse.Refusal) {
	if f == nil || f.AggFilter != nil || f.Over != nil || f.AggDistinct || f.FuncVariadic || len(f.AggOrder) > 0 {
		return nil, nil
	}
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, nil
	}
	list := &candidates{alias: name, names: []string{name}, typmod: []int32{-1}}
	switch {
	case name == "unnest" && len(f.Args) == 1 && f.Args[0].GetAArrayExpr() != nil:
		sel := &pg.SelectStmt{}
		for _, n := range f.Args[0].GetAArrayExpr().Elements {
			sel.ValuesLists = append(sel.ValuesLists, pg.MakeListNode([]*pg.Node{n}))
		}
		if len(sel.ValuesLists) == 0 {
			return nil, nil
		}
		values, refusal := b.valuesCandidates(nil, sel)
		if refusal != nil {
			return nil, refusal
		}
		list.types, list.rows = values.types, values.rows
		return list, nil
	case name == "generate_series" && (len(f.Args) == 2 || len(f.Args) == 3):
		return b.generated(list, f)
	}
	return nil, nil
}

// generated fills a list with an arithmetic series; nil: its ends are no numbers.
func (b *Binder) generated(list *candidates, f *pg.FuncCall) (*candidates, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "generate_series"}
	ends, _, refusal := t.All(f.Args)
	if refusal != nil {
		return nil, refusal
	}
	for _, e := range ends {
		if isMoment(e.Type()) || e.Type() == policy.IntervalT {
			return b.times(list, f, ends)
		}
	}
	typ, refusal := commonType([][]*semantics.Expr{ends[:1], ends[1:2], ends[len(ends)-1:]}, 0)
	if refusal != nil || !typ.Integer() && typ != policy.NumericType {
		return nil, refusal
	}
	numbers, scale := make([]*big.Int, len(ends)), int32(0)
	values := make([]policy.Value, len(ends))
	for i, e := range ends {
		typed, refusal := b.asType(e, typ)
		if refusal != nil {
			return nil, refusal
		}
		if values[i], refusal = typed.Value(nil); refusal != nil {
			return nil, refusal
		}
		switch v := values[i].(type) {
		case policy.Numeric:
			scale = max(scale, v.Scale)
		case int64:
		default:
			return list.typed(typ), nil // NULL: no rows
		}
	}
	for i, v := range values {
		if n, ok := v.(policy.Numeric); ok {
			numbers[i] = n.At(scale)
		} else {
			numbers[i] = big.NewInt(v.(int64))
		}
	}
	step := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	if len(ends) == 3 {
		step = numbers[2]
	}
	if step.Sign() == 0 {
		return nil, semantics.Evaluation.At(int(f.Location), "step size cannot equal zero")
	}
	for x := numbers[0]; x.Cmp(numbers[1])*step.Sign() <= 0; x = new(big.Int).Add(x, step) {
		if len(list.rows) > maxListRows {
			return nil, manyCandidates.At(int(f.Location), len(list.rows), maxListRows)
		}
		v := policy.Value(policy.Numeric{Coefficient: x, Scale: scale})
		if typ.Integer() {
			v = x.Int64()
		}
		list.rows = append(list.rows, []*semantics.Expr{semantics.ConstantExpr(v, typ, int(f.Location))})
	}
	return list.typed(typ), nil
}

func (c *candidates) typed(t policy.Type) *candidates {
	c.types = []policy.Type{t}
	return c
}

// maxSeriesRows bounds what one generate_series of an outer query makes: a year of minutes has 527,040. Both engines make
// all rows before any is used, so that LIMIT does not help.
const maxSeriesRows = 1 << 20

// SeriesBounded refuses generate_series with constant ends that makes more rows. What its ends are only when it runs is
// bounded by the sandbox's time and memory.
func (b *Binder) SeriesBounded(f *pg.FuncCall) *refuse.Refusal {
	name, refusal := ast.FunctionName(f)
	if refusal != nil || name != "generate_series" || len(f.Args) < 2 || len(f.Args) > 3 {
		return nil
	}
	quiet := &semantics.Parameters{Values: b.Params.Values, Types: slices.Clone(b.Params.Types), Describing: b.Params.Describing}
	t := &semantics.Translator{Env: b.Env, Params: quiet, Place: "generate_series"}
	ends, _, refusal := t.All(f.Args)
	if refusal != nil {
		return nil
	}
	span, step := new(big.Rat), big.NewRat(1, 1)
	for i, e := range ends {
		for _, of := range ends[:2] {
			typ := of.Type()
			if i == 2 {
				typ = policy.IntervalT
			}
			if isMoment(of.Type()) && e.Type() == policy.Unknown {
				if e, refusal = b.asType(e, typ); refusal != nil {
					return nil
				}
			}
		}
		v, refusal := e.Value(nil)
		if refusal != nil {
			return nil
		}
		x := stepsOf(v)
		switch {
		case x == nil:
			return nil
		case i == 0:
			span.Neg(x)
		case i == 1:
			span.Add(span, x)
		default:
			step = x
		}
	}
	if step.Sign() == 0 || span.Sign()*step.Sign() < 0 {
		return nil // PostgreSQL's error, or no rows
	}
	if span.Quo(span, step).Cmp(big.NewRat(maxSeriesRows-1, 1)) > 0 {
		rows := new(big.Int).Quo(span.Num(), span.Denom())
		return seriesLong.At(int(f.Location), rows.Add(rows, big.NewInt(1)), maxSeriesRows)
	}
	return nil
}

// stepsOf is a number, or a moment or interval in microseconds, a month as its fewest days; nil for anything else.
func stepsOf(v policy.Value) *big.Rat {
	const day = 24 * 3600 * 1_000_000
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case policy.Numeric:
		return new(big.Rat).SetFrac(v.At(max(0, v.Scale)), semantics.Power10(max(0, int(v.Scale)), 1).Num())
	case policy.Date:
		return new(big.Rat).SetInt64(int64(v) * day)
	case policy.Timestamp:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Timestamptz:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Interval:
		days := big.NewInt(int64(v.Months)*28 + int64(v.Days))
		return new(big.Rat).SetInt(days.Add(days.Mul(days, big.NewInt(day)), big.NewInt(v.Micros)))
	}
	return nil
}

func isMoment(t policy.Type) bool {
	return t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ
}
