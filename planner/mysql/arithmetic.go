package mysql

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/opcode"
)

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
