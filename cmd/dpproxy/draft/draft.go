package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Options are what the owner says beside the schema.
type Options struct {
	Dataset     string // its id
	URL         string // of the database, without a password
	Unit        string // table.column; "" means the likeliest
	From, Until string // dates that columns of dates may have; "" means unknown
	Copied      bool   // the backend's tables are copied: a snapshot is needed, and no SELECT can be a source
	Named       bool   // the tables were named one by one: each gets its place, though nothing leads to it
	// Read reads a public table and the texts in some of its columns; nil means no row is read.
	Read func(t *Table, texts []*Column) (Public, error)
}

// Draft is a first policy.
type Draft struct {
	Text     string
	Unit     Candidate
	Others   []Candidate // tables that might have been the unit
	Warnings []string    // what must be edited before it loads
	Edits    int         // lines marked EDIT
	Private  int
	Public   int
	LeftOut  int
}

// drafter writes one.
type drafter struct {
	options Options
	unit    Candidate
	parts   []*part
	read    map[*Table]Public // what was read of the public tables
	out     strings.Builder
	made    *Draft
	asked   map[string]bool // what a mark has asked already
	dates   bool            // some first and last day is a guess
	some    bool            // and so is which codes some column has
	several bool            // of some table a unit may have several rows
}

// Write drafts a policy. Where the schema does not tell whom the budget protects, the error is a Doubt.
func Write(s *Schema, o Options) (*Draft, error) {
	usual := "public"
	if o.Copied { // of MySQL it is the URL's database
		usual = ""
	}
	s.settle(usual)
	list := candidates(s)
	unit, err := choose(s, list, o.Unit)
	if err != nil {
		return nil, err
	}
	d := &drafter{options: o, unit: unit, parts: assign(s, unit), made: &Draft{Unit: unit}}
	d.asked = map[string]bool{}
	for _, c := range list {
		if c.Table != unit.Table && c.score >= 100 {
			d.made.Others = append(d.made.Others, c)
		}
	}
	if err := d.readPublic(); err != nil {
		return nil, err
	}
	d.tables()
	body := d.out.String()
	d.out.Reset()
	d.head()
	d.made.Edits = strings.Count(body, "# EDIT") + strings.Count(d.out.String(), "# EDIT") - strings.Count(d.out.String(), "marked # EDIT")
	d.made.Text = d.out.String() + body
	return d.made, nil
}

// unitName is what one unit is called: the singular of its table's name.
func (d *drafter) unitName() string {
	if list := words(d.unit.Table.Name); len(list) > 0 && protectedWords[list[len(list)-1]] && list[len(list)-1] != "people" {
		return list[len(list)-1]
	}
	return "person"
}

func (d *drafter) unitKey() string { return d.unit.Table.called + "." + d.unit.Column }

func (d *drafter) part(t *Table) *part { return d.parts[t.at] }

// backend is where the rows are.
func (d *drafter) backend() string {
	if d.options.Copied {
		return fmt.Sprintf("  url: %s     # an account that may only SELECT; its password in ${NAME}\n  snapshot: {dir: snapshots, every: 6h}   # EDIT: when the tables are copied\n", quote(d.options.URL))
	}
	return fmt.Sprintf("  url: %s     # a role that may only SELECT; its password in ${NAME} or ~/.pgpass\n", quote(d.options.URL))
}

