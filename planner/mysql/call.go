package mysql

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/charset"
	"github.com/sqlc-dev/marino/mysql"
	"github.com/sqlc-dev/marino/opcode"
	"github.com/sqlc-dev/marino/types"
)

// call translates a function. What is not listed here is refused.
func (t *translator) call(f *ast.FuncCallExpr, sc *scope) value {
	name := f.FnName.L
	if literal := literals[name]; literal != "" {
		name = literal
	}
	if f.Schema.L != "" {
		bail(Construct, "the function "+f.Schema.L+"."+name, "Only MySQL's own functions are read.")
	}
	if aggregates[name] {
		return t.aggregate(name, f.Args, false, sc)
	}
	if op := shifts[name]; op != "" && len(f.Args) == 3 {
		return t.shift(op, t.expr(f.Args[0], sc), f.Args[1], f.Args[2], sc)
	}
	if name == "if" && len(f.Args) == 3 {
		results, k := alike([]value{t.expr(f.Args[1], sc), t.expr(f.Args[2], sc)})
		return value{choice(results[1].node, t.condition(f.Args[0], sc), results[0].node), k}
	}
	list := f.Args
	if name == "extract" && len(list) == 2 && extractFields[unitOf(list[0])] {
		name, list = unitOf(list[0]), list[1:]
	}
	var args []value
	for _, e := range list {
		args = append(args, t.expr(e, sc))
	}
	for _, family := range []func(string, []value) (value, bool){conditional, temporal, numeric, textual} {
		if v, ok := family(name, args); ok {
			return v
		}
	}
	bail(Construct, strings.ToUpper(name)+" with these arguments", "It is not among the functions that are read in MySQL's dialect (docs/mysql.md lists them).")
	return value{}
}

// literals are the parser's names of DATE '…' and its relatives, which are the functions of these names over a
// constant.
var literals = map[string]string{ast.DateLiteral: "date", ast.TimeLiteral: "time", ast.TimestampLiteral: "timestamp"}

// shifts are the names under which the parser has d + INTERVAL n unit and d - INTERVAL n unit.
var shifts = map[string]string{"date_add": "+", "adddate": "+", "date_sub": "-", "subdate": "-"}

// unitOf is the unit of an INTERVAL or EXTRACT in lower case; empty where an argument is none.
func unitOf(e ast.ExprNode) string {
	unit, ok := e.(*ast.TimeUnitExpr)
	if !ok {
		return ""
	}
	return strings.ToLower(unit.Unit.String())
}

// extractFields are the units of EXTRACT that are functions too.
var extractFields = set("year quarter month week day hour minute second")

// aggregates are MySQL's, under the names that it has for them.
var aggregates = set("count sum avg min max std stddev stddev_pop stddev_samp variance var_pop var_samp any_value")

// populations are PostgreSQL's names: STD, STDDEV and VARIANCE are of the population in MySQL.
var populations = map[string]string{"std": "stddev_pop", "stddev": "stddev_pop", "stddev_pop": "stddev_pop", "stddev_samp": "stddev_samp",
	"variance": "var_pop", "var_pop": "var_pop", "var_samp": "var_samp"}

func (t *translator) aggregate(name string, args []ast.ExprNode, distinct bool, sc *scope) value {
	if len(args) != 1 {
		bail(Construct, strings.ToUpper(name)+" of several arguments", "Count or add up one expression.")
	}
	if c, ok := args[0].(*ast.ValueExprBase); ok && name == "count" && !distinct && c.Kind() != ast.KindNull {
		// The parser makes COUNT(*) COUNT(1), which counts the same.
		n := call("count")
		n.GetFuncCall().AggStar = true
		return value{n, kind{class: integer}}
	}
	v := t.expr(args[0], sc)
	if distinct || name == "min" || name == "max" {
		distinctTexts(v)
	}
	out := kind{class: integer}
	fn := name
	switch {
	case name == "count":
	case name == "min" || name == "max":
		if v = shown(v); v.class == text && !v.binary {
			bail(Collation, strings.ToUpper(name)+" of texts", "BINARY column is compared by its bytes.")
		}
		out = v.kind
		out.column, out.literal = false, nil
	case name == "any_value":
		out = v.kind
		out.column = false
	default:
		v = number(v, strings.ToUpper(name))
		if v.class == unknown && !v.param {
			bail(Untyped, strings.ToUpper(name), "CAST the argument to a number.")
		}
		switch out = v.kind; {
		case name == "avg" && v.class != float:
			if v.class == decimal && v.scale < 0 {
				bail(Untyped, "AVG of numbers whose digits are not declared", "AVG(CAST(x AS DECIMAL(20, 4))).")
			}
			out = kind{class: decimal, scale: min(v.scale+divisionDigits, maxScale), quotient: true}
		case populations[name] != "":
			fn, out = populations[name], kind{class: float}
		}
		out.column, out.literal = false, nil
	}
	n := call(fn, v.node)
	n.GetFuncCall().AggDistinct = distinct
	if populations[name] != "" {
		n = toFloat(n)
	}
	return value{n, out}
}

