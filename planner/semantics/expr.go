// Package semantics knows what an expression over one row means. The grammar's tree becomes a typed Expr (Translator),
// of which is known what it reads, whether it is monotone, and whether it is constant on a Box of cells; a condition
// becomes a predicate over cells that the database can test (Lowerer). Of
//
//	WHERE date_trunc('month', hired) = '2024-05-01' AND age >= 30
//
// the first half is constant on runs of 31 days, and both are conditions on spans of cells of one column each: no row
// is looked at, and equal conditions get equal predicates however they are written.
package semantics

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Form is what the planner knows of the top of an expression.
type Form uint8

const (
	FormOther Form = iota
	FormColumn
	formConstant
	FormAnd
	FormOr
	formNot
	FormCompare // op, two arguments
	FormIsNull
	FormIs // IS TRUE, IS FALSE, IS UNKNOWN: want
	formIn
	formExtract // a field of a date, or several as text: want is the unit of date_trunc that fixes it
)

// Expr is a typed expression over the columns of one row with its structure: what it reads, whether it is monotone, and
// a canonical text by which equal expressions are recognised.
type Expr struct {
	scalar.Expr
	Form      Form
	Op        string
	Want      policy.Value
	Args      []*Expr
	Cols      []int // positions that it reads, sorted
	Canon     string
	Pos       int  // byte offset in the text, −1: unknown
	Monotone  bool // a monotone function of at most one column, on values that are not NULL, if its zones are calm
	clock     *clock
	within    *Expr   // the day within each of which e is monotone; nil means it is in none (period.go)
	Parameter int     // number of a parameter that is alone, else 0
	Formula   bool    // it is the planner's own arithmetic over counters, an average's
	Answered  bool    // it depends on what is answered first (docs/adr/0117), which is not known when the statement is first planned
	Awaited   bool    // it depends on what is not answered yet, which has a placeholder value
	Collated  bool    // it contains COLLATE
	Nodes     int     // of its tree; 0 means one
	steps     int     // what evaluating it takes of Work; 0 means one
	Looked    *Looked // what it looks up by its only argument; nil means it looks nothing up (against.go)
	affine    *Affine
	read      bool // affine is what it is, over the table that it was made for
}

// IsConstant tells that e reads no column.
func (e *Expr) IsConstant() bool { return len(e.Cols) == 0 }

// constantLast are the operands of a comparison and its operator, of which a constant is the second operand.
func (e *Expr) constantLast() (left, right *Expr, op string) {
	if e.Args[0].IsConstant() {
		return e.Args[1], e.Args[0], predicate.Mirrored[e.Op]
	}
	return e.Args[0], e.Args[1], e.Op
}

// ValuesRead are the positions of the columns whose values e depends on, without those of which it asks only whether
// they are NULL.
func (e *Expr) ValuesRead() (columns []int) {
	if e.asksWhetherNull() {
		return nil
	}
	if !e.holdsNullTest() {
		return e.Cols
	}
	for _, a := range e.Args {
		columns = Union(columns, a.ValuesRead())
	}
	return columns
}

func (e *Expr) asksWhetherNull() bool { return e.Form == FormIsNull && e.Args[0].Form == FormColumn }

func (e *Expr) holdsNullTest() bool {
	return e.asksWhetherNull() || slices.ContainsFunc(e.Args, (*Expr).holdsNullTest)
}

// maxCanon bounds Canon: a sub-query's column that is read twice in each of 30 nested ones is 2^30 columns.
// A statement's text is shorter.
const maxCanon = 1 << 20

