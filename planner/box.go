package planner

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// box is a combination of cells, one of each column of a table that an expression reads: the least and the largest
// values in it. An expression that is constant on every box of its columns is a function of cells, so that counts by
// cell suffice and the private database never sees it.
type box struct {
	table *policy.Table
	env   scalar.Env
	low   scalar.Row
	high  scalar.Row
	inner scalar.Row // high, but a millionth of the step below an open end: what rounds as the step does
	wide  []bool     // by column: low and high differ
	below bool       // its conditions stand below a join or a sub-query of one: each must be the database's
	other []bool     // by column: the cell stands for values that nobody knows

	granules map[*expr]*expr   // of EXTRACTs
	sides    map[*expr][]*expr // of equalities
}

func newBox(t *policy.Table, env scalar.Env) *box {
	n := len(t.Columns)
	return &box{table: t, env: env, low: make(scalar.Row, n), high: make(scalar.Row, n), inner: make(scalar.Row, n), wide: make([]bool, n), other: make([]bool, n), granules: map[*expr]*expr{}, sides: map[*expr][]*expr{}}
}

// set puts one column into a cell.
func (b *box) set(column, cell int) {
	b.env.Work.Step(1)
	d := b.table.Columns[column].Domain
	b.other[column] = b.table.Columns[column].Open != nil && cell == d.Other
	b.low[column] = d.Low(cell)
	if d.Single() || cell >= d.Regular {
		b.high[column], b.inner[column], b.wide[column] = b.low[column], b.low[column], false
		return
	}
	b.high[column] = lastOf(d, cell)
	b.inner[column] = innerOf(d, cell, b.high[column])
	b.wide[column] = scalar.Compare(d.Type, b.low[column], b.high[column]) != 0
}

