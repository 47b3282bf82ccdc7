// Command raced prints a pattern of the tests, of the directories that are named, that begin goroutines: by a go
// statement or a method Go, in their own body or in that of a function of the package's tests that they call. `make
// race` runs these.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var all []string
	for _, dir := range os.Args[1:] {
		tests, err := concurrent(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "raced:", err)
			os.Exit(1)
		}
		all = append(all, tests...)
	}
	fmt.Printf("^(%s)$\n", strings.Join(all, "|"))
}

// concurrent returns the names of a directory's tests that begin goroutines.
func concurrent(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("%s has no Go files", dir), err)
	}
	begins, calls, others := map[string]bool{}, map[string][]string{}, map[string]bool{} // methods by their names with a dot
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		tests := strings.HasSuffix(file, "_test.go")
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				name = "." + name
			}
			if !tests {
				others[name] = true
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					begins[name] = true
				case *ast.SelectorExpr:
					begins[name] = begins[name] || n.Sel.Name == "Go"
					calls[name] = append(calls[name], "."+n.Sel.Name)
				case *ast.Ident:
					calls[name] = append(calls[name], n.Name)
				}
				return true
			})
		}
	}
	for grown := true; grown; {
		grown = false
		for name, called := range calls {
			if !begins[name] && slices.ContainsFunc(called, func(c string) bool { return begins[c] && !others[c] }) {
				begins[name], grown = true, true
			}
		}
	}
	var tests []string
	for name, yes := range begins {
		if yes && strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	slices.Sort(tests)
	return tests, nil
}
