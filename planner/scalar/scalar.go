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
	"context"
	"fmt"
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

type column struct {
	index  int
	typ    policy.Type
	typmod int32
}

func (c *column) Type() policy.Type                  { return c.typ }
func (c *column) Typmod() int32                      { return c.typmod }
func (c *column) Eval(row Row) (policy.Value, error) { return row[c.index], nil }

type constant struct {
	value  policy.Value
	typ    policy.Type
	typmod int32
	read   *Literals // of an untyped literal: how it is read
}

func (c *constant) Type() policy.Type              { return c.typ }
func (c *constant) Typmod() int32                  { return c.typmod }
func (c *constant) Eval(Row) (policy.Value, error) { return c.value, nil }

// parent is an expression over others. rebuild makes the same one over other arguments (used by Fold).
type parent interface {
	Expr
	children() []Expr
	rebuild(args []Expr) Expr
}

// node is an expression over others, of one type whatever they are.
type node struct {
	args   []Expr
	typ    policy.Type
	typmod int32
}

func (n *node) Type() policy.Type { return n.typ }
func (n *node) Typmod() int32     { return n.typmod }
func (n *node) children() []Expr  { return n.args }

// over is the node over other arguments.
func (n node) over(args []Expr) node {
	n.args = args
	return n
}

// truthOf is a node that is true, false or NULL.
func truthOf(args ...Expr) node { return node{args, policy.Bool, -1} }

// relabel gives an expression another type with the same values: varchar as text, a date in its own type's typmod.
type relabel struct{ node }

func (r *relabel) Eval(row Row) (policy.Value, error) { return r.args[0].Eval(row) }
func (r *relabel) rebuild(args []Expr) Expr           { return &relabel{r.over(args)} }

// call is a function, operator or cast over its arguments.
type call struct {
	node
	name string // "floor", "+", or "::" for a cast
	body *body
	env  *Env
}

// body computes one signature of a function. Exactly one of none, one, two and many is set.
type body struct {
	none   func(env *Env) (policy.Value, error)
	one    func(env *Env, a policy.Value) (policy.Value, error)
	two    func(env *Env, a, b policy.Value) (policy.Value, error)
	many   func(env *Env, args []policy.Value) (policy.Value, error)
	stable bool // depends on the session: PostgreSQL does not fold it at plan time
	loose  bool // not strict: sees NULLs
}

func (c *call) rebuild(args []Expr) Expr { return &call{c.over(args), c.name, c.body, c.env} }

func (c *call) Eval(row Row) (policy.Value, error) {
	b := c.body
	switch {
	case b.one != nil:
		a, err := c.args[0].Eval(row)
		if err != nil || a == nil {
			return nil, err
		}
		return b.one(c.env, a)
	case b.two != nil:
		x, err := c.args[0].Eval(row)
		if err != nil {
			return nil, err
		}
		y, err := c.args[1].Eval(row)
		if err != nil || x == nil || y == nil {
			return nil, err
		}
		return b.two(c.env, x, y)
	case b.none != nil:
		return b.none(c.env)
	}
	return c.evalMany(row)
}

func (c *call) evalMany(row Row) (policy.Value, error) {
	values := make([]policy.Value, len(c.args))
	null := false
	for i, arg := range c.args {
		v, err := arg.Eval(row)
		if err != nil {
			return nil, err
		}
		values[i], null = v, null || v == nil
	}
	if null && !c.body.loose {
		return nil, nil
	}
	return c.body.many(c.env, values)
}

// hasColumn reports whether e reads its row. Expressions of other packages are taken to.
func hasColumn(e Expr) bool {
	switch e := e.(type) {
	case *constant:
		return false
	case parent:
		for _, c := range e.children() {
			if hasColumn(c) {
				return true
			}
		}
		return false
	}
	return true
}

// The SQLSTATEs of this package.
const (
	stateUnsupported    = "0A000"
	stateDivision       = "22012"
	stateRange          = "22003"
	stateText           = "22P02"
	stateDateFormat     = "22007"
	stateDateOverflow   = "22008"
	stateParameter      = "22023"
	stateEscape         = "22025"
	stateSubstring      = "22011"
	stateRegex          = "2201B"
	stateWidthBucket    = "2201G"
	stateNull           = "22004"
	stateLog            = "2201E"
	statePower          = "2201F"
	stateMismatch       = "42804"
	stateCannotCoerce   = "42846"
	stateUndefined      = "42883"
	stateAmbiguous      = "42725"
	stateIntervalFields = "22015"
	stateSyntax         = "42601" // of a template of numbers
	stateLimit          = "54000"
)

func fail(state, message string) error { return &Error{state, message} }

func failf(state, format string, args ...any) error {
	return &Error{state, fmt.Sprintf(format, args...)}
}

// unsupported is the refusal of what PostgreSQL would answer and this package does not.
func unsupported(format string, args ...any) error {
	return &Error{stateUnsupported, fmt.Sprintf(format, args...) + " is not supported"}
}

