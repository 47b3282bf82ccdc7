package scalar

import (
	"cmp"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// junction is AND (stop false) or OR (stop true) over its arguments.
type junction struct {
	node
	stop bool
}

func (j *junction) rebuild(args []Expr) Expr { return &junction{j.over(args), j.stop} }

func (j *junction) Eval(row Row) (policy.Value, error) {
	var null bool
	for _, arg := range j.args {
		v, err := arg.Eval(row)
		if err != nil {
			return nil, err
		}
		if v == nil {
			null = true
		} else if v.(bool) == j.stop {
			return j.stop, nil
		}
	}
	if null {
		return nil, nil
	}
	return !j.stop, nil
}

// And, Or and Not are three-valued logic; And and Or evaluate left to right and stop when the outcome is fixed.
func And(args ...Expr) (Expr, error) { return junctionOf("AND", false, args) }

// Or: see And.
func Or(args ...Expr) (Expr, error) { return junctionOf("OR", true, args) }

func junctionOf(name string, stop bool, args []Expr) (Expr, error) {
	typed := make([]Expr, len(args))
	for i, arg := range args {
		e, err := truth(name, arg)
		if err != nil {
			return nil, err
		}
		typed[i] = e
	}
	if len(typed) == 1 {
		return typed[0], nil
	}
	return &junction{truthOf(typed...), stop}, nil
}

// truth makes e the boolean argument of a construct.
func truth(construct string, e Expr) (Expr, error) {
	if e.Type() == policy.Unknown {
		return Env{}.Coerce(e, policy.Bool)
	}
	if e.Type() != policy.Bool {
		return nil, failf(stateMismatch, "argument of %s must be type boolean, not type %s", construct,
			loadCatalog().typeName(e.Type()))
	}
	return e, nil
}

// test is a function of one argument that sees NULL and never answers it: IS NULL, IS TRUE.
type test struct {
	node
	answer func(policy.Value) policy.Value
}

func (t *test) rebuild(args []Expr) Expr { return &test{t.over(args), t.answer} }

func (t *test) Eval(row Row) (policy.Value, error) {
	v, err := t.args[0].Eval(row)
	if err != nil {
		return nil, err
	}
	return t.answer(v), nil
}

// Not: see And.
func Not(arg Expr) (Expr, error) {
	arg, err := truth("NOT", arg)
	if err != nil {
		return nil, err
	}
	return &test{truthOf(arg), func(v policy.Value) policy.Value {
		if v == nil {
			return nil
		}
		return !v.(bool)
	}}, nil
}

// IsNull is e IS NULL.
func IsNull(e Expr) Expr {
	return &test{truthOf(e), func(v policy.Value) policy.Value { return v == nil }}
}

// IsTruth is e IS TRUE (want true), IS FALSE (want false), IS UNKNOWN (want nil).
func IsTruth(e Expr, want policy.Value) (Expr, error) {
	construct := "IS UNKNOWN"
	switch want {
	case true:
		construct = "IS TRUE"
	case false:
		construct = "IS FALSE"
	}
	e, err := truth(construct, e)
	if err != nil {
		return nil, err
	}
	return &test{truthOf(e), func(v policy.Value) policy.Value { return v == want }}, nil
}

// distinct is a IS DISTINCT FROM b: the negated = that sees NULLs.
type distinct struct {
	node
	equal *call
}

func (d *distinct) rebuild(args []Expr) Expr { return &distinct{d.over(args), d.equal} }

func (d *distinct) Eval(row Row) (policy.Value, error) {
	a, err := d.args[0].Eval(row)
	if err != nil {
		return nil, err
	}
	b, err := d.args[1].Eval(row)
	if err != nil {
		return nil, err
	}
	if a == nil || b == nil {
		return a != nil || b != nil, nil
	}
	same, err := d.equal.body.two(d.equal.env, a, b)
	if err != nil {
		return nil, err
	}
	return !same.(bool), nil
}

// IsDistinct is a IS DISTINCT FROM b.
func (env Env) IsDistinct(a, b Expr) (Expr, error) {
	for _, pair := range [2][2]Expr{{a, b}, {b, a}} {
		if c, ok := pair[0].(*constant); ok && c.typ == policy.Unknown && c.value == nil {
			return Not(IsNull(pair[1]))
		}
	}
	equal, err := env.Call("=", a, b)
	if err != nil {
		return nil, err
	}
	return &distinct{truthOf(equal.(*call).args...), equal.(*call)}, nil
}

// Compare orders two non-NULL values of one type as ORDER BY does (text by code point): −1, 0, 1.
func Compare(_ policy.Type, a, b policy.Value) int {
	switch a := a.(type) {
	case bool:
		switch b := b.(bool); {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return compareFloat(a, b.(float64))
	case string:
		return strings.Compare(a, b.(string))
	case policy.Numeric:
		return compareNumeric(a, b.(policy.Numeric))
	case policy.Date:
		return cmp.Compare(a, b.(policy.Date))
	case policy.Timestamp:
		return cmp.Compare(a, b.(policy.Timestamp))
	case policy.Timestamptz:
		return cmp.Compare(a, b.(policy.Timestamptz))
	case policy.Time:
		return cmp.Compare(a, b.(policy.Time))
	case policy.Interval:
		return compareInterval(a, b.(policy.Interval))
	}
	return 0
}

// comparisonOutcomes says for each operator what it answers when the left side is less, equal, greater.
var comparisonOutcomes = map[string][3]bool{
	"<": {true, false, false}, "<=": {true, true, false}, "=": {false, true, false},
	"<>": {true, false, true}, ">=": {false, true, true}, ">": {false, false, true},
}

func (r registry) comparisons() {
	for name, outcomes := range comparisonOutcomes {
		for _, t := range []policy.Type{policy.Bool, policy.Text, policy.Bpchar, policy.UUID, policy.NumericType, policy.DateType,
			policy.TimestampT, policy.TimestampTZ, policy.IntervalT, policy.TimeT} {
			r.two(name, t, t, func(_ *Env, a, b policy.Value) (policy.Value, error) {
				return outcomes[Compare(t, a, b)+1], nil
			})
		}
		for _, a := range integerTypes {
			for _, b := range integerTypes {
				r.two(name, a, b, on2(func(a, b int64) (policy.Value, error) {
					return outcomes[cmp.Compare(a, b)+1], nil
				}))
			}
		}
		for _, a := range []policy.Type{policy.Float4, policy.Float8} {
			for _, b := range []policy.Type{policy.Float4, policy.Float8} {
				r.two(name, a, b, on2(func(a, b float64) (policy.Value, error) {
					return outcomes[compareFloat(a, b)+1], nil
				}))
			}
		}
		r.dateComparisons(name, outcomes)
	}
}

// dateComparisons compares dates, timestamps and timestamps with a zone with one another.
func (r registry) dateComparisons(name string, outcomes [3]bool) {
	types := []policy.Type{policy.DateType, policy.TimestampT, policy.TimestampTZ}
	for _, a := range types {
		for _, b := range types {
			if a == b {
				continue
			}
			zoned := a == policy.TimestampTZ || b == policy.TimestampTZ
			r.two(name, a, b, func(env *Env, x, y policy.Value) (policy.Value, error) {
				left, err := env.instant(x, zoned)
				if err != nil {
					return nil, err
				}
				right, err := env.instant(y, zoned)
				if err != nil {
					return nil, err
				}
				return outcomes[cmp.Compare(left, right)+1], nil
			})
			if zoned {
				r.stable(name, a, b)
			}
		}
	}
}

// instant is the microsecond of a date or timestamp: of UTC, or of the wall clock where none has a zone.
func (env *Env) instant(v policy.Value, zoned bool) (int64, error) {
	switch v := v.(type) {
	case policy.Date:
		local, err := dateToTimestamp(v)
		if err != nil || !zoned {
			return int64(local), err
		}
		at, err := env.toZoned(local)
		return int64(at), err
	case policy.Timestamp:
		if !zoned {
			return int64(v), nil
		}
		at, err := env.toZoned(v)
		return int64(at), err
	case policy.Timestamptz:
		return int64(v), nil
	}
	return 0, nil
}
