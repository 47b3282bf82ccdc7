package semantics

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Settler settles expressions over some rows. Nil settles nothing.
type Settler struct {
	Rows computing
	Env  scalar.Env
}

// computing are rows that get columns which are sums of theirs.
type computing interface {
	Own() *policy.Table
	// Compute gives the rows a column that is a sum of theirs, once, and returns its position, or false if it would be
	// too large.
	Compute(terms derived.ComputedColumn) (at int, ok bool)
}

func (s *Settler) reader() affineReader { return affineReader{s.Rows.Own(), s.Env.Zone} }

// Together is how many combinations of cells some columns have; beyond what is looked at, where one has no cells.
func Together(t *policy.Table, columns []int) int {
	combinations := 1
	for _, at := range columns {
		c := t.Columns[at]
		if c.Domain == nil || c.Open != nil || combinations > math.MaxInt32/c.Domain.Size() {
			return math.MaxInt32
		}
		combinations *= c.Domain.Size()
	}
	return combinations
}

// Seen tells columns whose cells are looked at together: they are not too many, and each is of one value.
func Seen(t *policy.Table, columns []int) bool {
	return Together(t, columns) <= plans.MaxCells && !slices.ContainsFunc(columns, func(at int) bool { return !t.Columns[at].Domain.Single() })
}

// Settled is an expression, by its computed column where it is the sum of several.
func (s *Settler) Settled(e *Expr) *Expr {
	if s == nil || len(e.Cols) < 2 {
		return e
	}
	f := s.reader().of(e)
	if f == nil || Seen(s.Rows.Own(), e.Cols) {
		return e
	}
	scale := int32(0)
	switch t := e.Type(); {
	case t == policy.NumericType:
		scale = int32(DecimalsIn(e, s.Rows.Own())) // below 0 of columns without a number of digits of their own
	case !t.Integer() && t != policy.DateType && !Elapsed(e): // intervals may be written otherwise than in days and less
		return e
	}
	at, times, ok := s.column(f)
	if !ok {
		return e
	}
	c := s.Rows.Own().Columns[at]
	own := ColumnExpr(at, e.Type(), e.Typmod(), e.Pos)
	bare := f.plus.Sign() == 0 && times.Cmp(big.NewRat(1, 1)) == 0
	if bare && (e.Type().Integer() || e.Type() == policy.NumericType && c.Domain.Type == policy.NumericType && c.Domain.Scale == scale) {
		return own
	}
	of := ofSum{at, times, f.plus, e.Type(), e.Typmod(), bare, scale}
	out := Node(FormOther, "sum "+times.RatString()+" "+f.plus.RatString()+" "+predicate.Text(int64(e.Type()))+" "+predicate.Text(int64(scale)), of, e.Pos, own)
	out.Monotone = true
	return out
}

// Elapsed tells intervals that lie between two moments: days and less than a day, no months.
func Elapsed(e *Expr) bool {
	return e.Type() == policy.IntervalT && e.Op == "-" && !slices.ContainsFunc(e.Args, func(a *Expr) bool { return a.Type() == policy.IntervalT })
}

// elapsedHint says how whole days between two moments are counted over steps: what rounds toward zero divides a step
// wherever they lie below it.
func elapsedHint(c *policy.Column, e *Expr) string {
	return fmt.Sprintf("Below 0 this is rounded toward zero, which divides steps of %[2]s. Round down: floor(extract(epoch FROM %[1]s) / %[3]d).", c.Name, StepOf(c), lengthOf(e)/1_000_000)
}

// lengthOf is the length that an expression cuts a time to, a day where it names none.
func lengthOf(e *Expr) int64 {
	for _, a := range e.Args {
		if a.Form == formConstant {
			if unit, refusal := a.Value(nil); refusal == nil && unit != nil &&
				lengths[strings.ToLower(predicate.Text(unit))] > 0 {
				return lengths[strings.ToLower(predicate.Text(unit))]
			}
		} else if len(a.Args) > 0 {
			return lengthOf(a)
		}
	}
	return dayMicros
}

// column is the computed column of a sum, and what it is multiplied by; false means there is none.
func (s *Settler) column(f *Affine) (at int, times *big.Rat, ok bool) {
	sum, times, ok := f.whole(s.Rows.Own(), false)
	if ok {
		at, ok = s.Rows.Compute(sum)
	}
	return at, times, ok
}

