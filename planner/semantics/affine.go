package semantics

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Affine is an expression read as a constant and columns times constants: closed_at - opened_at - interval '2 hours' is
// 1·closed_at − 1·opened_at − 7,200,000,000. Numbers are themselves, dates are their days, moments and intervals are
// microseconds. The expression is NULL where one of its columns is.
type Affine struct {
	terms []affineTerm // by position, none of 0
	plus  *big.Rat
	days  bool // an interval that may have days, which are of other lengths in a zone whose clock changes
	month bool // an interval with months, which are thirty days only where intervals are compared
}

type affineTerm struct {
	column int
	times  *big.Rat
}

// Dates and moments beyond these are not calculated with: PostgreSQL has an end of time.
const maxDays = 10_000_000

// affineReader reads expressions over a table's columns.
type affineReader struct {
	table *policy.Table
	zone  *time.Location
}

// of reads an expression; nil means it is something else, or its columns have no values in order, or it could be out of
// its type's range for some values within the domains.
func (r affineReader) of(e *Expr) *Affine {
	if e.read {
		return e.affine
	}
	var f *Affine
	switch {
	case e.Form == FormColumn:
		return r.column(e)
	case e.IsConstant():
		return constantAffine(e)
	case len(e.Args) == 1 && e.Op == "-":
		if f = r.of(e.Args[0]); f != nil {
			f = f.scaled(big.NewRat(-1, 1))
		}
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:"):
		f = r.cast(e)
	case len(e.Args) == 2 && (e.Op == "+" || e.Op == "-"):
		f = r.sum(e)
	case len(e.Args) == 2 && e.Op == "*" && isExact(e.Args[0].Type()) && isExact(e.Args[1].Type()):
		a, b := r.of(e.Args[0]), r.of(e.Args[1])
		if a != nil && b != nil && len(a.terms) == 0 {
			a, b = b, a
		}
		if a != nil && b != nil && len(b.terms) == 0 && b.plus.Sign() != 0 {
			f = a.scaled(b.plus)
		}
	}
	if f == nil || len(f.terms) > MaxTerms || len(f.terms) != len(e.Cols) || !r.within(f, e.Type()) {
		return nil
	}
	return f
}

// isExact tells the types whose sums and products are exact.
func isExact(t policy.Type) bool { return t.Integer() || t == policy.NumericType }

func (r affineReader) column(e *Expr) *Affine {
	at := e.Cols[0]
	if at >= len(r.table.Columns) {
		return nil
	}
	c := r.table.Columns[at]
	if c.Open != nil || c.Domain == nil || !c.Domain.Ordered() ||
		!isExact(c.Type) && c.Type != policy.DateType && !isInstant(c.Type) {
		return nil
	}
	return &Affine{terms: []affineTerm{{at, big.NewRat(1, 1)}}, plus: new(big.Rat)}
}

// constantAffine reads a constant; nil means it is NULL, or no number and no time.
func constantAffine(e *Expr) *Affine {
	v, refusal := e.Value(nil)
	if refusal != nil || v == nil || e.Type().Floating() {
		return nil
	}
	f := &Affine{plus: new(big.Rat)}
	switch v := v.(type) {
	case policy.Timestamp:
		f.plus.SetInt64(int64(v))
	case policy.Timestamptz:
		f.plus.SetInt64(int64(v))
	case policy.Interval:
		days := big.NewInt(int64(v.Months)*30 + int64(v.Days))
		f.plus.SetInt(days.Mul(days, big.NewInt(dayMicros)).Add(days, big.NewInt(v.Micros)))
		f.days, f.month = v.Days != 0, v.Months != 0
	default:
		x, ok := derived.RatOf(v)
		if !ok {
			return nil
		}
		f.plus = x
	}
	return f
}

// cast reads casts that keep the value.
func (r affineReader) cast(e *Expr) *Affine {
	f, from, to := r.of(e.Args[0]), e.Args[0].Type(), e.Type()
	switch {
	case f == nil:
		return nil
	case from.Integer() && to.Integer(), isExact(from) && to == policy.NumericType && e.Typmod() < 0:
		return f
	case isInstant(to) && e.Typmod() < 0:
		return r.asInstant(f, from, to)
	}
	return nil
}