// conditional are the functions that choose between values.
func conditional(name string, args []value) (value, bool) {
	nodes := func(list []value) []*pg.Node {
		var out []*pg.Node
		for _, v := range list {
			out = append(out, v.node)
		}
		return out
	}
	switch {
	case (name == "ifnull" && len(args) == 2) || (name == "coalesce" && len(args) > 0):
		list, k := alike(args)
		return value{coalesce(nodes(list)...), k}, true
	case name == "nullif" && len(args) == 2:
		k := args[0].kind
		k.column, k.literal = false, nil
		return value{choice(args[0].node, compare("=", args[0], args[1]), nullNode()), k}, true
	case name == "isnull" && len(args) == 1:
		return value{isNull(args[0].node, false), kind{class: boolean}}, true
	case (name == "greatest" || name == "least") && len(args) >= 2:
		list, k := alike(args)
		if k.class == text || k.class == unknown {
			bail(Collation, strings.ToUpper(name)+" of these types", "It is read for numbers, dates and times.")
		}
		op := pg.MinMaxOp_IS_GREATEST
		if name == "least" {
			op = pg.MinMaxOp_IS_LEAST
		}
		most := &pg.Node{Node: &pg.Node_MinMaxExpr{MinMaxExpr: &pg.MinMaxExpr{Op: op, Args: nodes(list), Location: -1}}}
		var missing []*pg.Node // MySQL gives NULL as soon as one is
		for _, v := range list {
			if v.node.GetAConst() == nil || v.class == null {
				missing = append(missing, isNull(v.node, false))
			}
		}
		switch len(missing) {
		case 0:
			return value{most, k}, true
		case 1:
			return value{choice(most, missing[0], nullNode()), k}, true
		}
		return value{choice(most, pg.MakeBoolExprNode(pg.BoolExprType_OR_EXPR, missing, -1), nullNode()), k}, true
	case (name == "database" || name == "schema") && len(args) == 0:
		return value{call("current_database"), kind{class: text}}, true
	}
	return value{}, false
}

// floats are MySQL's functions of floating-point numbers, and where they have a value; elsewhere they are NULL.
var floats = map[string]struct{ name, domain string }{"sqrt": {"sqrt", ">="}, "ln": {"ln", ">"}, "log": {"ln", ">"}, "log10": {"log", ">"}, "exp": {"exp", ""},
	"sin": {"sin", ""}, "cos": {"cos", ""}, "tan": {"tan", ""}, "atan": {"atan", ""}, "degrees": {"degrees", ""}, "radians": {"radians", ""}}

