package planner

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

// form is what the planner knows of the top of an expression.
type form uint8

const (
	formOther form = iota
	formColumn
	formConstant
	formAnd
	formOr
	formNot
	formCompare // op, two arguments
	formIsNull
	formIs // IS TRUE, IS FALSE, IS UNKNOWN: want
	formIn
	formExtract // a field of a date, or several as text: want is the unit of date_trunc that fixes it
)

// expr is a typed expression over the columns of one row with its structure: what it reads, whether it is monotone, and
// a canonical text by which equal expressions are told.
type expr struct {
	scalar.Expr
	form      form
	op        string
	want      policy.Value
	args      []*expr
	cols      []int // positions that it reads, sorted
	canon     string
	pos       int  // byte offset in the text, −1: unknown
	monotone  bool // a monotone function of at most one column, on values that are not NULL, if its zones are calm
	clock     *clock
	parameter int // number of a parameter that stands alone, else 0
	blanks    int // above 0: a char of that length (char.go)
	nodes     int // of its tree, for Work; 0: one
	affine    *affine
	read      bool // affine is what it is, over the table that it was made for
}

// isConstant tells that e reads no column.
func (e *expr) isConstant() bool { return len(e.cols) == 0 }

// node makes an expression of its parts.
func node(f form, op string, s scalar.Expr, pos int, args ...*expr) *expr {
	e := &expr{Expr: s, form: f, op: op, args: args, pos: pos}
	size := len(op) + 2
	e.nodes = 1
	for _, a := range args {
		e.nodes = min(e.nodes+max(a.nodes, 1), 1<<20)
		e.cols = union(e.cols, a.cols)
		size += len(a.canon) + 1
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('(')
	b.WriteString(op)
	for _, a := range args {
		b.WriteByte(' ')
		b.WriteString(a.canon)
	}
	b.WriteByte(')')
	e.canon = b.String()
	return e
}

func columnExpr(i int, t policy.Type, typmod int32, pos int) *expr {
	return &expr{Expr: scalar.Column(i, t, typmod), form: formColumn, cols: []int{i}, canon: "c" + strconv.Itoa(i), pos: pos, monotone: true}
}

func constantExpr(v policy.Value, t policy.Type, pos int) *expr {
	return &expr{Expr: scalar.Constant(v, t), form: formConstant, canon: canonicalConstant(v, t), pos: pos, monotone: true}
}

func canonicalConstant(v policy.Value, t policy.Type) string {
	if v == nil {
		return "null:" + strconv.Itoa(int(t))
	}
	return strconv.Quote(predicate.Text(v)) + ":" + strconv.Itoa(int(t))
}

// shifted is e over the columns n places further on.
func (e *expr) shifted(n int) *expr {
	if n == 0 || e.isConstant() {
		return e
	}
	same := *e
	same.affine, same.read = nil, false
	same.Expr = scalar.Shift(e.Expr, n)
	same.cols = make([]int, len(e.cols))
	for i, c := range e.cols {
		same.cols[i] = c + n
	}
	same.args = make([]*expr, len(e.args))
	for i, a := range e.args {
		same.args[i] = a.shifted(n)
	}
	if e.form == formColumn {
		same.canon = "c" + strconv.Itoa(same.cols[0])
	} else {
		same.canon = node(e.form, e.op, same.Expr, e.pos, same.args...).canon
	}
	if e.clock != nil {
		same.clock = &clock{e.clock.zone, e.clock.from.shifted(n)}
	}
	return &same
}

// union merges two sorted lists.
func union(a, b []int) []int {
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

// value evaluates e on a row; a failure becomes a refusal at e's place.
func (e *expr) value(row scalar.Row) (policy.Value, *refuse.Refusal) {
	v, err := e.Eval(row)
	if err != nil {
		return nil, scalarRefusal(err, e.pos)
	}
	return v, nil
}

// scalarRefusal turns an error of package scalar into a refusal.
func scalarRefusal(err error, pos int) *refuse.Refusal {
	var e *scalar.Error
	if !errors.As(err, &e) {
		return evaluation.At(pos, "the expression cannot be evaluated")
	}
	if strings.HasPrefix(e.SQLState, "0A") { // which pools take for a broken connection
		return unsupported.At(pos, e.Message)
	}
	r := evaluation.At(pos, e.Message)
	r.SQLState = e.SQLState
	switch e.SQLState {
	case "42883":
		r.ID, r.Hint = refuse.UnknownFunction.ID, refuse.UnknownFunction.Hint
		if strings.HasPrefix(e.Message, "operator") {
			r.ID, r.Hint = noOperator.ID, noOperator.Hint
		}
	case "42704":
		r.ID, r.Hint = refuse.UnknownType.ID, refuse.UnknownType.Hint
	case "22012":
		r.Hint = "Some value of the declared domain makes the divisor zero, whatever the data: write NULLIF(divisor, 0)."
	default:
		if strings.HasPrefix(e.SQLState, "22") || e.SQLState == "54000" {
			r.Hint = "This is found on the declared domain, whatever the data: guard the expression with CASE, or correct the constant."
		}
	}
	return r
}

// moved is e, which reads one column, over column i.
func (e *expr) moved(i int) *expr { return e.shifted(i - e.cols[0]) }
