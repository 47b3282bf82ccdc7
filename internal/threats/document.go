package threats

import (
	"fmt"
	"slices"
	"strings"
)

// Document is the text of docs/threats.md with its tables written anew. A threat keeps what its last two columns hold,
// at CI length and at full length, where no figures of that length are among those given; a fault keeps the commit at
// which it was seen caught, by the same test.
func Document(text string, figures map[string][]Figure) (string, error) {
	threats, rules, faults := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	fmt.Fprintf(threats, "\n| | threat | to reach | tests | at CI length | at full length |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range Table() {
		short, full := kept(text, row.ID)
		if told := reached(figures[row.ID], false); told != "" || short == "" {
			short = strings.Trim(told+"; "+row.Note, "; ")
		}
		if told := reached(figures[row.ID], true); told != "" {
			full = told
		}
		fmt.Fprintf(threats, "| %s | %s | %s | %s | %s | %s |\n", row.ID, Cell(row.Threat), Cell(row.Pass), tests(row.Tests), Cell(short), Cell(full))
	}
	fmt.Fprintf(rules, "\n| | rule | tests |\n| --- | --- | --- |\n")
	for _, rule := range Rules {
		fmt.Fprintf(rules, "| %d | %s | %s |\n", rule.Number, Cell(rule.Rule), tests(rule.Tests))
	}
	fmt.Fprintf(faults, "\n| fault | in | caught by | seen at |\n| --- | --- | --- | --- |\n")
	for _, f := range Faults {
		by, seen := kept(text, Cell(f.Name))
		if told := reached(figures[f.Name], true) + reached(figures[f.Name], false); told != "" {
			seen = told
		} else if by != f.Test {
			seen = ""
		}
		fmt.Fprintf(faults, "| %s | %s | %s | %s |\n", Cell(f.Name), f.File, f.Test, seen)
	}
	classes, answers := &strings.Builder{}, &strings.Builder{}
	classes.WriteString(classesTable())
	answers.WriteString(answersTable())
	for name, table := range map[string]fmt.Stringer{"threats": threats, "rules": rules, "classes": classes, "answers": answers, "faults": faults} {
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

// Told is what the tests of a row measured.
func Told(row Row, figures []Figure) string {
	var texts []string
	for _, told := range []string{reached(figures, false), reached(figures, true)} {
		if told != "" {
			texts = append(texts, told)
		}
	}
	if row.Note != "" {
		texts = append(texts, row.Note)
	}
	return Cell(strings.Join(texts, "; "))
}

// reached joins the figures of one length.
func reached(figures []Figure, full bool) string {
	var texts []string
	for _, f := range figures {
		told := f.Figure
		if f.Failed {
			told = "**failed**: " + told
		}
		if f.Full == full && !slices.Contains(texts, told) {
			texts = append(texts, told)
		}
	}
	return strings.Join(texts, "; ")
}

// kept are the last two columns of a threat in the document as it is.
func kept(text, id string) (short, full string) {
	_, after, found := strings.Cut(text, "\n| "+id+" | ")
	if !found {
		return "", ""
	}
	line, _, _ := strings.Cut(after, "\n")
	cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
	return cells[len(cells)-2], cells[len(cells)-1]
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
