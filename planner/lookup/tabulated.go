package lookup

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// What is a function of few columns' cells becomes a column where it is combined with others (docs/adr/0146). Of
//
//	sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity)
//
// ps_supplycost is a number of cents for each part and supplier, listed in a derived.Tabulated; what is added up are
// products of columns then, which the database makes, and nothing is evaluated on combinations of all five columns'
// cells.

// Tabulator lists parts of expressions over a table, which gets columns for them.
type Tabulator struct {
	Env   scalar.Env
	Table *policy.Table
	known map[string]*semantics.Expr // what has a column
}

// Again is one for the table as it is now, with what the columns before it are of.
func (x *Tabulator) Again(env scalar.Env, t *policy.Table) *Tabulator {
	out := &Tabulator{Env: env, Table: t, known: map[string]*semantics.Expr{}}
	if x != nil {
		out.known = maps.Clone(x.known)
	}
	return out
}

// Sum is an expression as a sum of products of columns, of which some are new; nil means it is none.
func (x *Tabulator) Sum(e *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	if e.IsConstant() || semantics.LinearOf(e) != nil {
		return e, nil
	}
	if len(e.Cols) > 1 {
		switch {
		case len(e.Args) == 2 && semantics.SumOrProduct[e.Op], len(e.Args) == 1 && e.Op == "-":
			args, refusal := x.sums(e.Args)
			if args == nil {
				return nil, refusal
			}
			return (&semantics.Translator{Env: x.Env}).Combine(e.Op, e.Pos, args...)
		case len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:") && semantics.KeepsNumbers(e):
			args, refusal := x.sums(e.Args)
			if args == nil {
				return nil, refusal
			}
			s, err := x.Env.Cast(args[0].Expr, e.Type(), e.Typmod())
			return semantics.Made(semantics.FormOther, e.Op, s, err, e.Pos, args...)
		}
	}
	return x.column(e)
}

// sums are expressions as such sums; nil means one of them is none.
func (x *Tabulator) sums(list []*semantics.Expr) ([]*semantics.Expr, *refuse.Refusal) {
	out := make([]*semantics.Expr, len(list))
	for i, e := range list {
		sum, refusal := x.Sum(e)
		if sum == nil || refusal != nil {
			return nil, refusal
		}
		out[i] = sum
	}
	return out, nil
}

// column gives the table a column for an expression, and returns what it is by that; nil means it cannot be listed.
func (x *Tabulator) column(e *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	if have := x.known[e.Canon]; have != nil {
		return have, nil
	}
	if !semantics.Numeric(e) || e.Type().Floating() || semantics.Together(x.Table, e.Cols) > derived.MaxTabulated {
		return nil, nil
	}
	d, values, refusal := x.values(e)
	if values == nil || refusal != nil {
		return nil, refusal
	}
	scale := scaleOf(values)
	number := func(v policy.Value) (int32, bool) { return small(v, scale) }
	at := x.add(e, d, values, derived.TabulatedColumn{Type: policy.Int4}, number)
	if at < 0 {
		return nil, nil
	}
	own, refusal := x.worth(semantics.ColumnExpr(at, policy.Int4, -1, e.Pos), e, scale)
	if refusal == nil {
		x.known[e.Canon] = own
	}
	return own, refusal
}

// scaleOf is how many digits after the point some values have.
func scaleOf(list []policy.Value) (scale int32) {
	for _, v := range list {
		if k, ok := v.(policy.Numeric); ok {
			scale = max(scale, k.Scale)
		}
	}
	return scale
}

// Column is an expression as a column of the table, which it gets for it where it is none; nil means it cannot be
// listed.
func (x *Tabulator) Column(e *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	if e.Form == semantics.FormColumn || e.IsConstant() {
		return e, nil
	}
	return x.Listed(e)
}

// Listed gives the table a column for an expression, in which values are in their order; nil means it cannot be listed.
func (x *Tabulator) Listed(e *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	typ := e.Type()
	if semantics.Together(x.Table, e.Cols) > derived.MaxTabulated || typ == policy.Bpchar || !typ.Integer() &&
		typ != policy.NumericType && typ != policy.DateType && typ != policy.Bool && !typ.Textual() {
		return nil, nil
	}
	d, values, refusal := x.values(e)
	if values == nil || refusal != nil {
		return nil, refusal
	}
	number, texts := numbering(typ, values)
	c := derived.TabulatedColumn{Type: typ, Scale: scaleOf(values), Texts: texts}
	at := x.add(e, d, values, c, number)
	if at < 0 {
		return nil, nil
	}
	return semantics.ColumnExpr(at, typ, e.Typmod(), e.Pos), nil
}

