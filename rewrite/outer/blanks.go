package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// A choice among chars that was made below the leaf, coalesce(store, 'x'), comes out of it without the blanks at its
// end, whose number is not known. Comparisons, texts and aggregates of chars do not see them; these do.

// ragged reports whether a leaf has a column that is a choice among chars.
func ragged(l *plans.Leaf) bool {
	return slices.ContainsFunc(l.Keys, func(k plans.KeyColumn) bool { return k.Type == policy.Bpchar && k.Typmod < 4 }) ||
		slices.ContainsFunc(l.Counts, func(c plans.CountColumn) bool { return c.Type == policy.Bpchar && c.Typmod < 4 })
}

// blankReaders are the functions that take a char with the blanks at its end; array_ and json ones do, too.
var blankReaders = strings.Fields("concat concat_ws format quote_literal quote_nullable octet_length to_json to_jsonb row_to_json pg_column_size hashbpchar hashbpcharextended " +
	"bpcharlike bpcharnlike bpchariclike bpcharicnlike bpcharregexeq bpcharregexne bpcharicregexeq bpcharicregexne bpcharoctetlen")

// looksAtBlanks reports whether any part of a tree may see the blanks at the end of a char.
func looksAtBlanks(tree *pg.Node) (looks bool) {
	ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.FuncCall:
			name := lastName(v.GetFuncname())
			looks = looks || slices.Contains(blankReaders, name) || strings.Contains(name, "array") || strings.Contains(name, "json")
		case *pg.A_Expr:
			kind := v.GetKind()
			looks = looks || kind == pg.A_Expr_Kind_AEXPR_LIKE || kind == pg.A_Expr_Kind_AEXPR_ILIKE || kind == pg.A_Expr_Kind_AEXPR_SIMILAR ||
				strings.Contains(lastName(v.GetName()), "~")
		case *pg.A_ArrayExpr, *pg.RowExpr:
			looks = true
		}
	})
	return looks
}
