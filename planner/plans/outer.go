package plans

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Outer is everything above the privacy boundary. Exactly one of Direct and Tree is set.
type Outer struct {
	Direct *Direct
	// Tree is the statement with each leaf replaced by a reference to its released table, parameters replaced by typed
	// literals, and every node, function and relation on the allow-list. It is regenerated, never copied, by package
	// rewrite; relations of pg_catalog, information_schema, dp and public tables keep their names, schema-qualified.
	Tree *pg.Node
	// Relations are the non-leaf relations that Tree reads.
	Relations []Relation
	Literals  *scalar.Literals // how its literals are read; nil means as the session's settings are
	// Given are texts of parameters whose types what stands around them tells an engine alone, and which are read as
	// the settings are: $1, $2, … of Tree. Where literals are read alike they are literals themselves. In a plan that
	// is described only, $-n stands for parameter n where its type is not known.
	Given []string
}

// Relation is a table of the sandbox that an outer query reads.
type Relation struct {
	Schema, Name string
	Public       *policy.Table   // set for a public table
	Release      *policy.Release // set for the made-up rows of a release, which become a leaf
}

// The names of released tables and their columns.
func LeafName(i int) string { return "leaf_" + strconv.Itoa(i+1) }

func KeyName(k int) string { return "k" + strconv.Itoa(k+1) }

func CountName(n int) string { return "n" + strconv.Itoa(n+1) }

// IsLeafName tells the names that released tables have.
func IsLeafName(name string) bool {
	digits, found := strings.CutPrefix(name, "leaf_")
	return found && digits != "" && strings.Trim(digits, "0123456789") == ""
}