// numbering gives each value of a type a number: a text its place among those of a list, in their order.
func numbering(typ policy.Type, list []policy.Value) (number func(policy.Value) (int32, bool), texts []string) {
	places := map[policy.Value]int32{false: 0, true: 1}
	switch {
	case typ == policy.DateType:
		return func(v policy.Value) (int32, bool) {
			day, ok := v.(policy.Date)
			return int32(day), ok
		}, nil
	case typ.Textual():
		for _, v := range list {
			if text, ok := v.(string); ok {
				texts = append(texts, text)
			}
		}
		slices.Sort(texts)
		texts = slices.Compact(texts)
		for i, text := range texts {
			places[text] = int32(i)
		}
	case typ != policy.Bool:
		scale := scaleOf(list)
		return func(v policy.Value) (int32, bool) { return small(v, scale) }, nil
	}
	return func(v policy.Value) (int32, bool) {
		place, ok := places[v]
		return place, ok
	}, texts
}

// values are what an expression comes to on each combination of cells, in a list that has none yet; nil means it is not
// one value on each.
func (x *Tabulator) values(e *semantics.Expr) (*derived.Tabulated, []policy.Value, *refuse.Refusal) {
	at := slices.Clone(e.Cols)
	slices.SortFunc(at, func(a, b int) int { return derived.CompareNames(x.Table.Columns[a], x.Table.Columns[b]) })
	d, sizes := &derived.Tabulated{From: x.Table}, make([]int, len(at))
	for i, c := range at {
		d.Args, sizes[i] = append(d.Args, x.Table.Columns[c]), x.Table.Columns[c].Domain.Size()
	}
	combinations := semantics.Together(x.Table, at)
	x.Env.Work.Take(combinations, bytesTabulated)
	box, cells, values := semantics.NewBox(x.Table, x.Env), make([]int, len(at)), make([]policy.Value, combinations)
	for n := range values {
		linear.Decode(n, sizes, cells)
		for i, c := range at {
			box.Set(c, cells[i])
		}
		v, steady, refusal := box.Value(e)
		if refusal != nil || !steady {
			return nil, nil, refusal
		}
		values[n] = v
	}
	return d, values, nil
}

// add returns the position of the column, c, whose numbers are those of values, which the table gets where it has none;
// −1 means a value has no number.
func (x *Tabulator) add(e *semantics.Expr, d *derived.Tabulated, values []policy.Value, c derived.TabulatedColumn,
	number func(policy.Value) (int32, bool)) int {
	c.Name = "listed by " + plans.ColumnNames(d.Args)
	for n, v := range values {
		if v == nil {
			continue
		}
		k, ok := number(v)
		if !ok {
			return -1
		}
		d.Combinations, c.Values = append(d.Combinations, int32(n)), append(c.Values, k)
	}
	d.Columns = []derived.TabulatedColumn{c}
	if own := x.and(e, c, values, number); own != nil {
		d = own
	}
	if at, ok := derived.TabulatedIn(x.Table, d); ok {
		return at
	}
	t := derived.NewTabulated(d)
	if t == nil {
		return -1
	}
	x.Table = t
	return len(t.Columns) - 1
}

// bytesTabulated is about what a value of a list takes while it is made.
const bytesTabulated = 64

// and adds a function of a listed column to that list; nil means it is none of the table's last.
func (x *Tabulator) and(e *semantics.Expr, c derived.TabulatedColumn, values []policy.Value, number func(policy.Value) (int32, bool)) *derived.Tabulated {
	d, ok := x.Table.Derived.(*derived.Tabulated)
	if !ok || len(e.Cols) != 1 || e.Cols[0] < len(d.From.Columns) {
		return nil
	}
	domain := x.Table.Columns[e.Cols[0]].Domain
	return d.And(c, e.Cols[0]-len(d.From.Columns), func(n policy.Value) (int32, bool) {
		cell, ok := domain.Cell(n)
		if !ok || values[cell] == nil {
			return 0, false
		}
		return number(values[cell])
	})
}

// small is a value in units of 10^−scale; not ok: it is NULL, or more than a list holds.
func small(v policy.Value, scale int32) (int32, bool) {
	units, ok := new(big.Int), false
	switch v := v.(type) {
	case int64:
		units, ok = units.SetInt64(v), true
	case policy.Numeric:
		if _, ok = derived.RatOf(v); ok {
			units = v.At(scale)
		}
	}
	if !ok || !units.IsInt64() || units.Int64() > math.MaxInt32 || units.Int64() < math.MinInt32 {
		return 0, false
	}
	return int32(units.Int64()), true
}