// numeric are the functions of numbers.
func numeric(name string, args []value) (value, bool) {
	if name == "mod" && len(args) == 2 {
		a, b := number(args[0], "MOD"), number(args[1], "MOD")
		k := kind{class: max(a.class, b.class), scale: max(a.scale, b.scale)}
		if k.class != integer && k.class != decimal || a.class == unknown || b.class == unknown {
			bail(Untyped, "MOD of these types", "CAST both AS DECIMAL.")
		}
		return value{operator("%", a.node, nullIfZero(b.node)), k}, true
	}
	if len(args) == 0 || len(args) > 2 {
		return value{}, false
	}
	if _, known := floats[name]; !known && !set("abs sign floor ceil ceiling round truncate")[name] {
		return value{}, false
	}
	v := number(args[0], strings.ToUpper(name))
	if v.class != integer && v.class != decimal && v.class != float {
		bail(Untyped, strings.ToUpper(name)+" of what is no number", "CAST it AS DECIMAL.")
	}
	k := kind{class: v.class, scale: v.scale, quotient: v.quotient}
	if len(args) == 2 {
		return rounded(name, v, args[1])
	}
	if f, ok := floats[name]; ok {
		x := toFloat(v.node)
		out := call(f.name, x)
		if f.domain != "" {
			out = choice(nil, operator(f.domain, v.node, intNode(0)), out)
		}
		return value{out, kind{class: float}}, true
	}
	switch name {
	case "abs":
		return value{call("abs", v.node), k}, true
	case "sign":
		return value{toInteger(call("sign", toNumericUnlessFloat(v))), kind{class: integer}}, true
	case "round", "truncate":
		return rounded(name, v, value{node: intNode(0)})
	}
	if v.class == integer {
		return v, true
	}
	if name == "ceiling" {
		name = "ceil"
	}
	if v.class == float {
		return value{call(name, v.node), k}, true
	}
	return value{call(name, v.node), kind{class: decimal, scale: 0}}, true
}

func toNumericUnlessFloat(v value) *pg.Node {
	if v.class == float {
		return v.node
	}
	return toNumeric(v.node)
}

// rounded is ROUND or TRUNCATE to a constant number of digits; of exact numbers both databases round halves away
// from 0.
func rounded(name string, v, digits value) (value, bool) {
	c := digits.node.GetAConst().GetIval()
	if c == nil || name != "round" && name != "truncate" {
		return value{}, false
	}
	n := int(c.Ival)
	switch {
	case v.class == float:
		bail(Untyped, strings.ToUpper(name)+" of a floating-point number", "Its halves round differently: ROUND(CAST(x AS DECIMAL(20, 6)), "+strconv.Itoa(n)+").")
	case v.class == integer && n >= 0:
		return v, true
	case n > maxScale || n < -maxScale:
		return value{}, false
	}
	fn := map[string]string{"round": "round", "truncate": "trunc"}[name]
	out := kind{class: decimal, scale: max(n, 0)}
	if v.class == decimal && v.scale >= 0 && !v.quotient {
		out.scale = min(out.scale, v.scale)
	}
	return value{call(fn, toNumericUnlessFloat(v), intNode(n)), out}, true
}

// convert is CAST(x AS type) or BINARY x, for the types whose rules agree.
func (t *translator) convert(n *ast.FuncCastExpr, sc *scope) value {
	v := t.expr(n.Expr, sc)
	typ := n.Tp
	if n.FunctionType == ast.CastBinaryOperator {
		if v.class != text && v.class != unknown && v.class != null {
			bail(Construct, "BINARY of what is no text", "Leave BINARY out.")
		}
		v.binary, v.column = true, false
		return v
	}
	switch typ.GetType() {
	case mysql.TypeDate:
		return value{toDate(asTime(v, "CAST AS DATE").node), kind{class: date}}
	case mysql.TypeDatetime:
		if v.class == date || v.literal != nil && typ.GetDecimal() == 0 {
			return value{toTimestamp(asTime(v, "CAST AS DATETIME").node), kind{class: datetime}}
		}
	case mysql.TypeVarString:
		if typ.GetCharset() != charset.CharsetBin && typ.GetFlen() == types.UnspecifiedLength && !n.ExplicitCharSet {
			return asText(v, "CAST AS CHAR")
		}
		if typ.GetCharset() == charset.CharsetBin && v.class == text {
			v.binary, v.column = true, false
			return v
		}
	case mysql.TypeLonglong:
		v = number(v, "CAST")
		if typ.GetFlag()&mysql.UnsignedFlag == 0 && (v.class == integer || v.class == decimal) {
			return value{toBigint(v.node), kind{class: integer}}
		}
	case mysql.TypeNewDecimal:
		return t.toDecimal(number(v, "CAST"), typ.GetFlen(), typ.GetDecimal())
	}
	bail(Construct, "CAST AS "+strings.ToUpper(types.TypeStr(typ.GetType()))+" of this type",
		"DATE, DATETIME, CHAR, SIGNED and DECIMAL(p, s) are read; the time of a moment is TIME(x).")
	return value{}
}

