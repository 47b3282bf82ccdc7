package scalar

import (
	"slices"

	"github.com/dpproxy/dpproxy/policy"
)

// When is one arm of a CASE.
type When struct{ If, Then Expr }

// caseOf is CASE over its arms: If, Then, If, Then, …, ELSE.
type caseOf struct{ node }

func (c *caseOf) rebuild(args []Expr) Expr { return &caseOf{c.over(args)} }

func (c *caseOf) Eval(row Row) (policy.Value, error) {
	last := len(c.args) - 1
	for i := 0; i < last; i += 2 {
		v, err := c.args[i].Eval(row)
		if err != nil {
			return nil, err
		}
		if v == true {
			return c.args[i+1].Eval(row)
		}
	}
	return c.args[last].Eval(row)
}

// Case is CASE WHEN … ELSE … END; otherwise nil is ELSE NULL.
func (env Env) Case(arms []When, otherwise Expr) (Expr, error) {
	if otherwise == nil {
		otherwise = Constant(nil, policy.Unknown)
	}
	results := []Expr{otherwise} // PostgreSQL lets the ELSE weigh first
	for _, arm := range arms {
		results = append(results, arm.Then)
	}
	results, t, err := env.unify("CASE", results)
	if err != nil {
		return nil, err
	}
	c := &caseOf{node{typ: t, typmod: commonTypmod(results)}}
	for i, arm := range arms {
		condition, err := truth("CASE/WHEN", arm.If)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, condition, results[i+1])
	}
	c.args = append(c.args, results[0])
	return c, nil
}

// coalesce is the first argument that is not NULL.
type coalesce struct{ node }

func (c *coalesce) rebuild(args []Expr) Expr { return &coalesce{c.over(args)} }

func (c *coalesce) Eval(row Row) (policy.Value, error) {
	for _, arg := range c.args {
		if v, err := arg.Eval(row); v != nil || err != nil {
			return v, err
		}
	}
	return nil, nil
}

// Coalesce is COALESCE(args).
func (env Env) Coalesce(args ...Expr) (Expr, error) {
	typed, t, err := env.unify("COALESCE", args)
	if err != nil {
		return nil, err
	}
	return &coalesce{node{typed, t, commonTypmod(typed)}}, nil
}

// nullIf is NULL where its = holds, else the left side.
type nullIf struct {
	equal *call
	left  Expr // the left side before its coercion
}

func (n *nullIf) Type() policy.Type { return n.left.Type() }
func (n *nullIf) Typmod() int32     { return n.left.Typmod() }
func (n *nullIf) children() []Expr  { return []Expr{n.left, n.equal.args[0], n.equal.args[1]} }
func (n *nullIf) rebuild(args []Expr) Expr {
	return &nullIf{n.equal.rebuild(args[1:]).(*call), args[0]}
}

func (n *nullIf) Eval(row Row) (policy.Value, error) {
	v, err := n.equal.Eval(row)
	if err != nil || v == true {
		return nil, err
	}
	return n.left.Eval(row)
}

// NullIf is NULLIF(a, b). Its type is that of the left operand of the = that it means.
func (env Env) NullIf(a, b Expr) (Expr, error) {
	e, err := env.Call("=", a, b)
	if err != nil {
		return nil, err
	}
	equal := e.(*call)
	return &nullIf{equal, equal.args[0]}, nil
}

// extremum is GREATEST or LEAST: NULLs do not count.
type extremum struct {
	node
	sign int
}

func (x *extremum) rebuild(args []Expr) Expr { return &extremum{x.over(args), x.sign} }

func (x *extremum) Eval(row Row) (policy.Value, error) {
	var best policy.Value
	for _, arg := range x.args {
		v, err := arg.Eval(row)
		if err != nil {
			return nil, err
		}
		if v != nil && (best == nil || x.sign*Compare(x.typ, v, best) > 0) {
			best = v
		}
	}
	return best, nil
}

func (env Env) extreme(name string, args []Expr) (Expr, error) {
	sign, construct := 1, "GREATEST"
	if name == "least" {
		sign, construct = -1, "LEAST"
	}
	typed, t, err := env.unify(construct, args)
	if err != nil {
		return nil, err
	}
	return &extremum{node{typed, t, commonTypmod(typed)}, sign}, nil
}

// unify gives expressions their common type, as UNION, CASE and related constructs do.
func (env *Env) unify(construct string, list []Expr) ([]Expr, policy.Type, error) {
	if len(list) == 0 {
		return nil, 0, failf("42601", "%s needs arguments", construct)
	}
	c := loadCatalog()
	t, other := c.common(list)
	if other != 0 {
		return nil, 0, failf(stateMismatch, "%s types %s and %s cannot be matched", construct, c.typeName(t),
			c.typeName(other))
	}
	out := make([]Expr, len(list))
	for i, e := range list {
		if e.Type() != policy.Unknown && !c.implicit(e.Type(), t) {
			if construct == "CASE" { // which PostgreSQL names its part of: ELSE is the first here
				construct += []string{"/ELSE", "/WHEN"}[min(i, 1)]
			}
			return nil, 0, failf(stateCannotCoerce, "%s could not convert type %s to %s", construct,
				c.typeName(e.Type()), c.typeName(t))
		}
		typed, err := env.Coerce(e, t)
		if err != nil {
			return nil, 0, err
		}
		out[i] = typed
	}
	return out, t, nil
}

