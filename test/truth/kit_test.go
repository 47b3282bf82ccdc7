package truth

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is what a column's values are like, and so which expressions the grammar makes of it.
type kind int

const (
	keyKind   kind = iota // a key: joined and counted, never shown
	textKind              // few values
	wholeKind             // whole numbers
	moneyKind             // numeric with places
	realKind              // double precision
	boolKind
	dateKind
	timeKind  // timestamp
	zonedKind // timestamptz
	noteKind  // texts that nobody declared: domain: any
	foundKind // texts of which those are shown that enough people have: keys: discover
)

// column is a column in three places: the database's table, the policy, and the table as PostgreSQL is asked.
type column struct {
	name     string
	stored   string // type in the database
	declared string // type in the policy
	rules    string // the rest of the policy's column
	truth    string // what the policy's rules make of the stored value, in SQL; empty means the value
	kept     string // the condition by which the policy's rules keep a row; empty means every row
	kind     kind
	values   []string // SQL literals to compare with: inside the domain, at its ends, outside
	step     string   // the step of the domain that a value lies in, in SQL with %s for the column, where values lie within steps
	unlisted bool     // the policy does not list it: it names the unit alone
}

// table is a table of a schema with its rows.
type table struct {
	name    string
	public  bool
	unit    string // the policy's path from a row to its unit; empty in the unit's own table and in public ones
	named   string // the column that names the unit, or the one that leads to it
	bound   int    // most rows of one unit: at least as many as there are; where 0 the policy does not say
	columns []column
	keys    []string // constraints of the database
	index   string   // what CREATE INDEX says behind the table's name; empty means none
	each    bool     // null_unit: each
	rank    string   // row_rank: the column that numbers a unit's rows, of which there are more than bound; empty means none
	source  string   // of a view: an analysed SELECT over other tables
	kept    string   // which rows the policy's rules keep, in SQL over the stored table; empty means all
	release string   // a release that the policy declares; empty means none
	rows    [][]string
}

// edge joins two tables by equal columns.
type edge struct {
	child, parent string
	on            [][2]string // child's column, parent's column
	natural       bool        // the columns have one name: USING is possible
}

// schema is a database as somebody has it, and its policy.
type schema struct {
	name    string
	before  []string // SQL before the tables
	tables  []*table
	edges   []edge
	unit    string // the unit's key, as the policy names it
	zcdp    bool   // instead of a pure accountant
	replace bool   // neighbours are replace-one instead of add-remove
	csv     bool   // DuckDB has it as files
}

// stored are the tables that are no views.
func (s *schema) stored() (list []*table) {
	for _, t := range s.tables {
		if t.source == "" {
			list = append(list, t)
		}
	}
	return list
}

func (s *schema) table(name string) *table {
	for _, t := range s.tables {
		if t.name == name {
			return t
		}
	}
	panic("no table " + name)
}

// null is the field of a row that is NULL.
const null = "\x00"

