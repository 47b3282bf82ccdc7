// Package scalar evaluates typed SQL expressions over single rows with PostgreSQL's semantics: NULLs, numeric scales,
// integer overflow, dates, LIKE. The planner evaluates predicates and group keys with it on every cell of a declared
// domain (so the private database never sees an expression that can fail), and the sandbox's direct path evaluates
// outer queries with it. It knows no tables: columns are positions in a row.
package scalar

import (
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// Row is the input of an expression.
type Row []policy.Value

// Env holds the constants of one statement.
type Env struct {
	Now  time.Time      // now(), current_date …: a constant of the plan
	Zone *time.Location // the session's time zone
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
func Column(i int, t policy.Type, typmod int32) Expr { panic("to be written") }

// Constant is v of type t (policy.Unknown for an untyped literal, whose v is a string or nil).
func Constant(v policy.Value, t policy.Type) Expr { panic("to be written") }

// Call resolves a function or operator ("lower", "date_trunc", "+", "<=", "~~", "||") over its arguments as
// PostgreSQL does, with implicit casts; an unknown one fails with 42883.
func (env Env) Call(name string, args ...Expr) (Expr, error) { panic("to be written") }

// Cast is e::t, explicit.
func (env Env) Cast(e Expr, t policy.Type, typmod int32) (Expr, error) { panic("to be written") }

// Coerce gives e the type t by an implicit (assignment false) cast, resolving unknown literals.
func (env Env) Coerce(e Expr, t policy.Type) (Expr, error) { panic("to be written") }

// And, Or and Not are three-valued logic; And and Or evaluate left to right and stop when the outcome is fixed.
func And(args ...Expr) (Expr, error) { panic("to be written") }

// Or is described at And.
func Or(args ...Expr) (Expr, error) { panic("to be written") }

// Not is described at And.
func Not(arg Expr) (Expr, error) { panic("to be written") }

// IsNull is e IS NULL.
func IsNull(e Expr) Expr { panic("to be written") }

// IsTruth is e IS TRUE (want true), IS FALSE (want false), IS UNKNOWN (want nil).
func IsTruth(e Expr, want policy.Value) (Expr, error) { panic("to be written") }

// IsDistinct is a IS DISTINCT FROM b.
func (env Env) IsDistinct(a, b Expr) (Expr, error) { panic("to be written") }

// In is e IN (list).
func (env Env) In(e Expr, list []Expr) (Expr, error) { panic("to be written") }

// When is one arm of a CASE.
type When struct{ If, Then Expr }

// Case is CASE WHEN … ELSE … END; otherwise nil is ELSE NULL.
func (env Env) Case(arms []When, otherwise Expr) (Expr, error) { panic("to be written") }

// Coalesce is COALESCE(args).
func (env Env) Coalesce(args ...Expr) (Expr, error) { panic("to be written") }

// NullIf is NULLIF(a, b).
func (env Env) NullIf(a, b Expr) (Expr, error) { panic("to be written") }

// Compare orders two non-NULL values of one type as ORDER BY does (text by code point): −1, 0, 1.
func Compare(t policy.Type, a, b policy.Value) int { panic("to be written") }

// ParseText reads the text form of a value of type t, as 't'::type does. FormatText writes it as PostgreSQL sends it
// (DateStyle ISO, IntervalStyle postgres).
func (env Env) ParseText(t policy.Type, text string) (policy.Value, error) { panic("to be written") }

// FormatText is described at ParseText.
func (env Env) FormatText(t policy.Type, v policy.Value) string { panic("to be written") }
