package semantics

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Operators of two operands, and what the grammar writes in their place: of
//
//	income - 1000 > 5000 AND age BETWEEN 30 AND 39 AND city LIKE 'B%'
//
// the first is a call of > over a call of -, BETWEEN an AND of >= and <=, and LIKE the operator ~~. Lists and arrays
// are in membership.go, rows below.

func (t *Translator) operator(a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos := int(a.Location)
	names := ast.Strings(a.Name)
	if len(names) == 2 && names[0] != "pg_catalog" || len(names) > 2 || len(names) == 0 {
		return nil, NoOperator.At(pos, strings.Join(names, "."))
	}
	op := names[len(names)-1]
	if left := a.Lexpr.GetRowExpr(); left != nil {
		return t.rows(op, a, left)
	}
	switch a.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if a.Lexpr == nil {
			return t.apply(op, pos, a.Rexpr)
		}
		return t.apply(op, pos, a.Lexpr, a.Rexpr)
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE, pg.A_Expr_Kind_AEXPR_SIMILAR:
		return t.like(op, a)
	case pg.A_Expr_Kind_AEXPR_IN:
		return t.in(a.Lexpr, a.Rexpr.GetList().GetItems(), op == "<>", pos)
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return t.between(a)
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return t.anyOf(op, a)
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return t.distinct(a)
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		args, plain, r := t.All([]*pg.Node{a.Lexpr, a.Rexpr})
		if r != nil {
			return nil, r
		}
		t.noteOperands("=", args)
		s, err := t.Env.NullIf(plain[0], plain[1])
		return Made(FormOther, "nullif", s, err, pos, args...)
	}
	return nil, NoForm.At(pos, "this operation")
}

func (t *Translator) apply(op string, pos int, nodes ...*pg.Node) (*Expr, *refuse.Refusal) {
	for _, written := range []func(string, int, []*pg.Node) (*Expr, *refuse.Refusal){t.within, t.infinite} {
		if e, r := written(op, pos, nodes); e != nil || r != nil {
			return e, r
		}
	}
	args := make([]*Expr, len(nodes))
	for i, n := range nodes {
		var r *refuse.Refusal
		if args[i], r = t.Expr(n); r != nil {
			return nil, r
		}
	}
	return t.Combine(op, pos, args...)
}

// Combine makes an operation, whose operands are settled unless it is a sum itself, or compares two.
func (t *Translator) Combine(op string, pos int, args ...*Expr) (*Expr, *refuse.Refusal) {
	e, r := t.operation(op, pos, args...)
	if r != nil || t.Settler == nil || len(e.Cols) < 2 {
		return e, r
	}
	switch {
	case e.Form == FormCompare:
		if moved := t.Settler.compared(t, e); moved != nil {
			return moved, nil
		}
	case SumOrProduct[e.Op]:
		if e.affine, e.read = t.Settler.reader().of(e), true; e.affine != nil || e.Nodes <= maxProductNodes && LinearOf(e) != nil {
			return e, nil
		}
	}
	if settled, changed := t.Settler.all(args); changed {
		return t.operation(op, pos, settled...)
	}
	return e, nil
}

// maxProductNodes is how large an expression is looked at for a sum of products.
const maxProductNodes = 64

func (t *Translator) operation(op string, pos int, args ...*Expr) (*Expr, *refuse.Refusal) {
	if refusal := caseOfCollated(op, pos, args); refusal != nil {
		return nil, refusal
	}
	if t.anyCoalesces(args) && (patterns[op] || slices.Contains([]string{"^@", "=", "<>"}, op)) {
		if e, r := t.coalesced(args, func(args []*Expr) (*Expr, *refuse.Refusal) { return t.operation(op, pos, args...) }); e != nil || r != nil {
			return e, r
		}
	}
	args = slices.Clone(args)
	if patterns[op] && len(args) == 2 {
		var r *refuse.Refusal
		if args[0], r = t.Filled(args[0]); r != nil {
			return nil, r
		}
	}
	s, err := t.Env.Call(op, scalars(args)...)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	t.noteOperands(op, args)
	f := FormOther
	if predicate.Opposite[op] != "" {
		f = FormCompare
	}
	e := Node(f, op, s, pos, args...)
	e.order(t.Env, op)
	if refusal := t.folded(e); refusal != nil {
		return nil, refusal
	}
	return t.reading(e)
}

