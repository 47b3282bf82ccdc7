package pipeline

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// The text form of EXPLAIN, as PostgreSQL's own: a node in the first line with its cost, rows and width, and below it
// what belongs to it, the nodes that it reads further in.
//
//	Result  (cost=0.00..0.10 rows=2 width=48)
//	  Cost: ε 0.1
//	  Balance after: ε 9.9 of ε 10
//	  Error of count: ±100 a value at 95 %, ±120 for all 2 values together, noise alone
//	  ->  leaf_1: histogram over public.people  (cost=0.00..0.10 rows=2 width=32)
//	        Answered from: a fresh count

// explainColumns is how many columns a line of EXPLAIN takes at most, where it can be broken: psql adds two, to 100.
const explainColumns = 98

// lines is the text form; errors of what a leaf reads, which are not those of what is shown, go with its SQL.
func (e explanation) lines(sql bool) []string {
	var t explainText
	t.add(0, e.node("Result"))
	asOf := ""
	if e.AsOf != "" {
		asOf = "as of " + e.AsOf
	}
	for _, f := range [][2]string{
		{"Read as", e.ReadAs}, {"Cost", e.Cost}, {"Priced", e.Priced}, {"Balance after", e.Balance}, {"Rows", asOf},
	} {
		t.field(2, f[0], f[1])
	}
	var errors said
	for i, c := range e.Columns {
		if c.Error != "" {
			errors.add(c.Error, e.columnName(i))
		}
	}
	for i, text := range errors.texts {
		t.field(2, "Error of "+namesText(errors.names[i]), text)
	}
	t.field(2, "Error", strings.Join(e.errors, "; "))
	t.field(2, "Outer query", e.Outer)
	t.sql(4, "SQL", e.OuterSQL)
	for _, l := range e.Leaves {
		what := l.Name + ": " + l.Kind
		if l.Table != "" {
			what += " over " + l.Table
		}
		t.add(2, "->  "+l.node(what))
		t.sql(8, "Leaf", l.SQL)
		t.field(8, "Answered from", l.Source)
		t.field(8, "Why", l.Why)
		t.field(8, "Mechanism", l.Mechanism)
		t.field(8, "Sensitivity", l.Sensitivity)
		if sql {
			t.field(8, "Expected error", strings.Join(l.Errors, "; "))
		}
		t.field(8, "Read as", strings.Join(l.Mix, "; "))
		t.field(8, "Row bound", l.Bound)
		t.field(8, "Scan", l.Scan)
		t.sql(8, "Query", l.Query)
		t.field(8, "Arguments", argumentsText(l.Arguments))
	}
	t.ways(e.Ways)
	for _, n := range e.Notes {
		t.field(2, "Note", n)
	}
	return t
}

// columnName names a column of the answer as notices do.
func (e explanation) columnName(i int) string {
	columns := make([]plans.OutColumn, len(e.Columns))
	for i, c := range e.Columns {
		columns[i].Name = c.Name
	}
	return columnName(&plans.Plan{Columns: columns}, i)
}

// node is the line of a node, as PostgreSQL writes it: what it costs has two decimals at least, for clients that look
// for such.
func (n planNode) node(what string) string {
	total := cmp.Or(n.TotalCost.String(), "0")
	whole, decimals, _ := strings.Cut(total, ".")
	decimals += strings.Repeat("0", max(0, 2-len(decimals)))
	return fmt.Sprintf("%s  (cost=0.00..%s.%s rows=%d width=%d)", what, whole, decimals, max(n.Rows, 1), n.Width)
}

// widthOfType is how many bytes a value takes, as PostgreSQL estimates it where it has no statistics.
func widthOfType(t policy.Type) int {
	if n := int(t.Length()); n > 0 {
		return n
	}
	return 32
}

// explainText is lines of text, none of which is wider than explainColumns where it can be broken.
type explainText []string

func (t *explainText) add(indent int, line string) { *t = append(*t, strings.Repeat(" ", indent)+line) }

// field adds what is said of something; nothing is left out.
func (t *explainText) field(indent int, name, text string) {
	if text != "" {
		t.fill(indent, indent+2, strings.Split(strings.ReplaceAll(name+": "+text, "\n", " "), " "))
	}
}

// sql adds SQL, which may have several lines, broken where a blank is outside of its constants, names and comments.
func (t *explainText) sql(indent int, name, text string) {
	if text == "" {
		return
	}
	var broken sqlWords
	for i, line := range strings.Split(strings.TrimRight(name+": "+text, "\n"), "\n") {
		if i == 1 {
			indent += 2
		}
		own := strings.TrimLeft(line, " ")
		at := indent + len(line) - len(own)
		t.fill(at, at+2, broken.of(own))
	}
}

