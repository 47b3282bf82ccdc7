package linear

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Argument is an argument on its grid.
type Argument struct {
	Arg         *semantics.Expr
	factor      *plans.Factor    // of a bare column
	terms       []plans.SumTerm  // of a product, or a sum of products
	over        int64            // what the sum of terms is divided by, see Sum
	bound       mechanisms.Bound // of terms, divided
	Times       *big.Rat         // what values of the grid are multiplied by; nil means one
	Plus        *big.Rat         // what is added to that; nil means nothing
	weights     Weights
	Grid        semantics.Grid
	Least, Most *big.Rat
	Digits      int // after the point that a numeric sum of it shows; −1: as many as its grid has
	Centred     bool
	Use         semantics.Use
	Largest     int64
	ByCells     bool // the values are those of its columns' cells, whatever the database could compute
	whole       bool // they are whole numbers of the grid, so that nothing is rounded
}

// bytesOfNumber is about what a number takes that has no room in 64 bits.
const bytesOfNumber = 80

// IsConstant tells an argument that has one value wherever it has any: what is summed is a count, and there is nothing
// else to ask the database for.
func (v *Argument) IsConstant() bool { return v.Least.Cmp(v.Most) == 0 }

// Middle is the value that is 0 on the grid.
func (v *Argument) Middle() *big.Rat {
	x := semantics.Power10(v.Grid.Exponent, v.Grid.Centre)
	if v.Times != nil {
		x.Mul(x, v.Times)
	}
	if v.Plus != nil {
		x.Add(x, v.Plus)
	}
	return x
}

// Added is how much is added to a sum for each row; nil means nothing.
func (v *Argument) Added() *big.Rat {
	if v.Plus == nil {
		return nil
	}
	return new(big.Rat).Abs(v.Plus)
}

// Place finds the grid, and notes what it rounds.
func (v *Argument) Place(t *policy.Table, env scalar.Env, pos int, notes *semantics.Notes) *refuse.Refusal {
	switch {
	case !v.ByCells && v.Arg.Form == semantics.FormColumn && !t.Columns[v.Arg.Cols[0]].Listed():
		c := t.Columns[v.Arg.Cols[0]]
		f, ok := semantics.FactorOf(c, v.Centred, v.Largest)
		if !ok {
			return semantics.DomainMissing.At(pos, c.Name)
		}
		v.factor, v.Grid = &f, semantics.Grid{Exponent: f.Exponent, Centre: f.Centre}
		v.Least, _ = derived.RatOf(c.Domain.Min)
		v.Most, _ = derived.RatOf(c.Domain.Max)
	case v.ByCells || !(v.Centred && v.linear(t) || v.multiply(t) || !v.Centred && v.linear(t)):
		if refusal := v.weigh(semantics.NewBox(t, env), notes); refusal != nil {
			return refusal
		}
	}
	v.noteRounding(notes)
	return nil
}

// weigh evaluates an expression on all combinations of its columns' cells, of which there is one for each piece.
func (v *Argument) weigh(box *semantics.Box, notes *semantics.Notes) *refuse.Refusal {
	combinations, between := 1, false
	if refusal := semantics.Closed(box.Table, v.Arg); refusal != nil && !box.Knows(v.Arg) {
		return refusal
	}
	pieces := cutFor(box, v.Arg)
	if pieces == nil {
		return TooManyCells.At(v.Arg.Pos, combinationsText(box.Table, v.Arg.Cols), plans.MaxCells)
	}
	sizes := pieces.Sizes
	for _, size := range sizes {
		combinations *= size
	}
	how := "values inside a step count as the middle of it where an aggregate's argument is an expression"
	if v.ByCells {
		how = "different values are added up as the low ends of their steps"
	}
	box.Env.Work.Take(combinations, bytesOfNumber)
	values, cells := make([]semantics.Number, combinations), make([]int, len(sizes))
	exponent, number := 0, box.Numbers(v.Arg, v.ByCells)
	for at := range values {
		Decode(at, sizes, cells)
		for i, piece := range cells {
			cells[i] = pieces.firstOf(i, piece)
		}
		var varies bool
		var refusal *refuse.Refusal
		if values[at], varies, refusal = number(cells); refusal != nil {
			return refusal
		}
		between = between || varies
		if exponent > -semantics.MaxDecimals {
			exponent = min(exponent, -values[at].Decimals())
		}
	}
	if between {
		notes.Add(how)
	}
	v.Least, v.Most = semantics.ExtremesOf(values)
	v.weights = weigh(values, v.Least, v.Most, v.Centred, exponent, v.Largest)
	v.weights.pieces = pieces
	v.Grid = v.weights.grid
	v.whole = v.ByCells && v.Grid.Exponent <= exponent
	return nil
}

