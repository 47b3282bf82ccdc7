package scalar

import "github.com/dpproxy/dpproxy/policy"

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
