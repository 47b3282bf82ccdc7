package scalar

import (
	"github.com/dpproxy/dpproxy/policy"
)

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

// trimming makes a text a char, whose values are without the blanks at their end (policy/char.go).
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