// all settles a list, and reports whether that has changed it.
func (s *Settler) all(list []*Expr) ([]*Expr, bool) {
	if s == nil {
		return list, false
	}
	out, changed := make([]*Expr, len(list)), false
	for i, e := range list {
		out[i] = s.Settled(e)
		changed = changed || out[i] != e
	}
	return out, changed
}

// compared moves a comparison of sums over, into one of a computed column with a constant; nil means it is none.
func (s *Settler) compared(t *Translator, e *Expr) *Expr {
	if len(e.Cols) < 2 {
		return nil
	}
	r := s.reader()
	f, op := r.difference(t.Env, e)
	if f == nil || Seen(s.Rows.Own(), e.Cols) {
		return nil
	}
	// With > and <= the value that is compared with lies on the other side of what is cut than the rest of its cell.
	sum, op, constant, ok := r.comparison(f, op, op == ">" || op == "<=")
	if !ok {
		return nil
	}
	at, ok := s.Rows.Compute(sum)
	if !ok {
		return nil
	}
	c, with := s.Rows.Own().Columns[at], ConstantExpr(constant, s.Rows.Own().Columns[at].Type, e.Pos)
	with.Awaited = e.Awaited
	out, refusal := t.operation(op, e.Pos, ColumnExpr(at, c.Type, -1, e.Pos), with)
	if refusal != nil {
		return nil
	}
	return out
}

// bare is a comparison of a sum of one column and constants as one of the column itself: of visited_at - moment >
// interval '100 days' visited_at > the moment 100 days later. nil means it is none, or one already.
func (l *Lowerer) bare(e *Expr) *Expr {
	if len(e.Cols) != 1 || len(e.Args) != 2 || uncast(e.Args[0]).Form == FormColumn || uncast(e.Args[1]).Form == FormColumn {
		return nil
	}
	f, op := affineReader{l.Table, l.Env.Zone}.difference(l.Env, e)
	if f == nil {
		return nil
	}
	if f.terms[0].times.Sign() < 0 {
		op = predicate.Mirrored[op]
	}
	c := l.Table.Columns[f.terms[0].column]
	op, v, ok := comparedWith(op, new(big.Rat).Quo(new(big.Rat).Neg(f.plus), f.terms[0].times), c.Type == policy.NumericType)
	if !ok {
		return nil
	}
	with := ConstantExpr(valueOf(v, c.Type), c.Type, e.Pos)
	with.Awaited = e.Awaited
	out, refusal := (&Translator{Env: l.Env}).operation(op, e.Pos, ColumnExpr(f.terms[0].column, c.Type, c.Typmod, e.Pos), with)
	if refusal != nil {
		return nil
	}
	return out
}

// valueOf is a number of days, microseconds or units as a value of a type.
func valueOf(v policy.Value, t policy.Type) policy.Value {
	n, _ := v.(int64)
	switch t {
	case policy.DateType:
		return policy.Date(n)
	case policy.TimestampT:
		return policy.Timestamp(n)
	case policy.TimestampTZ:
		return policy.Timestamptz(n)
	}
	return v
}

// difference is the left side of a comparison less its right one, in one unit, and how it compares with 0; nil means it
// is none of several columns, or the sides are of kinds that cannot be moved over.
func (r affineReader) difference(env scalar.Env, e *Expr) (*Affine, string) {
	if len(e.Args) != 2 {
		return nil, ""
	}
	args := slices.Clone(e.Args)
	for i, arg := range args { // a literal is of the other side's type
		if arg.IsConstant() {
			var refusal *refuse.Refusal
			if args[i], refusal = (&Translator{Env: env}).Typed(arg, args[1-i].Type()); refusal != nil {
				return nil, ""
			}
		}
	}
	a, b, _, ok := r.together(r.of(args[0]), r.of(args[1]), args[0].Type(), args[1].Type())
	op := e.Op
	if !ok {
		if a, b, op, ok = r.floored(args[0], args[1], e.Op); !ok {
			a, b, op, ok = r.floored(args[1], args[0], predicate.Mirrored[e.Op])
		}
	}
	if !ok {
		return nil, ""
	}
	f := a.plusOf(b.scaled(big.NewRat(-1, 1)))
	if len(f.terms) != len(e.Cols) || len(f.terms) > MaxTerms {
		return nil, ""
	}
	return f, op
}