// toDecimal is CAST AS DECIMAL(p, s), which cuts what is too large to the largest that fits.
func (t *translator) toDecimal(v value, precision, scale int) value {
	if v.class != integer && v.class != decimal && v.class != float {
		bail(Untyped, "CAST AS DECIMAL of what is no number", "MySQL reads the digits at a text's beginning.")
	}
	if scale > maxScale || precision < max(scale, 1) || precision > maxPrecision {
		bail(Construct, "so many digits", "DECIMAL(p, s) has p from 1 to 65 digits, s of them behind the point and 30 at most.")
	}
	most := strings.Repeat("9", precision-scale)
	if scale > 0 {
		most += "." + strings.Repeat("9", scale)
	}
	node := call("round", toNumeric(v.node), intNode(scale))
	cut := choice(node, operator(">", node, numberNode(most)), numberNode(most), operator("<", node, numberNode("-"+most)), numberNode("-"+most))
	return value{cut, kind{class: decimal, scale: scale}}
}

const maxPrecision = 65

// negated is −n, folded where n is a constant, as the grammar does.
func negated(n *pg.Node) *pg.Node {
	text := ""
	if c := n.GetAConst(); c != nil && c.GetIval() != nil {
		text = strconv.Itoa(int(c.GetIval().Ival))
	} else if c != nil && c.GetFval() != nil {
		text = c.GetFval().Fval
	} else {
		return operator("-", nil, n)
	}
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		return numberNode(rest)
	}
	if text == "0" {
		return numberNode(text)
	}
	return numberNode("-" + text)
}

// maxScale is the largest number of digits that MySQL keeps behind the point.
const maxScale = 30

// divisionDigits is how many digits MySQL's division adds to its dividend's.
const divisionDigits = 4

func (t *translator) arithmetic(n *ast.BinaryOperationExpr, sc *scope) value {
	what := "arithmetic"
	a, b := number(t.expr(n.L, sc), what), number(t.expr(n.R, sc), what)
	out := kind{class: max(a.class, b.class), scale: max(a.scale, b.scale), quotient: a.quotient || b.quotient}
	if min(a.class, b.class) == unknown {
		out = kind{}
	}
	if out.class == decimal && min(a.scale, b.scale) < 0 {
		out.scale = -1
	}
	switch n.Op {
	case opcode.Plus:
		return value{operator("+", a.node, b.node), out}
	case opcode.Minus:
		return value{operator("-", a.node, b.node), out}
	case opcode.Mul:
		if out.class == decimal && out.scale >= 0 {
			out.scale = min(a.scale+b.scale, maxScale)
		}
		return value{operator("*", a.node, b.node), out}
	case opcode.Div:
		return divide(a, b, out)
	case opcode.IntDiv:
		if out.class != integer {
			bail(Untyped, "DIV of numbers that are not whole", "Write FLOOR(a / b).")
		}
		return value{operator("/", a.node, nullIfZero(b.node)), out}
	case opcode.Mod:
		if out.class != integer && out.class != decimal {
			bail(Untyped, "% of floating-point numbers", "CAST both AS DECIMAL, or RESET dp.dialect.")
		}
		return value{operator("%", a.node, nullIfZero(b.node)), out}
	}
	bail(Construct, "the operator "+printed(n.Op), "Operators on bits are not read.")
	return value{}
}

// divide is MySQL's /: never a division of whole numbers, NULL by zero, and four digits more than the dividend has. The
// digits beyond them are carried until the value is shown.
func divide(a, b value, out kind) value {
	if a.class == null || b.class == null {
		return value{nullNode(), kind{class: null}}
	}
	switch out.class {
	case float:
		return value{operator("/", toFloat(a.node), nullIfZero(b.node)), kind{class: float}}
	case integer, decimal:
		if a.class == integer {
			a.scale = 0
		}
		if a.scale < 0 {
			bail(Untyped, "/ of a number whose digits are not declared", "ROUND(a / b, 4), or RESET dp.dialect.")
		}
		return value{operator("/", toNumeric(a.node), nullIfZero(b.node)), kind{class: decimal, scale: min(a.scale+divisionDigits, maxScale), quotient: true}}
	}
	bail(Untyped, "/", "The digits that MySQL gives depend on the types: CAST both AS DECIMAL(…), or RESET dp.dialect.")
	return value{}
}
