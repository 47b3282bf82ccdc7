package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKindsAreToldApartOnce: a package that tells the kinds of Specs apart, or what is asked of a query, does so in one
// type switch, which names all of them. So whoever adds a kind finds every place that has to know it. In the package of
// the kinds the compiler says so: a kind has methods.
func TestKindsAreToldApartOnce(t *testing.T) {
	t.Run("Spec", func(t *testing.T) {
		toldApartOnce(t, "mechanisms", "hasNoise", 5, "../../ledger/chain", "../../proxy/pipeline")
	})
	t.Run("Asked", func(t *testing.T) { toldApartOnce(t, "linear", "asked", 3, "../../planner", "../../planner/choose") })
}

// toldApartOnce reads the program for type switches over the types of a package that have a method; places are where
// there must be one.
func toldApartOnce(t *testing.T, pkg, seal string, least int, places ...string) {
	var files []*ast.File
	var paths []string
	read(t, ".go", func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || !strings.Contains(text, pkg) {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files, paths = append(files, f), append(paths, filepath.Dir(path))
	})
	kinds := map[string]bool{}
	for _, f := range files {
		if f.Name.Name == pkg {
			for _, d := range f.Decls {
				if method, ok := d.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == seal {
					kinds[pointed(method.Recv.List[0].Type).(*ast.Ident).Name] = true
				}
			}
		}
	}
	if len(kinds) < least {
		t.Fatalf("kinds are %v", slices.Sorted(maps.Keys(kinds)))
	}
	switches := map[string]int{}
	for i, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSwitchStmt)
			if !ok {
				return true
			}
			named := map[string]bool{}
			for _, clause := range s.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					if sel, ok := pointed(e).(*ast.SelectorExpr); ok && sel.X.(*ast.Ident).Name == pkg && kinds[sel.Sel.Name] {
						named[sel.Sel.Name] = true
					}
				}
			}
			if len(named) == 0 {
				return true
			}
			if switches[paths[i]]++; switches[paths[i]] > 1 {
				t.Errorf("%s tells kinds of %s apart in more than one place", paths[i], pkg)
			}
			if !maps.Equal(named, kinds) {
				t.Errorf("%s tells the kinds %v apart, must tell all of %v", paths[i], slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(kinds)))
			}
			return true
		})
	}
	for _, path := range places {
		if switches[path] != 1 {
			t.Errorf("%s tells kinds apart in %d places, must be 1: %v", path, switches[path], switches)
		}
	}
}

// pointed is the type that a pointer points to, or the type itself.
func pointed(e ast.Expr) ast.Expr {
	if star, ok := e.(*ast.StarExpr); ok {
		return star.X
	}
	return e
}
