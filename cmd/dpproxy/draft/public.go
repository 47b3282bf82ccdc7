package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Public tables: lists of codes, of which keys, what a code is called and categories of things are shown.

// whyNotPublic says why a column of a kind is not shown in a public table; "" means that it is.
var whyNotPublic = map[kind]string{
	secret:   why[secret],
	identity: why[identity],
	naming:   "it names a row, a document or a device",
	free:     "text that people write",
	total:    "it may add up private rows, so that a change of it is one person's",
	measure:  "a number beside a code may be about one person alone",
	moment:   "what happens to private rows may move it",
	flag:     "a yes or no beside a code may be about one person alone",
	unsure:   "nothing says that it is a code or what a code is called",
}

// publicly says why a public table does not show a column beside its keys; "" means that it does: what a row is called,
// and categories of things.
func publicly(t *Table, c *Column) string {
	k, list := kindOf(c), subject(words(c.Name))
	head := last(list)
	_, thing := trimmed(list, thingWords)
	_, labelled := trimmed(list, labelWords)
	own := head != "" && head == last(words(t.Name)) && (k != free || longest(c) > 0) // genre.genre
	switch {
	case k == secret, k == identity, k == naming, !textual(c) && len(c.Labels) == 0:
		return whyNotPublic[k]
	case longest(c) > longestLabel:
		return whyNotPublic[free]
	case labelled, thing, own:
		return ""
	case k == category:
		return "the state of a row may be one person's"
	}
	return whyNotPublic[k]
}

// titled reports whether a column says what a row of a list is called.
func titled(t *Table, c *Column) bool {
	list := words(c.Name)
	_, title := trimmed(list, titleWords)
	return title || last(list) == last(words(t.Name))
}

// longestLabel is the size that what a code is called is declared with at most.
const longestLabel = 500

// longest is how many characters a text may have as its type says; 0 where it does not.
func longest(c *Column) int {
	_, inner, _ := strings.Cut(c.Type, "(")
	n, _ := strconv.Atoi(strings.TrimSuffix(inner, ")"))
	return n
}

// public writes a lookup table: its keys, and what looks like a code or what one is called.
func (d *drafter) public(p *part) {
	t := p.table
	if all, codes := d.shown(t); !codes {
		fmt.Fprintf(&d.out, "      # EDIT: every analyst sees %s of all rows of %s, exactly; strike it if any row is "+
			"about a %s\n", plainText(all), plainText(t.called), d.unitName())
	}
	fmt.Fprintf(&d.out, "      - name: %s\n        source: %s\n        public: true\n", quote(t.called), quote(t.Schema+"."+t.Name))
	if n := d.read[t].Rows; n > policy.DefaultPublicRows {
		fmt.Fprintf(&d.out, "        max_rows: %d   # it has %d\n", min(2*n, policy.MaxPublicRows), n)
	}
	d.out.WriteString("        columns:\n")
	shown := false
	for _, c := range t.Columns {
		l := d.publicColumn(t, c)
		shown = shown || l.hidden == ""
		d.line(c, l)
	}
	if !shown {
		d.warn(t, "has no column that can be listed: declare one, or it does not load")
	}
}