var (
	errDivision  = fail(stateDivision, "division by zero")
	errTimestamp = fail(stateDateOverflow, "timestamp out of range")
	errDate      = fail(stateDateOverflow, "date out of range")
	errInterval  = fail(stateDateOverflow, "interval out of range")
	errOverflow  = fail(stateRange, "value out of range: overflow")
	errUnderflow = fail(stateRange, "value out of range: underflow")
	errNumeric   = fail(stateRange, "value overflows numeric format")
	ErrInfinite  = unsupported("an infinite date or timestamp, or a numeric that is infinite or NaN,")
)

func outOfRange(t policy.Type) error { return failf(stateRange, "%s out of range", t.Name()) }

// badText refuses a text form. Texts that a user wrote as literals are added by whoever knows them to be literals.
func badText(t policy.Type) error {
	return failf(stateText, "invalid input syntax for type %s", t.Name())
}

func badDate(t policy.Type) error {
	return failf(stateDateFormat, "invalid input syntax for type %s", t.Name())
}

// Work is what planning one statement may take: steps, each about one evaluation of one node of an expression or one
// look at a cell, and bytes of what is sized by cells. Both are counted and not measured, so that which statement is
// refused is a function of public things and not of the machine's load (privacy rules 23 and 26). Beside them it sees a
// context, so that a cancel, a deadline or a lost client ends planning at its next look.
//
// What takes too much ends by a panic with *Stop, which the planner's exported functions turn into a refusal: the loops
// that take work are deep, and none of them holds anything that a panic would leave half done. A nil *Work counts
// nothing. It is of one goroutine.
type Work struct {
	ctx    context.Context
	limits Limits
	taken  Limits
	look   int64 // steps until the context is looked at
	over   bool
	half   bool // the steps are those of half a statement
	kept   map[string]any
}

// Limits are what one planning may take.
type Limits struct {
	Steps int64
	Bytes int64
}

// DefaultLimits are those of a statement of which nothing else is said: a few seconds of one core, and the memory for
// every array that 2^20 cells need, several times over.
var DefaultLimits = Limits{Steps: 100_000_000, Bytes: 512 << 20}

// Stop is why planning ends early.
type Stop struct {
	Cause error // the context's; nil means the limits
	Bytes bool  // it is the bytes
	Limit int64
}

// lookEvery is how many steps go by between two looks at the context.
const lookEvery = 1 << 10

// NewWork returns what planning may take until ctx is done.
func NewWork(ctx context.Context, l Limits) *Work { return &Work{ctx: ctx, limits: l} }

// Step takes n steps.
func (w *Work) Step(n int) {
	if w == nil || w.over {
		return
	}
	w.taken.Steps += int64(n)
	if w.look -= int64(n); w.look <= 0 {
		w.look = lookEvery
		w.stop()
	}
}

// Take takes memory for n things of so many bytes each.
func (w *Work) Take(n, each int) {
	if w == nil || w.over {
		return
	}
	w.taken.Bytes += int64(n) * int64(each)
	w.stop()
}

func (w *Work) stop() {
	switch {
	case w.ctx.Err() != nil:
		panic(&Stop{Cause: context.Cause(w.ctx)})
	case w.taken.Steps > w.limits.Steps:
		panic(&Stop{Limit: w.limits.Steps})
	case w.taken.Bytes > w.limits.Bytes:
		panic(&Stop{Bytes: true, Limit: w.limits.Bytes})
	}
}

// Spare leaves one half of the steps: a statement that is planned before answers within it are known is planned once
// more when they are paid for, and is not refused then for taking somewhat more.
func (w *Work) Spare() {
	if w == nil || w.half {
		return
	}
	w.half = true
	w.limits.Steps /= 2
	w.stop()
}

// Kept is what this planning has made under a name, nil means nothing. A statement that joins a public table nine
// times, or is planned again for other parts of its cost, reads it once.
func (w *Work) Kept(name string) any {
	if w == nil {
		return nil
	}
	return w.kept[name]
}

// Keep keeps what was made under a name, for as long as the planning takes.
func (w *Work) Keep(name string, made any) {
	if w == nil || w.over {
		return
	}
	if w.kept == nil {
		w.kept = map[string]any{}
	}
	w.kept[name] = made
}

// Taken is what has been taken so far.
func (w *Work) Taken() Limits {
	if w == nil {
		return Limits{}
	}
	return w.taken
}

// Renewed is w, or one with the same limits and nothing taken where w has been closed.
func (w *Work) Renewed() *Work {
	if w != nil && w.over {
		l := w.limits
		if w.half {
			l.Steps *= 2
		}
		return NewWork(w.ctx, l)
	}
	return w
}

// Close ends the count: what is left of a plan is used after it.
func (w *Work) Close() {
	if w != nil {
		w.over = true
	}
}
