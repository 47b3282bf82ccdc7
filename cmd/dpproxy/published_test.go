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
	"mechanisms.Counts.release sealed.Open":                 "the only place that sees true counts: to add their noise",
	"mechanisms.ReleaseFirst sealed.Release":                "the coarser level that a ladder begins with",
	"mechanisms.Refine sealed.Open":                         "the finest level, to make the level of it that was paid for",
	"mechanisms.Refine sealed.Release":                      "a level that was paid for",
	"mechanisms.Finest.AppendTo sealed.Open":                "the ledger keeps the finest level beside what was shown of it",
	"mechanisms.Counts.release sealed.Release":              "the counts with their noise",
	"mechanisms.Begin sealed.Release":                       "nothing: a release without an observation",
	"mechanisms.Grow sealed.Open":                           "to add the noise of what a step observes",
	"mechanisms.Grow sealed.Release":                        "the step's observations with their noise",
	"ledger.keeper.fetchGrown privacy.Published":            "saved steps, which were released before they were saved",
	"mechanisms.Estimate.Sum sealed.Release":                "a sum over an Estimate, which is made from a Released",
	"mechanisms/privacy.Published sealed.Release":           "its own body",
	"mechanisms/privacy.PostProcess sealed.Release":         "a function of a Released",
	"mechanisms/histograms.Dawa.Prefixes sealed.Release":    "sums over a released partition and its buckets",
	"mechanisms/histograms.Dawa.Release sealed.Open":        "to choose the partition and add the buckets' noise",
	"mechanisms/histograms.Dawa.Release sealed.Release":     "the partition, chosen by noisy costs, and its buckets with their noise",
	"mechanisms/keys.Rule.Release sealed.Open":              "to add noise to the counts of units",
	"mechanisms/keys.Rule.Release sealed.Release":           "the keys whose noisy counts pass, with these",
	"mechanisms.ofHypothesis sealed.Release":                "a guess of the hypothesis, after the end, or 0 where no cell is asked about",
	"mechanisms.Drawing.Draw sealed.Release":                "nothing: that a release which goes on is open",
	"mechanisms.Belief.Rows sealed.Release":                 "rows of a hypothesis, which is a function of released answers",
	"mechanisms/online.NewMemo sealed.Release":              "a hard answer, read back from the state that is public",
	"mechanisms/online.Basic.Answer sealed.Release":         "an easy answer, of the public databases, or a hard one with its noise",
	"mechanisms/online.Basic.observe sealed.Open":           "to compare a count with a noisy threshold",
	"mechanisms/online.Session.Answer sealed.Release":       "an easy answer: of the hypothesis, after a noisy comparison",
	"mechanisms/online.Session.buy sealed.Release":          "a hard answer with noise of its own",
	"mechanisms/online.instance.hard sealed.Open":           "to add a hard answer's noise",
	"mechanisms/online.instance.observe sealed.Open":        "the noisy threshold and the count that is compared with it",
	"mechanisms/online.instance.take sealed.Open":           "the noisy threshold, which stays sealed",
	"mechanisms/online.snapshot sealed.Open":                "a copy of the cells, sealed again",
	"mechanisms/quantiles.Mechanism.Release sealed.Open":    "to rank the cells",
	"mechanisms/quantiles.Mechanism.Release sealed.Release": "the cells that were chosen",
	"mechanisms/selection.Mechanism.Select sealed.Open":     "to score the candidates",
	"mechanisms/selection.Mechanism.Select sealed.Release":  "the candidate that was chosen",
	"mechanisms/selection.Top.Select sealed.Open":           "to score the candidates",
	"mechanisms/selection.Top.Select sealed.Release":        "the candidates that were chosen",
	"mechanisms/sparse.Instance.Ask sealed.Open":            "to compare a count with a noisy threshold",
	"mechanisms/sparse.Instance.Ask sealed.Release":         "above or below",
	"mechanisms/synthetic.Small.Release sealed.Open":        "to score the candidates",
	"mechanisms/synthetic.Small.Release sealed.Release":     "the candidate that was chosen",
	"mechanisms/synthetic.Weights.Release sealed.Open":      "to choose queries and add noise to their answers",
	"mechanisms/synthetic.Weights.Release sealed.Release":   "a hypothesis, which is a function of released answers",
	"test/kit.TextResult privacy.Published":                 "what a stand-in answers, in tests",
	"cmd/dpproxy.pricingEngine privacy.Published":           "no rows, in the place of a public table's",
	"ledger.decodeStored privacy.Published":                 "what Save took as Released, read back and compared with its digest",
	"backend/internal/inspect.CopyTable privacy.Published":  "a table that the policy declares public",
	"sandbox.Direct privacy.Published":                      "one empty row, for a query without a leaf",
	"sandbox/twin.engine.Query privacy.Published":           "computed in a database that holds public tables alone, from them and released ones",
	"proxy/pipeline.account.ownTables privacy.Published":    "dp.*: her own account, from the ledger and the policy",
	"proxy/pipeline.outside.bound privacy.Published":        "columns without rows",
	"proxy/pipeline.outside.probeWith privacy.Published":    "rows that are made up of public keys and constants",
	"proxy/pipeline.textResult privacy.Published":           "lines of an EXPLAIN or a SHOW: from the plan and her account",
	"proxy.replies.show privacy.Published":                  "her session's variables",
	"proxy/pipeline.publicLeaf privacy.Published":           "keys of declared domains, and counts of rows that cannot exist",
	"proxy/pipeline.outside.query privacy.Published":        "one empty row, for a query without a leaf",
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
		// The mechanisms below package mechanisms may release in several branches of one function; nobody else may.
		if limit := 1 + strings.Count(use, "Estimate.Sum"); uses[use] > limit && !strings.HasPrefix(use, "mechanisms/") {
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
