package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// openers are the functions that take a value across the privacy boundary, or say that it never was private.
var openers = map[string]bool{
	module + "mechanisms/privacy.Published": true, module + "mechanisms/internal/sealed.Open": true, module + "mechanisms/internal/sealed.Release": true,
}

// allowed lists every use of an opener in the program, with the reason why it may. A new one must be argued for here.
var allowed = map[string]string{
	"mechanisms.Release sealed.Open":                "the only place that sees true counts: to add their noise",
	"mechanisms.Release sealed.Release":             "the counts with their noise",
	"mechanisms.Estimate.Sum sealed.Release":        "a sum over an Estimate, which is made from a Released",
	"mechanisms/privacy.Published sealed.Release":   "its own body",
	"mechanisms/privacy.PostProcess sealed.Release": "a function of a Released",
	"ledger.decodeStored privacy.Published":         "what Save took as Released, read back and compared with its digest",
	"backend.copyTable privacy.Published":           "a table that the policy declares public",
	"sandbox.Direct privacy.Published":              "one empty row, for a query without a leaf",
	"sandbox.embedded.Query privacy.Published":      "computed by a process that holds released and public tables alone",
	"proxy.Answerer.ownTables privacy.Published":    "dp.*: her own account, from the ledger and the policy",
	"proxy.Answerer.outerColumns privacy.Published": "columns without rows",
	"proxy.textResult privacy.Published":            "lines of an EXPLAIN or a SHOW: from the plan and her account",
	"proxy.session.show privacy.Published":          "her session's variables",
	"proxy.publicLeaf privacy.Published":            "keys of declared domains, and counts of rows that cannot exist",
	"proxy.Answerer.postProcess privacy.Published":  "one empty row, for a query without a leaf",
}

// TestPublishedCallers compares the uses of the openers with the list.
func TestPublishedCallers(t *testing.T) {
	uses := map[string]int{}
	err := filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2 {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		dir, err := filepath.Rel("../..", filepath.Dir(file))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		found, err := openersIn(filepath.ToSlash(dir), parsed)
		for _, use := range found {
			uses[use]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range slices.Sorted(maps.Keys(uses)) {
		if allowed[use] == "" {
			t.Errorf("%s: not in the list", use)
		}
		if limit := 1 + strings.Count(use, "Estimate.Sum"); uses[use] > limit {
			t.Errorf("%s: %d times, may be %d", use, uses[use], limit)
		}
	}
	for use := range allowed {
		if uses[use] == 0 {
			t.Errorf("%s: in the list, and not in the program", use)
		}
	}
}

// openersIn returns "function opener" for each use of an opener in a file, called or not.
func openersIn(dir string, file *ast.File) (found []string, err error) {
	names := map[string]string{}
	for _, spec := range file.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			return nil, fmt.Errorf("%s: a dot import hides what is used", dir)
		}
		names[name] = full
	}
	for _, decl := range file.Decls {
		within := dir + "." + declared(decl)
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && openers[names[pkg.Name]+"."+n.Sel.Name] {
					found = append(found, within+" "+path.Base(names[pkg.Name])+"."+n.Sel.Name)
				}
			case *ast.CallExpr: // within package privacy itself
				if name, ok := n.Fun.(*ast.Ident); ok && openers[module+dir+"."+name.Name] {
					found = append(found, within+" "+path.Base(dir)+"."+name.Name)
				}
			}
			return true
		})
	}
	return found, nil
}

// declared is the name of a function, with its receiver's type, or "declaration".
func declared(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "declaration"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return "?." + f.Name.Name
}

// TestPublishedCallersCatches plants uses: called, passed on, under another name, at package level.
func TestPublishedCallersCatches(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`import "` + module + `mechanisms/privacy"
func leak() { _ = privacy.Published(1) }`, "proxy.leak privacy.Published"},
		{`import p "` + module + `mechanisms/privacy"
func (s *session) leak() { f := p.Published[int]; _ = f }`, "proxy.session.leak privacy.Published"},
		{`import "` + module + `mechanisms/internal/sealed"
var open = sealed.Open[int]`, "proxy.declaration sealed.Open"},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "planted.go", "package proxy\n"+c.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := openersIn("proxy", file); err != nil || !slices.Equal(found, []string{c.want}) || allowed[c.want] != "" {
			t.Errorf("%q, %v, want %q", found, err, c.want)
		}
	}
}