// Sum is the counter of k.
func (v *Argument) Sum() *Summand {
	s := &Summand{canon: fmt.Sprintf("1 %t %d %s", v.Centred, v.Largest, v.Arg.Canon), Unit: semantics.Power10(v.Grid.Exponent, 1)}
	if v.Times != nil {
		s.Unit.Mul(s.Unit, new(big.Rat).Abs(v.Times))
	}
	switch {
	case v.factor != nil:
		s.Terms = plans.One([]plans.Factor{*v.factor})
		s.Bound, _ = plans.BoundOfTerms(s.Terms)
	case v.terms != nil:
		s.Terms, s.Over, s.Bound = v.terms, v.over, v.bound
	default:
		s.Expr, s.Weights = v.Arg, v.weights
	}
	return s
}

// ShareOf is the counter of a column of whole numbers from 0 to most, as they are.
func ShareOf(c *policy.Column, most int64) *Summand {
	f := plans.Factor{Column: c, High: most}
	s := &Summand{canon: "share " + c.Name, Terms: plans.One([]plans.Factor{f}), Unit: big.NewRat(1, 1)}
	s.Bound.High = most
	return s
}

// Square is the counter of k², divided by the least power of 100 with which it is at most largest², and the exponent of
// what one of its whole numbers is.
func (v *Argument) Square(largest int64) (s *Summand, exponent int) {
	most, over := v.farthest(), int64(1)
	largest = max(largest, 1)
	for exponent = 2 * v.Grid.Exponent; semantics.NearestOf(most*most, over) > largest*largest; exponent += 2 {
		over *= 100
	}
	return v.squareOver(over, largest), exponent
}

// OwnSquare is the counter of k² as it is, of a value whose grid is coarse enough for that.
func (v *Argument) OwnSquare() *Summand { return v.squareOver(1, v.Largest) }

func (v *Argument) squareOver(over, largest int64) *Summand {
	most := v.farthest()
	s := &Summand{canon: fmt.Sprintf("2 %t %d %s", v.Centred, largest, v.Arg.Canon), Over: over, Bound: mechanisms.Bound{High: semantics.NearestOf(most*most, over)}}
	s.Unit = semantics.Power10(2*v.Grid.Exponent, over)
	if v.Times != nil {
		s.Unit.Mul(s.Unit, new(big.Rat).Mul(v.Times, v.Times))
	}
	if over > 1 {
		s.canon += fmt.Sprint(" over ", over)
	}
	switch {
	case v.factor != nil:
		s.Terms = plans.One([]plans.Factor{*v.factor, *v.factor})
	case v.terms != nil:
		s.Terms = squaredTerms(v.terms)
	default:
		s.Expr, s.Weights = v.Arg, v.weights.squared(over)
	}
	return s
}

// farthest is how far from 0 the whole numbers of a value lie at most.
func (v *Argument) farthest() int64 {
	switch {
	case v.factor != nil:
		return max(-v.factor.Low, v.factor.High)
	case v.terms != nil:
		return max(-v.bound.Low, v.bound.High)
	}
	return max(-v.weights.Bound.Low, v.weights.Bound.High)
}

// Product2 is the counter of the product of two columns' k.
func Product2(y, x *Argument) *Summand {
	if y.Arg.Canon == x.Arg.Canon {
		return y.OwnSquare()
	}
	first, second := y, x
	if first.factor.Column.Name > second.factor.Column.Name {
		first, second = second, first
	}
	s := &Summand{Terms: plans.One([]plans.Factor{*first.factor, *second.factor}), canon: "product " + first.Arg.Canon + " " + second.Arg.Canon, Unit: semantics.Power10(y.Grid.Exponent+x.Grid.Exponent, 1)}
	s.Bound, _ = plans.BoundOfTerms(s.Terms)
	return s
}

