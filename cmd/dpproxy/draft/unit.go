package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The unit is the table of people that most tables lead to. People are recognised by what a table is called and by the
// columns that only people have; how many tables lead there, along any number of foreign keys, decides among them.

// Candidate is a table that may be whom the budget protects.
type Candidate struct {
	Table  *Table
	Column string // names the unit
	Why    string // in words
	score  int
	led    int // how many tables lead there
}

// Name is the candidate as --unit takes it.
func (c Candidate) Name() string { return c.Table.called + "." + c.Column }

// Doubt is returned where several tables may be the unit and nothing tells which.
type Doubt struct {
	Candidates []Candidate // the likeliest first
}

func (d Doubt) Error() string {
	var b strings.Builder
	if len(d.Candidates) == 0 {
		return "no table has a primary key of one column that could name whom the budget protects; say which column does: --unit table.column"
	}
	b.WriteString("whom shall the budget protect? The schema does not tell. Say one of these:")
	for _, c := range d.Candidates {
		fmt.Fprintf(&b, "\n  --unit %s   %s", plainText(c.Name()), plainText(c.Why))
	}
	return b.String()
}

// candidates ranks the tables that may be the unit, the likeliest first.
func candidates(s *Schema) []Candidate {
	var list []Candidate
	for _, t := range s.Tables {
		if t.key() == "" || refersByKey(t) || !t.nameable() || !nameable(t.key()) {
			continue
		}
		c := Candidate{Table: t, Column: t.key()}
		people, why := peopled(t)
		c.led = reaching(s, t)
		c.score = people*100 + min(c.led, 50)
		c.Why = fmt.Sprintf("%s; %s", why, counted(c.led, "table leads there", "tables lead there"))
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(b.score, a.score) })
	return list
}

// farMore is how many times as many tables lead to one than to the likeliest that there is a doubt.
const farMore = 10

// choose takes the likeliest candidate where it is clearly so, or the one that the owner named.
func choose(s *Schema, list []Candidate, named string) (Candidate, error) {
	if named != "" {
		return byName(s, named)
	}
	if len(list) == 0 {
		return Candidate{}, Doubt{}
	}
	for i, c := range list[1:] {
		near := i == 0 && list[0].score-c.score < 2 || c.led > farMore*(list[0].led+1)
		if list[0].score < 100 || c.score >= 100 && near || served(s, list[0], c) {
			likely := slices.Insert(slices.Delete(slices.Clone(list), i+1, i+2), 1, c)
			return Candidate{}, Doubt{likely[:min(len(likely), 5)]}
		}
	}
	return list[0], nil
}

// served reports whether a likeliest candidate are people at work, and another those whom they may work for: nearly as
// many tables lead there, it has as many columns that only people have, and workers do not name its rows, as they do
// their addresses.
func served(s *Schema, likeliest, other Candidate) bool {
	worker, near := workingWords.names(likeliest.Table.Name), 2*other.led >= likeliest.led
	return worker && near && other.score >= 300 && s.distances(other.Table)[likeliest.Table.at] < 0
}

func byName(s *Schema, named string) (Candidate, error) {
	dot := strings.LastIndex(named, ".")
	if dot < 0 {
		return Candidate{}, fmt.Errorf("--unit is %.120q, must be table.column", named)
	}
	for _, t := range s.Tables {
		if (t.called == named[:dot] || t.Schema+"."+t.Name == named[:dot]) && t.column(named[dot+1:]) != nil {
			if !t.nameable() || !nameable(named[dot+1:]) {
				return Candidate{}, fmt.Errorf("--unit is %.120q: a policy cannot write that name; give the table a view", named)
			}
			return Candidate{Table: t, Column: named[dot+1:], Why: "as --unit says"}, nil
		}
	}
	return Candidate{}, fmt.Errorf("--unit is %.120q, and no table that was named has that column", named)
}

// peopled tells how much a table looks like one of people, from 0 to 7, and by what.
func peopled(t *Table) (score int, why string) {
	switch {
	case secretWords.in(t.Name): // oauth_client
	case protectedWords.names(t.Name):
		score, why = 4, "its name is that of people"
	case workingWords.names(t.Name):
		score, why = 2, "its name is that of people at work"
	}
	var columns []string
	for _, c := range t.Columns {
		if author := workingWords.names(c.Name); kindOf(c) == identity && !author || birthWords.in(c.Name) {
			columns = append(columns, c.Name)
		}
	}
	score += min(len(columns), 3)
	switch {
	case len(columns) > 0 && why != "":
		why += ", and it has " + strings.Join(columns[:min(len(columns), 3)], ", ")
	case len(columns) > 0:
		why = "it has " + strings.Join(columns[:min(len(columns), 3)], ", ")
	case why == "":
		why = "nothing says that it is about people"
	}
	return score, why
}

// refersByKey reports whether a table's primary key is itself a foreign key: then its rows belong to another table's.
func refersByKey(t *Table) bool {
	return slices.ContainsFunc(t.references(), func(r reference) bool { return r.column == t.key() })
}

// reaching counts the tables from which foreign keys lead to a table.
func reaching(s *Schema, to *Table) int {
	n := 0
	for _, d := range s.distances(to) {
		if d > 0 {
			n++
		}
	}
	return n
}

// paths are the references of a table that are the first of a shortest way to where distances lead, in the table's
// order.
func (t *Table) paths(distances []int) (best []reference) {
	for _, r := range t.references() {
		if n := distances[r.to.at]; n >= 0 && n == distances[t.at]-1 {
			best = append(best, r)
		}
	}
	made := func(r reference) bool { return upkeepWords.in(r.column) } // created_by, where nothing else says whose
	if rest := slices.DeleteFunc(slices.Clone(best), made); len(rest) > 0 {
		return rest
	}
	return best
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