// csv writes the rows as both engines read them: NULL is an empty field, an empty text a quoted one.
func (t *table) csv() string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	_ = w.Write(names) // a Builder does not fail
	w.Flush()
	for _, row := range t.rows {
		for i, field := range row {
			if i > 0 {
				out.WriteByte(',')
			}
			if field != null {
				out.WriteString(`"` + strings.ReplaceAll(field, `"`, `""`) + `"`)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// create is the SQL of the tables and of the tables as the policy's rules make them, in schema plain.
func (s *schema) create() []string {
	list := append([]string{}, s.before...)
	for _, t := range s.stored() {
		var parts []string
		for _, c := range t.columns {
			parts = append(parts, c.name+" "+c.stored)
		}
		list = append(list, "CREATE TABLE public."+t.name+" ("+strings.Join(append(parts, t.keys...), ", ")+")")
		if t.index != "" {
			list = append(list, "CREATE INDEX ON public."+t.name+" "+t.index)
		}
	}
	return list
}

func (s *schema) plain() []string {
	list := []string{"CREATE SCHEMA plain"}
	for _, t := range s.stored() {
		var parts []string
		for _, c := range t.columns {
			truth := c.truth
			if truth == "" {
				truth = c.name
			}
			if base, _, _ := strings.Cut(c.declared, "("); c.declared != "" && base != "numeric" && base != "varchar" && base != "enum" {
				truth = "(" + truth + ")::" + c.declared
			}
			parts = append(parts, truth+" AS "+c.name)
		}
		kept := ""
		if t.kept != "" {
			kept = " WHERE " + t.kept
		}
		list = append(list, "CREATE TABLE plain."+t.name+" AS SELECT "+strings.Join(parts, ", ")+" FROM public."+t.name+" t"+kept)
	}
	for _, t := range s.tables {
		if t.source != "" {
			list = append(list, "SET search_path = plain; CREATE VIEW plain."+t.name+" AS "+t.source)
		}
	}
	return append(list, "ANALYZE")
}

// policy writes the policy's datasets over a backend.
func (s *schema) policy(backend, verifier string) string {
	var out strings.Builder
	fmt.Fprintf(&out, `version: 1
server: {listen: "127.0.0.1:0", limits: {purchases_per_second: 100000, statement_cpu: 1m}}
backend: %s
ledger: {url: "sqlite:ledger.db"}
users: [{name: alice, password: %q}]
datasets:
  - id: %s
    unit: {name: person, key: %s}
    accountant: pure
    cap: {epsilon: 1000000, delta: 0.1}
    budgets: {"*": {epsilon: 1000000, delta: 0.1}}
    defaults: {epsilon: 1, max_epsilon: %d, confidence: 0.95}
    tables:
`, backend, verifier, s.name, s.unit, spent / *held)
	if s.zcdp {
		text := strings.NewReplacer("accountant: pure", "accountant: zcdp", "delta: 0.1", "delta: 1e-6").Replace(out.String())
		out.Reset()
		out.WriteString(text)
	}
	if s.replace {
		text := strings.Replace(out.String(), "    accountant:", "    neighbors: replace-one\n    units: "+fmt.Sprint(len(s.tables[0].rows))+"\n    accountant:", 1)
		out.Reset()
		out.WriteString(text)
	}
	for _, t := range s.tables {
		fmt.Fprintf(&out, "      - name: %s\n", t.name)
		switch {
		case t.source != "":
			fmt.Fprintf(&out, "        source: %q\n", t.source)
		case t.public:
			out.WriteString("        public: true\n")
		default:
			fmt.Fprintf(&out, "        expected_rows: %d\n", len(t.rows))
			if t.bound > 0 {
				fmt.Fprintf(&out, "        max_rows_per_unit: %d\n", t.bound)
			}
			if t.unit != "" {
				fmt.Fprintf(&out, "        unit: %s\n", t.unit)
			}
			out.WriteString("        static: true\n")
			if t.each {
				out.WriteString("        null_unit: each\n")
			}
			if t.rank != "" {
				fmt.Fprintf(&out, "        row_rank: %s\n", t.rank)
			}
			if t.release != "" {
				fmt.Fprintf(&out, "        releases: [{%s}]\n", t.release)
			}
		}
		out.WriteString("        columns:\n")
		for _, c := range t.columns {
			if c.unlisted {
				continue
			}
			rules := c.rules
			if t.source != "" || t.public {
				rules = ""
			}
			if rules != "" {
				rules = ", " + rules
			}
			fmt.Fprintf(&out, "          - {name: %s, type: %q%s}\n", c.name, c.declared, rules)
		}
	}
	return out.String()
}

// dice is a seeded source of rows and statements.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// chance is true once in n.
func (d dice) chance(n int) bool { return d.IntN(n) == 0 }

// one picks one of a list.
func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// few picks between low and high, the low ones far more often: groups of people are skewed.
func (d dice) few(low, high int) int {
	return low + min(d.IntN(high-low+1), d.IntN(high-low+1), d.IntN(high-low+1))
}

// note is a text that nobody declared, as people write them: NULL, empty, with the signs of patterns, in letters that
// are not ASCII.
func (d dice) note() string {
	return d.one("", null, "so late", "Late", "special packages requests", "special requests here", "Sp\u00e4te Lieferung", "100% wrong", "a_b", "axb", " late ")
}

// rare is a text that one person has, so that no threshold shows it: no other begins with its letter, and none is as
// long.
const rare = "Xanten-am-Rhein"

// place is a text of which those are shown that enough people have.
func (d dice) place(unit int) string {
	if unit == 100 && d.chance(2) {
		return rare
	}
	return d.one(null, "", "Bern", "Bern", "Bern", "bern", "Basel", "Basel", "Z\u00fcrich", "O'Hara", "n", "=a", "a,b", "100%")
}

// placeColumn is a column of such texts, with those that statements name: there or not.
func placeColumn(name string) column {
	return column{name: name, stored: "text", declared: "text", rules: "keys: discover", kind: foundKind, values: []string{"'Bern'", "'bern'", "'Basel'", "'O''Hara'", "''", "'n'", "'=a'", "'a,b'", "'none such'", "'" + rare + "'"}}
}

// noteColumn is a column of texts of which statements may ask what is so.
func noteColumn(name string) column {
	return column{name: name, stored: "text", declared: "text", rules: "domain: any", kind: noteKind}
}
