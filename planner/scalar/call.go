package scalar

import (
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

// Call resolves a function or operator ("lower", "date_trunc", "+", "<=", "~~", "||") over its arguments as
// PostgreSQL does, with implicit casts; an unknown one fails with 42883. greatest, least, coalesce, nullif and the
// words current_date, current_timestamp, localtimestamp and localtime are calls, too.
func (env Env) Call(name string, args ...Expr) (Expr, error) {
	switch name {
	case "greatest", "least":
		return env.extreme(name, args)
	case WidthBucketOf:
		return env.thresholds(args)
	case "coalesce":
		return env.Coalesce(args...)
	case "nullif":
		if len(args) == 2 {
			return env.NullIf(args[0], args[1])
		}
	case "current_date", "current_timestamp", "localtimestamp", "localtime":
		if len(args) == 0 {
			return env.nowAs(name)
		}
	case "!=":
		name = "<>"
	}
	c := loadCatalog()
	in := make([]policy.Type, len(args))
	for i, a := range args {
		in[i] = a.Type()
	}
	if !isOperator(name) {
		if e, err := env.castCall(c, name, args); e != nil || err != nil {
			return e, err
		}
		can, err := c.resolveFunction(name, in)
		if err != nil {
			return nil, err
		}
		return env.build(c, name, can, args)
	}
	can, err := c.resolveOperator(name, in)
	if err != nil {
		return nil, err
	}
	return env.build(c, name, can, args)
}

// Exists reports whether a function or operator of that name can be called with so many arguments.
func (env Env) Exists(name string, nargs int) bool {
	c := loadCatalog()
	switch name {
	case "greatest", "least", "coalesce":
		return nargs > 0
	case "nullif":
		return nargs == 2
	case "current_date", "current_timestamp", "localtimestamp", "localtime":
		return nargs == 0
	}
	list := c.functions[name]
	if isOperator(name) {
		list = c.operators[name]
	}
	for _, can := range spread(list, nargs) {
		if _, ok := bodies()[keyOf(name, can.of.args)]; ok {
			return true
		}
	}
	return false
}

func isOperator(name string) bool {
	return name != "" && !(name[0] >= 'a' && name[0] <= 'z' || name[0] == '_')
}

// castCall answers type names used as functions, date('2020-01-01') or float8(x), where no function of that name has
// exactly these arguments: they are casts of untyped literals, of text and to text.
func (env Env) castCall(c *catalog, name string, args []Expr) (Expr, error) {
	target, ok := c.names[name]
	if !ok || len(args) != 1 || target == policy.Unknown {
		return nil, nil
	}
	from := args[0].Type()
	if exactly(spread(c.functions[name], 1), []policy.Type{from}) != nil {
		return nil, nil
	}
	io := c.category(target) == categoryString && c.casts[[2]policy.Type{from, target}] == 0
	if from == policy.Unknown || from == target || from.Textual() || io {
		return env.Cast(args[0], target, -1)
	}
	return nil, nil
}

// build makes the call of a resolved candidate.
func (env Env) build(c *catalog, name string, can *candidate, args []Expr) (Expr, error) {
	typed := make([]Expr, len(args))
	for i, a := range args {
		want := can.args[i]
		if polymorphic(want) {
			want = a.Type()
			if want == policy.Unknown {
				want = policy.Text
			}
		}
		if !supported(want) {
			return nil, unsupported("type %s", c.typeName(want))
		}
		e, err := env.Coerce(a, want)
		if err != nil {
			return nil, err
		}
		typed[i] = e
	}
	b, ok := bodies()[keyOf(name, can.of.args)]
	if !ok {
		if isOperator(name) {
			return nil, unsupported("operator %s", c.operatorText(name, can.args))
		}
		return nil, unsupported("function %s(%s)", name, c.typeList(can.args))
	}
	if can.of.variadic {
		typed = env.asText(typed)
	} else if slices.ContainsFunc(can.of.args, polymorphic) {
		for i, e := range typed {
			text, err := env.Cast(e, policy.Text, -1)
			if err != nil {
				return nil, err
			}
			typed[i] = text
		}
	}
	if name == "+" && len(typed) == 2 {
		b, typed = swapped(b, can, typed)
	}
	return &call{node{typed, can.of.result, -1}, name, b, &env}, nil
}

// swapped is interval + date as date + interval: PostgreSQL's own definition, which decides whose error comes first.
func swapped(b *body, can *candidate, args []Expr) (*body, []Expr) {
	first, second := can.args[0], can.args[1]
	if first != policy.IntervalT && first != policy.Int4 || second == policy.IntervalT {
		return b, args
	}
	return bodies()[keyOf("+", []policy.Type{second, first})], []Expr{args[1], args[0]}
}

// polymorphic tells the types of a signature that any type will do for.
func polymorphic(t policy.Type) bool { return t == anyType || t == anyNonArray }

// asText turns arguments into their text form, as output functions write it for the session.
func (env Env) asText(args []Expr) []Expr {
	out := make([]Expr, len(args))
	for i, a := range args {
		out[i] = a
		if t := a.Type(); !t.Textual() {
			b := &body{stable: dated(t)}
			b.one = func(env *Env, v policy.Value) (policy.Value, error) { return env.text(t, v), nil }
			out[i] = &call{node{[]Expr{a}, policy.Text, -1}, "output", b, &env}
		}
	}
	return out
}

// dated reports whether the text form of a type depends on the session.
func dated(t policy.Type) bool {
	return t == policy.IntervalT || t != policy.TimeT && loadCatalog().category(t) == 'D'
}

// registry holds the bodies by name and argument types.
type registry map[string]*body

// keyOf writes a signature as a registry key.
func keyOf(name string, args []policy.Type) string {
	key := make([]byte, 0, len(name)+5*len(args))
	key = append(key, name...)
	for _, t := range args {
		key = append(key, ' ')
		for n := uint32(t); n > 0; n /= 10 {
			key = append(key, byte('0'+n%10)) // digits in reverse: only equality matters
		}
	}
	return string(key)
}

func (r registry) one(name string, a policy.Type, f func(*Env, policy.Value) (policy.Value, error)) {
	r[keyOf(name, []policy.Type{a})] = &body{one: f}
}

func (r registry) two(name string, a, b policy.Type, f func(*Env, policy.Value, policy.Value) (policy.Value, error)) {
	r[keyOf(name, []policy.Type{a, b})] = &body{two: f}
}

func (r registry) many(name string, args []policy.Type, f func(*Env, []policy.Value) (policy.Value, error)) {
	r[keyOf(name, args)] = &body{many: f}
}

// stable marks bodies that depend on the session.
func (r registry) stable(name string, args ...policy.Type) { r[keyOf(name, args)].stable = true }

// loose marks bodies that see NULLs.
func (r registry) loose(name string, args ...policy.Type) { r[keyOf(name, args)].loose = true }

var bodies = sync.OnceValue(func() registry {
	r := registry{}
	r.integers()
	r.floats()
	r.numerics()
	r.comparisons()
	r.texts()
	r.patterns()
	r.dates()
	r.intervals()
	r.dayTimes()
	r.fields()
	r.formats()
	r.castFunctions()
	return r
})

// on1 and on2 give a typed function the form of a body.
func on1[A policy.Value](f func(A) (policy.Value, error)) func(*Env, policy.Value) (policy.Value, error) {
	return func(_ *Env, a policy.Value) (policy.Value, error) { return f(a.(A)) }
}

func on2[A, B policy.Value](f func(A, B) (policy.Value, error),
) func(*Env, policy.Value, policy.Value) (policy.Value, error) {
	return func(_ *Env, a, b policy.Value) (policy.Value, error) { return f(a.(A), b.(B)) }
}

// Cast is e::t, explicit.
func (env Env) Cast(e Expr, t policy.Type, typmod int32) (Expr, error) {
	if !supported(t) || t == policy.Unknown {
		return nil, unsupported("a cast to type %s", loadCatalog().typeName(t))
	}
	if t == policy.IntervalT && typmod >= 0 {
		return nil, unsupported("an interval with fields or a precision")
	}
	if c, ok := e.(*constant); ok && c.typ == policy.Unknown {
		return env.literal(c, t, typmod)
	}
	from := e.Type()
	converted, err := env.convert(e, t, true)
	if err != nil {
		return nil, err
	}
	if from == t && e.Typmod() == typmod {
		return e, nil
	}
	return env.restrict(converted, t, typmod), nil
}

// Coerce gives e the type t by an implicit cast, resolving untyped literals.
func (env Env) Coerce(e Expr, t policy.Type) (Expr, error) {
	if c, ok := e.(*constant); ok && c.typ == policy.Unknown {
		if t == policy.Unknown {
			return e, nil
		}
		return env.literal(c, t, -1)
	}
	return env.convert(e, t, false)
}

// literal reads an untyped literal as a constant of type t. Its text was written by the user, so errors quote it.
func (env *Env) literal(c *constant, t policy.Type, typmod int32) (Expr, error) {
	if c.value == nil {
		return ConstantOf(nil, t, typmod), nil
	}
	text, ok := c.value.(string)
	if !ok {
		return nil, unsupported("an untyped literal that is not text")
	}
	v, err := env.as(c.read).ParseText(t, text)
	if err == nil && typmod >= 0 {
		v, err = applyTypmod(t, v, typmod)
	}
	if e, ok := err.(*Error); ok {
		switch e.SQLState {
		case stateText, stateDateFormat, stateDateOverflow, stateIntervalFields:
			return nil, &Error{e.SQLState, e.Message + `: "` + text + `"`}
		}
	}
	if err != nil {
		return nil, err
	}
	return ConstantOf(v, t, typmod), nil
}

// convert casts between types without regard to typmods.
func (env *Env) convert(e Expr, t policy.Type, explicit bool) (Expr, error) {
	from := e.Type()
	if from == t {
		return e, nil
	}
	c := loadCatalog()
	context := c.casts[[2]policy.Type{from, t}]
	textual := c.category(from) == categoryString || c.category(t) == categoryString
	switch {
	case from == policy.Unknown:
		return env.inputCall(e, t), nil
	case context == 'i', context != 0 && explicit:
	case explicit && textual:
	default:
		return nil, failf(stateCannotCoerce, "cannot cast type %s to %s", c.typeName(from), c.typeName(t))
	}
	if from.Textual() && t == policy.Bpchar {
		return &call{node{[]Expr{e}, t, -1}, "::", trimming, env}, nil
	}
	if from.Textual() && t.Textual() {
		return &relabel{node{[]Expr{e}, t, -1}}, nil
	}
	if b, ok := castBodies()[[2]policy.Type{from, t}]; ok {
		return &call{node{[]Expr{e}, t, -1}, "::", b, env}, nil
	}
	if from.Textual() {
		return env.inputCall(e, t), nil
	}
	if t.Textual() && c.category(from) != categoryArray {
		return &relabel{node{[]Expr{env.asText([]Expr{e})[0]}, t, -1}}, nil
	}
	return nil, unsupported("a cast from %s to %s", c.typeName(from), c.typeName(t))
}

// trimming makes a text a char, whose values are without the blanks at their end (policy/types.go).
var trimming = &body{one: func(_ *Env, v policy.Value) (policy.Value, error) { return policy.Trimmed(policy.Bpchar, v), nil }}

// inputCall reads the text of e as a value of type t on every row.
func (env *Env) inputCall(e Expr, t policy.Type) Expr {
	b := &body{stable: dated(t)}
	b.one = func(env *Env, v policy.Value) (policy.Value, error) { return env.ParseText(t, v.(string)) }
	return &call{node{[]Expr{e}, t, -1}, "input", b, env}
}

// restrict applies a typmod: numeric(p,s), varchar(n), timestamp(p), time(p).
func (env *Env) restrict(e Expr, t policy.Type, typmod int32) Expr {
	if typmod < 0 {
		if e.Typmod() >= 0 {
			return &relabel{node{[]Expr{e}, t, -1}}
		}
		return e
	}
	if e.Typmod() == typmod {
		return e
	}
	b := &body{one: func(_ *Env, v policy.Value) (policy.Value, error) { return applyTypmod(t, v, typmod) }}
	return &call{node{[]Expr{e}, t, typmod}, "typmod", b, env}
}

// applyTypmod makes v fit its type's modifier as an explicit cast does.
func applyTypmod(t policy.Type, v policy.Value, typmod int32) (policy.Value, error) {
	switch v := v.(type) {
	case numeric:
		return applyNumericTypmod(v, typmod)
	case string:
		if t == policy.Varchar && typmod >= 4 {
			return firstRunes(v, int(typmod-4)), nil
		}
		return v, nil
	case policy.Timestamp:
		return policy.Timestamp(roundMicros(int64(v), typmod)), nil
	case policy.Timestamptz:
		return policy.Timestamptz(roundMicros(int64(v), typmod)), nil
	case policy.Time: // counted from midnight, which is a whole second of every day
		return policy.Time(roundMicros(int64(v)+epoch2000, typmod) - epoch2000), nil
	}
	return v, nil
}

// roundMicros rounds to so many digits of a second, half away from PostgreSQL's epoch 2000-01-01.
func roundMicros(v int64, digits int32) int64 {
	if digits < 0 || digits >= 6 {
		return v
	}
	unit := int64(1)
	for i := digits; i < 6; i++ {
		unit *= 10
	}
	v -= epoch2000
	if v >= 0 {
		v = (v + unit/2) / unit * unit
	} else {
		v = -((-v + unit/2) / unit * unit)
	}
	return v + epoch2000
}

func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