// noteRounding notes where values are rounded before they are added up, which ± does not cover: sum(price) of a
// numeric(15,2) up to 10^8 is of tenths, as cents are more than maxAdded, variance(price) up to 10^4 likewise, as
// squares are. Values without a finest digit, of floating columns, are rounded always: that is noted where their
// domain's steps are finer.
func (v *Argument) noteRounding(notes *semantics.Notes) {
	if v.IsConstant() || v.Use == semantics.Scored {
		return
	}
	how := " where it is added up: ± does not cover that"
	if v.Use == semantics.Squared {
		how = " where its products are added up: ± does not cover that"
	}
	factors := []plans.Factor(nil)
	switch {
	case v.factor != nil:
		factors = []plans.Factor{*v.factor}
	case !v.whole && (v.terms == nil || v.over > 1) && v.Digits >= 0 && v.Grid.Exponent > -v.Digits:
		notes.Add("an aggregate's argument is rounded to " + semantics.Literal10(v.Grid.Exponent) + how)
	}
	for _, t := range v.terms {
		factors = append(factors, t.Factors...)
	}
	for _, f := range factors {
		own, exact := semantics.Finest(f.Column)
		if !exact {
			step, ok := derived.RatOf(f.Column.Domain.Step.Decimal)
			exact = !ok || semantics.Power10(f.Exponent, 1).Cmp(step) > 0
		}
		if !exact || f.Exponent <= own {
			continue
		}
		notes.Add(f.Column.Name + " is rounded to " + semantics.Literal10(f.Exponent) + how)
	}
}

// Counters of one measure are distinguished and ordered by what they count, not by how and where the statement writes
// them: so the same question has the same digest, and a counter written twice is paid for once.

// foldCounters finds the counters that the database is asked for, and for each the conditions left over.
func (v *Solver) foldCounters() (only map[int][]*semantics.Expr, refusal *refuse.Refusal) {
	only = map[int][]*semantics.Expr{}
	index := map[string]int{}
	for _, c := range v.Query.Counters {
		var pred predicate.Pred
		residual, refusal := v.Fold(c.Where, &pred)
		if refusal != nil {
			return nil, refusal
		}
		if _, never := pred.(predicate.Never); never {
			v.Query.Counting = append(v.Query.Counting, -1)
			continue
		}
		slices.SortFunc(residual, func(a, b *semantics.Expr) int { return strings.Compare(a.Canon, b.Canon) })
		key := string(predicate.Encode(nil, pred))
		if c.Sum != nil {
			key += "|sum " + c.Sum.canon
		}
		key += c.Values.name()
		for _, e := range residual {
			key += "|" + e.Canon
		}
		at, seen := index[key]
		if !seen {
			at = len(v.Query.Counts)
			index[key] = at
			v.Query.Counts, v.Query.Sums, v.Query.Values = append(v.Query.Counts, pred), append(v.Query.Sums, c.Sum), append(v.Query.Values, c.Values)
			if len(residual) > 0 {
				only[at] = residual
			}
			v.Query.Worths = append(v.Query.Worths, c.Worth)
		}
		v.Query.Worths[at] = moreWorth(v.Query.Worths[at], c.Worth)
		v.Query.Counting = append(v.Query.Counting, at)
	}
	return only, nil
}

// narrow makes the condition of an only counter a condition on the rows: FILTER (WHERE p) asks what WHERE p asks. With
// keys, it takes what decides nothing about which keys are shown.
func (v *Solver) narrow(residual []*semantics.Expr, only map[int][]*semantics.Expr) ([]*semantics.Expr, map[int][]*semantics.Expr) {
	if len(v.Query.Counts) != 1 {
		return residual, only
	}
	if len(v.Query.Keys) == 0 {
		v.Query.Filter, v.Query.Counts[0] = predicate.All(v.Query.Filter, v.Query.Counts[0]), nil
		return append(residual, only[0]...), nil
	}
	var shown []*policy.Column
	for _, list := range [][]*semantics.Expr{v.Query.Keys, residual, only[0]} {
		for _, e := range list {
			for _, c := range e.Cols {
				shown = predicate.WithColumn(shown, v.Table.Columns[c])
			}
		}
	}
	filter, left := v.Query.Filter, predicate.Pred(nil)
	for _, q := range predicate.Conjuncts(v.Query.Counts[0]) {
		columns, _ := predicate.Columns(q, nil)
		if slices.ContainsFunc(columns, func(c *policy.Column) bool { return slices.Contains(shown, c) }) {
			left = predicate.All(left, q)
		} else {
			filter = predicate.All(filter, q)
		}
	}
	if _, never := filter.(predicate.Never); !never {
		v.Query.Filter, v.Query.Counts[0] = filter, left
	}
	return residual, only
}

