// Package structure measures the code's own rooms: how large each package is, how much of it others see, and how much
// of it is one knot. ARCHITECTURE.md shows its table, and its test holds the bounds. It reads the source as the
// compiler does (go/parser, go/types), tests left out.
package structure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path that every package measured begins with.
const Module = "github.com/dpproxy/dpproxy"

// Package is one package's measures.
type Package struct {
	Path         string // below the module; "." is none of ours
	Files, Lines int
	Declarations int // functions, methods, types, variables and constants of the package's own scope
	Exported     int // of these, names that other packages may use; methods and fields not counted
	// Circle is the most declarations that reach one another, and CircleFiles the most files that do. A declaration
	// alone is a circle of one; a file is one that reaches another where a declaration in it does.
	Circle, CircleFiles int
}

// listed is what `go list` tells of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
}

// Measure measures every package below a directory of the module that holds something but tests.
func Measure(root string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles", "./...")
	cmd.Dir = root
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, errs.String())
	}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if exports[p.ImportPath] = p.Export; strings.HasPrefix(p.ImportPath, Module+"/") && len(p.GoFiles) > 0 {
			own = append(own, p)
		}
	}
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []Package
	for _, p := range own {
		one, err := measure(fset, compiled, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func measure(fset *token.FileSet, compiled types.Importer, p listed) (Package, error) {
	one := Package{Path: strings.TrimPrefix(p.ImportPath, Module+"/"), Files: len(p.GoFiles)}
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return one, err
		}
		one.Lines += bytes.Count(text, []byte("\n"))
		file, err := parser.ParseFile(fset, path, text, 0)
		if err != nil {
			return one, err
		}
		files = append(files, file)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: compiled, FakeImportC: true, Error: func(error) {}} // a cgo file's C names are not its own
	pkg, err := config.Check(p.ImportPath, fset, files, info)
	if err != nil && len(p.CgoFiles) == 0 {
		return one, err
	}
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			one.Exported++
		}
	}
	g := references(pkg, files, info)
	one.Declarations = len(g.nodes)
	one.Circle = largest(g.nodes, func(o types.Object) []types.Object { return g.to[o] })
	reached := map[*ast.File][]*ast.File{}
	for o, others := range g.to {
		from := g.file[o]
		for _, other := range others {
			if to := g.file[other]; !slices.Contains(reached[from], to) {
				reached[from] = append(reached[from], to)
			}
		}
	}
	one.CircleFiles = largest(files, func(f *ast.File) []*ast.File { return reached[f] })
	return one, nil
}

// graph is which declarations of a package use which others of it.
type graph struct {
	nodes []types.Object
	to    map[types.Object][]types.Object
	file  map[types.Object]*ast.File
}

func references(pkg *types.Package, files []*ast.File, info *types.Info) *graph {
	g := &graph{to: map[types.Object][]types.Object{}, file: map[types.Object]*ast.File{}}
	type part struct {
		owner types.Object
		node  ast.Node
	}
	var parts []part
	declare := func(f *ast.File, name *ast.Ident, node ast.Node) {
		if o := info.Defs[name]; o != nil && name.Name != "_" {
			if g.file[o] == nil {
				g.nodes = append(g.nodes, o)
				g.file[o] = f
			}
			parts = append(parts, part{o, node})
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				declare(f, d.Name, d)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						declare(f, s.Name, s)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							declare(f, name, s)
						}
					}
				}
			}
		}
	}
	for _, p := range parts {
		ast.Inspect(p.node, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				o := info.Uses[name]
				if f, ok := o.(*types.Func); ok {
					o = f.Origin()
				}
				if o != nil && o != p.owner && g.file[o] != nil && !slices.Contains(g.to[p.owner], o) {
					g.to[p.owner] = append(g.to[p.owner], o)
				}
			}
			return true
		})
	}
	return g
}

// largest is the size of the largest strongly connected component (Tarjan, "Depth-first search and linear graph
// algorithms", SIAM Journal on Computing 1972).
func largest[N comparable](nodes []N, to func(N) []N) (most int) {
	type mark struct {
		index, low int
		open       bool
	}
	marks := map[N]*mark{}
	var stack []N
	var visit func(n N) *mark
	visit = func(n N) *mark {
		m := &mark{len(marks), len(marks), true}
		marks[n] = m
		stack = append(stack, n)
		for _, next := range to(n) {
			if seen := marks[next]; seen == nil {
				m.low = min(m.low, visit(next).low)
			} else if seen.open {
				m.low = min(m.low, seen.index)
			}
		}
		if m.low == m.index {
			size := 0
			for {
				last := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				marks[last].open = false
				if size++; last == n {
					break
				}
			}
			most = max(most, size)
		}
		return m
	}
	for _, n := range nodes {
		if marks[n] == nil {
			visit(n)
		}
	}
	return most
}

// Table writes the measures as Markdown.
func Table(all []Package) string {
	var b strings.Builder
	b.WriteString("| package | files | lines | exported | declarations | largest circle | files in one |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range all {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", p.Path, p.Files, p.Lines, p.Exported, p.Declarations, p.Circle, p.CircleFiles)
	}
	return b.String()
}