// fill adds words, broken into lines: the first is indented so far, the others as rest says.
func (t *explainText) fill(indent, rest int, words []string) {
	line, wide := "", 0
	for i, word := range words {
		if n := utf8.RuneCountInString(word); i == 0 {
			line, wide = word, indent+n
		} else if wide+1+n > explainColumns {
			t.add(indent, line)
			line, wide, indent = word, rest+n, rest
		} else {
			line, wide = line+" "+word, wide+1+n
		}
	}
	t.add(indent, line)
}

// sqlWords breaks lines of SQL; the quote that is open at the end of one is closed by a later one.
type sqlWords struct{ open rune }

// of is a line as words: what is in quotes is one, and so is a comment.
func (w *sqlWords) of(line string) (words []string) {
	from, before := 0, ' '
	for i, c := range line {
		switch {
		case w.open != 0:
			if c == w.open {
				w.open = 0
			}
		case c == '\'' || c == '"':
			w.open = c
		case c == '-' && before == '-':
			return append(words, line[from:])
		case c == ' ' && from < i:
			words, from = append(words, line[from:i]), i+1
		}
		before = c
	}
	return append(words, line[from:])
}

// ways adds the ways that were weighed: EXPLAIN (ALTERNATIVES).
func (t *explainText) ways(ways []explainedWay) {
	if len(ways) > 0 {
		t.add(2, "Alternatives:")
	}
	for _, w := range ways {
		mark := "not taken"
		if w.Taken {
			mark = "taken"
		}
		t.field(4, w.Leaf, fmt.Sprintf("%s %s: cost %s, expected error %s; %s: %s",
			w.Kind, w.Name, w.Cost, w.Error, mark, w.Why))
	}
}

// argumentsText writes the arguments of the regenerated SQL.
func argumentsText(args []any) string {
	texts := make([]string, len(args))
	for i, a := range args {
		if texts[i] = fmt.Sprint(a); fmt.Sprintf("%T", a) == "string" {
			texts[i] = fmt.Sprintf("%q", a)
		}
		texts[i] = fmt.Sprintf("$%d = %s", i+1, texts[i])
	}
	return strings.Join(texts, ", ")
}

// leaveOutSQL keeps what is decided, and drops the SQL that would run.
func (e *explanation) leaveOutSQL() {
	e.OuterSQL = ""
	for i := range e.Leaves {
		l := &e.Leaves[i]
		l.SQL, l.Bound, l.Scan, l.Query, l.Arguments = "", "", "", "", nil
	}
}

// columnErrors says of each column how far it will be off, by what is known before anything is released; "" of keys and
// of what is public.
func columnErrors(plan *plans.Plan) []string {
	texts := make([]string, len(plan.Columns))
	at := "at " + percent(plan.Confidence)
	together, rows := plan.AllTogether()
	for i, c := range plan.Columns {
		w, known := widthOf(c)
		switch {
		case !isShown(c) || len(plan.Measures) == 0:
		case isChosen(c):
			texts[i] = chosenError(plan, c.Source, at)
		case len(c.Climbs) > 0:
			texts[i] = climbsError(plan, c.Climbs)
		case known:
			texts[i] = fmt.Sprintf("±%s a value %s", w, at)
			if all, known := widthOf(together[i]); known && rows > 1 {
				texts[i] += fmt.Sprintf(", ±%s for all %d values together", all, rows)
			}
			texts[i] += ", noise alone"
		case isMadeUp(plan):
			texts[i] = "none is promised of made-up rows"
		case isRedrawn(plan):
			texts[i] = "known once it is released: SET dp.error_columns = on shows bounds then"
		default:
			texts[i] = "not known"
		}
	}
	return texts
}

// chosenError is that of values that are chosen, and of answers to questions of yes or no.
func chosenError(plan *plans.Plan, c *plans.CountColumn, at string) string {
	var texts []string
	for i := range c.Runs {
		if text, _ := pickedError(plan, &c.Runs[i], at); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// climbsError is that of sums of totals, whose clamps are chosen from what is released.
func climbsError(plan *plans.Plan, list []plans.Climbing) string {
	for _, c := range list {
		for i := range c.Of.Runs {
			if run := &c.Of.Runs[i]; run.Ladder != nil && len(list) == 1 {
				off := new(big.Rat).Mul(plan.OffByClamp(run), c.Worth)
				return clampText(off, run, plan)
			}
		}
	}
	return "known once it is released: of what units add up to clamps that are chosen from it"
}

// clampText says how far a total is off, by a clamp that is not known yet.
func clampText(off *big.Rat, run *plans.Run, plan *plans.Plan) string {
	return fmt.Sprintf("about ±%s × its clamp, which is chosen, of %d steps, from what is released%s",
		figure(off), len(run.Ladder), aboveText(plan))
}