// noteOperands notes the types that an operator gives to parameters beside what has a type: of taken - $1 it is a
// moment, of taken + $1 an interval, of interval '1 day' * $1 a number.
func (t *Translator) noteOperands(op string, args []*Expr) {
	if len(args) != 2 || args[0].Parameter == 0 && args[1].Parameter == 0 {
		return
	}
	for i, want := range t.Env.Wants(op, args[0].Type(), args[1].Type()) {
		if args[1-i].Type() != policy.Unknown {
			t.Params.Note(args[i], want)
		}
	}
	if op == "||" { // which takes anything beside a text
		t.Params.Note(args[0], policy.Text)
		t.Params.Note(args[1], policy.Text)
	}
	t.Params.Note(args[0], args[1].Type()) // where no operator decides
	t.Params.Note(args[1], args[0].Type())
}

func (t *Translator) like(op string, a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos := int(a.Location)
	left, r := t.Expr(a.Lexpr)
	if r != nil {
		return nil, r
	}
	t.Params.Note(left, policy.Text)
	right, r := t.Expr(a.Rexpr)
	if r != nil {
		return nil, r
	}
	t.Params.Note(right, policy.Text)
	return t.Combine(op, pos, left, right)
}

// between is a AND of two comparisons, as the grammar of PostgreSQL has it.
func (t *Translator) between(a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	pos := int(a.Location)
	bounds := a.Rexpr.GetList().GetItems()
	if len(bounds) != 2 {
		return nil, NoForm.At(pos, "BETWEEN")
	}
	within := func(low, high *pg.Node) (*Expr, *refuse.Refusal) {
		from, r := t.apply(">=", pos, a.Lexpr, low)
		if r != nil {
			return nil, r
		}
		to, r := t.apply("<=", pos, a.Lexpr, high)
		if r != nil {
			return nil, r
		}
		return t.Junction(FormAnd, pos, from, to)
	}
	e, r := within(bounds[0], bounds[1])
	if r != nil {
		return nil, r
	}
	if a.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN_SYM || a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		other, r := within(bounds[1], bounds[0])
		if r != nil {
			return nil, r
		}
		if e, r = t.Junction(FormOr, pos, e, other); r != nil {
			return nil, r
		}
	}
	if a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || a.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM {
		return t.Not(e)
	}
	return e, nil
}

// distinct is IS [NOT] DISTINCT FROM: of a constant that is not NULL whether = is true, which conditions on a column's
// steps are read by (score IS NOT DISTINCT FROM 2.25).
func (t *Translator) distinct(a *pg.A_Expr) (*Expr, *refuse.Refusal) {
	args, plain, r := t.All([]*pg.Node{a.Lexpr, a.Rexpr})
	if r != nil {
		return nil, r
	}
	t.noteOperands("=", args)
	same := a.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT
	for i, other := range []*Expr{args[1], args[0]} {
		if other.Form != formConstant {
			continue
		}
		e := Node(FormIsNull, "isnull", scalar.IsNull(plain[i]), int(a.Location), args[i])
		switch isNull := MustConstant(other) == nil; {
		case isNull && other.Parameter > 0: // whose value is not there yet
			continue
		case !isNull:
			equal, r := t.Combine("=", int(a.Location), args...)
			if r != nil {
				return nil, r
			}
			if e, r = t.isTruth(equal, true, int(a.Location)); r != nil {
				return nil, r
			}
		}
		if same {
			return e, nil
		}
		return t.Not(e)
	}
	s, err := t.Env.IsDistinct(plain[0], plain[1])
	if err != nil {
		return nil, ScalarRefusal(err, int(a.Location))
	}
	e := Node(FormOther, "isdistinct", s, int(a.Location), args...)
	if same {
		return t.Not(e)
	}
	return e, nil
}

// Comparisons of rows, column by column as PostgreSQL makes them, NULLs too: an unknown part decides nothing before a
// part that differs. Of (a, b, c) and (x, y, z)
//
//	=   is a = x AND b = y AND c = z
//	<>  is a <> x OR b <> y OR c <> z
//	<   is a < x OR a = x AND (b < y OR b = y AND c < z), the last by the operator itself: <=, >, >= likewise
//
// and (a, b) IN ((1, 2), (3, 4)) is an OR of equalities.

// strict are the operators by which an earlier column decides.
var strict = map[string]string{"<": "<", "<=": "<", ">": ">", ">=": ">"}

