package bind

import (
	"cmp"
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// generate_series as a public list. FROM generate_series(10, 50, 10) v(n) JOIN people p ON p.age >= v.n has five
// candidates.

// seriesCandidates are the values of generate_series, or of unnest of an array, under a label or the function's name;
// nil for other functions.
func (b *Binder) seriesCandidates(f *pg.FuncCall, label string) (*Candidates, *refuse.Refusal) {
	if f == nil || !ast.IsPlainCall(f) {
		return nil, nil
	}
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, nil
	}
	list := &Candidates{alias: name, names: []string{cmp.Or(label, name)}, typmod: []int32{-1}}
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

// generated fills a list with an arithmetic series; nil means its ends are no numbers.
func (b *Binder) generated(list *Candidates, f *pg.FuncCall) (*Candidates, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "generate_series"}
	ends, _, refusal := t.All(f.Args)
	if refusal != nil {
		return nil, refusal
	}
	if slices.ContainsFunc(ends, func(e *semantics.Expr) bool { return semantics.IsMoment(e.Type()) || e.Type() == policy.IntervalT }) {
		return b.times(list, f, ends)
	}
	typ, refusal := commonType([][]*semantics.Expr{ends[:1], ends[1:2], ends[len(ends)-1:]}, 0)
	if refusal != nil || !typ.Integer() && typ != policy.NumericType {
		return nil, refusal
	}
	values := make([]policy.Value, len(ends))
	for i, e := range ends {
		b.Params.Note(e, typ)
		typed, refusal := b.asType(e, typ)
		if refusal != nil {
			return nil, refusal
		}
		if values[i], refusal = typed.Value(nil); refusal != nil {
			return nil, refusal
		}
		if values[i] == nil { // no rows
			return list.typed(typ).described(b.Params, f), nil
		}
	}
	numbers, scale := atOneScale(values)
	step := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	if len(ends) == 3 {
		step = numbers[2]
	}
	if step.Sign() == 0 {
		return nil, semantics.Evaluation.At(int(f.Location), "step size cannot equal zero")
	}
	for x := numbers[0]; x.Cmp(numbers[1])*step.Sign() <= 0; x = new(big.Int).Add(x, step) {
		if len(list.rows) > maxListRows {
			return nil, ManyCandidates.At(int(f.Location), len(list.rows), maxListRows)
		}
		v := policy.Value(policy.Numeric{Coefficient: x, Scale: scale})
		if typ.Integer() {
			v = x.Int64()
		}
		list.rows = append(list.rows, []*semantics.Expr{semantics.ConstantExpr(v, typ, int(f.Location))})
	}
	return list.typed(typ), nil
}

// described is a list without rows; where a statement is described, and its parameters are not there yet, it has one.
func (c *Candidates) described(params *semantics.Parameters, f *pg.FuncCall) *Candidates {
	if params.Describing {
		c.rows = [][]*semantics.Expr{{semantics.ConstantExpr(nil, c.types[0], int(f.Location))}}
	}
	return c
}

func (c *Candidates) typed(t policy.Type) *Candidates {
	c.types = []policy.Type{t}
	return c
}

// atOneScale are numbers of one type in units of 10^−scale.
func atOneScale(values []policy.Value) (numbers []*big.Int, scale int32) {
	for _, v := range values {
		if n, ok := v.(policy.Numeric); ok {
			scale = max(scale, n.Scale)
		}
	}
	for _, v := range values {
		if n, ok := v.(policy.Numeric); ok {
			numbers = append(numbers, n.At(scale))
		} else {
			numbers = append(numbers, big.NewInt(v.(int64)))
		}
	}
	return numbers, scale
}
