package semantics

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Box is a combination of cells, one of each column of a table that an expression reads: the least and the largest
// values in it. An expression that is constant on every box of its columns is a function of cells, so that counts by
// cell suffice and the private database never sees it.
type Box struct {
	Table *policy.Table
	Env   scalar.Env
	Low   scalar.Row
	High  scalar.Row
	Inner scalar.Row // high, but a millionth of the step below an open end: what rounds as the step does
	wide  []bool     // by column: low and high differ
	Below bool       // its conditions are below a join or a sub-query of one: each must be the database's
	other []bool     // by column: the cell holds values that nobody knows

	granules map[*Expr]*Expr   // of EXTRACTs
	sides    map[*Expr][]*Expr // of equalities
}

// NewBox is a box of no cells yet: Set puts each column that is read into one.
func NewBox(t *policy.Table, env scalar.Env) *Box {
	n := len(t.Columns)
	return &Box{Table: t, Env: env, Low: make(scalar.Row, n), High: make(scalar.Row, n), Inner: make(scalar.Row, n), wide: make([]bool, n), other: make([]bool, n), granules: map[*Expr]*Expr{}, sides: map[*Expr][]*Expr{}}
}

// Set puts one column into a cell.
func (b *Box) Set(column, cell int) {
	b.Env.Work.Step(1)
	d := b.Table.Columns[column].Domain
	b.other[column] = b.Table.Columns[column].Open != nil && cell == d.Other
	b.Low[column] = d.Low(cell)
	if d.Single() || cell >= d.Regular {
		b.High[column], b.Inner[column], b.wide[column] = b.Low[column], b.Low[column], false
		return
	}
	b.High[column] = LastOf(d, cell)
	b.Inner[column] = InnerOf(d, cell, b.High[column])
	b.wide[column] = scalar.Compare(d.Type, b.Low[column], b.High[column]) != 0
}

// LastOf is the largest value of a cell. Below an open end it is a value so close to it that no constant of a statement
// lies between, short of more digits than a numeric column of a database is given.
func LastOf(d *policy.Domain, cell int) policy.Value {
	high := d.High(cell)
	if !d.HighOpen(cell) {
		return high
	}
	switch v := high.(type) {
	case float64:
		return math.Nextafter(v, math.Inf(-1))
	case policy.Numeric:
		fine := v.Rescale(max(v.Scale, 0) + 20)
		return policy.Numeric{Coefficient: new(big.Int).Sub(fine.Coefficient, big.NewInt(1)), Scale: fine.Scale}
	}
	return high
}

// InnerOf is a value near the end of a cell whose end is open, where functions that round (numeric division) do not yet
// round up to the next step.
func InnerOf(d *policy.Domain, cell int, last policy.Value) policy.Value {
	if !d.HighOpen(cell) {
		return last
	}
	switch low := d.Low(cell).(type) {
	case float64:
		high, ok := d.High(cell).(float64)
		if inner := high - (high-low)/1e6; ok && inner > low {
			return inner
		}
	case policy.Numeric:
		if high, ok := d.High(cell).(policy.Numeric); ok {
			scale := max(low.Scale, high.Scale, 0) + 6
			width := new(big.Int).Sub(high.At(scale), low.At(scale))
			width.Quo(width, big.NewInt(1_000_000))
			return policy.Numeric{Coefficient: width.Sub(high.At(scale), width), Scale: scale}
		}
	}
	return last
}

// Value evaluates e on the box; steady is false when e is not constant on it, as far as the planner can tell.
func (b *Box) Value(e *Expr) (v policy.Value, steady bool, refusal *refuse.Refusal) {
	b.Env.Work.Step(e.Steps())
	if refusal = b.unknown(e); refusal != nil {
		return nil, false, refusal
	}
	if v, refusal = e.Value(b.Low); refusal != nil || !b.IsWide(e) {
		return v, true, refusal
	}
	steady, refusal = b.steady(e)
	return v, steady, refusal
}

// Steady is the one value that e has on the box; where it varies, it is refused.
func (b *Box) Steady(e *Expr) (policy.Value, *refuse.Refusal) {
	v, steady, refusal := b.Value(e)
	if refusal == nil && !steady {
		refusal = b.Unsteady(e)
	}
	return v, refusal
}