// head is everything above the tables.
func (d *drafter) head() {
	typ := ""
	if c := d.unit.Table.column(d.unit.Column); whole(c) && c.Domain == "" {
		typ = ", type: " + c.Type
	}
	fmt.Fprintf(&d.out, `# A first policy, written from the schema alone. Decide what the lines marked # EDIT ask; then: dpproxy check --policy this-file
version: 1
server:
  listen: 127.0.0.1:6432          # TLS is required on any other than a loopback address
backend:
%sledger:
  url: sqlite:dpproxy.ledger
users: []                         # dpproxy user add NAME --policy this-file
datasets:
  - id: %s
    unit: {name: %s, key: %s%s}   # EDIT: whom the budget protects. %s
`, d.backend(), quote(d.options.Dataset), d.unitName(), quote(d.unitKey()), typ, plainText(capital(d.unit.Why)))
	for _, c := range d.made.Others[:min(len(d.made.Others), 3)] {
		fmt.Fprintf(&d.out, "    # or --unit %s: %s\n", plainText(c.Name()), plainText(c.Why))
	}
	d.out.WriteString(`    neighbors: add-remove
    accountant: zcdp
    cap: {epsilon: 10, delta: 1e-6}          # EDIT: everybody together, for life, and in the next line each user
    budgets:
      "*": {epsilon: 1, delta: 1e-7}
    defaults: {epsilon: 0.02, max_epsilon: 1, confidence: 0.95}   # of one question; dpproxy check says how many fit
    tables:
`)
	if d.several {
		fmt.Fprintf(&d.out, "      # Tables without max_rows_per_unit: all rows count, and what a %[1]s adds to a count or sum is bounded in all. "+
			"Where you know how many rows\n      # a %[1]s has at most, that line adds quantiles of rows, joins of many rows "+
			"with many, UNION, dp.max_error and releases.\n", d.unitName())
	}
	if d.dates {
		fmt.Fprintf(&d.out, "      # EDIT: columns of dates and times have %s to %s, a guess: "+
			"init --from 2020-01-01 --until 2029-12-31 gives them yours\n", firstDay, lastDay)
	}
	if d.some {
		d.out.WriteString("      # EDIT: where: beside keys_of is a guess by the column's name; add other codes that rows have, " +
			"or strike it: such rows have no group but NULL, and join nothing\n")
	}
	d.guesses()
}

// guesses lists the foreign keys that nobody declared.
func (d *drafter) guesses() {
	var list strings.Builder
	for _, p := range d.parts {
		for _, r := range p.table.references() {
			if r.guessed && p.role != leftOut && d.part(r.to).role != leftOut {
				fmt.Fprintf(&list, "      #   %s\n", plainText(pathText(p.table, r)))
			}
		}
	}
	if list.Len() > 0 {
		fmt.Fprintf(&d.out, "      # EDIT: no foreign key says so, but names do; where one is wrong, rows are protected "+
			"as another %s's:\n%s", d.unitName(), list.String())
	}
}

// tables writes the unit's table first, then those that lead to it, then the public ones, and says which are left out.
func (d *drafter) tables() {
	for _, r := range []role{unitTable, private, backward, lookup, leftOut} {
		if r == lookup {
			d.lists()
		}
		for _, p := range d.parts {
			if p.role != r {
				continue
			}
			if r == backward || r == private && len(p.table.from) == 0 {
				if !slices.ContainsFunc(d.columns(p), func(l listing) bool { return l.hidden == "" }) {
					p.why = cmp.Or(p.why, "its rows lead to the "+d.unitName()) + "; none of its columns can be listed"
					p.role = leftOut // reported with the others
					continue
				}
			}
			switch {
			case r == lookup:
				d.made.Public++
				d.public(p)
			case r == backward && d.options.Copied:
				d.made.LeftOut++
				fmt.Fprintf(&d.out, "      # %s.%s is left out: %s; a view that joins them could be listed\n", plainText(p.table.Schema), plainText(p.table.Name), plainText(p.why))
			case r == leftOut && (!d.options.Named || !p.table.nameable()):
				d.made.LeftOut++
				fmt.Fprintf(&d.out, "      # %s.%s is left out: %s\n", plainText(p.table.Schema), plainText(p.table.Name), plainText(p.why))
			default:
				d.made.Private++
				d.private(p)
			}
		}
	}
}

