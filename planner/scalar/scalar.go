// Package scalar evaluates typed SQL expressions over single rows with PostgreSQL 15's semantics: resolution of
// operators and functions, NULLs, numeric scales, integer overflow, dates, LIKE. The planner evaluates predicates and
// group keys with it on every cell of a declared domain (so the private database never sees an expression that can
// fail), and the sandbox's direct path evaluates outer queries with it. It knows no tables: columns are positions in a
// row. Text is compared by code point (collation C); case mapping is that of Unicode's simple mappings.
//
// What PostgreSQL knows and this package does not is refused with 0A000, never answered differently. One limit: exp,
// ln, log and power of double precision are correctly rounded here and may differ in the last bit from a C library's.
package scalar

import (
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// Row is the input of an expression.
type Row []policy.Value

// Env holds the constants of one statement.
type Env struct {
	Now   time.Time      // now(), current_date …: a constant of the plan
	Zone  *time.Location // the session's time zone
	Form  Form           // how it has values written as texts
	Asked *atomic.Bool   // set, if not nil, when an expression has asked for Now: its value does not hold for long
	Work  *Work          // what evaluating it on cells takes; nil means it is not counted

	Literals *Literals // how the statement's own literals are read; nil means as all other texts
}

// Literals is how a statement's untyped literals become dates, times and intervals: by the settings, and at the moment,
// of its analysis, which is that of PREPARE. Texts that become values later, parameters and `note::date` among them,
// are read as the settings are then:
//
//	SET datestyle = 'ISO, MDY'; PREPARE q(text) AS SELECT '01/02/2024'::date, $1::date;
//	SET datestyle = 'ISO, DMY'; EXECUTE q('01/02/2024')  ⇒  2024-01-02, 2024-02-01
type Literals struct {
	Now  time.Time // what 'today' is counted from
	Zone *time.Location
	Form Form
}

// SameSettings tells that two read alike but for 'now' and its like; nil is a session's own zone and form.
func (l *Literals) SameSettings(zone *time.Location, form Form) bool {
	return l == nil || l.Form.Dates == form.Dates && l.Form.Intervals == form.Intervals && zoneName(l.Zone) == zoneName(zone)
}

func zoneName(zone *time.Location) string { return Env{Zone: zone}.zone().String() }

// as reads texts so.
func (env *Env) as(l *Literals) *Env {
	if l == nil {
		return env
	}
	return &Env{Now: l.Now, Zone: l.Zone, Form: l.Form, Asked: env.Asked, Work: env.Work}
}

// Clock is Now, noting that it was asked for.
func (env Env) Clock() time.Time {
	if env.Asked != nil {
		env.Asked.Store(true)
	}
	return env.Now
}

// Expr is a typed, checked expression. Eval fails only with *Error, and only depending on the row.
type Expr interface {
	Type() policy.Type
	Typmod() int32
	Eval(row Row) (policy.Value, error)
}

// Error is a run-time or typing error with PostgreSQL's SQLSTATE and wording; it never quotes a row's values.
type Error struct {
	SQLState string
	Message  string
}

func (e *Error) Error() string { return e.Message }

// Column is the i-th value of the row.
func Column(i int, t policy.Type, typmod int32) Expr { return &column{i, t, typmod} }

// Constant is v of type t (policy.Unknown for an untyped literal, whose v is a string or nil).
func Constant(v policy.Value, t policy.Type) Expr { return ConstantOf(v, t, -1) }

// ConstantOf is Constant of a type with a modifier, as of varchar(3); −1: it has none.
func ConstantOf(v policy.Value, t policy.Type, typmod int32) Expr {
	return &constant{value: v, typ: t, typmod: typmod}
}

// Untyped is an untyped literal of the statement's own text, which is read as its literals are wherever it gets its
// type.
func (env Env) Untyped(text string) Expr {
	return &constant{value: text, typ: policy.Unknown, typmod: -1, read: env.Literals}
}

// zone is the session's time zone, UTC where none is set.
func (env Env) zone() *time.Location {
	if env.Zone == nil {
		return time.UTC
	}
	return env.Zone
}

// Shift reads the columns of e n places further on in a row; n may be negative.
func Shift(e Expr, n int) Expr {
	if c, ok := e.(*column); ok {
		return &column{c.index + n, c.typ, c.typmod}
	}
	return shifted{e, n}
}

type shifted struct {
	Expr
	n int
}

func (s shifted) Eval(row Row) (policy.Value, error) {
	if s.n < 0 {
		return s.Expr.Eval(append(make(Row, -s.n, len(row)-s.n), row...))
	}
	return s.Expr.Eval(row[min(s.n, len(row)):])
}
