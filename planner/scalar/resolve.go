package scalar

import (
	_ "embed" // catalog.txt
	"slices"
	"strconv"
	"strings"
	"sync"

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

//go:embed catalog.txt
var catalogText string

// catalog is what resolution knows of PostgreSQL: also signatures over types that expressions cannot have, because
// they decide how untyped literals resolve and when a call is ambiguous.
type catalog struct {
	types     map[policy.Type]catalogType
	names     map[string]policy.Type // typname -> type, of the types that expressions may have
	known     map[string]bool        // typnames of all types
	casts     map[[2]policy.Type]byte
	operators map[string][]signature
	functions map[string][]signature
	told      map[string][]signature // what expressions do not call, and parameters are arguments of
	named     map[string][][]Argument
	elements  map[policy.Type]policy.Type
	arrays    map[policy.Type]policy.Type
}

type catalogType struct {
	category  byte
	preferred bool
	name      string // as format_type writes it
}

type signature struct {
	args     []policy.Type
	result   policy.Type
	variadic bool
}

const categoryString, categoryPseudo, categoryArray = 'S', 'P', 'A'

// The pseudo-types that signatures use.
const (
	anyType            policy.Type = 2276
	anyNonArray        policy.Type = 2776
	anyElement         policy.Type = 2283
	anyArray           policy.Type = 2277
	anyCompatible      policy.Type = 5077
	anyCompatibleArray policy.Type = 5078
)

var loadCatalog = sync.OnceValue(func() *catalog {
	c := &catalog{
		types: map[policy.Type]catalogType{}, names: map[string]policy.Type{}, known: map[string]bool{},
		casts:     map[[2]policy.Type]byte{},
		operators: map[string][]signature{}, functions: map[string][]signature{}, told: map[string][]signature{},
		named: map[string][][]Argument{}, elements: map[policy.Type]policy.Type{}, arrays: map[policy.Type]policy.Type{},
	}
	for line := range strings.SplitSeq(strings.TrimSpace(catalogText), "\n") {
		f := strings.Fields(line)
		switch f[0] {
		case "type":
			t := oid(f[1])
			c.types[t] = catalogType{f[2][0], f[3] == "1", strings.Join(f[5:], " ")}
			if c.known[f[4]] = true; supported(t) && t != policy.Bpchar {
				c.names[f[4]] = t
			}
		case "cast":
			c.casts[[2]policy.Type{oid(f[1]), oid(f[2])}] = f[3][0]
		case "operator":
			c.operators[f[1]] = signatures(f[2:])
		case "function":
			c.functions[f[1]] = signatures(f[2:])
		case "told":
			c.told[f[1]] = signatures(f[2:])
		case "named":
			c.named[f[1]] = named(f[2:])
		case "array":
			c.elements[oid(f[2])], c.arrays[oid(f[1])] = oid(f[1]), oid(f[2])
		}
	}
	return c
})

func oid(text string) policy.Type {
	n, _ := strconv.ParseUint(text, 10, 32)
	return policy.Type(n)
}

// signatures reads "23+23=23 25+2276=25v".
func signatures(list []string) []signature {
	var all []signature
	for _, text := range list {
		args, result, _ := strings.Cut(text, "=")
		result, variadic := strings.CutSuffix(result, "v")
		s := signature{result: oid(result), variadic: variadic}
		for arg := range strings.SplitSeq(args, "+") {
			if arg != "" {
				s.args = append(s.args, oid(arg))
			}
		}
		all = append(all, s)
	}
	return all
}

// TypeName is what PostgreSQL calls a type, of those too that expressions cannot have: bytea, "char", json.
func TypeName(t policy.Type) string { return loadCatalog().typeName(t) }

// IsType tells the name of a type of PostgreSQL's, as casts have it, of those too that expressions cannot have.
func IsType(name string) bool { return loadCatalog().known[name] }

// Argument is one of a function whose arguments have names.
type Argument struct {
	Name    string
	Default string // its value where it is left out, as SQL; empty means it may not be
}

// Arguments are those of the functions of a name, where they have names.
func Arguments(function string) [][]Argument { return loadCatalog().named[function] }

// named reads "str,strict=true".
func named(list []string) (all [][]Argument) {
	for _, text := range list {
		var one []Argument
		for arg := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(arg, "=")
			one = append(one, Argument{name, value})
		}
		all = append(all, one)
	}
	return all
}

// supported reports whether expressions may have the type.
func supported(t policy.Type) bool {
	switch t {
	case policy.Bool, policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.NumericType,
		policy.Text, policy.Varchar, policy.Bpchar, policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.IntervalT, policy.TimeT,
		policy.UUID, policy.Unknown:
		return true
	}
	return false
}

func (c *catalog) category(t policy.Type) byte {
	if info, ok := c.types[t]; ok {
		return info.category
	}
	return 'U'
}

// preferred reports whether t is its category's preferred type, and the category is the given one.
func (c *catalog) preferredIn(category byte, t policy.Type) bool {
	info := c.types[t]
	return info.preferred && info.category == category
}

// implicit reports whether a value of type from may be used where to is wanted.
func (c *catalog) implicit(from, to policy.Type) bool {
	switch {
	case from == to, from == policy.Unknown, to == anyType:
		return true
	case to == anyNonArray, to == anyElement, to == anyCompatible:
		return true
	case to == anyArray, to == anyCompatibleArray:
		return c.elements[from] != 0
	}
	return c.casts[[2]policy.Type{from, to}] == 'i'
}

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

// actual returns what a type of a signature means in a call.
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

// Common is the type to which values of several types are brought where they are together in a CASE, UNION or ARRAY;
// false means there is none.
func (env Env) Common(in ...policy.Type) (policy.Type, bool) {
	t, clash := loadCatalog().commonOf(in)
	return t, clash == 0
}

// generic finds what the any-types of a signature mean: element where all such arguments are of one type, common
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
