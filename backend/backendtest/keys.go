package backendtest

import (
	"cmp"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// KeysOf are claims over a table lines(who, a, b): that a alone, and a with b, are unique within each unit who, where
// they are not NULL; and that a is unique and never NULL.
func KeysOf(table string) map[string]rewrite.Unique {
	t := &policy.Table{Name: table, Source: policy.Source{Name: table}, UnitColumn: "who"}
	return map[string]rewrite.Unique{"a": {Table: t, Columns: []string{"a"}, Nullable: true}, "a, b": {Table: t, Columns: []string{"a", "b"}, Nullable: true},
		"a, strictly": {Table: t, Columns: []string{"a"}}, "a, whole": {Table: t, Columns: []string{"a"}, Nullable: true, Whole: "a"}}
}

// uniqueKeyCase is a constraint of lines, and what of KeysOf it proves.
type uniqueKeyCase struct {
	Constraint string
	Kind       string // of a; empty means integer
	Duck       bool   // DB knows it too
	Want       map[string]bool
}

// Columns are those of lines, and the constraint.
func (c uniqueKeyCase) Columns() string {
	columns := "(who int, a " + cmp.Or(c.Kind, "int") + ", b int, c int"
	if c.Constraint != "" {
		columns += ", " + c.Constraint
	}
	return columns + ")"
}

// UniqueKeyCases are what databases are asked.
var UniqueKeyCases = []uniqueKeyCase{
	{"", "", true, map[string]bool{}},
	{"UNIQUE (a)", "", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
	{"PRIMARY KEY (a)", "", true, map[string]bool{"a": true, "a, whole": true, "a, b": true, "a, strictly": true}},
	{"PRIMARY KEY (a, b)", "", true, map[string]bool{"a, b": true}},
	{"PRIMARY KEY (who, a)", "", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
	{"UNIQUE (who, b, a)", "", true, map[string]bool{"a, b": true}},
	{"UNIQUE (a, c)", "", true, map[string]bool{}},
	{"UNIQUE (a, b) DEFERRABLE", "", false, map[string]bool{}},
	{"UNIQUE (who, a)", "smallint", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
	{"UNIQUE (who, a)", "bigint", true, map[string]bool{"a": true, "a, whole": true, "a, b": true}},
	{"UNIQUE (who, a)", "numeric", true, map[string]bool{"a": true, "a, b": true}},
	{"UNIQUE (who, a)", "double precision", true, map[string]bool{"a": true, "a, b": true}},
	{"UNIQUE (who, a)", "text", true, map[string]bool{"a": true, "a, b": true}},
	{"EXCLUDE (a WITH =)", "", false, map[string]bool{}},
}
