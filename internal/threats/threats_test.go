package threats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// testsOf lists the tests of the module as "package.Test".
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	eachTest(t, func(name string, _ *ast.FuncDecl) { found[name] = true })
	return found
}

// eachTest calls do for the tests of all packages.
func eachTest(t *testing.T, do func(name string, f *ast.FuncDecl)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				do(filepath.ToSlash(directory)+"."+f.Name.Name, f)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFaultsAreFoundInEachRun: no planted fault names a test that only `make night` runs.
func TestFaultsAreFoundInEachRun(t *testing.T) {
	nightly := map[string]bool{}
	eachTest(t, func(name string, f *ast.FuncDecl) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Nightly" {
				nightly[name] = true
			}
			return true
		})
	})
	for _, f := range Faults {
		if nightly[f.Test] {
			t.Errorf("%s: %s is left to make night", f.Name, f.Test)
		}
	}
	if len(nightly) == 0 {
		t.Error("no test is left to make night")
	}
}

// TestTableIsWhole: no threat is missing, and each test that a row or a rule names is there.
func TestTableIsWhole(t *testing.T) {
	known := testsOf(t)
	for i, row := range Table() {
		if want := fmt.Sprintf("T%d", i+1); row.ID != want {
			t.Fatalf("row %d is %s", i+1, row.ID)
		}
		if row.Threat == "" || row.Pass == "" {
			t.Errorf("%s is not told", row.ID)
		}
		for _, name := range row.Tests {
			if !known[name] {
				t.Errorf("%s names %s, which is not there", row.ID, name)
			}
		}
	}
	for i, rule := range Rules {
		if rule.Number != i+1 {
			t.Fatalf("rule %d is %d", i+1, rule.Number)
		}
		if len(rule.Tests) == 0 {
			t.Errorf("rule %d has no test", rule.Number)
		}
		for _, name := range rule.Tests {
			if !known[name] {
				t.Errorf("rule %d names %s, which is not there", rule.Number, name)
			}
		}
	}
}

// TestErrorClassesAreWhole: each class of errors that an engine can raise is listed once, with why no row raises it and
// a test that is there, or with what is assumed.
func TestErrorClassesAreWhole(t *testing.T) {
	known := testsOf(t)
	for engine, name := range map[string]string{"PostgreSQL": "sqlstate_classes.txt", "DuckDB": "duckdb_kinds.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]int{}
		for _, c := range ErrorClasses {
			if c.Engine == engine {
				for _, code := range c.Codes {
					told[code]++
				}
			}
		}
		for line := range strings.Lines(string(text)) {
			code := strings.TrimSpace(line)
			if strings.HasPrefix(code, "#") {
				continue
			}
			if told[code] != 1 {
				t.Errorf("%s: %s is told %d times", engine, code, told[code])
			}
			delete(told, code)
		}
		for code := range told {
			t.Errorf("%s has no class %s", engine, code)
		}
	}
	for _, c := range ErrorClasses {
		if c.What == "" || c.Rows == "" || len(c.Tests) == 0 {
			t.Errorf("%s %v is not told", c.Engine, c.Codes)
		}
		for _, name := range c.Tests {
			if !known[name] {
				t.Errorf("%s %v names %s, which is not there", c.Engine, c.Codes, name)
			}
		}
	}
}

// planted is the source of the fault's file with the fault in it.
func planted(f Fault) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, f.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), f.Old); n != 1 || f.Old == f.New {
		return nil, fmt.Errorf("%s: its place occurs %d times in %s", f.Name, n, f.File)
	}
	return []byte(strings.Replace(string(source), f.Old, f.New, 1)), nil
}

// TestFaultsHaveTheirPlace: a fault whose source has changed would be planted nowhere.
func TestFaultsHaveTheirPlace(t *testing.T) {
	known := testsOf(t)
	names := map[string]bool{}
	for _, f := range Faults {
		if names[f.Name] {
			t.Errorf("two faults are called %s", f.Name)
		}
		names[f.Name] = true
		if _, err := planted(f); err != nil {
			t.Error(err)
		}
		if !known[f.Test] {
			t.Errorf("%s: there is no %s", f.Name, f.Test)
		}
	}
}

// TestFaultsAreCaught builds each fault and wants its test to fail: as a test fails, not as a build does. `make safety`
// and `make night` build all but the long ones, `make safety-full` all, `go test` the first of every eighth package:
// that faults are caught at all.
func TestFaultsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("builds many times: left out by -short")
	}
	length := os.Getenv("DPPROXY_SAFETY_LENGTH")
	caught, all, seen, commit := 0, 0, map[string]bool{}, "a tree without history"
	if name, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(name))
	}
	for _, f := range Faults {
		pkg, _, _ := strings.Cut(f.Test, ".")
		if f.Long && !Full() || length == "" && seen[pkg] {
			continue
		}
		if seen[pkg] = true; length == "" && len(seen)%8 != 1 {
			continue
		}
		all++
		t.Run(f.Name, func(t *testing.T) {
			out, err := withFault(t, f)
			if errors.Is(err, errSkipped) {
				t.Skip(err)
			}
			Reached(t, f.Name, "%s", commit)
			if err != nil {
				t.Errorf("%v\n%s", err, out)
				return
			}
			caught++
		})
	}
	t.Logf("%d of %d planted faults caught; %d are in the list", caught, all, len(Faults))
}

