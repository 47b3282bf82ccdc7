package threats

import (
	"fmt"
	"slices"
	"strings"
)

// Document is the text of SECURITY.md with its tables written anew. A threat whose figures are not among those given
// keeps the last column that it has.
func Document(text string, figures map[string][]Figure) (string, error) {
	threats, rules, faults := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	fmt.Fprintf(threats, "\n| | threat | to reach | tests | reached |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range Table() {
		reached := Told(row, figures[row.ID])
		if len(figures[row.ID]) == 0 {
			reached = kept(text, row.ID)
		}
		fmt.Fprintf(threats, "| %s | %s | %s | %s | %s |\n", row.ID, Cell(row.Threat), Cell(row.Pass), tests(row.Tests), reached)
	}
	fmt.Fprintf(rules, "\n| | rule | tests |\n| --- | --- | --- |\n")
	for _, rule := range Rules {
		fmt.Fprintf(rules, "| %d | %s | %s |\n", rule.Number, Cell(rule.Rule), tests(rule.Tests))
	}
	fmt.Fprintf(faults, "\n| fault | in | caught by |\n| --- | --- | --- |\n")
	for _, f := range Faults {
		fmt.Fprintf(faults, "| %s | %s | %s |\n", Cell(f.Name), f.File, f.Test)
	}
	for name, table := range map[string]fmt.Stringer{"threats": threats, "rules": rules, "faults": faults} {
		_, after, found := strings.Cut(text, "<!-- "+name+": ")
		mark, _, closed := strings.Cut(after, "-->\n")
		before, rest, ended := strings.Cut(text, "<!-- end of "+name+" -->")
		if !found || !closed || !ended {
			return "", fmt.Errorf("the document has no place for its %s", name)
		}
		begins := strings.Index(before, "<!-- "+name+": ")
		text = before[:begins] + "<!-- " + name + ": " + mark + "-->\n" + table.String() + "\n<!-- end of " + name + " -->" + rest
	}
	return text, nil
}

// Told is the last column: what the tests of a row measured.
func Told(row Row, figures []Figure) string {
	var texts []string
	for _, f := range figures {
		told := f.Figure
		if !f.Full {
			told += " (short)"
		}
		if f.Failed {
			told = "**failed**: " + told
		}
		if !slices.Contains(texts, told) {
			texts = append(texts, told)
		}
	}
	if row.Note != "" {
		texts = append(texts, row.Note)
	}
	return Cell(strings.Join(texts, "; "))
}

// kept is the last column of a threat in the document as it is.
func kept(text, id string) string {
	_, after, found := strings.Cut(text, "\n| "+id+" | ")
	if !found {
		return ""
	}
	line, _, _ := strings.Cut(after, "\n")
	line = strings.TrimSuffix(line, " |")
	cells := strings.Split(line, " | ")
	return cells[len(cells)-1]
}

func tests(names []string) string {
	var short []string
	for _, name := range names {
		short = append(short, strings.Replace(name, ".Test", " Test", 1))
	}
	return strings.Join(short, ", ")
}

// Cell is a text as it stands in a cell of a table.
func Cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "¦"), "\n", " ") }
