package semantics

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Planning follows the pieces of what a statement asks and not the cells of a domain (docs/adr/0052).
// date_trunc('month', t) is constant on long runs of cells, and so are CASE WHEN price < 100 …, width_bucket(…) and
// extract(year FROM t): a piece is a run of cells on which every expression over the column alone is constant. Pieces
// are found by asking box.steady of longer and longer runs, so that ten years of seconds take some thousand evaluations
// instead of 315 million.
//
// A run is taken only where steady has said that each expression is constant on it, and neighbouring runs are put
// together where all values are equal: an expression has on all cells of a piece the value that it has on the first, so
// that classes, masks and weights by piece are those by cell, and the first cell is the only one that is looked at
// again. A cell within which some expression varies is a piece of its own, on which that is found.
//
// Where a part's columns have at most maxCells combinations of cells, the SQL tells cells apart, and the plan, its SQL
// and its digest are those of a walk over all cells (runs.go). Where they have more, it tells pieces apart (part.told):
// it groups by the number of a row's piece, which is a function of its cell.

// Bounds of pieces.
const (
	MaxCases  = 1 << 10 // runs of pieces, which the SQL tells apart one by one
	earlyLook = 1 << 11 // pieces, and runs, after which it is asked whether there will be too many
)

// FewRegular is up to how many cells of a domain are sooner walked than cut into pieces. Tests set it, to walk over
// all.
var FewRegular = 16

// Pieces cuts the cells of an ordered column into pieces: the first cell of each, 0 first. Those of forced begin one of
// their own, and so do cells that are not regular. It is not ok where some expression reads the column as it is, or
// where there would be more than most.
func (b *Box) Pieces(column int, exprs []*Expr, forced []int, most int) (starts []int, ok bool) {
	d := b.Table.Columns[column].Domain
	if !d.Ordered() || b.Table.Columns[column].Open != nil || slices.ContainsFunc(exprs, b.readsEach) {
		return nil, false
	}
	forced = append([]int{0, d.Regular}, forced...)
	slices.Sort(forced)
	forced = slices.Compact(forced)
	stretches := b.Stretches(column, exprs, forced, true)
	if stretches == nil {
		for i := 0; i+1 < len(forced) && forced[i] < d.Regular; i++ {
			stretches = append(stretches, Stretch{From: forced[i], To: min(forced[i+1], d.Regular)})
		}
	}
	hopeless := func(n, at int) bool { return n == earlyLook && n*(d.Regular/(at+1)) > 2*most }
	looked := 0 // at runs, of which neighbours may be one piece
	for _, s := range stretches {
		first, rounds := s.To, 1 // what is looked at, of so many alike
		if s.Period > 0 && s.To-s.From > 2*s.Period {
			first, rounds = s.From+s.Period, (s.To-s.From)/s.Period
		}
		length, begun := 1, len(starts)
		var last []policy.Value
		for at := s.From; at < first; at += length {
			steady := false
			length, steady = b.run(column, exprs, at, first, length)
			if looked++; rounds == 1 && d.Size() <= plans.MaxCells && hopeless(looked, at) {
				return nil, false // each cell is as soon looked at
			}
			var values []policy.Value
			if steady {
				values = b.valuesAt(column, exprs, at)
			}
			if at > s.From && b.sameValues(exprs, values, last) {
				continue
			}
			starts, last = append(starts, at), values
			if n := len(starts); n > most || begun+(n-begun-1)*rounds > most || rounds == 1 && hopeless(n, at) {
				return nil, false
			}
		}
		if first < s.To {
			starts = b.comesRound(column, exprs, starts, begun, s, last)
		}
	}
	if len(starts) > most {
		return nil, false
	}
	for cell := d.Regular; cell < d.Size(); cell++ {
		starts = append(starts, cell)
	}
	return starts, true
}

// comesRound adds to the first cells of the pieces of a stretch's first period, which are those from begun on, those of
// the others. The last value there says whether a piece goes on from one period into the next.
func (b *Box) comesRound(column int, exprs []*Expr, starts []int, begun int, s Stretch, last []policy.Value) []int {
	var values []policy.Value
	if _, steady := b.run(column, exprs, s.From+s.Period, s.From+s.Period+1, 1); steady {
		values = b.valuesAt(column, exprs, s.From+s.Period)
	}
	own := slices.Clone(starts[begun:])
	if b.sameValues(exprs, values, last) {
		own = own[1:]
	}
	for later := s.Period; len(own) > 0; later += s.Period {
		for _, cell := range own {
			if cell+later >= s.To {
				return starts
			}
			starts = append(starts, cell+later)
		}
	}
	return starts
}

