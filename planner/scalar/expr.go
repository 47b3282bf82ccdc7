package scalar

import "github.com/dpproxy/dpproxy/policy"

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

// relabel gives an expression another type with the same values: varchar as text, a date in its own type's typmod.
type relabel struct {
	arg    Expr
	typ    policy.Type
	typmod int32
}

func (r *relabel) Type() policy.Type                  { return r.typ }
func (r *relabel) Typmod() int32                      { return r.typmod }
func (r *relabel) Eval(row Row) (policy.Value, error) { return r.arg.Eval(row) }
func (r *relabel) children() []Expr                   { return []Expr{r.arg} }
func (r *relabel) rebuild(args []Expr) Expr           { return &relabel{args[0], r.typ, r.typmod} }

// call is a function, operator or cast over its arguments.
type call struct {
	name   string // "floor", "+", or "::" for a cast
	args   []Expr
	typ    policy.Type
	typmod int32
	body   *body
	env    *Env
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

func (c *call) Type() policy.Type { return c.typ }
func (c *call) Typmod() int32     { return c.typmod }
func (c *call) children() []Expr  { return c.args }

func (c *call) rebuild(args []Expr) Expr {
	again := *c
	again.args = args
	return &again
}

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
