// Command report runs the tests of the threat table and prints what each reached. `make safety` calls it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/internal/threats"
)

func main() {
	update := flag.Bool("update", false, "write the figures into "+document)
	from := flag.String("from", "", "read the figures from this file, which tests wrote that ran with DPPROXY_SAFETY naming it, and run none")
	flag.Parse()
	if err := run(flag.Args(), *from, *update); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

const document = "docs/threats.md"

// run runs the rows whose names are given, or all, and prints the table.
func run(only []string, from string, update bool) error {
	rows := threats.Table()
	if len(only) > 0 {
		rows = slices.DeleteFunc(rows, func(r threats.Row) bool { return !slices.Contains(only, r.ID) })
	}
	name, failed := from, []string(nil)
	if name == "" {
		directory, err := os.MkdirTemp("", "dpproxy-safety")
		if err != nil {
			return err
		}
		defer os.RemoveAll(directory)
		name = filepath.Join(directory, "figures")
		failed = test(rows, name)
	}
	figures, err := read(name)
	if err != nil {
		return err
	}
	failed = append(failed, show(rows, figures)...)
	if update {
		if err := write(figures); err != nil {
			return err
		}
	}
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
		reached := figures[row.ID]
		if len(reached) == 0 || slices.ContainsFunc(reached, func(f threats.Figure) bool { return f.Failed }) {
			missing = append(missing, row.ID+" is not reached")
		}
		fmt.Printf("| %s | %s | %s | %s |\n", row.ID, threats.Cell(row.Threat), threats.Cell(row.Pass), threats.Told(row, reached))
	}
	return missing
}

// write writes the figures into the document.
func write(figures map[string][]threats.Figure) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	changed, err := threats.Document(string(text), figures)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(changed), 0o644)
}