// FewPieces are pieces where they are so few that they are worth while.
func (b *Box) FewPieces(column int, exprs []*Expr, forced []int) (starts []int, ok bool) {
	regular := b.Table.Columns[column].Domain.Regular
	if regular <= FewRegular {
		return nil, false
	}
	return b.Pieces(column, exprs, forced, min(regular/4, plans.MaxCells))
}

// run is how many cells from one on, to an end, have each expression constant on them. It looks near a guess first,
// since runs are often as long as the one before. Not steady: some expression varies within the first cell, which is
// alone.
func (b *Box) run(column int, exprs []*Expr, from, end, guess int) (length int, steady bool) {
	constant := func(n int) bool {
		b.setRun(column, from, from+n)
		for _, e := range exprs {
			if ok, refusal := b.steady(e); !ok || refusal != nil {
				return false
			}
		}
		return true
	}
	if !constant(1) {
		return 1, false
	}
	good, bad := 1, end-from+1
	if guess = min(guess, end-from); guess > 1 {
		if constant(guess) {
			good = guess
		} else {
			bad = guess
		}
	}
	for step := 1; good+1 < bad; step *= 2 {
		try := min(good+step, bad-1)
		if bad <= end-from {
			try = good + (bad-good)/2
		}
		if constant(try) {
			good = try
		} else {
			bad = try
		}
	}
	return good, true
}

// setRun puts one column into any of neighbouring regular cells.
func (b *Box) setRun(column, from, to int) {
	b.Set(column, from)
	d := b.Table.Columns[column].Domain
	if to-from <= 1 || from >= d.Regular {
		return
	}
	b.High[column] = LastOf(d, to-1)
	b.Inner[column] = InnerOf(d, to-1, b.High[column])
	b.wide[column] = true
}

// valuesAt are the expressions' values at a cell's low end; nil means one has none.
func (b *Box) valuesAt(column int, exprs []*Expr, cell int) []policy.Value {
	b.Set(column, cell)
	values := make([]policy.Value, len(exprs))
	for i, e := range exprs {
		b.Env.Work.Step(e.Steps())
		v, refusal := e.Value(b.Low)
		if refusal != nil {
			return nil
		}
		values[i] = v
	}
	return values
}

func (b *Box) sameValues(exprs []*Expr, values, others []policy.Value) bool {
	if values == nil || others == nil {
		return false
	}
	for i, e := range exprs {
		if !Same(e.Type(), values[i], others[i]) {
			return false
		}
	}
	return true
}

// readsEach tells expressions in which some cell of a long run always differs from the next, as far as steady can tell.
func (b *Box) readsEach(e *Expr) bool {
	switch {
	case e.IsConstant():
		return false
	case e.Form == FormColumn:
		return true
	case e.Monotone, e.within != nil, e.Form == FormIsNull && e.Args[0].Monotone:
		return false
	case e.Form == formExtract:
		granule := b.granule(e)
		return granule == nil || b.readsEach(granule)
	case b.sidesOf(e) != nil:
		return false
	}
	return slices.ContainsFunc(e.Args, b.readsEach)
}

// sidesOf turns equality of a monotone expression with constants into comparisons, each of which changes once: where
// they are all constant, so is it. Nil: e is none.
func (b *Box) sidesOf(e *Expr) []*Expr {
	equal := e.Form == FormCompare && (e.Op == "=" || e.Op == "<>")
	if !equal && e.Form != formIn {
		return nil
	}
	if sides, known := b.sides[e]; known {
		return sides
	}
	b.sides[e] = nil
	of, constants := e.Args[0], e.Args[1:]
	if equal && of.IsConstant() {
		of, constants = e.Args[1], e.Args[:1]
	}
	var sides []*Expr
	for _, c := range constants {
		for _, op := range []string{">=", "<="} {
			s, err := b.Env.Call(op, of.Expr, c.Expr)
			if err != nil || !c.IsConstant() {
				return nil
			}
			side := Node(FormCompare, op, s, e.Pos, of, c)
			if side.order(b.Env, op); !side.Monotone && side.within == nil {
				return nil
			}
			sides = append(sides, side)
		}
	}
	b.sides[e] = sides
	return sides
}
