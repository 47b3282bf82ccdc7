package outer

import (
	"encoding/json"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What means something else in DuckDB than in PostgreSQL is computed by package scalar, which the engine calls back through
// pg_call: which function on which types travels as JSON, the arguments as texts.
//
//	SELECT sqrt(n) FROM leaf_1
//	⇒ SELECT "c1" AS "c1" FROM (SELECT CAST(pg_call('{"f":"sqrt","a":[{"t":20,"m":-1}]}', CAST("t1"."n" AS VARCHAR)) AS
//	  DOUBLE) AS "c1" FROM "leaf_1" AS "t1") AS "q2"

// ScalarCall is a function, operator or cast that the embedded engine leaves to package scalar, because its own version
// would mean something else than PostgreSQL's. It travels in the query's text as JSON; Expr makes it computable.
type ScalarCall struct {
	Name string      `json:"f,omitempty"` // a function or operator; empty: a cast
	To   policy.Type `json:"to,omitempty"`
	Mod  int32       `json:"mod,omitempty"`
	Read bool        `json:"r,omitempty"` // a cast of what was a literal, which is read as literals are
	Args []ScalarArg `json:"a"`
}

// ScalarArg is an argument: a value that comes with each row, or an untyped literal.
type ScalarArg struct {
	Type    policy.Type `json:"t,omitempty"`
	Mod     int32       `json:"m,omitempty"`
	Literal *string     `json:"u,omitempty"`
	Given   bool        `json:"g,omitempty"` // it is a parameter's text
}

// ParseScalarCall reads the text of a ScalarCall.
func ParseScalarCall(text string) (ScalarCall, error) {
	var c ScalarCall
	err := json.Unmarshal([]byte(text), &c)
	return c, err
}

func (c ScalarCall) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// Expr resolves the call; the row holds the arguments in order, literals included.
func (c ScalarCall) Expr(env scalar.Env) (scalar.Expr, error) {
	args := make([]scalar.Expr, len(c.Args))
	for i, a := range c.Args {
		if a.Literal != nil && a.Given {
			args[i] = scalar.Constant(*a.Literal, policy.Unknown)
		} else if a.Literal != nil {
			args[i] = env.Untyped(*a.Literal)
		} else {
			args[i] = scalar.Column(i, a.Type, a.Mod)
		}
	}
	if c.Name != "" {
		return env.Call(c.Name, args...)
	}
	if c.Read {
		env = env.AsLiteral()
	}
	return env.Cast(args[0], c.To, c.Mod)
}

// compileEnv is good for resolving types; what depends on the clock or the zone is computed when the query runs.
var compileEnv = scalar.Env{Now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Zone: time.UTC}

// asScalar brings a value to a type that package scalar knows.
func (b *binder) asScalar(e expr) expr {
	switch {
	case e.literal != nil, e.null, scalarType(e.oid) && e.oid != policy.Unknown:
		return e
	case e.oid == typeBytea || e.oid == typeJSON:
		cannot("this use of type " + typeNameOf(e.oid))
	case plainText(e.oid) || e.oid == policy.Unknown:
		return b.cast(e, textType)
	case isNamed(e.oid):
		return b.nameOf(e)
	case oidLike(e.oid):
		return b.cast(e, int8Type)
	}
	return cannot("this use of type " + typeNameOf(e.oid))
}

// call leaves a function or operator to package scalar.
func (b *binder) call(name string, args ...expr) expr {
	c := ScalarCall{Name: name}
	b.toldByCall(name, args...)
	for i := range args {
		args[i] = b.asScalar(args[i])
	}
	return b.scalar(c, args)
}

func (b *binder) castCall(e expr, t typed) expr {
	if !scalarType(t.oid) {
		cannot("a cast of type " + typeNameOf(e.oid) + " to " + typeNameOf(t.oid))
	}
	return b.scalar(ScalarCall{To: t.oid, Mod: t.mod}, []expr{b.asScalar(e)})
}

// readCall reads the text of a literal, or a parameter's, when the query runs.
func (b *binder) readCall(sql string, t typed, given bool) expr {
	return b.scalar(ScalarCall{To: t.oid, Mod: t.mod, Read: !given}, []expr{{sql: sql, typed: textType}})
}

// dated tells the types whose texts are read by the session's settings.
func dated(t policy.Type) bool {
	return t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ || t == policy.IntervalT
}

// scalar writes a call of package scalar and reads its result back.
func (b *binder) scalar(c ScalarCall, args []expr) expr {
	var parts []string
	for _, a := range args {
		c.Args = append(c.Args, ScalarArg{Type: a.oid, Mod: a.mod, Literal: a.literal, Given: a.given && a.literal != nil})
		parts = append(parts, asArgument(a))
	}
	resolved, err := c.Expr(compileEnv)
	if err != nil {
		unresolved(c.Name, len(args), err)
	}
	t := typed{oid: resolved.Type(), mod: resolved.Typmod()}
	t.even = t.oid == policy.NumericType && t.mod >= 0
	if t.oid == policy.Unknown {
		t.oid = policy.Text
	}
	sql := "pg_call(" + dialect.QuoteText(c.String())
	for _, p := range parts {
		sql += ", " + p
	}
	return expr{sql: fromResult(sql+")", t.oid), typed: t}
}

// asArgument writes a value as the text in which package sandbox hands it to package scalar.
func asArgument(e expr) string {
	switch e.oid {
	case policy.Bool, policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.TimeT, policy.IntervalT:
		return "CAST(" + e.sql + " AS VARCHAR)"
	case policy.NumericType:
		if e.decimal != nil {
			return e.decimal.text()
		}
	case policy.DateType:
		return "CAST(date_diff('day', DATE '1970-01-01', " + e.sql + ") AS VARCHAR)"
	case policy.TimestampT, policy.TimestampTZ:
		return "CAST(epoch_us(" + e.sql + ") AS VARCHAR)"
	}
	return e.sql
}

// fromResult reads the text of a result.
func fromResult(sql string, t policy.Type) string {
	switch t {
	case policy.Bool, policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.TimeT, policy.IntervalT:
		return "CAST(" + sql + " AS " + Storage(t) + ")"
	case policy.DateType:
		return "(DATE '1970-01-01' + CAST(" + sql + " AS INTEGER))"
	case policy.TimestampT, policy.TimestampTZ:
		return "make_timestamp(CAST(" + sql + " AS BIGINT))"
	}
	return sql
}