// Node makes an expression of its parts. It ends planning, as scalar.Work does, where they are too many.
func Node(f Form, op string, s scalar.Expr, pos int, args ...*Expr) *Expr {
	e := &Expr{Expr: s, Form: f, Op: op, Args: args, Pos: pos}
	size := len(op) + 2
	if e.Nodes = 1; s != nil { // else it is set later, to what is looked up
		e.steps = stepsOf(op, s.Type())
	}
	for _, a := range args {
		e.Nodes, e.steps = min(e.Nodes+max(a.Nodes, 1), 1<<20), min(e.steps+a.Steps(), 1<<30)
		e.Cols = Union(e.Cols, a.Cols)
		e.Answered, e.Awaited, e.Collated = e.Answered || a.Answered, e.Awaited || a.Awaited, e.Collated || a.Collated
		size += len(a.Canon) + 1
	}
	if size > maxCanon {
		panic(&scalar.Stop{Bytes: true, Limit: maxCanon})
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('(')
	b.WriteString(op)
	for _, a := range args {
		b.WriteByte(' ')
		b.WriteString(a.Canon)
	}
	b.WriteByte(')')
	e.Canon = b.String()
	return e
}

// Steps is what evaluating e once takes of Work.
func (e *Expr) Steps() int { return max(e.steps, 1) }

// stepsOf is about what an operator or a function takes, in what a comparison of whole numbers does: numerics are
// numbers of any length, whose roots and logarithms are found in many steps.
func stepsOf(op string, t policy.Type) int {
	switch {
	case t != policy.NumericType:
		return 1
	case op == "sqrt":
		return 8
	case op == "ln" || op == "log" || op == "log10" || op == "exp" || op == "power" || op == "pow" || op == "^":
		return 40
	}
	return 3
}

// Made is a node of which package scalar made s, or the refusal of what it found wrong with the arguments.
func Made(f Form, op string, s scalar.Expr, err error, pos int, args ...*Expr) (*Expr, *refuse.Refusal) {
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	return Node(f, op, s, pos, args...), nil
}

// ColumnExpr is the i-th column of the row.
func ColumnExpr(i int, t policy.Type, typmod int32, pos int) *Expr {
	return &Expr{Expr: scalar.Column(i, t, typmod), Form: FormColumn, Cols: []int{i}, Canon: "c" + strconv.Itoa(i), Pos: pos, Monotone: true}
}

// ConstantExpr is a value of a type.
func ConstantExpr(v policy.Value, t policy.Type, pos int) *Expr { return ValueExpr(v, t, -1, pos) }

// ValueExpr is a value of a type with a modifier.
func ValueExpr(v policy.Value, t policy.Type, typmod int32, pos int) *Expr {
	v = policy.Trimmed(t, v)
	return &Expr{Expr: scalar.ConstantOf(v, t, typmod), Form: formConstant, Canon: canonicalConstant(v, t), Pos: pos, Monotone: true}
}

func canonicalConstant(v policy.Value, t policy.Type) string {
	if v == nil {
		return "null:" + strconv.Itoa(int(t))
	}
	return strconv.Quote(predicate.Text(v)) + ":" + strconv.Itoa(int(t))
}

// Shifted is e over the columns n places further on.
func (e *Expr) Shifted(n int) *Expr {
	if n == 0 || e.IsConstant() {
		return e
	}
	same := *e
	same.affine, same.read = nil, false
	same.Expr = scalar.Shift(e.Expr, n)
	same.Cols = make([]int, len(e.Cols))
	for i, c := range e.Cols {
		same.Cols[i] = c + n
	}
	same.Args = make([]*Expr, len(e.Args))
	for i, a := range e.Args {
		same.Args[i] = a.Shifted(n)
	}
	if e.Form == FormColumn {
		same.Canon = "c" + strconv.Itoa(same.Cols[0])
	} else {
		same.Canon = Node(e.Form, e.Op, same.Expr, e.Pos, same.Args...).Canon
	}
	if e.clock != nil {
		same.clock = &clock{e.clock.zone, e.clock.from.Shifted(n)}
	}
	if e.within != nil {
		same.within = e.within.Shifted(n)
	}
	return &same
}

// Union merges two sorted lists.
func Union(a, b []int) []int {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0 || slices.Equal(a, b):
		return a
	}
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Value evaluates e on a row; a failure becomes a refusal at e's place.
func (e *Expr) Value(row scalar.Row) (policy.Value, *refuse.Refusal) {
	v, err := e.Eval(row)
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	return v, nil
}

// ScalarRefusal turns an error of package scalar into a refusal.
func ScalarRefusal(err error, pos int) *refuse.Refusal {
	var e *scalar.Error
	if !errors.As(err, &e) {
		return Evaluation.At(pos, "the expression cannot be evaluated")
	}
	if strings.HasPrefix(e.SQLState, "0A") { // which pools take for a broken connection
		return Unsupported.At(pos, e.Message)
	}
	r := Evaluation.At(pos, e.Message)
	r.SQLState = e.SQLState
	switch e.SQLState {
	case "42883":
		r.ID, r.Hint = refuse.UnknownFunction.ID, refuse.UnknownFunction.Hint
		if strings.HasPrefix(e.Message, "operator") {
			r.ID, r.Hint = NoOperator.ID, NoOperator.Hint
		}
	case "42704":
		r.ID, r.Hint = refuse.UnknownType.ID, refuse.UnknownType.Hint
	case "42601":
		r.Hint = "A template of numbers is made of 9, 0, a point or D, commas or G, FM, and one way to show the sign, as in 'FM999,990.00'."
	case "22012":
		r.Hint = "Some value of the declared domain makes the divisor zero, whatever the data: write NULLIF(divisor, 0)."
	default:
		if strings.HasPrefix(e.SQLState, "22") || e.SQLState == "54000" {
			r.Hint = "This is found on the declared domain, whatever the data: guard the expression with CASE, or correct the constant."
		}
	}
	return r
}

// Moved is e, which reads one column, over column i.
func (e *Expr) Moved(i int) *Expr { return e.Shifted(i - e.Cols[0]) }

// Parameters are the $n of one statement: constants of a plan, or types to be found.
type Parameters struct {
	Values     []policy.Value
	Types      []policy.Type // as the client gave or Describe inferred them; 0 means unknown
	Describing bool          // values are not there: each parameter is a NULL whose type its surroundings tell
	Seen       int
}

// constant is parameter n as a constant. An untyped one takes its type from its surroundings, as in PostgreSQL.
func (p *Parameters) constant(n int, env scalar.Env, pos int) (*Expr, *refuse.Refusal) {
	p.Seen = max(p.Seen, n)
	t := p.TypeOf(n)
	if p.Describing {
		e := ConstantExpr(nil, orUnknown(t), pos)
		e.Parameter, e.Canon = n, "$"+strconv.Itoa(n)
		return e, nil
	}
	if n < 1 || n > len(p.Values) {
		return nil, refuse.UnknownParam.At(pos, n)
	}
	v := p.Values[n-1]
	if _, isArray := v.([]policy.Value); v == nil || t != 0 || isArray {
		if s, isText := v.(string); isText && t != 0 && !t.Textual() && t != policy.UUID && t != policy.Unknown {
			parsed, err := env.ParseText(t, s)
			if err != nil {
				return nil, ScalarRefusal(err, pos)
			}
			v = parsed
		}
		return ConstantExpr(v, orUnknown(t), pos), nil
	}
	return ConstantExpr(PlainText(env, v), policy.Unknown, pos), nil
}

// PlainText is the text form of a parameter's value, as an untyped literal.
func PlainText(env scalar.Env, v policy.Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	return env.FormatText(TypeOfValue(v), v)
}

// TypeOfValue returns the type of a bare Go value.
func TypeOfValue(v policy.Value) policy.Type {
	switch v.(type) {
	case bool:
		return policy.Bool
	case int64:
		return policy.Int8
	case float64:
		return policy.Float8
	case policy.Numeric:
		return policy.NumericType
	case policy.Date:
		return policy.DateType
	case policy.Timestamp:
		return policy.TimestampT
	case policy.Timestamptz:
		return policy.TimestampTZ
	case policy.Time:
		return policy.TimeT
	case policy.Interval:
		return policy.IntervalT
	}
	return policy.Unknown
}

func orUnknown(t policy.Type) policy.Type {
	if t == 0 {
		return policy.Unknown
	}
	return t
}

// TypeOf is the type of a parameter; 0 means nothing has said it yet.
func (p *Parameters) TypeOf(n int) policy.Type {
	if n >= 1 && n <= len(p.Types) {
		return p.Types[n-1]
	}
	return 0
}

// Note records the type that a parameter's surroundings give it; the first place decides.
func (p *Parameters) Note(e *Expr, t policy.Type) {
	if e == nil || e.Parameter == 0 || t == policy.Unknown || t == 0 || p.TypeOf(e.Parameter) != 0 {
		return
	}
	for len(p.Types) < e.Parameter {
		p.Types = append(p.Types, 0)
	}
	p.Types[e.Parameter-1] = t
}

// Inferred returns the types of all parameters. Those that nothing determines are unknown: to a client they are
// described as text, as by PostgreSQL, and what it sends is a literal without a type, which an engine reads as it
// needs.
func (p *Parameters) Inferred() []policy.Type {
	out := make([]policy.Type, max(p.Seen, len(p.Types)))
	for i := range out {
		if out[i] = p.TypeOf(i + 1); out[i] == 0 {
			out[i] = policy.Unknown
		}
	}
	return out
}

// TypeName is the name of a type as messages have it.
func TypeName(t policy.Type) string { return scalar.TypeName(t) }

// Columns whose values nobody declared (docs/adr/0018 and 0145). One of their cells holds all values that nobody knows,
// so an expression over such a column is answered only where it is the same for all of these: city = 'Bern' is false,
// once Bern has a cell of its own.

// unknown refuses an expression on a cell of values that nobody knows, unless it only compares the column
// with constants, each of which has a cell of its own. Constants without one are named in the refusal: the statement is
// then bound again with them.
func (b *Box) unknown(e *Expr) *refuse.Refusal {
	for _, i := range e.Cols {
		if !b.other[i] {
			continue
		}
		var named []refuse.NamedValue
		if !b.exact(e, &named) {
			return UnknownText(b.Table.Columns[i], e.Pos)
		}
		if len(named) > 0 {
			r := UnknownText(b.Table.Columns[i], e.Pos)
			r.Named = named
			return r
		}
	}
	return nil
}

// UnknownText refuses what depends on values of an open column that nobody knows.
func UnknownText(c *policy.Column, pos int) *refuse.Refusal {
	if c.Any {
		return anyText.At(pos, c.Name)
	}
	return OpenColumn.At(pos, c.Name)
}

// Knows reports whether an expression is the same for all values of its open columns that nobody knows; a column itself
// is not.
func (b *Box) Knows(e *Expr) bool {
	var named []refuse.NamedValue
	return e.Form != FormColumn && b.exact(e, &named)
}

// exact reports whether e is the same for all values that are not named.
func (b *Box) exact(e *Expr, named *[]refuse.NamedValue) bool {
	if !slices.ContainsFunc(e.Cols, func(i int) bool { return b.Table.Columns[i].Open != nil }) {
		return true
	}
	switch e.Form {
	case FormIsNull:
		if e.Args[0].Form == FormColumn {
			return true
		}
		fallthrough
	case FormAnd, FormOr, formNot, FormIs, FormOther:
		return !slices.ContainsFunc(e.Args, func(a *Expr) bool { return !b.exact(a, named) })
	case FormCompare:
		column, constant, _ := e.constantLast()
		return (e.Op == "=" || e.Op == "<>") && column.Form == FormColumn && b.names(column, constant, named)
	case formIn:
		return e.Args[0].Form == FormColumn &&
			!slices.ContainsFunc(e.Args[1:], func(a *Expr) bool { return !b.names(e.Args[0], a, named) })
	}
	return false
}

// names reports whether e is a constant text, and notes one that has no cell.
func (b *Box) names(column, e *Expr, named *[]refuse.NamedValue) bool {
	if !e.IsConstant() {
		return false
	}
	v, err := e.Eval(nil)
	if err != nil || v == nil {
		return err == nil
	}
	c := b.Table.Columns[column.Cols[0]]
	text, ok := v.(string)
	switch {
	case !c.Type.Integer():
		ok = ok && text != policy.OtherValue && !strings.ContainsRune(text, 0)
	case ok: // campaign = '12'
		v, err = policy.ParseValue(c.Type, text)
		ok, text = err == nil, policy.FormatValue(c.Type, v)
	default:
		_, ok = v.(int64)
		text = policy.FormatValue(c.Type, v)
	}
	if !ok {
		return false
	}
	if _, known := c.Domain.Cell(v); !known {
		*named = append(*named, refuse.NamedValue{Column: c.Open, Text: text})
	}
	return true
}

// Closed refuses what reads an open column otherwise than by comparing it or grouping by it.
func Closed(t *policy.Table, e *Expr) *refuse.Refusal {
	for _, i := range e.Cols {
		if c := t.Columns[i]; c.Open != nil {
			return UnknownText(c, e.Pos)
		}
	}
	return nil
}
