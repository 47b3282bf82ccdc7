package linear

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// evaluated is what a factor's conditions and keys come to on combinations of its columns' cells. An expression that
// reads some of the columns is evaluated once on each combination of theirs: of
//
//	SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) END) FROM lineitem JOIN part ON l_partkey = p_partkey
//
// the condition, which looks a part up, is evaluated once a part, not once a part and a discount. The first combination
// on which an expression fails is the same as if all were evaluated.
type evaluated struct {
	v      *Solver
	p      *Factor
	pieces []int // of the combination that is looked at
	set    []int // what the box is set to; −1: nothing yet
	known  map[*semantics.Expr]*valuesOf
}

// valuesOf are the values of an expression by the pieces of the columns that it reads.
type valuesOf struct {
	columns []int // places among the factor's
	done    []bool
	values  []policy.Value
}

func (v *Solver) evaluated(p *Factor) *evaluated {
	e := &evaluated{v: v, p: p, pieces: make([]int, len(p.Columns)), set: make([]int, len(p.Columns)), known: map[*semantics.Expr]*valuesOf{}}
	for i := range e.set {
		e.set[i] = -1
	}
	return e
}

// value is an expression's on the combination that is looked at; evaluate finds it on the box.
func (e *evaluated) value(x *semantics.Expr, evaluate func(*semantics.Expr) (policy.Value, *refuse.Refusal)) (policy.Value, *refuse.Refusal) {
	table := e.tableOf(x)
	if table == nil {
		return e.onBox(x, evaluate)
	}
	at := 0
	for _, i := range table.columns {
		at = at*e.p.Sizes[i] + e.pieces[i]
	}
	if !table.done[at] {
		value, refusal := e.onBox(x, evaluate)
		if refusal != nil {
			return nil, refusal
		}
		table.done[at], table.values[at] = true, value
	}
	return table.values[at], nil
}

// tableOf is where the values of an expression are kept; nil means it reads all columns, or others than the factor's.
func (e *evaluated) tableOf(x *semantics.Expr) *valuesOf {
	table, met := e.known[x]
	if met {
		return table
	}
	if len(x.Cols) < len(e.p.Columns) {
		table = &valuesOf{}
		size := 1
		for _, c := range x.Cols {
			i := slices.Index(e.p.Columns, c)
			if i < 0 {
				table = nil
				break
			}
			table.columns = append(table.columns, i)
			size *= e.p.Sizes[i]
		}
		if table != nil {
			e.v.Env.Work.Take(size, 17)
			table.done, table.values = make([]bool, size), make([]policy.Value, size)
		}
	}
	e.known[x] = table
	return table
}

// onBox sets the box to the combination, as far as it is not set so, and evaluates.
func (e *evaluated) onBox(x *semantics.Expr, evaluate func(*semantics.Expr) (policy.Value, *refuse.Refusal)) (policy.Value, *refuse.Refusal) {
	for i, piece := range e.pieces {
		if e.set[i] != piece {
			e.v.Box.Set(e.p.Columns[i], e.p.firstOf(i, piece))
			e.set[i] = piece
		}
	}
	return evaluate(x)
}

func (e *evaluated) decide(x *semantics.Expr) (bool, *refuse.Refusal) {
	value, refusal := e.value(x, func(x *semantics.Expr) (policy.Value, *refuse.Refusal) {
		holds, refusal := e.v.decide(x)
		return holds, refusal
	})
	return value == true, refusal
}

func (e *evaluated) key(x *semantics.Expr) (policy.Value, *refuse.Refusal) {
	return e.value(x, e.v.key)
}