// private writes a table whose rows lead to the unit.
func (d *drafter) private(p *part) {
	t := p.table
	fmt.Fprintf(&d.out, "      - name: %s\n", quote(t.called))
	if p.role == backward {
		fmt.Fprintf(&d.out, "        trusted: true                   # assumed: each row depends on one %s alone; %s\n        source: >-\n          %s\n", d.unitName(), plainText(p.why), d.joined(p))
	} else {
		fmt.Fprintf(&d.out, "        source: %s\n", quote(t.Schema+"."+t.Name))
	}
	d.out.WriteString("        expected_rows: 100000           # a public guess; never counted\n")
	d.path(p)
	if d.single(p) {
		d.out.WriteString("        max_rows_per_unit: 1\n")
	} else {
		d.several = true
	}
	lines := d.columns(p)
	d.unique(p, lines)
	fmt.Fprintf(&d.out, "        columns:%s\n", d.ends(t, lines))
	shown := false
	for i, c := range t.Columns {
		shown = shown || lines[i].hidden == ""
		d.line(c, lines[i])
	}
	if !shown {
		d.warn(t, "has no column that can be listed: declare one, or it does not load")
	}
}

// ends asks for the ends of a table's numbers, one mark for all whose names no other mark has asked for.
func (d *drafter) ends(t *Table, lines []listing) string {
	var names []string
	for i, l := range lines {
		if l.ends && !d.asked[t.Columns[i].Name] {
			d.asked[t.Columns[i].Name] = true
			names = append(names, t.Columns[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "   # EDIT: the least and largest value of " + plainText(strings.Join(names, ", ")) +
		", which bound what one row adds to a sum; or domain: private, and dpproxy bounds finds them at a price"
}

// columns decides on each column of a table.
func (d *drafter) columns(p *part) []listing {
	lines := make([]listing, len(p.table.Columns))
	for i, c := range p.table.Columns {
		if lines[i] = d.column(p, c); p.role == backward && c.Name == d.ownColumn(p) {
			lines[i] = listing{hidden: "another column of this name leads to the " + d.unitName()}
		}
	}
	if listed := func(l listing) bool { return l.hidden == "" }; !slices.ContainsFunc(lines, listed) {
		// A policy takes no table without a column, and others find the unit through this one.
		if own := p.table.column(d.unitColumn(p)); own != nil && len(p.table.from) > 0 {
			lines[slices.Index(p.table.Columns, own)] = joinKey(own)
		}
	}
	return lines
}

// unitColumn is the column of a table that names the unit itself; "" means none does.
func (d *drafter) unitColumn(p *part) string {
	switch {
	case p.role == unitTable:
		return d.unit.Column
	case p.role == private && d.direct(p):
		return p.paths[0].column
	}
	return ""
}

// line writes a column, in a comment where it is not listed.
func (d *drafter) line(c *Column, l listing) {
	if l.hidden != "" {
		fmt.Fprintf(&d.out, "          # %s: not listed: %s\n", plainText(c.Name), plainText(l.hidden))
		return
	}
	entry := fmt.Sprintf("          - {name: %s, type: %q", quote(c.Name), l.typ)
	if l.rules != "" {
		entry += ", " + l.rules
	}
	if c.Comment != "" {
		entry += ", comment: " + fmt.Sprintf("%q", c.Comment)
	}
	entry += "}"
	d.dates, d.some = d.dates || l.dates, d.some || l.some
	switch {
	case l.ends:
		entry += "   # a guess: EDIT says more above"
	case l.remark != "":
		entry += "   # " + plainText(l.remark)
	}
	d.out.WriteString(entry + "\n")
}

// single reports whether the schema says that one unit has one row.
func (d *drafter) single(p *part) bool {
	switch p.role {
	case unitTable:
		return true
	case backward:
		return d.single(p.from)
	case leftOut:
		return false
	}
	first := p.paths[0]
	return p.table.isUnique(first.column) && d.single(d.part(first.to))
}

// path writes how a table's rows name their unit.
func (d *drafter) path(p *part) {
	t := p.table
	switch p.role {
	case unitTable:
		return
	case backward:
		fmt.Fprintf(&d.out, "        unit: %s\n", quote(t.called+"."+d.ownColumn(p)+" = "+d.pathEnd(p.from)))
		return
	case leftOut:
		d.warn(t, "has no foreign key to "+d.unitKey()+": write its unit: where the policy says EDIT, or it does not load")
		fmt.Fprintf(&d.out, "        # unit: %s   # EDIT: no foreign key says which column names the unit; write it, or public: true for a table about nobody\n",
			quote(t.called+".COLUMN = "+d.unitKey()))
		return
	}
	mark := ""
	if len(p.paths) > 1 {
		mark = "   # EDIT: or the next line; a row belongs to one " + d.unitName()
		d.warn(t, fmt.Sprintf("has %d foreign keys to %s: the policy takes the first one as its unit; choose", len(p.paths), d.unitKey()))
	}
	fmt.Fprintf(&d.out, "        unit: %s%s\n", quote(pathText(t, p.paths[0])), mark)
	for _, r := range p.paths[1:] {
		fmt.Fprintf(&d.out, "        # unit: %s\n", quote(pathText(t, r)))
	}
	for _, r := range t.references() { // longer ways: payment.rental_id, beside payment.customer_id
		if to := d.part(r.to).role; to == private && !slices.Contains(p.paths, r) {
			fmt.Fprintf(&d.out, "        # assumed: the row of %s that %s names is the same %s's\n", plainText(r.to.called), plainText(r.column), d.unitName())
		}
	}
}

func pathText(t *Table, r reference) string {
	return t.called + "." + r.column + " = " + r.to.called + "." + r.key
}

// ownColumn is the column by which the rows that lead to a table name their unit.
func (d *drafter) ownColumn(p *part) string {
	if p.from.role == unitTable {
		return d.unit.Column
	}
	return p.from.paths[0].column
}

// direct reports whether a column of a table names the unit, and not a row of another table that does.
func (d *drafter) direct(p *part) bool {
	return p.paths[0].to == d.unit.Table && p.paths[0].key == d.unit.Column
}

// pathEnd is what that column equals.
func (d *drafter) pathEnd(from *part) string {
	if from.role == unitTable {
		return d.unitKey()
	}
	return from.paths[0].to.called + "." + from.paths[0].key
}

// joined is the SELECT that gives each row of a table about people the unit of the row that leads to it.
func (d *drafter) joined(p *part) string {
	own := d.ownColumn(p)
	items := []string{"f." + identifier(own)}
	for _, c := range p.table.Columns {
		if c.Name != own && d.column(p, c).hidden == "" {
			items = append(items, "t."+identifier(c.Name))
		}
	}
	return fmt.Sprintf("SELECT %s FROM %s AS f JOIN %s AS t ON t.%s = f.%s", strings.Join(items, ", "), relation(p.from.table), relation(p.table), identifier(p.of.key), identifier(p.of.column))
}

// unique writes the keys whose columns are all listed, without the unit's own.
func (d *drafter) unique(p *part, lines []listing) {
	if p.role == backward {
		return
	}
	own := d.unitColumn(p) // which need not be named
	var keys []string
	for _, u := range p.table.Unique {
		var names []string
		for i, c := range p.table.Columns {
			switch {
			case !slices.Contains(u, c.Name) || c.Name == own:
				continue
			case !joins(lines[i]):
				names = nil
			default:
				names = append(names, quote(c.Name))
				continue
			}
			break
		}
		if len(names) > 0 && len(names) >= len(u)-1 && (len(names) == len(u) || slices.Contains(u, own)) {
			keys = append(keys, "["+strings.Join(names, ", ")+"]")
		}
	}
	if len(keys) > 0 {
		fmt.Fprintf(&d.out, "        unique: [%s]   # as constraints say: joins along them are bounded by the other side\n", strings.Join(keys, ", "))
	}
}

// joins reports whether a policy takes a column for a part of a key: rows are joined by it, or its domain is known. No
// text elsewhere is compared with a char or an enumerated type.
func joins(l listing) bool {
	known := l.rules == "" || strings.Contains(l.rules, "keys: join") || strings.HasPrefix(l.rules, "domain: {")
	return known && l.hidden == "" && l.typ != "enum" && !strings.HasPrefix(l.typ, "char(")
}

func (d *drafter) warn(t *Table, text string) {
	d.made.Warnings = append(d.made.Warnings, "table "+plainText(t.called+" "+text))
}

// plainText is text as it may be in a comment or on a terminal: names are whatever somebody called something, and a
// line's end in one would end the comment.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

func relation(t *Table) string { return identifier(t.Schema) + "." + identifier(t.Name) }

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
