package scalar

import "github.com/dpproxy/dpproxy/policy"

// Wants are the types that a function, aggregate, window function or operator takes its arguments as, of which some may
// be unknown: width_bucket(numeric, $1, $2, $3) wants two numerics and an integer, lag(smallint, $1, $2) an integer and
// a smallint. It is nil where PostgreSQL finds none; an argument of which any type will do stays unknown.
func (env Env) Wants(name string, in ...policy.Type) []policy.Type {
	c := loadCatalog()
	can := c.wanted(name, in)
	if can == nil {
		return nil
	}
	out := make([]policy.Type, len(in))
	for i, t := range can.args {
		out[i] = c.actual(can, in, t)
	}
	return out
}

// actual is what a type of a signature stands for in a call.
func (c *catalog) actual(can *candidate, in []policy.Type, t policy.Type) policy.Type {
	element, common, _ := c.generic(can.args, in)
	switch t {
	case anyElement, anyNonArray:
		t = element
	case anyArray:
		t = c.arrays[element]
	case anyCompatible:
		t = common
	case anyCompatibleArray:
		t = c.arrays[common]
	}
	if t == 0 || c.category(t) == categoryPseudo {
		return policy.Unknown
	}
	return t
}

// wanted is what PostgreSQL calls by that name.
func (c *catalog) wanted(name string, in []policy.Type) *candidate {
	find, list := c.resolveFunction, c.functions
	if isOperator(name) {
		find, list = c.resolveOperator, c.operators
	}
	if list[name] == nil {
		told := *c
		told.functions, told.operators = c.told, c.told
		if find = told.resolveFunction; isOperator(name) {
			find = told.resolveOperator
		}
	}
	can, err := find(name, in)
	if err != nil {
		return nil
	}
	return can
}

// Common is the type to which values of several types are brought where they stand beside one another, in CASE, UNION
// or an ARRAY; false means there is none.
func (env Env) Common(in ...policy.Type) (policy.Type, bool) {
	t, clash := loadCatalog().commonOf(in)
	return t, clash == 0
}

// generic finds what the any-types of a signature stand for: element where all such arguments are of one type, common
// where they are brought to one. false means the arguments do not go together.
func (c *catalog) generic(args, in []policy.Type) (element, common policy.Type, ok bool) {
	element, common = policy.Unknown, policy.Unknown
	var compatible []policy.Type
	for i, t := range args {
		of := in[i]
		if of == policy.Unknown {
			continue
		}
		if t == anyArray || t == anyCompatibleArray {
			if of = c.elements[of]; of == 0 {
				return element, common, false
			}
		}
		switch t {
		case anyNonArray, anyElement, anyArray:
			if t == anyNonArray && c.elements[of] != 0 || element != policy.Unknown && element != of {
				return element, common, false
			}
			element = of
		case anyCompatible, anyCompatibleArray:
			compatible = append(compatible, of)
		}
	}
	if compatible != nil {
		var clash policy.Type
		if common, clash = c.commonOf(compatible); clash != 0 {
			return element, common, false
		}
	} else {
		common = policy.Text
	}
	return element, common, true
}
