package scalar

import (
	"strconv"
	"strings"
	"testing"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// testColumns are the columns of the row that test expressions read.
var testColumns = []struct {
	name, declared string
	typ            policy.Type
	typmod         int32
}{
	{"b", "boolean", policy.Bool, -1},
	{"i2", "smallint", policy.Int2, -1},
	{"i4", "integer", policy.Int4, -1},
	{"i8", "bigint", policy.Int8, -1},
	{"f4", "real", policy.Float4, -1},
	{"f8", "double precision", policy.Float8, -1},
	{"n", "numeric", policy.NumericType, -1},
	{"n2", "numeric(8,2)", policy.NumericType, 8<<16 + 2 + 4},
	{"t", "text", policy.Text, -1},
	{"v", "varchar(5)", policy.Varchar, 9},
	{"d", "date", policy.DateType, -1},
	{"ts", "timestamp", policy.TimestampT, -1},
	{"tz", "timestamptz", policy.TimestampTZ, -1},
	{"iv", "interval", policy.IntervalT, -1},
	{"u", "uuid", policy.UUID, -1},
	{"tm", "time", policy.TimeT, -1},
}

// testRows are the rows of the differential test in text form, "-" for NULL.
var testRows = []string{
	`t|1|2|3|1.5|2.25|10.50|1.25|apple|Abc|2020-02-29|2020-01-31 12:34:56.789|2020-07-01 10:00:00+00|1 mon 2 days 03:04:05|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|12:34:56.789`,
	`f|-7|-13|100000000000|-0.1|-1e10|-123.456|-99.99|Größe ßx|x_%y|1999-12-31|1969-07-20 20:17:40|1999-12-31 23:59:59.999999+00|-1 year 3 days -04:00:00|00000000-0000-0000-0000-000000000000|00:00:00`,
	`t|32767|2147483647|9223372036854775807|3.4e38|1.7e308|99999999999999999999.99999|999999.99||a|2000-01-01|2000-01-01 00:00:00|2020-03-29 01:30:00+00|00:00:00|ffffffff-ffff-ffff-ffff-ffffffffffff|24:00:00`,
	`f|-32768|-2147483648|-9223372036854775808|1e-40|2.5|0.000|0.00|a\b%c_d| A b |0044-03-15 BC|2021-12-31 23:59:59.999999|2020-10-25 01:30:00+00|400 days 25:00:00.000001|12345678-1234-5678-1234-567812345678|23:59:59.999999`,
	`t|0|0|0|0|0|2.5|0.50|0012|42|2024-07-04|2024-07-04 00:00:00|1900-01-01 00:00:00+00|-1 mons +30 days -00:00:01|12345678-1234-5678-1234-567812345678|09:30:00`,
	`-|5|10|-4|NaN|0.5|1|3.00|12.5|true|1970-01-01|1970-01-01 00:00:01|1970-01-01 00:00:00+00|1 day|-|17:00:00`,
	`-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-`,
}

// testEnv is the session of the differential test: a zone with daylight saving time.
func testEnv(t testing.TB) Env {
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	return Env{Now: time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC), Zone: zone}
}