// IsWide reports whether an expression reads a column whose cell has several values.
func (b *Box) IsWide(e *Expr) bool {
	return slices.ContainsFunc(e.Cols, func(c int) bool { return b.wide[c] })
}

// steady reports whether e is constant on the box: it reads only columns of single values, or is monotone and equal at
// both ends, there or within the day that the box lies in, or is made of steady parts, or is a field of a date, or
// several as text, whose unit is steady. What is awaited is so whatever comes: the rest of a statement whose first part
// is paid for is not refused for what was released of it.
func (b *Box) steady(e *Expr) (bool, *refuse.Refusal) {
	if !b.IsWide(e) {
		return true, nil
	}
	b.Env.Work.Step(e.Steps())
	varies := b.waits(e)
	if !varies && (e.Monotone || e.Form == FormIsNull && (e.Args[0].Monotone || e.Args[0].within != nil)) {
		return b.sameAtEnds(e)
	}
	if e.within != nil && !varies {
		if ok, refusal := b.steadyWithin(e); ok || refusal != nil {
			return ok, refusal
		}
	}
	if e.Form == formExtract {
		granule := b.granule(e)
		if granule == nil {
			return false, nil
		}
		return b.steady(granule)
	}
	if len(e.Args) == 0 {
		return false, nil
	}
	if b.betweenSteps(e) {
		return true, nil
	}
	if sides := b.sidesOf(e); sides != nil {
		return b.allSteady(sides)
	}
	return b.allSteady(e.Args)
}

// sameAtEnds reports whether what is monotone has one value at both ends of the box, and at the changes of a clock
// between them.
func (b *Box) sameAtEnds(e *Expr) (bool, *refuse.Refusal) {
	low, refusal := e.Value(b.Low)
	if refusal != nil {
		return false, refusal
	}
	end := b.Inner
	if e.Form == FormCompare && (e.Args[0].Form == FormColumn || e.Args[1].Form == FormColumn) {
		end = b.High
	}
	high, refusal := e.Value(end)
	if refusal != nil {
		return false, refusal
	}
	return Same(e.Type(), low, high) && b.steadyAtTurns(e, low), nil
}

// waits reports whether e reads a column by steps and awaits a number.
func (b *Box) waits(e *Expr) bool {
	return e.Awaited && slices.ContainsFunc(e.Cols, func(c int) bool { return !b.Table.Columns[c].Domain.Single() })
}

// betweenSteps reports whether a comparison of a bare column with what is awaited is decided by steps: by >= or <,
// and there is a step at each number that has as many digits as its placeholder: of a whole number, or of
// what a sub-query itself gives, whose digits are those of its type; what is computed from it may have others for
// another value, and a moment may lie between steps. Large numbers may have lost digits by a division.
func (b *Box) betweenSteps(e *Expr) bool {
	if !e.Awaited || e.Form != FormCompare {
		return false
	}
	column, with, op := e.constantLast()
	if column.Form != FormColumn || !with.IsConstant() || op != ">=" && op != "<" {
		return false
	}
	d := b.Table.Columns[column.Cols[0]].Domain
	v, refusal := with.Value(nil)
	if refusal != nil || v == nil || !d.Ordered() || d.Ladder != nil {
		return false
	}
	scale := int32(0)
	switch n := v.(type) {
	case int64:
	case policy.Numeric:
		if scale = max(n.Scale, 0); with.Form != formConstant {
			return false
		}
	default:
		return false
	}
	x, _ := derived.RatOf(v)
	return stepsAtDigits(d, scale) && x.Abs(x).Cmp(big.NewRat(1_000_000_000, 1)) <= 0
}

// stepsAtDigits reports whether a domain has a step at each number of so many digits after the point.
func stepsAtDigits(d *policy.Domain, scale int32) bool {
	least, isNumber := derived.RatOf(d.Min)
	step := new(big.Rat).SetInt64(d.Step.Whole)
	if d.Type == policy.NumericType {
		step, _ = derived.RatOf(d.Step.Decimal)
	}
	if !isNumber || step == nil || step.Sign() <= 0 {
		return false
	}
	return new(big.Rat).Quo(Power10(int(-scale), 1), step).IsInt() && least.Quo(least, step).IsInt()
}

func (b *Box) allSteady(list []*Expr) (bool, *refuse.Refusal) {
	for _, a := range list {
		if ok, refusal := b.steady(a); !ok || refusal != nil {
			return false, refusal
		}
	}
	return true, nil
}