// asInstant is a day or a moment as a moment of another type; nil means what lies between them changes with the clock,
// or it is none.
func (r affineReader) asInstant(f *Affine, from, to policy.Type) *Affine {
	if from == policy.DateType {
		f, from = f.scaled(big.NewRat(dayMicros, 1)), policy.TimestampT
	}
	switch {
	case from == to:
		return f
	case !isInstant(from) || !IsFixed(r.zone):
		return nil
	}
	offset := int64(0)
	if r.zone != nil {
		_, seconds := time.Unix(0, 0).In(r.zone).Zone()
		offset = int64(seconds) * 1_000_000
	}
	if to == policy.TimestampTZ {
		offset = -offset
	}
	return f.plusOf(&Affine{plus: new(big.Rat).SetInt64(offset)})
}

// together brings two numbers, days or moments to one unit, in which they compare and what lies between them is found;
// not ok: they are of kinds that have none.
func (r affineReader) together(a, b *Affine, ta, tb policy.Type) (x, y *Affine, t policy.Type, ok bool) {
	if a == nil || b == nil || ta == tb || isExact(ta) && isExact(tb) {
		return a, b, ta, a != nil && b != nil
	}
	if t = policy.TimestampT; ta == policy.TimestampTZ || tb == policy.TimestampTZ {
		t = policy.TimestampTZ
	}
	if !ta.Moment() || !tb.Moment() {
		return nil, nil, t, false
	}
	a, b = r.asInstant(a, ta, t), r.asInstant(b, tb, t)
	return a, b, t, a != nil && b != nil
}

// sum reads a sum or a difference, by the types of its sides.
func (r affineReader) sum(e *Expr) *Affine {
	a, b := r.of(e.Args[0]), r.of(e.Args[1])
	if a == nil || b == nil {
		return nil
	}
	ta, tb, t := e.Args[0].Type(), e.Args[1].Type(), e.Type()
	if ta == policy.DateType && tb == policy.IntervalT {
		a, ta = r.asInstant(a, ta, policy.TimestampT), policy.TimestampT
	}
	if tb == policy.DateType && ta == policy.IntervalT {
		b, tb = r.asInstant(b, tb, policy.TimestampT), policy.TimestampT
	}
	if ta.Moment() && tb.Moment() {
		var ok bool
		if a, b, ta, ok = r.together(a, b, ta, tb); !ok {
			return nil
		}
		tb = ta
	}
	if e.Op == "-" {
		b = b.scaled(big.NewRat(-1, 1))
	}
	out := a.plusOf(b)
	switch {
	case isExact(ta) && isExact(tb), isExact(ta) && tb == policy.DateType, ta == policy.DateType && isExact(tb), ta == policy.DateType && tb == policy.DateType:
	case isInstant(ta) && ta == tb && t == policy.IntervalT:
		out.days = true
	case ta == policy.IntervalT && tb == policy.IntervalT:
	case isInstant(t) && (ta == policy.IntervalT && tb == t || ta == t && tb == policy.IntervalT):
		if out.month || out.days && t == policy.TimestampTZ && !IsFixed(r.zone) {
			return nil
		}
		out.days = false
	default:
		return nil
	}
	return out
}

// within tells that values of the domains leave no part of the expression out of its type's range, where PostgreSQL
// fails.
func (r affineReader) within(f *Affine, t policy.Type) bool {
	var most *big.Int
	switch {
	case t == policy.Int2:
		most = big.NewInt(math.MaxInt16)
	case t == policy.Int4:
		most = big.NewInt(math.MaxInt32)
	case t == policy.DateType:
		most = big.NewInt(maxDays)
	case isInstant(t) || t == policy.IntervalT:
		most = big.NewInt(maxDays * dayMicros)
	default:
		most = big.NewInt(derived.MaxMagnitude)
	}
	size := new(big.Rat).Abs(f.plus)
	for _, term := range f.terms {
		d := r.table.Columns[term.column].Domain
		digits := derived.DomainDigits(d)
		least, ok := derived.UnitsOf(d.Min, digits)
		last, also := derived.UnitsOf(d.Max, digits)
		if !ok || !also {
			return false
		}
		own := new(big.Rat).SetFrac(derived.MaxAbs(least, last), derived.Tens(digits))
		size.Add(size, own.Mul(own, new(big.Rat).Abs(term.times)))
	}
	return size.Cmp(new(big.Rat).SetInt(most)) <= 0
}