// worth returns a listed column as the expression that it means: of its type, and as many digits after the point.
func (x *Tabulator) worth(column, e *semantics.Expr, scale int32) (*semantics.Expr, *refuse.Refusal) {
	if scale > 0 {
		unit := semantics.ConstantExpr(policy.Numeric{Coefficient: big.NewInt(1), Scale: scale}, policy.NumericType, e.Pos)
		return (&semantics.Translator{Env: x.Env}).Combine("*", e.Pos, column, unit)
	}
	if e.Type() == policy.Int4 {
		return column, nil
	}
	s, err := x.Env.Cast(column.Expr, e.Type(), -1)
	return semantics.Made(semantics.FormOther, "cast:"+e.Type().Name(), s, err, e.Pos, column)
}

// Tabulated is a table in which each row has the number of the public row that is found for it, by columns of which
// there are too many combinations of cells to look at: the public rows are walked, not the cells. Value is a column of
// the public table by that number, and found says that there is one. A nil table: the arguments are no columns of
// single values.
func (l *Keyed) Tabulated(t *policy.Table, pos int) (out *policy.Table, value func(i int) *semantics.Expr, found *semantics.Expr, refusal *refuse.Refusal) {
	d, order, cellOf := &derived.Tabulated{From: t}, semantics.IdentityOf(len(l.Args)), l.cellsByKey(t)
	if cellOf == nil {
		return nil, nil, nil, nil
	}
	column := func(i int) *policy.Column { return t.Columns[l.Args[i].Cols[0]] }
	slices.SortFunc(order, func(a, b int) int { return derived.CompareNames(column(a), column(b)) })
	for _, i := range order {
		d.Args = append(d.Args, column(i))
	}
	data, refusal := Rows(l.Public, l.Table, pos)
	if refusal == nil && len(l.Filter) > 0 {
		data, refusal = l.Filtered(data)
	}
	if refusal != nil {
		return nil, nil, nil, refusal
	}
	rows := map[int32][]policy.Value{}
	for _, row := range data {
		l.Env.Work.Step(1 + len(order))
		number, there := 0, true
		for _, i := range order {
			text, known := derived.JoinKey([]policy.Value{l.Keys[i].Of(row)})
			cell, ok := cellOf[i][text]
			there = there && known && ok
			number = number*column(i).Domain.Size() + cell
		}
		if there && number <= math.MaxInt32 {
			rows[int32(number)] = row
		}
	}
	if len(rows) > derived.MaxTabulated {
		return nil, nil, nil, FanOut.At(pos, l.Table.Name, derived.MaxMatches, derived.MaxTabulated, derived.MaxRows)
	}
	for number := range rows {
		d.Combinations = append(d.Combinations, number)
	}
	slices.Sort(d.Combinations)
	kept, numbers := make([][]policy.Value, len(d.Combinations)), make([]int32, len(d.Combinations))
	for i, number := range d.Combinations {
		kept[i], numbers[i] = rows[number], int32(i)
	}
	d.Columns = []derived.TabulatedColumn{{Name: "row of " + l.Table.Name, Type: policy.Int4, Values: numbers}}
	if out = derived.NewTabulated(d); out == nil {
		return nil, nil, nil, nil
	}
	at := len(out.Columns) - 1
	row := semantics.ColumnExpr(at, policy.Int4, -1, l.Pos)
	value = func(i int) *semantics.Expr {
		c := l.Table.Columns[i]
		t, typmod := c.Shown()
		return semantics.Node(semantics.FormOther, "listed:"+l.Table.Name+":"+l.rows.Digest+":"+c.Name, linear.OfRow{Rows: kept, At: at, Typ: t, Mod: typmod, Column: i}, l.Pos, row)
	}
	return out, value, semantics.NotNull(row), nil
}

// cellsByKey are the cells of each argument's column by the key that their values are joined by; nil means one of them
// is no column of single values, or is listed twice.
func (l *Keyed) cellsByKey(t *policy.Table) []map[string]int {
	cellOf := make([]map[string]int, len(l.Args))
	for i, e := range l.Args {
		if e.Form != semantics.FormColumn || slices.ContainsFunc(l.Args[:i], func(o *semantics.Expr) bool { return o.Cols[0] == e.Cols[0] }) {
			return nil
		}
		d := t.Columns[e.Cols[0]].Domain
		if d == nil || t.Columns[e.Cols[0]].Open != nil || !d.Single() || d.Size() > plans.MaxCells {
			return nil
		}
		l.Env.Work.Take(d.Size(), derived.BytesKeyed)
		cellOf[i] = make(map[string]int, d.Size())
		for cell := range d.Size() {
			l.Env.Work.Step(1)
			if text, known := derived.JoinKey([]policy.Value{d.Low(cell)}); known {
				cellOf[i][text] = cell
			}
		}
	}
	return cellOf
}
