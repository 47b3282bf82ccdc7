package draft

import (
	"os"
	"strings"
	"testing"
	"unicode"
)

var kindNames = map[string]kind{
	"unsure": unsure, "secret": secret, "identity": identity, "naming": naming, "free": free, "category": category,
	"label": label, "total": total, "measure": measure, "moment": moment, "flag": flag,
}

// eachKind calls f with each line of testdata/kinds.txt.
func eachKind(t *testing.T, f func(want kind, c *Column)) {
	t.Helper()
	text, err := os.ReadFile("testdata/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		want, ok := kindNames[fields[0]]
		if !ok {
			t.Fatalf("no kind: %s", line)
		}
		f(want, &Column{Name: fields[2], Type: strings.ReplaceAll(fields[1], "_", " ")})
		n++
	}
	if n < 500 {
		t.Fatalf("%d names", n)
	}
}

// TestKinds holds what a column is taken for against what a reader said of its name and type.
func TestKinds(t *testing.T) {
	eachKind(t, func(want kind, c *Column) {
		if got := kindOf(c); got != want {
			t.Errorf("%s %s: kind %d, want %d", c.Name, c.Type, got, want)
		}
	})
}

// spellings are other ways of writing a name: as capitals, in camel case, and without anything between its words.
func spellings(name string) []string {
	camel, up := "", false
	for _, r := range name {
		if r == '_' {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
		}
		camel, up = camel+string(r), false
	}
	joined, dashed := strings.ReplaceAll(name, "_", ""), strings.ReplaceAll(name, "_", "-")
	return []string{name, strings.ToUpper(name), camel, strings.ToUpper(camel[:1]) + camel[1:], joined, dashed, "old_" + name}
}

// TestNothingHiddenIsListed: what a reader would not list is not listed, however its name is spelled, in a private
// table and beside the key of a public one; what is found among private rows is a category.
func TestNothingHiddenIsListed(t *testing.T) {
	eachKind(t, func(want kind, c *Column) {
		for _, name := range spellings(c.Name) {
			if name == "id" { // which these tables have
				continue
			}
			unit := people("customers")
			spelled := &Column{Name: name, Type: c.Type}
			other := *spelled
			kinds := keyed("kinds", append(typed("id integer, name text"), &other), nil)
			leads := map[string]*Table{"customer": unit, "kind": kinds}
			orders := keyed("orders", append(columnsOf("id", "customer", "kind"), spelled), leads)
			parts := assign(settled(unit, orders, kinds), Candidate{Table: unit, Column: "id"})
			d := &drafter{unit: Candidate{Table: unit, Column: "id"}, parts: parts, guessed: map[*Table]bool{}}
			l := d.column(parts[1], spelled)
			listed := l.hidden == "" && l.rules != "keys: join"
			switch {
			case listed && (want == secret || want == identity || want == naming || want == unsure || want == label):
				t.Errorf("%s %s is listed: %s", name, c.Type, l.rules)
			case strings.Contains(l.rules, "discover") && want != category:
				t.Errorf("%s %s is found", name, c.Type)
			}
			shown := parts[2].role == lookup && d.publicColumn(kinds, &other).hidden == ""
			if shown && want != category && want != label && want != free {
				t.Errorf("%s %s is shown in a public table", name, c.Type)
			}
		}
	})
}

func settled(tables ...*Table) *Schema {
	s := &Schema{Tables: tables}
	s.settle("public")
	return s
}
