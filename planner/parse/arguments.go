package parse

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// Arguments that are given by their names are put into their places before anything else reads the tree, with
// PostgreSQL's defaults for those that are left out between them:
//
//	now() - make_interval(days => 90)  ⇒  now() - make_interval(0, 0, 0, 90)
//
// A call of which the names fit none of a function's forms, or several, keeps them, and is refused where it stands.

// PlaceArguments does so in all of a tree, if its text has a sign of it.
func PlaceArguments(tree *pg.ParseResult, text string) {
	if !strings.Contains(text, "=>") && !strings.Contains(text, ":=") {
		return
	}
	ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
		if f, ok := m.Interface().(*pg.FuncCall); ok && ast.NamedArgument(f) != "" {
			if args := placed(f); args != nil {
				f.Args = args
			}
		}
	})
}

// placed are the arguments of a call in their places; nil means not one form of the function takes them.
func placed(f *pg.FuncCall) (found []*pg.Node) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil || f.FuncVariadic {
		return nil
	}
	for _, form := range scalar.Arguments(name) {
		args := placedIn(form, f.Args)
		if args != nil && found != nil {
			return nil
		}
		if args != nil {
			found = args
		}
	}
	return found
}

// placedIn puts arguments into the places that one form of a function has; nil means it does not take them.
func placedIn(form []scalar.Argument, given []*pg.Node) []*pg.Node {
	args, last, names := make([]*pg.Node, len(form)), 0, false
	for i, g := range given {
		at := i
		if n := g.GetNamedArgExpr(); n != nil {
			names = true
			at = slices.IndexFunc(form, func(a scalar.Argument) bool { return a.Name == n.Name })
			g = n.Arg
		} else if names {
			return nil // a place behind a name
		}
		if at < 0 || at >= len(args) || args[at] != nil {
			return nil
		}
		args[at], last = g, max(last, at)
	}
	for i := range args {
		if args[i] != nil {
			continue
		}
		if form[i].Default == "" {
			return nil
		}
		if i < last {
			args[i] = defaultOf(form[i].Default)
		}
	}
	return args[:last+1]
}

// defaultOf is the tree of an expression of PostgreSQL's catalog, which stands nowhere in a statement.
func defaultOf(sql string) *pg.Node {
	tree, err := pg.Parse("SELECT " + sql)
	if err != nil {
		return nil
	}
	node := tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val
	ast.PlaceAt(node.ProtoReflect(), -1)
	return node
}