func (f *Affine) scaled(by *big.Rat) *Affine {
	out := *f
	out.plus, out.terms = new(big.Rat).Mul(f.plus, by), make([]affineTerm, len(f.terms))
	for i, t := range f.terms {
		out.terms[i] = affineTerm{t.column, new(big.Rat).Mul(t.times, by)}
	}
	return &out
}

func (f *Affine) plusOf(g *Affine) *Affine {
	out := &Affine{plus: new(big.Rat).Add(f.plus, g.plus), days: f.days || g.days, month: f.month || g.month}
	all := append(slices.Clone(f.terms), g.terms...)
	slices.SortStableFunc(all, func(a, b affineTerm) int { return a.column - b.column })
	for _, t := range all {
		if n := len(out.terms); n > 0 && out.terms[n-1].column == t.column {
			out.terms[n-1].times = new(big.Rat).Add(out.terms[n-1].times, t.times)
			continue
		}
		out.terms = append(out.terms, t)
	}
	out.terms = slices.DeleteFunc(out.terms, func(t affineTerm) bool { return t.times.Sign() == 0 })
	return out
}

// whole writes f as times·sum + f.plus, where the sum has whole numbers without a common divisor, the first of which,
// by the columns' names, is above 0: so that a - b, b - a + 3 and 2 * a - 2 * b are of one column. Of columns with
// steps a sum and its negative have other cells, each with its least value and without the one after its largest: there
// times is above 0, or below where that is turned. It is not ok where the numbers are too large.
func (f *Affine) whole(t *policy.Table, turned bool) (sum derived.ComputedColumn, times *big.Rat, ok bool) {
	terms := slices.Clone(f.terms)
	slices.SortFunc(terms, func(a, b affineTerm) int { return derived.CompareNames(t.Columns[a.column], t.Columns[b.column]) })
	denominator, divisor := big.NewInt(1), new(big.Int)
	for _, x := range terms {
		common := new(big.Int).GCD(nil, nil, denominator, x.times.Denom())
		denominator.Mul(denominator, new(big.Int).Quo(x.times.Denom(), common))
	}
	numbers := make([]*big.Int, len(terms))
	for i, x := range terms {
		numbers[i] = new(big.Int).Mul(x.times.Num(), new(big.Int).Quo(denominator, x.times.Denom()))
		divisor.GCD(nil, nil, divisor, new(big.Int).Abs(numbers[i]))
	}
	stepped := slices.ContainsFunc(terms, func(x affineTerm) bool { return !t.Columns[x.column].Domain.Single() })
	if stepped && turned || !stepped && numbers[0].Sign() < 0 {
		divisor.Neg(divisor)
	}
	for i, x := range terms {
		n := new(big.Int).Quo(numbers[i], divisor)
		if n.CmpAbs(big.NewInt(derived.MaxMagnitude)) > 0 {
			return nil, nil, false
		}
		sum = append(sum, derived.ComputedTerm{Times: n.Int64(), Column: t.Columns[x.column]})
	}
	return sum, new(big.Rat).SetFrac(divisor, denominator), true
}

// ofSum evaluates times·x + plus of a computed column x, as a value of a type.
type ofSum struct {
	at          int
	times, plus *big.Rat
	typ         policy.Type
	typmod      int32
	bare        bool  // times is 1, and plus 0
	scale       int32 // of a numeric; −1: as many digits as there are
}

func (k ofSum) Type() policy.Type { return k.typ }
func (k ofSum) Typmod() int32     { return k.typmod }

