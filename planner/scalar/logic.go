package scalar

import "github.com/dpproxy/dpproxy/policy"

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
