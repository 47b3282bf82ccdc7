package planner

import (
	"fmt"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// value is an argument on its grid.
type value struct {
	arg         *expr
	factor      *Factor          // of a bare column
	terms       []SumTerm        // of a product, or a sum of products
	over        int64            // what the sum of terms is divided by, see Sum
	bound       mechanisms.Bound // of terms, divided
	times       *big.Rat         // what a product is multiplied by; nil: one
	weights     weights
	grid        grid
	least, most *big.Rat
	digits      int // after the point that a numeric sum of it shows; −1: as many as its grid has
	centred     bool
	use         use
	largest     int64
}

// bytesOfRat is about what a fraction takes.
const bytesOfRat = 128

// isConstant tells an argument that has one value wherever it has any: what is summed is a count, and there is nothing else
// to ask the database for.
func (v *value) isConstant() bool { return v.least.Cmp(v.most) == 0 }

// place finds the grid, and notes what it rounds.
func (v *value) place(t *policy.Table, env scalar.Env, pos int, said *notes) *refuse.Refusal {
	if v.arg.form == formColumn {
		c := t.Columns[v.arg.cols[0]]
		f, ok := factorOf(c, v.centred, v.largest)
		if !ok {
			return domainMissing.At(pos, c.Name)
		}
		v.factor, v.grid = &f, grid{f.Exponent, f.Centre}
		v.least, _ = derived.RatOf(c.Domain.Min)
		v.most, _ = derived.RatOf(c.Domain.Max)
	} else if !(v.centred && v.linear(t) || v.multiply(t) || !v.centred && v.linear(t)) {
		if refusal := v.weigh(newBox(t, env), said); refusal != nil {
			return refusal
		}
	}
	v.tellRounding(said)
	return nil
}

// weigh evaluates an expression on all combinations of its columns' cells, of which one stands for each piece.
func (v *value) weigh(box *box, said *notes) *refuse.Refusal {
	combinations, between := 1, false
	if refusal := closed(box.table, v.arg); refusal != nil {
		return refusal
	}
	pieces := cutFor(box, v.arg)
	if pieces == nil {
		return tooManyCells.At(v.arg.pos, combinationsText(box.table, v.arg.cols), maxCells)
	}
	sizes := pieces.sizes
	for _, size := range sizes {
		combinations *= size
	}
	box.env.Work.Take(combinations, bytesOfRat)
	values, cells := make([]*big.Rat, combinations), make([]int, len(sizes))
	exponent := 0
	for at := range values {
		decode(at, sizes, cells)
		for i, c := range v.arg.cols {
			box.set(c, pieces.firstOf(i, cells[i]))
		}
		between = between || box.isWide(v.arg)
		box.env.Work.Step(max(v.arg.nodes, 1))
		var refusal *refuse.Refusal
		if values[at], refusal = box.middle(v.arg); refusal != nil {
			return refusal
		}
		if values[at] != nil {
			exponent = min(exponent, -decimalsOf(values[at]))
		}
	}
	if between {
		said.add("values inside a step count as the middle of it where an aggregate's argument is an expression")
	}
	v.least, v.most = extremes(values)
	v.weights = weigh(values, v.least, v.most, v.centred, exponent, v.largest)
	v.weights.pieces = pieces
	v.grid = v.weights.grid
	return nil
}

// sum is the counter of k.
func (v *value) sum() *summand {
	s := &summand{canon: fmt.Sprintf("1 %t %d %s", v.centred, v.largest, v.arg.canon), unit: power10(v.grid.exponent, 1)}
	if v.times != nil {
		s.unit.Mul(s.unit, new(big.Rat).Abs(v.times))
	}
	switch {
	case v.factor != nil:
		s.terms = one([]Factor{*v.factor})
		s.bound, _ = boundOfTerms(s.terms)
	case v.terms != nil:
		s.terms, s.over, s.bound = v.terms, v.over, v.bound
	default:
		s.expr, s.weights = v.arg, v.weights
	}
	return s
}

// square is the counter of k², divided by the least power of 100 with which it is at most largest², and the exponent of what
// one of its whole numbers is.
func (v *value) square(largest int64) (s *summand, exponent int) {
	most, over := v.farthest(), int64(1)
	largest = max(largest, 1)
	for exponent = 2 * v.grid.exponent; nearestOf(most*most, over) > largest*largest; exponent += 2 {
		over *= 100
	}
	return v.squareOver(over, largest), exponent
}

// ownSquare is the counter of k² as it is, of a value whose grid is coarse enough for that.
func (v *value) ownSquare() *summand { return v.squareOver(1, v.largest) }

func (v *value) squareOver(over, largest int64) *summand {
	most := v.farthest()
	s := &summand{canon: fmt.Sprintf("2 %t %d %s", v.centred, largest, v.arg.canon), over: over, bound: mechanisms.Bound{High: nearestOf(most*most, over)}}
	s.unit = power10(2*v.grid.exponent, over)
	if over > 1 {
		s.canon += fmt.Sprint(" over ", over)
	}
	switch {
	case v.factor != nil:
		s.terms = one([]Factor{*v.factor, *v.factor})
	case v.terms != nil:
		s.terms = squaredTerms(v.terms)
	default:
		s.expr, s.weights = v.arg, v.weights.squared(over)
	}
	return s
}

// farthest is how far from 0 the whole numbers of a value lie at most.
func (v *value) farthest() int64 {
	switch {
	case v.factor != nil:
		return max(-v.factor.Low, v.factor.High)
	case v.terms != nil:
		return max(-v.bound.Low, v.bound.High)
	}
	return max(-v.weights.bound.Low, v.weights.bound.High)
}

// product2 is the counter of the product of two columns' k.
func product2(y, x *value) *summand {
	if y.arg.canon == x.arg.canon {
		return y.ownSquare()
	}
	first, second := y, x
	if first.factor.Column.Name > second.factor.Column.Name {
		first, second = second, first
	}
	s := &summand{terms: one([]Factor{*first.factor, *second.factor}), canon: "product " + first.arg.canon + " " + second.arg.canon}
	s.bound, _ = boundOfTerms(s.terms)
	return s
}

// tellRounding notes where values are rounded before they are added up, which ± does not cover: sum(price) of a numeric(15,2)
// up to 10^8 is of tenths, as cents are more than mostAdded, variance(price) up to 10^4 likewise, as squares are. Values without
// a finest digit, of floating columns, are rounded always: that is told where their domain's steps are finer.
func (v *value) tellRounding(said *notes) {
	if v.isConstant() || v.use == scored {
		return
	}
	how := " where it is added up: ± does not cover that"
	if v.use == squared {
		how = " where its products are added up: ± does not cover that"
	}
	factors := []Factor(nil)
	switch {
	case v.factor != nil:
		factors = []Factor{*v.factor}
	case (v.terms == nil || v.over > 1) && v.digits >= 0 && v.grid.exponent > -v.digits:
		said.add("an aggregate's argument is rounded to " + literal10(v.grid.exponent) + how)
	}
	for _, t := range v.terms {
		factors = append(factors, t.Factors...)
	}
	for _, f := range factors {
		own, exact := finest(f.Column)
		if !exact {
			step, ok := derived.RatOf(f.Column.Domain.Step.Decimal)
			exact = !ok || power10(f.Exponent, 1).Cmp(step) > 0
		}
		if !exact || f.Exponent <= own {
			continue
		}
		said.add(f.Column.Name + " is rounded to " + literal10(f.Exponent) + how)
	}
}
