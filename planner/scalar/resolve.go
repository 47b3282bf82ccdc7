package scalar

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// candidate is a signature with its variadic argument spread over the call's arguments.
type candidate struct {
	args []policy.Type
	of   *signature
}

// resolveOperator finds the operator that PostgreSQL takes: the exact one (an untyped literal beside a typed operand
// has its type), else the best of those that the operands can be coerced to.
func (c *catalog) resolveOperator(name string, in []policy.Type) (*candidate, error) {
	list := spread(c.operators[name], len(in))
	want := in
	if len(in) == 2 && in[0] != in[1] {
		switch policy.Unknown {
		case in[0]:
			want = []policy.Type{in[1], in[1]}
		case in[1]:
			want = []policy.Type{in[0], in[0]}
		}
	}
	if found := exactly(list, want); found != nil {
		return found, nil
	}
	return c.best(list, in, func(is string) string { return "operator " + is + ": " + c.operatorText(name, in) })
}

// resolveFunction finds the function that PostgreSQL takes.
func (c *catalog) resolveFunction(name string, in []policy.Type) (*candidate, error) {
	list := spread(c.functions[name], len(in))
	if found := exactly(list, in); found != nil {
		return found, nil
	}
	return c.best(list, in, func(is string) string { return "function " + name + "(" + c.typeList(in) + ") " + is })
}

// best is the candidate that arguments are coerced for; says names what is called in an error.
func (c *catalog) best(list []*candidate, in []policy.Type, says func(is string) string) (*candidate, error) {
	list = c.coercible(list, in)
	if len(list) == 0 {
		return nil, fail(stateUndefined, says("does not exist"))
	}
	if found := c.selectCandidate(list, in); found != nil {
		return found, nil
	}
	return nil, fail(stateAmbiguous, says("is not unique"))
}

func spread(list []signature, n int) []*candidate {
	var out []*candidate
	for i := range list {
		s := &list[i]
		if !s.variadic && len(s.args) == n {
			out = append(out, &candidate{s.args, s})
		}
		if s.variadic && n >= len(s.args) {
			args := append([]policy.Type(nil), s.args...)
			for len(args) < n {
				args = append(args, args[len(args)-1])
			}
			out = append(out, &candidate{args, s})
		}
	}
	return out
}

func exactly(list []*candidate, in []policy.Type) *candidate {
	i := slices.IndexFunc(list, func(can *candidate) bool { return slices.Equal(can.args, in) })
	if i < 0 {
		return nil
	}
	return list[i]
}

func (c *catalog) coercible(list []*candidate, in []policy.Type) []*candidate {
	return keep(list, func(can *candidate) bool {
		for i, t := range in {
			if !c.implicit(t, can.args[i]) {
				return false
			}
		}
		_, _, ok := c.generic(can.args, in)
		return ok
	})
}

func keep(list []*candidate, good func(*candidate) bool) []*candidate {
	return slices.DeleteFunc(slices.Clone(list), func(can *candidate) bool { return !good(can) })
}

// most keeps the candidates with the highest score.
func most(list []*candidate, score func(*candidate) int) []*candidate {
	best := -1
	var out []*candidate
	for _, can := range list {
		n := score(can)
		if n > best {
			best, out = n, nil
		}
		if n == best {
			out = append(out, can)
		}
	}
	return out
}

// selectCandidate follows the manual's "Function Type Resolution", steps 4a to 4f; nil means ambiguous.
func (c *catalog) selectCandidate(list []*candidate, in []policy.Type) *candidate {
	for _, preferred := range []bool{false, true} {
		list = most(list, func(can *candidate) int {
			n := 0
			for i, t := range in {
				if t != policy.Unknown && (can.args[i] == t || preferred && c.preferredIn(c.category(t), can.args[i])) {
					n++
				}
			}
			return n
		})
	}
	if narrowed := c.byUnknowns(list, in); len(narrowed) > 0 {
		list = narrowed
	}
	if len(list) == 1 {
		return list[0]
	}
	return c.byKnownType(list, in)
}

// byUnknowns takes for each untyped literal the category that the candidates have there, text where one has text.
func (c *catalog) byUnknowns(list []*candidate, in []policy.Type) []*candidate {
	type slot struct {
		category  byte
		preferred bool
	}
	slots := map[int]slot{}
	for i, t := range in {
		if t != policy.Unknown {
			continue
		}
		var s slot
		conflict := false
		for _, can := range list {
			category, preferred := c.category(can.args[i]), c.types[can.args[i]].preferred
			switch {
			case s.category == 0, category == categoryString && s.category != categoryString:
				s = slot{category, preferred}
			case category == s.category:
				s.preferred = s.preferred || preferred
			default:
				conflict = true
			}
		}
		if conflict && s.category != categoryString {
			return nil
		}
		slots[i] = s
	}
	return keep(list, func(can *candidate) bool {
		for i, s := range slots {
			if c.category(can.args[i]) != s.category || s.preferred && !c.types[can.args[i]].preferred {
				return false
			}
		}
		return true
	})
}

// byKnownType takes untyped literals to have the one type that all other arguments have.
func (c *catalog) byKnownType(list []*candidate, in []policy.Type) *candidate {
	known, unknowns := policy.Unknown, 0
	for _, t := range in {
		switch {
		case t == policy.Unknown:
			unknowns++
		case known == policy.Unknown:
			known = t
		case known != t:
			return nil
		}
	}
	if unknowns == 0 || known == policy.Unknown {
		return nil
	}
	all := make([]policy.Type, len(in))
	for i := range all {
		all[i] = known
	}
	if list = c.coercible(list, all); len(list) == 1 {
		return list[0]
	}
	return nil
}

func (c *catalog) operatorText(name string, in []policy.Type) string {
	if len(in) == 1 {
		return name + " " + c.typeName(in[0])
	}
	return c.typeName(in[0]) + " " + name + " " + c.typeName(in[1])
}

func (c *catalog) typeList(in []policy.Type) string {
	var names []string
	for _, t := range in {
		names = append(names, c.typeName(t))
	}
	return strings.Join(names, ", ")
}

func (c *catalog) typeName(t policy.Type) string {
	if info, ok := c.types[t]; ok {
		return info.name
	}
	return t.Name()
}