// Merged is the type of the column that USING makes of two, and reports whether an inner join shows the right one:
// PostgreSQL shows the left one, unless that would have to be made another type, or one of another scale or length, and
// the right one would not. Of price numeric(8,2) and price numeric it is the second.
func Merged(left, right Expr) (t policy.Type, ofRight bool) {
	t, typmod := left.Type(), left.Typmod()
	if t != right.Type() {
		t, _ = loadCatalog().common([]Expr{left, right})
	}
	if left.Type() != right.Type() || typmod != right.Typmod() {
		typmod = -1
	}
	as := func(e Expr) bool { return e.Type() == t && e.Typmod() == typmod }
	return t, !as(left) && as(right)
}

// common selects the common type of a list; where two categories meet, it returns the two types.
func (c *catalog) common(list []Expr) (t, clash policy.Type) {
	types := make([]policy.Type, 0, 8) // on the stack, mostly
	for _, e := range list {
		types = append(types, e.Type())
	}
	return c.commonOf(types)
}

func (c *catalog) commonOf(types []policy.Type) (t, clash policy.Type) {
	t = types[0]
	for _, next := range types[1:] {
		if next == policy.Unknown || next == t {
			continue
		}
		switch {
		case t == policy.Unknown:
			t = next
		case c.category(next) != c.category(t):
			return t, next
		case !c.types[t].preferred && c.implicit(t, next) && !c.implicit(next, t):
			t = next
		}
	}
	if t == policy.Unknown {
		t = policy.Text
	}
	return t, 0
}

// commonTypmod is the modifier that all have. A char that is NULL has any: what is chosen is filled up as the others
// are.
func commonTypmod(list []Expr) int32 {
	if list[0].Type() == policy.Bpchar {
		if some := slices.DeleteFunc(slices.Clone(list), isNullConstant); len(some) > 0 {
			list = some
		}
	}
	for _, e := range list[1:] {
		if e.Typmod() != list[0].Typmod() {
			return -1
		}
	}
	return list[0].Typmod()
}

func isNullConstant(e Expr) bool {
	if hasColumn(e) {
		return false
	}
	v, err := e.Eval(nil)
	return err == nil && v == nil
}

// among is e = ANY(list) over constants of one type.
type among struct {
	node
	equal *body
	env   *Env
	list  []policy.Value // NULLs left out
	null  bool           // the list holds NULL
	set   map[policy.Value]struct{}
}

func (a *among) rebuild(args []Expr) Expr {
	again := *a
	again.args = args
	return &again
}

func (a *among) Eval(row Row) (policy.Value, error) {
	v, err := a.args[0].Eval(row)
	if err != nil || v == nil {
		return nil, err
	}
	if a.set != nil {
		if _, ok := a.set[v]; ok {
			return true, nil
		}
	} else {
		for _, w := range a.list {
			same, err := a.equal.two(a.env, v, w)
			if err != nil {
				return nil, err
			}
			if same == true {
				return true, nil
			}
		}
	}
	if a.null {
		return nil, nil
	}
	return false, nil
}

// In is e IN (list). As PostgreSQL does, constants of the list get one common type with e, if there is one; the others
// are compared one by one.
func (env Env) In(e Expr, list []Expr) (Expr, error) {
	var constants, others []Expr
	for _, item := range list {
		if hasColumn(item) {
			others = append(others, item)
		} else {
			constants = append(constants, item)
		}
	}
	var alternatives []Expr
	if len(constants) > 1 {
		found, err := env.amongConstants(e, constants)
		if err != nil {
			return nil, err
		}
		if found != nil {
			alternatives = []Expr{found}
		}
	}
	if alternatives == nil {
		others = list
	}
	for _, item := range others {
		equal, err := env.Call("=", e, item)
		if err != nil {
			return nil, err
		}
		alternatives = append(alternatives, equal)
	}
	return Or(alternatives...)
}

// amongConstants builds e = ANY(constants); nil means there is no common type.
func (env Env) amongConstants(e Expr, constants []Expr) (Expr, error) {
	c := loadCatalog()
	all := append([]Expr{e}, constants...)
	t, clash := c.common(all)
	if clash != 0 {
		return nil, nil
	}
	for _, item := range all {
		if !c.implicit(item.Type(), t) {
			return nil, nil
		}
	}
	can, err := c.resolveOperator("=", []policy.Type{e.Type(), t})
	if err != nil {
		return nil, err
	}
	b, ok := bodies()[keyOf("=", can.of.args)]
	if !ok {
		return nil, unsupported("operator %s", c.operatorText("=", can.args))
	}
	arg, err := env.Coerce(e, can.args[0])
	if err != nil {
		return nil, err
	}
	a := &among{node: truthOf(arg), equal: b, env: &env}
	for _, item := range constants {
		if err := a.add(&env, item, t, can.args[1]); err != nil {
			return nil, err
		}
	}
	a.index(can)
	return a, nil
}

// add puts one constant, first coerced to the list's common type, then to the operator's.
func (a *among) add(env *Env, item Expr, common, operand policy.Type) error {
	typed, err := env.Coerce(item, common)
	if err != nil {
		return err
	}
	if typed, err = env.Coerce(typed, operand); err != nil {
		return err
	}
	v, err := typed.Eval(nil)
	if err != nil {
		return err
	}
	if v == nil {
		a.null = true
	} else {
		a.list = append(a.list, v)
	}
	return nil
}

// index speeds up long lists of values that are equal only when identical.
func (a *among) index(can *candidate) {
	if len(a.list) < 8 {
		return
	}
	for _, t := range can.args {
		if !t.Integer() && !t.Textual() && t != policy.DateType && t != policy.UUID {
			return
		}
	}
	a.set = make(map[policy.Value]struct{}, len(a.list))
	for _, v := range a.list {
		a.set[v] = struct{}{}
	}
}