// errSkipped says that a test has judged nothing, for want of a program on this machine.
var errSkipped = errors.New("its test is skipped here: what it needs is not installed")

// withFault returns an error where the fault's test does not fail as it must.
func withFault(t *testing.T, f Fault) (string, error) {
	source, err := planted(f)
	if err != nil {
		return "", err
	}
	directory := t.TempDir()
	absolute, err := filepath.Abs(filepath.Join(root, f.File))
	if err != nil {
		return "", err
	}
	faulty := filepath.Join(directory, filepath.Base(f.File))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: faulty}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(directory, "overlay.json")
	if err := errors.Join(os.WriteFile(faulty, source, 0o644), os.WriteFile(file, overlay, 0o644)); err != nil {
		return "", err
	}
	pkg, test, _ := strings.Cut(f.Test, ".")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	// -vet=off: the fault may leave a variable unread in a way that vet minds; only the test is to judge.
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-failfast", "-timeout", "19m", "-v", "-run", "^"+test+"$", "./"+pkg)
	cmd.Dir = root
	// The overlay goes by the environment: tests that run dpproxy build it, with the fault, themselves.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+file), "DPPROXY_SAFETY="+filepath.Join(directory, "figures"), "DPPROXY_SAFETY_LENGTH=", "DPPROXY_NIGHT=") // its figures are a fault's; the length that fits CI must find it
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil && strings.Contains(string(out), "--- SKIP: "+test+" "):
		return string(out), errSkipped
	case err == nil:
		return string(out), errors.New("the test passes with the fault")
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:"), strings.Contains(string(out), NotBuilt):
		return string(out), fmt.Errorf("the test did not run: %w", err)
	case strings.Contains(string(out), "panic: test timed out") && !strings.Contains(string(out), "--- FAIL"):
		return string(out), errors.New("the test waits for ever, and fails by its time alone")
	}
	return "", nil
}

func TestFiguresAreKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "figures")
	t.Setenv("DPPROXY_SAFETY", name)
	t.Run("one", func(t *testing.T) { Reached(t, "T1", "%d of %d", 3, 3) })
	line, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var f Figure
	if err := json.Unmarshal(line, &f); err != nil || f != (Figure{"T1", "TestFiguresAreKept/one", "3 of 3", Full(), false}) {
		t.Errorf("%s: %v", line, err)
	}
}

// TestSourcesAnswer: each type below package backend that answers the questions to sources is in the table, with a test
// of each answer.
func TestSourcesAnswer(t *testing.T) {
	known := testsOf(t)
	of := map[string]bool{}
	for _, a := range Answers {
		of[a.Of] = true
		for i, said := range a.Said {
			if said == "" || len(a.Tests[i]) == 0 {
				t.Errorf("%s: %s is not answered", a.Source, Questions[i])
			}
			for _, name := range a.Tests[i] {
				if !known[name] {
					t.Errorf("%s names %s, which is not there", a.Source, name)
				}
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "backend", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		says := regexp.MustCompile(`_ +inspect\.Questions += \(?\*?(\w+)`)
		for _, m := range says.FindAllStringSubmatch(string(text), -1) {
			who := filepath.Base(filepath.Dir(file)) + "." + m[1]
			if found++; !of[who] {
				t.Errorf("%s answers, and is not in the table", who)
			}
		}
	}
	if found != len(of) {
		t.Errorf("%d types answer, %d are in the table", found, len(of))
	}
}

// TestDocument: docs/threats.md has the tables as they are here.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/threats.md"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Document(string(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if again != string(text) {
		t.Error("docs/threats.md is not what the table says: `make safety UPDATE=-update THREATS=T1` writes it anew")
	}
	figures := map[string][]Figure{"T1": {{ID: "T1", Figure: "3 | 3", Full: true}, {ID: "T1", Figure: "2", Failed: true}}}
	changed, err := Document(again, figures)
	if short, full := kept(changed, "T1"); err != nil || short != "**failed**: 2" || full != "3 ¦ 3" {
		t.Errorf("%v: %q, %q", err, short, full)
	}
	if whole, err := Document(changed, nil); err != nil || whole != changed {
		t.Errorf("a figure is lost: %v", err)
	}
}