func (k ofSum) Eval(row scalar.Row) (policy.Value, error) {
	numeric, ok := row[k.at].(policy.Numeric)
	if ok && k.bare && numeric.Scale == k.scale { // most are
		return numeric, nil
	}
	if ok && k.scale >= numeric.Scale && numeric.Scale >= 0 && k.times.IsInt() && k.typ == policy.NumericType {
		n := numeric.At(k.scale)
		n.Mul(n, k.times.Num())
		if k.plus.Sign() != 0 {
			plus, _ := unitsOfRat(k.plus, k.scale)
			n.Add(n, plus)
		}
		return policy.Numeric{Coefficient: n, Scale: k.scale}, nil
	}
	x, ok := derived.RatOf(row[k.at])
	if !ok {
		return nil, nil
	}
	x.Mul(x, k.times).Add(x, k.plus)
	scale := k.scale
	if scale < 0 {
		scale = max(int32(DecimalsOf(x)), numeric.Scale)
	}
	if k.typ == policy.NumericType {
		x.Mul(x, new(big.Rat).SetInt(derived.Tens(scale)))
	}
	n := new(big.Int).Quo(x.Num(), x.Denom()) // whole, as the types of the parts have it
	switch k.typ {
	case policy.NumericType:
		return policy.Numeric{Coefficient: n, Scale: scale}, nil
	case policy.DateType:
		return policy.Date(n.Int64()), nil
	case policy.IntervalT: // as PostgreSQL writes what lies between two moments
		return policy.Interval{Days: int32(n.Int64() / dayMicros), Micros: n.Int64() % dayMicros}, nil
	}
	return n.Int64(), nil
}

func isInstant(t policy.Type) bool { return t == policy.TimestampT || t == policy.TimestampTZ }

// MaxTerms are the terms that a sum may have.
const MaxTerms = 8

// maxTermDecimals is how many digits after the point constants may have.
const maxTermDecimals = 30

// SumOrProduct are the operators by which sums of products are sums of products again.
var SumOrProduct = WordSet("+ - *")

// LinearOf reads an expression as a sum of products; nil means it is none, or too long.
func LinearOf(e *Expr) []Product {
	if t := e.Type(); !Numeric(e) && t != policy.DateType {
		return nil
	}
	if p := ProductOf(e); p != nil {
		return []Product{*p}
	}
	switch {
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:") && KeepsNumbers(e):
		return LinearOf(e.Args[0])
	case len(e.Args) == 1 && e.Op == "-":
		return negated(LinearOf(e.Args[0]))
	case len(e.Args) == 2 && SumOrProduct[e.Op]:
		a, b := LinearOf(e.Args[0]), LinearOf(e.Args[1])
		if a == nil || b == nil {
			return nil
		}
		if e.Op == "*" {
			return multiplied(a, b)
		}
		if e.Op == "-" {
			b = negated(b)
		}
		if a = append(slices.Clone(a), b...); len(a) <= MaxTerms {
			return a
		}
	}
	return nil
}

// KeepsNumbers tells casts that do not round.
func KeepsNumbers(e *Expr) bool {
	of := e.Args[0]
	if e.Typmod() >= 0 { // numeric(7,2) becomes numeric(12,2)
		digits, scale := policy.NumericTypmod(e.Typmod())
		own, also := policy.NumericTypmod(of.Typmod())
		return e.Type() == policy.NumericType && of.Type() == policy.NumericType && of.Typmod() >= 0 && scale >= also && digits-scale >= own-also
	}
	return e.Type() == policy.NumericType || e.Type() == policy.Float8 || e.Type().Integer() && of.Type().Integer()
}

func negated(list []Product) []Product {
	out := make([]Product, len(list))
	for i := range list {
		out[i] = *list[i].scaled(big.NewRat(-1, 1))
	}
	return out
}

func multiplied(a, b []Product) (out []Product) {
	if len(a)*len(b) > MaxTerms {
		return nil
	}
	for _, p := range a {
		for _, q := range b {
			if len(p.Of)+len(q.Of) > maxFactors {
				return nil
			}
			out = append(out, Product{new(big.Rat).Mul(p.Times, q.Times), append(slices.Clone(p.Of), q.Of...)})
		}
	}
	return out
}

// Valuation is the largest e for which x is a whole number of 10^e; not exact: there is none.
func Valuation(x *big.Rat) (e int, exact bool) {
	ten, y := big.NewRat(10, 1), new(big.Rat).Set(x)
	for ; !y.IsInt(); e-- {
		if e < -maxTermDecimals {
			return 0, false
		}
		y.Mul(y, ten)
	}
	rest := new(big.Int)
	for n := y.Num(); e < maxTermDecimals; e++ {
		q, r := new(big.Int).QuoRem(n, big.NewInt(10), rest)
		if r.Sign() != 0 {
			break
		}
		n = q
	}
	return e, true
}