// orderCounters puts the counters in the order of their canonical encodings, each once, and drops those that hold in no
// combination of cells.
func (s *Query) orderCounters() {
	keys := make([]string, len(s.Counts))
	order := []int{}
	for c, pred := range s.Counts {
		b, counts := predicate.Encode(nil, pred), true
		for _, p := range s.Factors {
			counts = p.trim(c) && counts
			b = p.encodeMask(b, p.Masks[c])
		}
		if s.Sums[c] != nil {
			b = predicate.EncodeText(append(b, 's'), s.Sums[c].canon)
		}
		if s.Values[c] != nil {
			b = predicate.EncodeText(append(b, 'v'), s.Values[c].name())
			counts = counts && s.Shown(c) > 0
		}
		if keys[c] = string(b); counts {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	place := make([]int, len(s.Counts))
	for i := range place {
		place[i] = -1
	}
	var kept []int
	for _, c := range order {
		if n := len(kept); n == 0 || keys[kept[n-1]] != keys[c] {
			kept = append(kept, c)
		}
		place[c] = len(kept) - 1
	}
	for i, c := range s.Counting {
		if c >= 0 {
			s.Counting[i] = place[c]
		}
	}
	s.Counts, s.Sums, s.Values = pick(s.Counts, kept), pick(s.Sums, kept), pick(s.Values, kept)
	s.Worths = pick(s.Worths, kept)
	for _, p := range s.Factors {
		p.Masks, p.Weights, p.Shows = pick(p.Masks, kept), pick(p.Weights, kept), pick(p.Shows, kept)
	}
}

// trim makes a counter's mask canonical: false where the factor's condition fails, nil where it would say nothing. It
// reports whether the counter counts anywhere.
func (p *Factor) trim(counter int) bool {
	mask := p.Masks[counter]
	if mask == nil {
		return true
	}
	all, some := true, false
	for i := range mask {
		mask[i] = mask[i] && p.Class[i] >= 0
		some = some || mask[i]
		all = all && (mask[i] || p.Class[i] < 0)
	}
	if all {
		p.Masks[counter] = nil
	}
	return some
}

// pick takes the elements at some places.
func pick[T any](list []T, places []int) []T {
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = list[at]
	}
	return out
}

// multiply makes v the value of a product; false where its argument is none.
func (v *Argument) multiply(t *policy.Table) bool {
	p := semantics.ProductOf(v.Arg)
	if p == nil || v.Use == semantics.Rounded {
		return false
	}
	most := v.Largest
	if v.Use == semantics.Alone {
		most = derived.MaxMagnitude
	}
	factors, ok := p.Factors(t, v.Largest, most)
	if !ok {
		return false
	}
	v.terms, v.Times = plans.One(factors), p.Times
	for _, f := range factors {
		v.Grid.Exponent += f.Exponent
	}
	bound, ok := plans.BoundOfTerms(v.terms)
	if !ok || bound == (mechanisms.Bound{}) {
		return false
	}
	for v.bound, v.over = bound, 1; max(-v.bound.Low, v.bound.High) > v.Largest; v.Grid.Exponent++ {
		v.over *= 10
		v.bound = mechanisms.Bound{Low: semantics.NearestOf(bound.Low, v.over), High: semantics.NearestOf(bound.High, v.over)}
	}
	bound = v.bound
	ends := []*big.Rat{semantics.Power10(v.Grid.Exponent, bound.Low), semantics.Power10(v.Grid.Exponent, bound.High)}
	for _, x := range ends {
		x.Mul(x, p.Times)
	}
	v.Least, v.Most = semantics.Extremes(ends)
	return true
}