// lists asks of the lists of codes, whose marks are one: they have codes and what those are called.
func (d *drafter) lists() {
	var names []string
	for _, p := range d.parts {
		if p.role == lookup {
			if all, codes := d.shown(p.table); codes {
				names = append(names, p.table.called+" ("+all+")")
			}
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(&d.out, "      # EDIT: every analyst sees all rows of these lists, exactly; strike each of which "+
			"any row is about a %s: %s\n", d.unitName(), plainText(strings.Join(names, ", ")))
	}
}

// keysOf decides on a column that names the rows of a public table by a key that it shows: its values are the keys, or
// those of the rows of which a text says what the column's name does:
//
//	visit_concept_id → concept(concept_id, domain_id, …):
//	{keys_of: concept.concept_id, where: "domain_id = 'Visit' OR concept_id = 0"}
//
// Where they are more than a list has, they are found, which joins no rows, but loads.
func (d *drafter) keysOf(c *Column, r reference) (listing, bool) {
	key := r.to.column(r.key)
	if d.publicColumn(r.to, key).hidden != "" || whole(c) != whole(key) || textual(c) != textual(key) ||
		!whole(c) && !textual(c) && (c.Type != "uuid" || key.Type != "uuid") {
		return listing{}, false
	}
	l := listing{typ: declared(c), remark: "the keys of " + r.to.called}
	where, most := "", int64(policy.MaxListedTexts)
	if whole(key) {
		most = policy.MaxListed - 1 // and 0
	}
	columns, either, keys := d.saidOf(c, r)
	if len(columns) == 0 {
		keys = d.read[r.to].Rows
	}
	if keys > most {
		many := fmt.Sprintf("%s has %d such keys, more than a list", r.to.called, keys)
		if l.rules, l.remark = "keys: discover", many+": keys_of with a where that leaves at most "+
			strconv.FormatInt(most, 10)+" joins it, too"; c.Type == "uuid" {
			l.hidden = many
		}
		return l, true
	}
	if len(columns) > 0 {
		if whole(key) { // of many lists the row of those that have no code
			either = append(either, identifier(r.key)+" = 0")
		}
		where, l.some = ", where: "+strconv.Quote(strings.Join(either, " OR ")), true
		l.remark += " whose " + strings.Join(columns, " or ") + " its name says, and 0"
	}
	l.rules = "domain: {keys_of: " + quote(r.to.called+"."+r.key) + where + "}"
	return l, true
}

// readPublic reads the public tables, where the owner lets it.
func (d *drafter) readPublic() (err error) {
	d.read = map[*Table]Public{}
	for _, p := range d.parts {
		if p.role != lookup || d.options.Read == nil {
			continue
		}
		texts := slices.DeleteFunc(slices.Clone(p.table.Columns), func(c *Column) bool {
			return !textual(c) || d.publicColumn(p.table, c).hidden != ""
		})
		if d.read[p.table], err = d.options.Read(p.table, texts); err != nil {
			return err
		}
	}
	return nil
}

// saidOf finds the longest text in columns of a public table that the name of a column that leads there ends with, but
// for words of the key: drug_type_concept_id is a type, and no drug. The columns are those that classify rows, as what
// rows are called does not; one that has two such texts says nothing. At most so many rows have one of them.
func (d *drafter) saidOf(c *Column, r reference) (columns, either []string, rows int64) {
	name, ofKey, most := words(c.Name), append(words(r.to.Name), words(r.key)...), 0
	head := name
	for len(head) > 0 && slices.Contains(ofKey, last(head)) {
		head = head[:len(head)-1]
	}
	for _, own := range r.to.Columns {
		values := d.read[r.to].Values[own.Name]
		if d.publicColumn(r.to, own).hidden != "" || titled(r.to, own) || int64(len(values)) > d.read[r.to].Rows/2 {
			continue
		}
		value, longest := "", 0
		for v := range values {
			said := words(v)
			switch n := len(strings.Join(said, " ")); {
			case n < longest || !tells(name, said, len(head)) || strings.ContainsFunc(v, unprintable):
			case n == longest:
				value = ""
			default:
				value, longest = v, n
			}
		}
		if value == "" || longest < most {
			continue
		}
		if longest > most {
			columns, either, rows, most = nil, nil, 0, longest
		}
		columns, rows = append(columns, own.Name), rows+values[value]
		either = append(either, identifier(own.Name)+" = '"+strings.ReplaceAll(value, "'", "''")+"'")
	}
	return columns, either, rows
}

// tells reports whether a name has some words together, of which one is its last before a place.
func tells(name, said []string, end int) bool {
	for i := range min(end, len(name)-len(said)+1) {
		if i+len(said) >= end && len(said) > 0 && slices.Equal(name[i:i+len(said)], said) {
			return true
		}
	}
	return false
}

// shown lists the columns of a public table that are shown, and reports whether it has nothing else but totals, names
// of rows, flags and when they were made.
func (d *drafter) shown(t *Table) (all string, codes bool) {
	var names []string
	codes = !stockWords.names(t.Name)
	for _, c := range t.Columns {
		switch hidden := d.publicColumn(t, c).hidden != ""; {
		case !hidden:
			names = append(names, c.Name)
		case !slices.Contains([]kind{total, naming, flag}, kindOf(c)) && !(dated(c) && upkeepWords.in(c.Name)):
			codes = false
		}
	}
	return strings.Join(names, ", "), codes
}

// publicColumn decides on a column of a public table.
func (d *drafter) publicColumn(t *Table, c *Column) listing {
	why := cmp.Or(unnamed(c), d.namesUnlisted(t, c), personal(c))
	if why == "" && !t.keyed(c) {
		why = publicly(t, c)
	}
	l := listing{typ: declared(c), hidden: why}
	switch {
	case why != "":
	case len(c.Labels) > 0:
		l.typ = "text" // as which its rows are copied
	case !declarable(l.typ) && !strings.HasPrefix(l.typ, "char("):
		l.hidden = "its type is " + c.Type
	}
	return l
}

// namesUnlisted says that a column of a public table names a row of a table that is not public; "" means it does not.
func (d *drafter) namesUnlisted(t *Table, c *Column) string {
	for _, r := range t.references() {
		if r.column == c.Name && d.part(r.to).role != lookup {
			return unlistedRow(r)
		}
	}
	return ""
}
