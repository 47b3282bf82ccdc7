// Command report runs the tests of the threat table and prints what each reached. `make safety` calls it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/internal/threats"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// run runs the rows whose names are given, or all, and prints the table.
func run(only []string) error {
	rows := threats.Table()
	if len(only) > 0 {
		rows = slices.DeleteFunc(rows, func(r threats.Row) bool { return !slices.Contains(only, r.ID) })
	}
	directory, err := os.MkdirTemp("", "dpproxy-safety")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	name := filepath.Join(directory, "figures")
	failed := test(rows, name)
	figures, err := read(name)
	if err != nil {
		return err
	}
	failed = append(failed, show(rows, figures)...)
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	return nil
}

// test runs the tests of the rows, a package at a time, and returns the packages that failed.
func test(rows []threats.Row, name string) []string {
	of, packages := map[string][]string{}, []string{}
	for _, row := range rows {
		for _, t := range row.Tests {
			pkg, test, _ := strings.Cut(t, ".")
			if of[pkg] == nil {
				packages = append(packages, pkg)
			}
			if !slices.Contains(of[pkg], test) {
				of[pkg] = append(of[pkg], test)
			}
		}
	}
	var failed []string
	for _, pkg := range packages {
		fmt.Printf("# %s: %d tests\n", pkg, len(of[pkg]))
		cmd := exec.Command("go", "test", "-count=1", "-timeout", "6h", "-run", "^("+strings.Join(of[pkg], "|")+")$", "./"+pkg)
		cmd.Env = append(os.Environ(), "DPPROXY_SAFETY="+name)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			failed = append(failed, "tests of "+pkg+" failed")
		}
	}
	return failed
}

// read reads the file of figures, which is not there where no test reached one.
func read(name string) (map[string][]threats.Figure, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	figures := map[string][]threats.Figure{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var f threats.Figure
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, err
		}
		figures[f.ID] = append(figures[f.ID], f)
	}
	return figures, nil
}

// show prints a table in Markdown and returns the rows whose figure was not reached.
func show(rows []threats.Row, figures map[string][]threats.Figure) []string {
	var missing []string
	fmt.Println("\n| | threat | to reach | reached |\n| --- | --- | --- | --- |")
	for _, row := range rows {
		var texts []string
		whole := len(figures[row.ID]) > 0
		for _, f := range figures[row.ID] {
			if f.Failed {
				whole, f.Figure = false, "FAILED: "+f.Figure
			}
			if !slices.Contains(texts, f.Figure) {
				texts = append(texts, f.Figure)
			}
		}
		if !whole {
			missing = append(missing, row.ID+" is not reached")
		}
		if row.Note != "" {
			texts = append(texts, "("+row.Note+")")
		}
		fmt.Printf("| %s | %s | %s | %s |\n", row.ID, escape(row.Threat), escape(row.Pass), escape(strings.Join(texts, "; ")))
	}
	return missing
}

// escape keeps a text in its cell of the table.
func escape(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
