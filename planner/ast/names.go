package ast

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Unnamed is the name that PostgreSQL gives a column of the answer whose expression suggests none.
const Unnamed = "?column?"

// ColumnName is the name that PostgreSQL gives a column of the answer without an alias (FigureColname of its parser),
// and how surely: 2 for a name that is written, 1 for one of a type or CASE, which a name inside goes before, 0 and
// "" for none. A sub-query's column has a name in any case, so that SELECT (SELECT 1)::int is named ?column?, and
// SELECT 1::int is int4.
func ColumnName(n *pg.Node) (name string, sure int) {
	if name = keywordOf(n); name != "" {
		return name, 2
	}
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return named(v.ColumnRef.GetFields())
	case *pg.Node_AIndirection:
		if name, sure = named(v.AIndirection.GetIndirection()); sure > 0 {
			return name, sure
		}
		return ColumnName(v.AIndirection.GetArg())
	case *pg.Node_FuncCall:
		return named(v.FuncCall.GetFuncname())
	case *pg.Node_TypeCast:
		if name, sure = ColumnName(v.TypeCast.GetArg()); sure > 1 {
			return name, sure
		}
		if name, sure = named(v.TypeCast.GetTypeName().GetNames()); sure > 0 {
			return name, 1
		}
	case *pg.Node_CollateClause:
		return ColumnName(v.CollateClause.GetArg())
	case *pg.Node_SubLink:
		return subLinkName(v.SubLink)
	case *pg.Node_CaseExpr:
		if name, sure = ColumnName(v.CaseExpr.GetDefresult()); sure > 1 {
			return name, sure
		}
		return "case", 1
	}
	return "", 0
}

// keywordOf is the word that begins an expression which has a syntax of its own, such as COALESCE (a, b) or
// CURRENT_DATE, in lower case. It is empty for other expressions.
func keywordOf(n *pg.Node) string {
	switch v := n.GetNode().(type) {
	case *pg.Node_AExpr:
		if v.AExpr.GetKind() == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif"
		}
	case *pg.Node_GroupingFunc:
		return "grouping"
	case *pg.Node_AArrayExpr:
		return "array"
	case *pg.Node_RowExpr:
		return "row"
	case *pg.Node_CoalesceExpr:
		return "coalesce"
	case *pg.Node_MinMaxExpr:
		return MinMaxName(v.MinMaxExpr)
	case *pg.Node_SqlvalueFunction:
		return SQLValueName(v.SqlvalueFunction.GetOp())
	}
	return ""
}

// subLinkName is the name of a sub-query's only column: of a set operation that of its first SELECT.
func subLinkName(n *pg.SubLink) (string, int) {
	switch n.GetSubLinkType() {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", 2
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", 2
	case pg.SubLinkType_EXPR_SUBLINK:
		s := n.GetSubselect().GetSelectStmt()
		for s.GetLarg() != nil {
			s = s.GetLarg()
		}
		if len(s.GetValuesLists()) > 0 {
			return "column1", 2
		}
		if len(s.GetTargetList()) > 0 {
			return Label(s.GetTargetList()[0].GetResTarget()), 2
		}
	}
	return "", 0
}

// named is the last name of a list, in which stars and subscripts are none.
func named(list []*pg.Node) (string, int) {
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i].GetString_(); s != nil {
			return s.GetSval(), 2
		}
	}
	return "", 0
}

// SQLValueName is the keyword of a function without parentheses, such as current_time.
func SQLValueName(op pg.SQLValueFunctionOp) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimPrefix(op.String(), "SVFOP_")), "_n")
}

// MinMaxName is the keyword of GREATEST or LEAST, in lower case.
func MinMaxName(e *pg.MinMaxExpr) string {
	return strings.ToLower(strings.TrimPrefix(e.GetOp().String(), "IS_"))
}

// Label is the name that PostgreSQL gives an output column.
func Label(t *pg.ResTarget) string {
	if t.Name != "" {
		return t.Name
	}
	if name, _ := ColumnName(t.Val); name != "" {
		return name
	}
	return Unnamed
}

// IsStar tells * and alias.*.
func IsStar(n *pg.Node) bool {
	fields := n.GetColumnRef().GetFields()
	return len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil
}

// TypeNames are the types that expressions over private columns may be cast to, by the grammar's names for them.
var TypeNames = map[string]policy.Type{
	"bool": policy.Bool, "boolean": policy.Bool, "int2": policy.Int2, "smallint": policy.Int2, "int4": policy.Int4, "int": policy.Int4,
	"integer": policy.Int4, "int8": policy.Int8, "bigint": policy.Int8, "float4": policy.Float4, "real": policy.Float4,
	"float8": policy.Float8, "numeric": policy.NumericType, "decimal": policy.NumericType, "text": policy.Text,
	"varchar": policy.Varchar, "date": policy.DateType, "timestamp": policy.TimestampT, "timestamptz": policy.TimestampTZ,
	"interval": policy.IntervalT, "uuid": policy.UUID, "time": policy.TimeT,
}

