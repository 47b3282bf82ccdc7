package mysql

import (
	"math"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// class is what MySQL's rules ask of a type.
type class uint8

const (
	unknown class = iota // a column whose type is not known here, or a parameter
	null
	integer
	decimal
	float
	text
	boolean // a condition, or a boolean column: a number to MySQL
	date
	datetime // without a zone, as NOW() is
	zoned    // with one
	clock    // a time of the day, as TIME(d) is
)

// kind is what is known of an expression's type and values.
type kind struct {
	class    class
	scale    int      // decimal: digits behind the point, −1 unknown
	quotient bool     // decimal: MySQL shows scale digits, and more are carried
	literal  *string  // a string constant
	values   []string // text: all values that there may be, nil means unknown
	caseless bool     // text: no two values differ in case or accents alone
	binary   bool     // text: BINARY was written, so that texts compare by their bytes
	column   bool     // a plain column
	param    bool
	key      bool // names rows of a unit: equal as the policy's keys are, whatever its type
}

// value is a translated expression.
type value struct {
	node *pg.Node
	kind
}

func (v value) isNumber() bool {
	return v.class == integer || v.class == decimal || v.class == float || v.class == boolean
}

func (v value) isTime() bool { return v.class == date || v.class == datetime || v.class == zoned }

// kindOf is the kind of a declared column.
func kindOf(c *policy.Column) kind {
	k := kind{column: true}
	switch c.Type {
	case policy.Int2, policy.Int4, policy.Int8:
		k.class = integer
	case policy.NumericType:
		k.class, k.scale = decimal, -1
		if c.Typmod >= 4 {
			k.scale = int(c.Typmod-4) & 0x7ff
		}
	case policy.Float4, policy.Float8:
		k.class = float
	case policy.Text, policy.Varchar:
		k.class = text
		if c.Domain != nil {
			k.values = append([]string{}, c.Domain.Values...)
			if c.Domain.Other >= 0 {
				k.values = append(k.values, "other")
			}
		}
	case policy.Bool:
		k.class = boolean
	case policy.DateType:
		k.class = date
	case policy.TimestampT:
		k.class = datetime
	case policy.TimestampTZ:
		k.class = zoned
	}
	return k
}

// common is the kind of an expression that is one of several: CASE, IF, COALESCE.
func common(parts []value) kind {
	var k kind
	first := true
	for _, p := range parts {
		if p.class == null {
			continue
		}
		if first {
			k, first = p.kind, false
			k.column, k.literal = false, nil
			if p.literal != nil {
				k.values = []string{*p.literal}
			}
			continue
		}
		k = k.joined(p.kind)
	}
	if first {
		k.class = null
	}
	return k
}

// joined is the kind of either.
func (k kind) joined(o kind) kind {
	if o.literal != nil {
		o.values = []string{*o.literal}
	}
	out := kind{class: k.class, scale: k.scale, quotient: k.quotient || o.quotient, binary: k.binary && o.binary}
	switch {
	case k.class == text && o.class == text:
		if k.values != nil && o.values != nil {
			out.values = append(append([]string{}, k.values...), o.values...)
		}
	case k.class == o.class:
		if o.scale > k.scale || o.scale < 0 {
			out.scale = o.scale
		}
	case (value{kind: k}).isNumber() && (value{kind: o}).isNumber():
		out.class = max(k.class, o.class)
		if k.class == boolean {
			out.class = o.class
		} else if o.class == boolean {
			out.class = k.class
		}
		out.scale = max(k.scale, o.scale)
	default:
		out.class = unknown
	}
	return out
}

// relation is one table of a FROM clause.
type relation struct {
	alias   string // lower case
	ref     string // the alias or table's name as PostgreSQL has it
	columns map[string]column
	open    bool // it may have columns that are not known here
}

type column struct {
	name string // as PostgreSQL has it
	kind kind
}

// scope is what the names of one SELECT may mean.
type scope struct {
	relations []relation
	aliases   map[string]*item // of the SELECT list, by lower-case name
	named     bool             // aliases may name their expressions here
	outer     *scope
}

// withAliases is the scope of HAVING and of expressions in ORDER BY.
func (s *scope) withAliases() *scope {
	c := *s
	c.named = true
	return &c
}

// item is one item of a SELECT list.
type item struct {
	value
	at   int // from 1
	name string
	bare bool // a column of the same name
}

// find looks a column up in the tables of a scope and of those around it.
func (s *scope) find(qualifier, name string) (column, bool) {
	for ; s != nil; s = s.outer {
		var found []column
		open := false
		for _, r := range s.relations {
			if qualifier != "" && r.alias != qualifier {
				continue
			}
			if c, ok := r.columns[name]; ok {
				found = append(found, c)
			}
			open = open || r.open
		}
		if len(found) > 0 {
			c := found[0]
			for _, other := range found[1:] {
				if other.kind.class != c.kind.class || other.name != c.name || other.kind.key != c.kind.key {
					c.kind = kind{column: true}
				}
			}
			if open && qualifier == "" {
				c.kind = kind{column: true}
			}
			return c, true
		}
		if open {
			break
		}
	}
	return column{name: name, kind: kind{column: true}}, false
}

// named builds the relation of a table of the dataset, nil when there is none of this name.
func (t *translator) named(schema, name string) (*policy.Table, bool) {
	if t.dataset == nil {
		return nil, false
	}
	var found *policy.Table
	for _, table := range t.dataset.Tables {
		if strings.EqualFold(table.Name, name) && (schema == "" || strings.EqualFold(table.Schema, schema)) {
			if found != nil && table.Name != name {
				continue
			}
			found = table
		}
	}
	return found, found != nil
}

func columnsOf(table *policy.Table) map[string]column {
	out := map[string]column{}
	for _, list := range [][]*policy.Column{table.Columns, table.Keys} {
		for _, c := range list {
			low := strings.ToLower(c.Name)
			if have, ok := out[low]; ok && have.name != c.Name {
				bail(Ambiguous, `"`+low+`"`, "Two columns of this table differ in case alone: write the statement for PostgreSQL, and RESET dp.dialect.")
			}
			if _, ok := out[low]; !ok {
				k := kindOf(c)
				k.key = c.Join || c.Unit
				out[low] = column{c.Name, k}
			}
		}
	}
	return out
}

// bail refuses from deep inside; Translate catches it.
func bail(reason Reason, what, hint string) {
	panic(refuse(reason, -1, what, hint))
}

// The nodes are made as PostgreSQL's own parser makes them, so that the tree equals what its text is parsed to.

func intNode(n int) *pg.Node { return pg.MakeAConstIntNode(int64(n), -1) }

// numberNode is a constant: an integer where it fits PostgreSQL's, else the text of a number.
func numberNode(text string) *pg.Node {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > math.MinInt32 {
		return pg.MakeAConstIntNode(n, -1)
	}
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Fval{Fval: &pg.Float{Fval: text}}, Location: -1}}}
}

