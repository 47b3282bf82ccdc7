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

// TestKindsAreToldApartOnce: a package that tells the kinds of Specs apart does so in one type switch, which names all of them.
// So whoever adds a kind finds every place that has to know it. In mechanisms itself the compiler says so: a kind has methods.
func TestKindsAreToldApartOnce(t *testing.T) {
	var files []*ast.File
	var paths []string
	read(t, ".go", func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || !strings.Contains(text, "mechanisms") {
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
		if f.Name.Name == "mechanisms" {
			for _, d := range f.Decls {
				if method, ok := d.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == "hasNoise" {
					kinds[method.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
				}
			}
		}
	}
	if len(kinds) < 5 {
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
					star, _ := e.(*ast.StarExpr)
					if star == nil {
						continue
					}
					if sel, ok := star.X.(*ast.SelectorExpr); ok && sel.X.(*ast.Ident).Name == "mechanisms" && kinds[sel.Sel.Name] {
						named[sel.Sel.Name] = true
					}
				}
			}
			if len(named) == 0 {
				return true
			}
			if switches[paths[i]]++; switches[paths[i]] > 1 {
				t.Errorf("%s tells the kinds of Specs apart in more than one place", paths[i])
			}
			if !maps.Equal(named, kinds) {
				t.Errorf("%s tells the kinds %v apart, must tell all of %v", paths[i], slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(kinds)))
			}
			return true
		})
	}
	for _, path := range []string{"../../ledger/chain", "../../proxy/pipeline"} {
		if switches[path] != 1 {
			t.Errorf("%s tells kinds apart in %d places, must be 1: %v", path, switches[path], switches)
		}
	}
}