// floored reads a comparison of what is rounded down with a whole number, or a day: of the day of a moment, and of a
// quotient of whole numbers from 0 on. The largest whole number that is at most x / by is above n where x is at least
// (n + 1) · by, and n or more where x is at least n · by.
func (r affineReader) floored(e, other *Expr, op string) (x, n *Affine, same string, ok bool) {
	x, by := r.undivided(e, other)
	if n = r.of(other); x == nil || n == nil {
		return nil, nil, "", false
	}
	n = n.scaled(by)
	above := n.plusOf(&Affine{plus: by})
	switch op {
	case ">":
		return x, above, ">=", true
	case "<=":
		return x, above, "<", true
	case ">=", "<":
		return x, n, op, true
	}
	return nil, nil, "", false
}

// undivided returns x and by, of which e is the largest whole number that is at most x / by: the day of a moment beside
// a day, a quotient from 0 on beside a whole number. It returns a nil x for other expressions.
func (r affineReader) undivided(e, other *Expr) (x *Affine, by *big.Rat) {
	switch {
	case len(e.Args) == 1 && e.Type() == policy.DateType && isInstant(e.Args[0].Type()) && other.Type() == policy.DateType:
		if x = r.of(e.Args[0]); x != nil {
			x = r.asInstant(x, e.Args[0].Type(), policy.TimestampT)
		}
		by = big.NewRat(dayMicros, 1)
	case len(e.Args) == 2 && e.Op == "/" && e.Type().Integer() && other.Type().Integer() && e.Args[1].IsConstant():
		x = r.of(e.Args[0])
		if c := r.of(e.Args[1]); c != nil {
			by = c.plus
		}
		if x == nil || by == nil || by.Sign() <= 0 || r.least(x).Sign() < 0 {
			return nil, nil
		}
	}
	return x, by
}

// least is what an expression is at least.
func (r affineReader) least(f *Affine) *big.Rat {
	sum := new(big.Rat).Set(f.plus)
	for _, t := range f.terms {
		d := r.table.Columns[t.column].Domain
		end := d.Min
		if t.times.Sign() < 0 {
			end = d.Max
		}
		v, _ := derived.RatOf(end) // of whole numbers
		sum.Add(sum, v.Mul(v, t.times))
	}
	return sum
}

// comparison writes f op 0 as a comparison of a sum with a constant; turned: see whole.
func (r affineReader) comparison(f *Affine, op string, turned bool) (sum derived.ComputedColumn, with string, constant policy.Value, ok bool) {
	sum, times, ok := f.whole(r.table, turned)
	if !ok {
		return nil, "", nil, false
	}
	if times.Sign() < 0 {
		op = predicate.Mirrored[op]
	}
	op, constant, ok = comparedWith(op, new(big.Rat).Quo(new(big.Rat).Neg(f.plus), times), sum.Decimal())
	return sum, op, constant, ok
}

// comparedWith makes the number that a column is compared with one of the column's type: between two whole numbers the
// upper takes its place. It is not ok where that would say something else.
func comparedWith(op string, with *big.Rat, decimal bool) (string, policy.Value, bool) {
	if decimal {
		e, exact := Valuation(with)
		if !exact {
			return "", nil, false
		}
		scale := int32(max(-e, 0))
		n, _ := unitsOfRat(with, scale)
		return op, policy.Numeric{Coefficient: n, Scale: scale}, true
	}
	n, whole := unitsOfRat(with, 0)
	if !n.IsInt64() {
		return "", nil, false
	}
	if !whole {
		n.Add(n, big.NewInt(1))
		switch op {
		case "<", "<=":
			op = "<"
		case ">", ">=":
			op = ">="
		default:
			return "", nil, false
		}
	}
	return op, n.Int64(), true
}

// unitsOfRat is x in units of 10^−scale, rounded down.
func unitsOfRat(x *big.Rat, scale int32) (n *big.Int, whole bool) {
	y := new(big.Rat).Mul(x, new(big.Rat).SetInt(derived.Tens(scale)))
	return new(big.Int).Div(y.Num(), y.Denom()), y.IsInt()
}

// keeps tells that a cast of a sum is a sum still.
func (s *Settler) keeps(arg *Expr, t policy.Type, typmod int32) bool {
	if s == nil || len(arg.Cols) < 2 {
		return true
	}
	c, err := s.Env.Cast(arg.Expr, t, typmod)
	return err != nil || s.reader().cast(Node(FormOther, "cast:", c, arg.Pos, arg)) != nil
}