// granule is the unit within which EXTRACT or to_char cannot change, made once; nil means date_trunc has none.
func (b *Box) granule(e *Expr) *Expr {
	granule, known := b.granules[e]
	if !known {
		at := e.Args[0] // of to_char(at, template)
		if at.Form == formConstant {
			at = e.Args[1] // of extract(field FROM at)
		}
		if unit, err := b.Env.Call("date_trunc", scalar.Constant(e.Want, policy.Text), at.Expr); err == nil {
			granule = Node(FormOther, "date_trunc", unit, e.Pos, ConstantExpr(e.Want, policy.Text, e.Pos), at)
			granule.order(b.Env, "date_trunc")
		}
		b.granules[e] = granule
	}
	return granule
}

// steadyAtTurns looks at both sides of each change of a clock inside the box.
func (b *Box) steadyAtTurns(e *Expr, value policy.Value) bool {
	var turns []policy.Value
	if !e.breaks(b.Low, b.High, &turns) {
		return false
	}
	for _, turn := range turns {
		for _, v := range []policy.Value{before(turn), turn} {
			row := slices.Clone(b.Low)
			row[e.Cols[0]] = v
			if got, err := e.Eval(row); err != nil || !Same(e.Type(), got, value) {
				return false
			}
		}
	}
	return true
}

// Calm reports whether a monotone expression is monotone over all regular cells of its column.
func (b *Box) Calm(e *Expr, column int) bool {
	b.Set(column, b.Table.Columns[column].Domain.Regular-1)
	high := b.High[column]
	b.Set(column, 0)
	b.High[column] = high
	return e.calm(b.Low, b.High)
}

// Grows reports whether an expression never falls where its only column grows (grows), or never grows (not grows), and
// is NULL where that is, and else nowhere or everywhere; known is false of any other. The least value of such an
// expression is that of the column's least or largest value. Of what is answered first it may read a constant that the
// column is compared with: nothing else is known for every answer.
func Grows(t *policy.Table, env scalar.Env, e *Expr) (grows, known bool) {
	if !e.Monotone || len(e.Cols) != 1 || t.Columns[e.Cols[0]].Open != nil || !t.Columns[e.Cols[0]].Domain.Ordered() {
		return false, false
	}
	b := NewBox(t, env)
	bare := e.Form == FormCompare && slices.ContainsFunc(e.Args, func(a *Expr) bool { return a.Form == FormColumn })
	switch {
	case e.Form == FormColumn:
		return true, true
	case (e.Answered || e.Awaited) && !bare, !b.Calm(e, e.Cols[0]):
		return false, false
	}
	return b.growing(e)
}

// growing is Grows of what is monotone on the box.
func (b *Box) growing(e *Expr) (grows, known bool) {
	none, refusal := e.Value(make(scalar.Row, len(b.Low)))
	low, failed := e.Value(b.Low)
	high, also := e.Value(b.High)
	if refusal != nil || failed != nil || also != nil || none != nil || (low == nil) != (high == nil) {
		return false, false
	}
	return low == nil || scalar.Compare(e.Type(), low, high) <= 0, true
}

// Same tells equal values, NULL being equal to NULL.
func Same(t policy.Type, a, b policy.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return scalar.Compare(t, a, b) == 0
}

// Unsteady refuses an expression that varies within the steps of a column.
func (b *Box) Unsteady(e *Expr) *refuse.Refusal {
	for _, c := range e.Cols {
		if column := b.Table.Columns[c]; !column.Domain.Single() {
			if zone := offSteps(e, b.Env.Zone, column.Domain); zone != "" {
				return zoneOffGrid.At(e.Pos, zone, column.Name, StepOf(column))
			}
			refusal := offGrid.At(e.Pos, column.Name, StepOf(column))
			switch {
			case readsDayTime(e):
				refusal.Hint = fmt.Sprintf("Its steps are of %[2]s. Any time can be compared, in a key by CASE WHEN %[1]s::time <= '17:00' THEN 1 ELSE 0 END; date_trunc('hour', %[1]s)::time falls on the steps where those are of an hour or divide one.", column.Name, StepOf(column))
			case BetweenMoments(column) && e.Type() != policy.Bool:
				refusal.Hint = elapsedHint(column, e)
			}
			return refusal
		}
	}
	return offGrid.At(e.Pos, "?", "?")
}
