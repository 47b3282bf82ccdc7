package engines

import (
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// The matrix is in the document between these lines.
const (
	document = "../../docs/engines.md"
	begins   = "<!-- conformance: written by `go test ./test/engines -update` -->\n"
	ends     = "<!-- end of conformance -->"
	notRun   = "not run"
)

// matrix is what each engine does with each row: by the engine's name, and the row's.
type matrix struct {
	rows    []string
	text    string // of the document
	shown   map[string]map[string]string
	columns map[string]map[string]string // of this run
}

// newMatrix reads what the document shows.
func newMatrix(t *testing.T) *matrix {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{text: string(text), shown: map[string]map[string]string{}, columns: map[string]map[string]string{}}
	for _, s := range shapes {
		if s.name != "" {
			m.rows = append(m.rows, s.name)
		}
	}
	for _, p := range parts {
		m.rows = append(m.rows, p.name)
	}
	m.rows = append(m.rows, "one row a unit", "several rows a unit")
	_, rest, begun := strings.Cut(m.text, begins)
	table, _, ended := strings.Cut(rest, ends)
	if !begun || !ended {
		t.Fatalf("%s has no place for the matrix", document)
	}
	var names []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if names == nil {
			names = cells
			continue
		}
		for i := 1; i < min(len(cells), len(names)); i++ {
			if m.shown[names[i]] == nil {
				m.shown[names[i]] = map[string]string{}
			}
			m.shown[names[i]][cells[0]] = cells[i]
		}
	}
	return m
}

// column is where what an engine does is put.
func (m *matrix) column(engine string) map[string]string {
	m.columns[engine] = map[string]string{}
	return m.columns[engine]
}

// hold compares what was found with the document, or writes it there. A column of an engine that was not asked stays as
// it is.
func (m *matrix) hold(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| |")
	for _, e := range engines {
		b.WriteString(" " + e.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(engines)+1) + "\n")
	for _, row := range m.rows {
		b.WriteString("| " + row + " |")
		for _, e := range engines {
			cell := m.columns[e.name][row]
			if m.columns[e.name] == nil {
				if cell = m.shown[e.name][row]; cell == "" {
					cell = notRun
				}
			}
			b.WriteString(" " + strings.ReplaceAll(cell, "|", "/") + " |")
		}
		b.WriteString("\n")
	}
	before, rest, _ := strings.Cut(m.text, begins)
	table, after, _ := strings.Cut(rest, ends)
	switch {
	case table == b.String() || t.Failed():
	case *kit.Update:
		if err := os.WriteFile(document, []byte(before+begins+b.String()+ends+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says\n%s\nand the engines do\n%s\nwrite it with -update", document, table, b.String())
	}
}
