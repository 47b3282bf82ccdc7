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