// rows translates an operation whose left side is a row.
func (t *Translator) rows(op string, a *pg.A_Expr, left *pg.RowExpr) (*Expr, *refuse.Refusal) {
	pos := int(left.Location)
	switch right := a.Rexpr.GetRowExpr(); {
	case a.Kind == pg.A_Expr_Kind_AEXPR_OP && right != nil:
		return t.rowsCompared(op, left, right)
	case a.Kind == pg.A_Expr_Kind_AEXPR_IN:
		var any *Expr
		for _, item := range a.Rexpr.GetList().GetItems() {
			right := item.GetRowExpr()
			if right == nil {
				return nil, NoForm.At(pos, "a row expression")
			}
			same, r := t.rowsCompared("=", left, right)
			if r != nil {
				return nil, r
			}
			if any, r = t.Joined(FormOr, pos, any, same); r != nil {
				return nil, r
			}
		}
		if any != nil && op == "<>" {
			return t.Not(any)
		}
		if any != nil {
			return any, nil
		}
	}
	return nil, NoForm.At(pos, "a row expression")
}

func (t *Translator) rowsCompared(op string, left, right *pg.RowExpr) (*Expr, *refuse.Refusal) {
	pos := int(left.Location)
	if len(left.Args) != len(right.Args) {
		return nil, rowLengths.At(pos)
	}

	if predicate.Opposite[op] == "" || len(left.Args) == 0 {
		return nil, NoForm.At(pos, "a row expression")
	}
	var out *Expr
	for i := len(left.Args) - 1; i >= 0; i-- {
		at, own := ast.Location(left.Args[i]), op
		if out != nil && strict[op] != "" {
			own = strict[op]
		}
		e, r := t.apply(own, at, left.Args[i], right.Args[i])
		switch {
		case r != nil:
		case out == nil:
			out = e
			continue
		case op == "=":
			out, r = t.Junction(FormAnd, pos, e, out)
		case op == "<>":
			out, r = t.Junction(FormOr, pos, e, out)
		default:
			var same *Expr
			if same, r = t.apply("=", at, left.Args[i], right.Args[i]); r == nil {
				if same, r = t.Junction(FormAnd, pos, same, out); r == nil {
					out, r = t.Junction(FormOr, pos, e, same)
				}
			}
		}
		if r != nil {
			return nil, r
		}
	}
	return out, nil
}

// Aggregated is count, sum, avg, min or max of known values of one type, none of them NULL, as PostgreSQL adds them up
// one after the other: (SELECT max(size) FROM towns) over a public table. Sums and averages are of the type result. It
// is NULL of no values, and a count 0.
func Aggregated(env scalar.Env, name string, values []policy.Value, typ, result policy.Type, pos int) (*Expr, *refuse.Refusal) {
	n := int64(len(values))
	compare := func(a, b policy.Value) int { return scalar.Compare(typ, a, b) }
	switch {
	case name == "count":
		return ConstantExpr(n, policy.Int8, pos), nil
	case n == 0:
		return ConstantExpr(nil, result, pos), nil
	case name == "min":
		return ConstantExpr(slices.MinFunc(values, compare), typ, pos), nil
	case name == "max":
		return ConstantExpr(slices.MaxFunc(values, compare), typ, pos), nil
	}
	called := func(op string, a scalar.Expr, v policy.Value, of policy.Type) (scalar.Expr, error) {
		b, err := env.Cast(scalar.Constant(v, of), result, -1)
		if err == nil && a != nil {
			b, err = env.Call(op, a, b)
		}
		if err != nil {
			return nil, err
		}
		to, err := b.Eval(nil)
		return scalar.Constant(to, b.Type()), err
	}
	var total scalar.Expr
	var err error
	for _, v := range values {
		if total, err = called("+", total, v, typ); err != nil {
			return nil, ScalarRefusal(err, pos)
		}
	}
	if name == "avg" {
		if total, err = called("/", total, n, policy.Int8); err != nil {
			return nil, ScalarRefusal(err, pos)
		}
	}
	v, err := total.Eval(nil)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	return ConstantExpr(v, result, pos), nil
}

// AggregateType is the type that SQL gives an aggregate that adds up values of a type.
func AggregateType(name string, t policy.Type) policy.Type {
	switch {
	case name == "sum" && (t == policy.Int2 || t == policy.Int4):
		return policy.Int8
	case name == "sum" && t == policy.Float4:
		return policy.Float4
	case t.Floating():
		return policy.Float8
	}
	return policy.NumericType
}