func textNode(s string) *pg.Node { return pg.MakeAConstStrNode(s, -1) }

func nullNode() *pg.Node {
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}}
}

func boolNode(b bool) *pg.Node {
	return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: b}}, Location: -1}}}
}

// operator is an operator between two operands; left may be nil.
func operator(op string, left, right *pg.Node) *pg.Node {
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(op)}, left, right, -1)
}

func special(kind pg.A_Expr_Kind, op string, left, right *pg.Node) *pg.Node {
	return pg.MakeAExprNode(kind, []*pg.Node{pg.MakeStrNode(op)}, left, right, -1)
}

func call(name string, args ...*pg.Node) *pg.Node {
	n := pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode(name)}, args, -1)
	n.GetFuncCall().Funcformat = pg.CoercionForm_COERCE_EXPLICIT_CALL
	return n
}

// extract is EXTRACT(field FROM arg), as the grammar has it.
func extract(field string, arg *pg.Node) *pg.Node {
	n := pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("extract")}, []*pg.Node{textNode(field), arg}, -1)
	n.GetFuncCall().Funcformat = pg.CoercionForm_COERCE_SQL_SYNTAX
	return n
}

// cast is CAST(arg AS type): the grammar's own types have their internal names.
func cast(arg *pg.Node, names ...string) *pg.Node {
	var list []*pg.Node
	for _, n := range names {
		list = append(list, pg.MakeStrNode(n))
	}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: arg, TypeName: &pg.TypeName{Names: list, Typemod: -1, Location: -1}, Location: -1}}}
}

