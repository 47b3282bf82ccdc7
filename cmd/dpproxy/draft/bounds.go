package draft

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// What constraints say of a column's values: CHECK (age >= 0 AND age <= 119) and CHECK (age BETWEEN 0 AND 119) are its
// ends, CHECK (status IN ('new', 'paid')) its list. A condition that is not understood says nothing.

// bounds are what is known of a column's values.
type bounds struct {
	low, high string   // inclusive ends as SQL numbers or dates; "" means none
	below     string   // an exclusive upper end
	values    []string // a whole list
}

// learn reads the constraints of a table and of a column's domain.
func learn(t *Table, c *Column) bounds {
	var b bounds
	for _, check := range t.Checks {
		b.read(check, c.Name)
	}
	for _, check := range c.Checks {
		b.read(check, "value")
	}
	b.hint(c)
	return b
}

// longestCondition is how long a condition may be that is read: the grammar's library dies of very long chains.
const longestCondition = 8 << 10

// read adds what one condition says of a column.
func (b *bounds) read(condition, column string) {
	if len(condition) > longestCondition {
		return
	}
	tree, err := pgquery.Parse("SELECT " + condition)
	if err != nil || len(tree.Stmts) != 1 {
		return
	}
	for _, target := range tree.Stmts[0].Stmt.GetSelectStmt().GetTargetList() {
		b.both(target.GetResTarget().GetVal(), column)
	}
}

// both reads a condition that holds as a whole: each part of an AND holds too.
func (b *bounds) both(n *pgquery.Node, column string) {
	if e := n.GetBoolExpr(); e != nil {
		if e.Boolop == pgquery.BoolExprType_AND_EXPR {
			for _, arg := range e.Args {
				b.both(arg, column)
			}
		}
		return
	}
	e := n.GetAExpr()
	if e == nil || len(e.Name) == 0 || !isColumn(e.Lexpr, column) {
		return
	}
	operator := e.Name[len(e.Name)-1].GetString_().GetSval()
	switch e.Kind {
	case pgquery.A_Expr_Kind_AEXPR_BETWEEN:
		if ends := e.Rexpr.GetList().GetItems(); len(ends) == 2 {
			b.low, b.high = constant(ends[0]), constant(ends[1])
		}
	case pgquery.A_Expr_Kind_AEXPR_IN, pgquery.A_Expr_Kind_AEXPR_OP_ANY:
		if operator == "=" {
			b.list(e.Rexpr)
		}
	case pgquery.A_Expr_Kind_AEXPR_OP:
		b.compare(operator, constant(e.Rexpr))
	}
}

// compare reads column <operator> constant.
func (b *bounds) compare(operator, value string) {
	if value == "" {
		return
	}
	switch operator {
	case ">=":
		b.low = value
	case "<=":
		b.high = value
	case "<":
		b.below = value
	case ">":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			b.low = strconv.FormatInt(n, 10) // a step that holds nothing does no harm, and fits every type
		}
	case "=":
		b.values = append(b.values, value)
	}
}

// enumerate makes ends of a list of whole numbers: CHECK (active IN (0, 1)).
func (b *bounds) enumerate() {
	var numbers []int64
	for _, v := range b.values {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return
		}
		numbers = append(numbers, n)
	}
	if len(numbers) > 1 && b.low == "" && b.high == "" {
		b.low, b.high = strconv.FormatInt(slices.Min(numbers), 10), strconv.FormatInt(slices.Max(numbers), 10)
	}
}

// list reads what a column is one of: IN ('a', 'b'), = ANY (ARRAY['a'::text, 'b'::text]).
func (b *bounds) list(n *pgquery.Node) {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	items := n.GetList().GetItems()
	if a := n.GetAArrayExpr(); a != nil {
		items = a.Elements
	}
	var values []string
	for _, item := range items {
		v := constant(item)
		if v == "" {
			return
		}
		values = append(values, v)
	}
	b.values = values
}

// isColumn reports whether an expression is a column, under casts that PostgreSQL writes around it.
func isColumn(n *pgquery.Node, column string) bool {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	fields := n.GetColumnRef().GetFields()
	return len(fields) > 0 && fields[len(fields)-1].GetString_().GetSval() == column
}

// constant is a literal as text, under casts and a minus; "" for anything else.
func constant(n *pgquery.Node) string {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	if e := n.GetAExpr(); e != nil && e.Lexpr == nil && len(e.Name) == 1 && e.Name[0].GetString_().GetSval() == "-" {
		if v := constant(e.Rexpr); v != "" && !strings.HasPrefix(v, "-") {
			return "-" + v
		}
		return ""
	}
	c := n.GetAConst()
	switch {
	case c == nil || c.Isnull:
		return ""
	case c.GetIval() != nil:
		return strconv.FormatInt(int64(c.GetIval().Ival), 10)
	case c.GetFval() != nil:
		return c.GetFval().Fval
	case c.GetSval() != nil:
		return c.GetSval().Sval // of an enumeration, a date, or a number that PostgreSQL prints as one
	}
	return ""
}

// A comment may say what values there are: "0 to 10", "1..5", "between 0 and 100", "one of: new, paid, sent".
var (
	rangeHint = regexp.MustCompile(`(?i)(?:^|[^\w.-])(-?\d+(?:\.\d+)?)\s*(?:\.\.|to|–|and)\s*(-?\d+(?:\.\d+)?)(?:$|[^\w.-]|\.\s|\.$)`)
	listHint  = regexp.MustCompile(`(?i)one of:?\s+([\w'"-]+(?:\s*(?:,|\||, or| or )\s*[\w'"-]+)+)`)
	listComma = regexp.MustCompile(`\s*(?:, or|,|\|| or )\s*`)
)

// hint adds what a column's comment says, where no constraint says more.
func (b *bounds) hint(c *Column) {
	switch {
	case numbers(c) && b.low == "" && b.high == "" && b.below == "":
		if m := rangeHint.FindStringSubmatch(c.Comment); m != nil {
			b.low, b.high = m[1], m[2]
		}
	case textual(c) && b.values == nil:
		if m := listHint.FindStringSubmatch(c.Comment); m != nil {
			for _, v := range listComma.Split(m[1], -1) {
				if v = strings.Trim(v, `'"`); v != "" && !slices.Contains(b.values, v) {
					b.values = append(b.values, v)
				}
			}
		}
	}
}