// ArrayTypes are the oids of arrays, by element.
var ArrayTypes = map[policy.Type]policy.Type{
	policy.Bool: 1000, policy.Int2: 1005, policy.Int4: 1007, policy.Int8: 1016, policy.Float4: 1021, policy.Float8: 1022,
	policy.NumericType: 1231, policy.Text: 1009, policy.Varchar: 1015, policy.DateType: 1182, policy.TimestampT: 1115,
	policy.TimestampTZ: 1185, policy.IntervalT: 1187, policy.UUID: 2951, policy.TimeT: 1183,
}

// BpcharArray is the oid of arrays of char, whose elements are texts here.
const BpcharArray policy.Type = 1014

// ScalarType reads the name of a type; array reports whether it is an array of it.
func ScalarType(t *pg.TypeName) (typ policy.Type, typmod int32, array bool, refusal *refuse.Refusal) {
	name := TypeName(t)
	typ, ok := TypeNames[strings.TrimPrefix(name, "pg_catalog.")]
	if !ok && (name == "pg_catalog.bpchar" || name == "bpchar") {
		return 0, 0, false, refuse.BlankPadded.At(int(t.Location))
	}
	if !ok || t.Setof || t.PctType {
		return 0, 0, false, refuse.UnknownType.At(int(t.Location), strings.TrimPrefix(name, "pg_catalog."))
	}
	if wrong := WrongModifier(typ, t.Typmods); wrong != "" {
		refusal = refuse.Invalid("22023", wrong, "")
		if t.Location >= 0 {
			refusal.Position = int(t.Location) + 1
		}
		return 0, 0, false, refusal
	}
	return typ, typmodOf(typ, t.Typmods), len(t.ArrayBounds) > 0, nil
}

// WrongModifier is what is wrong with modifiers that PostgreSQL has no type of, as of numeric(0) and varchar(0); empty:
// nothing.
func WrongModifier(typ policy.Type, mods []*pg.Node) string {
	for i, n := range mods {
		v := n.GetAConst().GetIval()
		switch {
		case v == nil:
		case typ == policy.NumericType && i == 0 && (v.Ival < 1 || v.Ival > 1000):
			return fmt.Sprintf("NUMERIC precision %d must be between 1 and 1000", v.Ival)
		case typ == policy.NumericType && i == 1 && (v.Ival < -1000 || v.Ival > 1000):
			return fmt.Sprintf("NUMERIC scale %d must be between -1000 and 1000", v.Ival)
		case typ == policy.Varchar && v.Ival < 1:
			return "length for type varchar must be at least 1"
		case typ == policy.Bpchar && v.Ival < 1:
			return "length for type char must be at least 1"
		}
	}
	return ""
}

// TypeName is the name of a type as it is written, with its schema.
func TypeName(t *pg.TypeName) string {
	return strings.Join(Strings(t.Names), ".")
}

// Strings reads a list of String nodes; other nodes are left out.
func Strings(nodes []*pg.Node) []string {
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if s := n.GetString_(); s != nil {
			out = append(out, s.Sval)
		}
	}
	return out
}

// typmodOf encodes modifiers as pg_attribute.atttypmod does.
func typmodOf(t policy.Type, modifiers []*pg.Node) int32 {
	var m []int32
	for _, n := range modifiers {
		if i := n.GetAConst().GetIval(); i != nil {
			m = append(m, i.Ival)
		}
	}
	if len(m) == 0 {
		return -1
	}
	switch t {
	case policy.NumericType:
		scale := int32(0)
		if len(m) > 1 {
			scale = m[1] & 0x7ff
		}
		return (m[0]<<16 | scale) + 4
	case policy.Varchar:
		return m[0] + 4
	case policy.TimestampT, policy.TimestampTZ, policy.TimeT:
		return m[0]
	}
	return -1
}

// intervalUnits are the fields of INTERVAL '…' FIELD, by the grammar's bit masks.
var intervalUnits = map[int32]string{4: "year", 2: "month", 8: "day", 1024: "hour", 2048: "minute", 4096: "second"}

// IntervalText adds the field of INTERVAL '30' DAY to the text.
func IntervalText(text string, modifiers []*pg.Node) string {
	if len(modifiers) == 0 {
		return text
	}
	unit := intervalUnits[modifiers[0].GetAConst().GetIval().GetIval()]
	if unit == "" || strings.IndexFunc(strings.TrimSpace(text), func(r rune) bool { return r != '-' && r != '+' && r != '.' && (r < '0' || r > '9') }) >= 0 {
		return text
	}
	return text + " " + unit
}