func toDate(n *pg.Node) *pg.Node      { return cast(n, "date") }
func toTimestamp(n *pg.Node) *pg.Node { return cast(n, "pg_catalog", "timestamp") }
func toNumeric(n *pg.Node) *pg.Node   { return cast(n, "pg_catalog", "numeric") }
func toFloat(n *pg.Node) *pg.Node     { return cast(n, "pg_catalog", "float8") }
func toInteger(n *pg.Node) *pg.Node   { return cast(n, "pg_catalog", "int4") }
func toBigint(n *pg.Node) *pg.Node    { return cast(n, "pg_catalog", "int8") }
func toText(n *pg.Node) *pg.Node      { return cast(n, "text") }

func not(n *pg.Node) *pg.Node {
	return pg.MakeBoolExprNode(pg.BoolExprType_NOT_EXPR, []*pg.Node{n}, -1)
}

// isNull is n IS [NOT] NULL. Of a condition it is written IS UNKNOWN, which says the same, since the grammar's deparser
// forgets the parentheses of (NOT a) IS NULL.
func isNull(n *pg.Node, negated bool) *pg.Node {
	if n.GetBoolExpr() != nil && negated {
		return isTrue(n, pg.BoolTestType_IS_NOT_UNKNOWN)
	} else if n.GetBoolExpr() != nil {
		return isTrue(n, pg.BoolTestType_IS_UNKNOWN)
	}
	kind := pg.NullTestType_IS_NULL
	if negated {
		kind = pg.NullTestType_IS_NOT_NULL
	}
	return &pg.Node{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: n, Nulltesttype: kind, Location: -1}}}
}

// nullIfZero is a divisor as MySQL sees it: by zero, a quotient is NULL.
func nullIfZero(n *pg.Node) *pg.Node {
	if c := n.GetAConst(); c != nil && !c.Isnull {
		if i := c.GetIval(); i != nil && i.Ival != 0 {
			return n
		}
	}
	return special(pg.A_Expr_Kind_AEXPR_NULLIF, "=", n, intNode(0))
}

// choice is CASE WHEN … THEN … ELSE … END over pairs; otherwise may be nil.
func choice(otherwise *pg.Node, pairs ...*pg.Node) *pg.Node {
	var arms []*pg.Node
	for i := 0; i+1 < len(pairs); i += 2 {
		arms = append(arms, pg.MakeCaseWhenNode(pairs[i], pairs[i+1], -1))
	}
	n := pg.MakeCaseExprNode(nil, arms, -1)
	n.GetCaseExpr().Defresult = otherwise
	return n
}

func coalesce(args ...*pg.Node) *pg.Node {
	return &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: args, Location: -1}}}
}

// isTrue is n IS [NOT] TRUE or FALSE.
func isTrue(n *pg.Node, kind pg.BoolTestType) *pg.Node {
	return &pg.Node{Node: &pg.Node_BooleanTest{BooleanTest: &pg.BooleanTest{Arg: n, Booltesttype: kind, Location: -1}}}
}

func statementNode(query *pg.SelectStmt) *pg.Node {
	return &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}}
}

func subLink(kind pg.SubLinkType, test *pg.Node, query *pg.SelectStmt) *pg.Node {
	return &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: kind, Testexpr: test, Subselect: statementNode(query), Location: -1}}}
}
