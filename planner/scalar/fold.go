package scalar

import "github.com/dpproxy/dpproxy/policy"

// Fold evaluates the constant parts of e once, in the order in which PostgreSQL's planner does: an error in a part that
// no row reads is an error of the statement, unless an AND, OR, CASE or COALESCE has cut the part off before. An
// expression may be evaluated without having been folded; then such errors wait for a row that meets them.
func Fold(e Expr) (Expr, error) {
	switch e := e.(type) {
	case *junction:
		return foldJunction(e)
	case *caseOf:
		return foldCase(e)
	case *coalesce:
		return foldCoalesce(e)
	case *nullIf:
		return foldNullIf(e)
	case parent:
		return foldArguments(e)
	}
	return e, nil
}

func foldArguments(e parent) (Expr, error) {
	args := e.children()
	folded := make([]Expr, len(args))
	constants, null := true, false
	for i, arg := range args {
		f, err := Fold(arg)
		if err != nil {
			return nil, err
		}
		folded[i] = f
		c, ok := f.(*constant)
		constants = constants && ok
		null = null || ok && c.value == nil
	}
	again := e.rebuild(folded)
	if c, ok := e.(*call); ok {
		if null && !c.body.loose {
			return constantOf(nil, e.Type(), e.Typmod()), nil
		}
		if c.body.stable {
			return again, nil
		}
	}
	if !constants {
		return again, nil
	}
	return foldValue(again)
}

func foldValue(e Expr) (Expr, error) {
	v, err := e.Eval(nil)
	if err != nil {
		return nil, err
	}
	return constantOf(v, e.Type(), e.Typmod()), nil
}

func foldJunction(j *junction) (Expr, error) {
	var rest []Expr
	for _, arg := range j.args {
		f, err := Fold(arg)
		if err != nil {
			return nil, err
		}
		if c, ok := f.(*constant); ok && c.value != nil {
			if c.value.(bool) == j.stop {
				return f, nil
			}
			continue
		}
		rest = append(rest, f)
	}
	switch len(rest) {
	case 0:
		return Constant(!j.stop, policy.Bool), nil
	case 1:
		return rest[0], nil
	}
	for _, f := range rest {
		if _, ok := f.(*constant); !ok {
			return &junction{rest, j.stop}, nil
		}
	}
	return Constant(nil, policy.Bool), nil
}

func foldCase(c *caseOf) (Expr, error) {
	var arms []Expr
	last := len(c.arms) - 1
	otherwise := c.arms[last]
	for i := 0; i < last; i += 2 {
		condition, err := Fold(c.arms[i])
		if err != nil {
			return nil, err
		}
		if k, ok := condition.(*constant); ok {
			if k.value == true {
				otherwise = c.arms[i+1]
				break
			}
			continue
		}
		result, err := Fold(c.arms[i+1])
		if err != nil {
			return nil, err
		}
		arms = append(arms, condition, result)
	}
	result, err := Fold(otherwise)
	if err != nil {
		return nil, err
	}
	if len(arms) == 0 {
		return result, nil
	}
	return &caseOf{append(arms, result), c.typ, c.typmod}, nil
}

func foldCoalesce(c *coalesce) (Expr, error) {
	var args []Expr
	for _, arg := range c.args {
		f, err := Fold(arg)
		if err != nil {
			return nil, err
		}
		k, ok := f.(*constant)
		if ok && k.value == nil {
			continue
		}
		args = append(args, f)
		if ok {
			break
		}
	}
	if len(args) == 0 {
		return constantOf(nil, c.typ, c.typmod), nil
	}
	if len(args) == 1 {
		return args[0], nil
	}
	return &coalesce{args, c.typ, c.typmod}, nil
}

// foldNullIf drops the comparison where one side is NULL.
func foldNullIf(n *nullIf) (Expr, error) {
	left, err := Fold(n.equal.args[0])
	if err != nil {
		return nil, err
	}
	right, err := Fold(n.equal.args[1])
	if err != nil {
		return nil, err
	}
	for _, side := range []Expr{left, right} {
		if k, ok := side.(*constant); ok && k.value == nil {
			return left, nil
		}
	}
	return foldArguments(n)
}