// lastOf is the largest value of a cell. Below an open end it is a value so close to it that no constant of a statement
// lies between, short of more digits than a numeric column of a database is given.
func lastOf(d *policy.Domain, cell int) policy.Value {
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

// innerOf is a value near the end of a cell whose end is open, where functions that round (numeric division) do not yet
// round up to the next step.
func innerOf(d *policy.Domain, cell int, last policy.Value) policy.Value {
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

// value evaluates e on the box; steady is false when e is not constant on it, as far as the planner can tell.
func (b *box) value(e *expr) (v policy.Value, steady bool, refusal *refuse.Refusal) {
	b.env.Work.Step(max(e.nodes, 1))
	if refusal = b.unknown(e); refusal != nil {
		return nil, false, refusal
	}
	if v, refusal = e.value(b.low); refusal != nil || !b.isWide(e) {
		return v, true, refusal
	}
	steady, refusal = b.steady(e)
	return v, steady, refusal
}

func (b *box) isWide(e *expr) bool {
	for _, c := range e.cols {
		if b.wide[c] {
			return true
		}
	}
	return false
}

// steady tells whether e is constant on the box: it reads only columns of single values, or is monotone and equal at both
// ends, or is made of steady parts, or is a field of a date, or several as text, whose unit is steady.
func (b *box) steady(e *expr) (bool, *refuse.Refusal) {
	if !b.isWide(e) {
		return true, nil
	}
	b.env.Work.Step(max(e.nodes, 1))
	if e.monotone || e.form == formIsNull && e.args[0].monotone {
		low, refusal := e.value(b.low)
		if refusal != nil {
			return false, refusal
		}
		end := b.inner
		if e.form == formCompare && (e.args[0].form == formColumn || e.args[1].form == formColumn) {
			end = b.high
		}
		high, refusal := e.value(end)
		if refusal != nil {
			return false, refusal
		}
		return same(e.Type(), low, high) && b.steadyAtTurns(e, low), nil
	}
	if e.form == formExtract {
		granule := b.granule(e)
		if granule == nil {
			return false, nil
		}
		return b.steady(granule)
	}
	if e.form == formColumn || len(e.args) == 0 {
		return false, nil
	}
	if sides := b.sidesOf(e); sides != nil {
		return b.allSteady(sides)
	}
	return b.allSteady(e.args)
}

func (b *box) allSteady(list []*expr) (bool, *refuse.Refusal) {
	for _, a := range list {
		if ok, refusal := b.steady(a); !ok || refusal != nil {
			return false, refusal
		}
	}
	return true, nil
}

// granule is the unit within which EXTRACT or to_char cannot change, made once; nil: date_trunc has none.
func (b *box) granule(e *expr) *expr {
	granule, known := b.granules[e]
	if !known {
		at := e.args[0] // of to_char(at, template)
		if at.form == formConstant {
			at = e.args[1] // of extract(field FROM at)
		}
		if unit, err := b.env.Call("date_trunc", scalar.Constant(e.want, policy.Text), at.Expr); err == nil {
			granule = node(formOther, "date_trunc", unit, e.pos, constantExpr(e.want, policy.Text, e.pos), at)
			granule.order(b.env, "date_trunc")
		}
		b.granules[e] = granule
	}
	return granule
}

// steadyAtTurns looks at both sides of each change of a clock inside the box.
func (b *box) steadyAtTurns(e *expr, value policy.Value) bool {
	var turns []policy.Value
	if !e.breaks(b.low, b.high, &turns) {
		return false
	}
	for _, turn := range turns {
		for _, v := range []policy.Value{before(turn), turn} {
			row := slices.Clone(b.low)
			row[e.cols[0]] = v
			if got, err := e.Eval(row); err != nil || !same(e.Type(), got, value) {
				return false
			}
		}
	}
	return true
}

// calm tells whether a monotone expression is monotone over all regular cells of its column.
func (b *box) calm(e *expr, column int) bool {
	b.set(column, b.table.Columns[column].Domain.Regular-1)
	high := b.high[column]
	b.set(column, 0)
	b.high[column] = high
	return e.calm(b.low, b.high)
}

// same tells equal values, NULL being equal to NULL.
func same(t policy.Type, a, b policy.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return scalar.Compare(t, a, b) == 0
}

// unsteady refuses an expression that varies within the steps of a column.
func (b *box) unsteady(e *expr) *refuse.Refusal {
	for _, c := range e.cols {
		if column := b.table.Columns[c]; !column.Domain.Single() {
			return offGrid.At(e.pos, column.Name, stepOf(column))
		}
	}
	return offGrid.At(e.pos, "?", "?")
}

// stepOf writes the step of a column for people.
func stepOf(c *policy.Column) string {
	d := c.Domain
	if step, ok := d.Min.(int64); ok && len(derived.OperandsOf(c)) > 0 && isInstant(derived.OperandsOf(c)[0].Type) { // of microseconds
		return stepText(&policy.Domain{Type: policy.TimestampT, Min: policy.Timestamp(step), Max: policy.Timestamp(d.Max.(int64)), Step: d.Step})
	}
	return stepText(d)
}

// stepText writes the step of an ordered domain for people.
func stepText(d *policy.Domain) string {
	switch d.Min.(type) {
	case policy.Date:
		return plural(d.Step.Whole, "day")
	case policy.Timestamp, policy.Timestamptz:
		for _, u := range []struct {
			name   string
			micros int64
		}{{"day", 86_400_000_000}, {"hour", 3_600_000_000}, {"minute", 60_000_000}, {"second", 1_000_000}, {"microsecond", 1}} {
			if d.Step.Whole%u.micros == 0 {
				return plural(d.Step.Whole/u.micros, u.name)
			}
		}
	case int64:
		return predicate.Text(d.Step.Whole)
	}
	return predicate.Text(predicate.CanonicalValue(d.Step.Decimal))
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return predicate.Text(n) + " " + unit + "s"
}

// spansOf collects cells that come in order into spans.
type spansOf []mechanisms.Span

func (s *spansOf) add(cell int) { s.addRange(cell, cell+1) }

func (s *spansOf) addRange(from, to int) {
	if from >= to {
		return
	}
	if n := len(*s); n > 0 && (*s)[n-1].To == from {
		(*s)[n-1].To = to
		return
	}
	*s = append(*s, mechanisms.Span{From: from, To: to})
}

// notes are what the NOTICE will say, each once.
type notes []string

func (n *notes) add(text string) {
	for _, have := range *n {
		if strings.EqualFold(have, text) {
			return
		}
	}
	*n = append(*n, text)
}

func (n *notes) addAll(texts []string) {
	for _, text := range texts {
		n.add(text)
	}
}

// unknown refuses an expression on a cell that stands for values that nobody knows, unless it only compares the column
// with constants, each of which has a cell of its own. Constants without one are named in the refusal: the statement is
// then bound again with them.
func (b *box) unknown(e *expr) *refuse.Refusal {
	for _, i := range e.cols {
		if !b.other[i] {
			continue
		}
		var named []refuse.NamedValue
		if !b.exact(e, &named) {
			return openColumn.At(e.pos, b.table.Columns[i].Name)
		}
		if len(named) > 0 {
			r := openColumn.At(e.pos, b.table.Columns[i].Name)
			r.Named = named
			return r
		}
	}
	return nil
}

// exact tells whether e is the same for all values that are not named.
func (b *box) exact(e *expr, named *[]refuse.NamedValue) bool {
	if !slices.ContainsFunc(e.cols, func(i int) bool { return b.table.Columns[i].Open != nil }) {
		return true
	}
	switch e.form {
	case formIsNull:
		if e.args[0].form == formColumn {
			return true
		}
		fallthrough
	case formAnd, formOr, formNot, formIs:
		for _, a := range e.args {
			if !b.exact(a, named) {
				return false
			}
		}
		return true
	case formCompare:
		column, constant := e.args[0], e.args[1]
		if column.isConstant() {
			column, constant = constant, column
		}
		return (e.op == "=" || e.op == "<>") && column.form == formColumn && b.names(column, constant, named)
	case formIn:
		for _, a := range e.args[1:] {
			if e.args[0].form != formColumn || !b.names(e.args[0], a, named) {
				return false
			}
		}
		return true
	}
	return false
}

// names tells whether e is a constant text, and notes one that has no cell.
func (b *box) names(column, e *expr, named *[]refuse.NamedValue) bool {
	if !e.isConstant() {
		return false
	}
	v, err := e.Eval(nil)
	if err != nil || v == nil {
		return err == nil
	}
	text, ok := v.(string)
	c := b.table.Columns[column.cols[0]]
	if !ok || text == policy.OtherValue || strings.ContainsRune(text, 0) {
		return false
	}
	if _, known := c.Domain.Cell(text); !known {
		*named = append(*named, refuse.NamedValue{Column: c.Open, Text: text})
	}
	return true
}

func keyText(values []policy.Value) string {
	if len(values) == 1 {
		if values[0] == nil {
			return "n"
		}
		return "=" + predicate.Text(predicate.CanonicalValue(values[0]))
	}
	var b strings.Builder
	for _, v := range values {
		text := "n"
		if v != nil {
			text = "=" + predicate.Text(predicate.CanonicalValue(v))
		}
		b.Write(predicate.EncodeText(nil, text))
	}
	return b.String()
}

func identityOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// closed refuses what reads an open column otherwise than by comparing it or grouping by it.
func closed(t *policy.Table, e *expr) *refuse.Refusal {
	for _, i := range e.cols {
		if c := t.Columns[i]; c.Open != nil {
			return openColumn.At(e.pos, c.Name)
		}
	}
	return nil
}