// rowsOf parses testRows.
func rowsOf(t testing.TB, env Env) []Row {
	var rows []Row
	for _, text := range testRows {
		var row Row
		for i, field := range strings.Split(text, "|") {
			if field == "-" {
				row = append(row, nil)
				continue
			}
			v, err := env.ParseText(testColumns[i].typ, field)
			if err != nil {
				t.Fatalf("%s: %q: %v", testColumns[i].name, field, err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}

// compile turns the text of an SQL expression over testColumns into an Expr, as a planner would.
func compile(env Env, sql string) (Expr, error) {
	tree, err := pg.Parse("SELECT " + sql)
	if err != nil {
		return nil, fail("42601", err.Error())
	}
	target := tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget()
	return compiler{env}.expr(target.Val)
}

type compiler struct{ env Env }

func (c compiler) all(nodes []*pg.Node) ([]Expr, error) {
	out := make([]Expr, len(nodes))
	for i, n := range nodes {
		e, err := c.expr(n)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

func (c compiler) expr(n *pg.Node) (Expr, error) {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst:
		return c.constant(v.AConst)
	case *pg.Node_ColumnRef:
		name := v.ColumnRef.Fields[0].GetString_().Sval
		for i, column := range testColumns {
			if column.name == name {
				return Column(i, column.typ, column.typmod), nil
			}
		}
		return nil, fail("42703", "column does not exist")
	case *pg.Node_AExpr:
		return c.operator(v.AExpr)
	case *pg.Node_BoolExpr:
		args, err := c.all(v.BoolExpr.Args)
		if err != nil {
			return nil, err
		}
		switch v.BoolExpr.Boolop {
		case pg.BoolExprType_AND_EXPR:
			return And(args...)
		case pg.BoolExprType_OR_EXPR:
			return Or(args...)
		}
		return Not(args[0])
	case *pg.Node_FuncCall:
		args, err := c.all(v.FuncCall.Args)
		if err != nil {
			return nil, err
		}
		parts := v.FuncCall.Funcname
		return c.env.Call(parts[len(parts)-1].GetString_().Sval, args...)
	case *pg.Node_TypeCast:
		return c.cast(v.TypeCast)
	case *pg.Node_NullTest:
		arg, err := c.expr(v.NullTest.Arg)
		if err != nil {
			return nil, err
		}
		if v.NullTest.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
			return Not(IsNull(arg))
		}
		return IsNull(arg), nil
	case *pg.Node_BooleanTest:
		return c.booleanTest(v.BooleanTest)
	case *pg.Node_CaseExpr:
		return c.caseOf(v.CaseExpr)
	case *pg.Node_CoalesceExpr:
		args, err := c.all(v.CoalesceExpr.Args)
		if err != nil {
			return nil, err
		}
		return c.env.Coalesce(args...)
	case *pg.Node_MinMaxExpr:
		args, err := c.all(v.MinMaxExpr.Args)
		if err != nil {
			return nil, err
		}
		if v.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return c.env.Call("least", args...)
		}
		return c.env.Call("greatest", args...)
	}
	return nil, unsupported("%T", n.GetNode())
}

func (c compiler) constant(k *pg.A_Const) (Expr, error) {
	if k.Isnull {
		return Constant(nil, policy.Unknown), nil
	}
	switch v := k.Val.(type) {
	case *pg.A_Const_Ival:
		return Constant(int64(v.Ival.GetIval()), policy.Int4), nil
	case *pg.A_Const_Boolval:
		return Constant(v.Boolval.GetBoolval(), policy.Bool), nil
	case *pg.A_Const_Sval:
		return Constant(v.Sval.GetSval(), policy.Unknown), nil
	case *pg.A_Const_Fval:
		if i, err := strconv.ParseInt(v.Fval.Fval, 10, 64); err == nil {
			if i == int64(int32(i)) {
				return Constant(i, policy.Int4), nil
			}
			return Constant(i, policy.Int8), nil
		}
		value, err := c.env.ParseText(policy.NumericType, v.Fval.Fval)
		return Constant(value, policy.NumericType), err
	}
	return nil, unsupported("constant")
}

func (c compiler) operator(a *pg.A_Expr) (Expr, error) {
	name := ""
	if len(a.Name) > 0 {
		name = a.Name[len(a.Name)-1].GetString_().Sval
	}
	if list := a.Rexpr.GetList(); list != nil {
		left, err := c.expr(a.Lexpr)
		if err != nil {
			return nil, err
		}
		items, err := c.all(list.Items)
		if err != nil {
			return nil, err
		}
		return c.listOperator(a.Kind, name, left, items)
	}
	var args []Expr
	for _, side := range []*pg.Node{a.Lexpr, a.Rexpr} {
		if side == nil {
			continue
		}
		e, err := c.expr(side)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	switch a.Kind {
	case pg.A_Expr_Kind_AEXPR_DISTINCT:
		return c.env.IsDistinct(args[0], args[1])
	case pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		e, err := c.env.IsDistinct(args[0], args[1])
		if err != nil {
			return nil, err
		}
		return Not(e)
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		return c.env.NullIf(args[0], args[1])
	}
	return c.env.Call(name, args...)
}

func (c compiler) listOperator(kind pg.A_Expr_Kind, name string, left Expr, items []Expr) (Expr, error) {
	if kind == pg.A_Expr_Kind_AEXPR_BETWEEN || kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN {
		low, err := c.env.Call(">=", left, items[0])
		if err != nil {
			return nil, err
		}
		high, err := c.env.Call("<=", left, items[1])
		if err != nil {
			return nil, err
		}
		both, err := And(low, high)
		if err != nil || kind == pg.A_Expr_Kind_AEXPR_BETWEEN {
			return both, err
		}
		return Not(both)
	}
	in, err := c.env.In(left, items)
	if err != nil || name == "=" {
		return in, err
	}
	return Not(in)
}

var testTypes = map[string]policy.Type{"bool": policy.Bool, "int2": policy.Int2, "int4": policy.Int4,
	"int8": policy.Int8, "float4": policy.Float4, "float8": policy.Float8, "numeric": policy.NumericType,
	"text": policy.Text, "varchar": policy.Varchar, "date": policy.DateType, "timestamp": policy.TimestampT,
	"timestamptz": policy.TimestampTZ, "interval": policy.IntervalT, "uuid": policy.UUID, "time": policy.TimeT}

func (c compiler) cast(tc *pg.TypeCast) (Expr, error) {
	arg, err := c.expr(tc.Arg)
	if err != nil {
		return nil, err
	}
	names := tc.TypeName.Names
	t, ok := testTypes[names[len(names)-1].GetString_().Sval]
	if !ok {
		return nil, unsupported("type")
	}
	var mods []int32
	for _, m := range tc.TypeName.Typmods {
		mods = append(mods, m.GetAConst().GetIval().GetIval())
	}
	typmod := int32(-1)
	switch {
	case len(mods) == 0:
	case t == policy.Varchar:
		typmod = mods[0] + 4
	case t == policy.NumericType:
		typmod = mods[0]<<16 + 4
		if len(mods) == 2 {
			typmod = (mods[0]<<16 | mods[1]&0x7ff) + 4
		}
	default:
		typmod = mods[0]
	}
	return c.env.Cast(arg, t, typmod)
}

func (c compiler) booleanTest(b *pg.BooleanTest) (Expr, error) {
	arg, err := c.expr(b.Arg)
	if err != nil {
		return nil, err
	}
	var want policy.Value
	not := false
	switch b.Booltesttype {
	case pg.BoolTestType_IS_TRUE:
		want = true
	case pg.BoolTestType_IS_FALSE:
		want = false
	case pg.BoolTestType_IS_NOT_TRUE:
		want, not = true, true
	case pg.BoolTestType_IS_NOT_FALSE:
		want, not = false, true
	case pg.BoolTestType_IS_NOT_UNKNOWN:
		not = true
	}
	e, err := IsTruth(arg, want)
	if err != nil || !not {
		return e, err
	}
	return Not(e)
}

func (c compiler) caseOf(k *pg.CaseExpr) (Expr, error) {
	var arms []When
	for _, w := range k.Args {
		when := w.GetCaseWhen()
		condition, err := c.expr(when.Expr)
		if err != nil {
			return nil, err
		}
		if k.Arg != nil {
			arg, err := c.expr(k.Arg)
			if err != nil {
				return nil, err
			}
			if arg.Type() == policy.Unknown {
				if arg, err = c.env.Coerce(arg, policy.Text); err != nil {
					return nil, err
				}
			}
			if condition, err = c.env.Call("=", arg, condition); err != nil {
				return nil, err
			}
		}
		result, err := c.expr(when.Result)
		if err != nil {
			return nil, err
		}
		arms = append(arms, When{condition, result})
	}
	var otherwise Expr
	if k.Defresult != nil {
		e, err := c.expr(k.Defresult)
		if err != nil {
			return nil, err
		}
		otherwise = e
	}
	return c.env.Case(arms, otherwise)
}
