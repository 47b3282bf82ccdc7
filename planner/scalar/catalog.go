package scalar

import (
	_ "embed" // catalog.txt
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

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
	told      map[string][]signature // what expressions do not call, and parameters stand in
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
	Default string // what stands for it where it is left out, as SQL; empty means it may not be
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
