package policy

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What catalogs show of a table beside the columns that questions are asked of: the keys that rows are joined by, and
// what the policy says of them. Of
//
//	unit: {name: person, key: people.person_id}
//	tables: [{name: people, max_rows_per_unit: 1}, {name: visits, unit: visits.person_id = people.person_id}]
//
// both tables have a column person_id, which is the primary key of people and a foreign key of visits (docs/adr/0173).
// All of it is a function of the policy.

// Described are the columns as catalogs list them, those that the policy lists in its order; what it only names, such
// as the unit's column, comes behind them, unless a listed column has its name: {name: id, source: number} beside a
// unit that is found by id.
func (t *Table) Described() []*Column {
	all := slices.DeleteFunc(slices.Clone(t.listed()), func(c *Column) bool { return c.Private })
	for _, k := range t.Keys {
		if k.Hidden && t.describedAs(k) == k && !slices.ContainsFunc(all, func(c *Column) bool { return strings.EqualFold(c.Name, k.Name) }) {
			all = append(all, k)
		}
	}
	return all
}

// listed is Listed; of a table that was read from no file its columns, and then its keys.
func (t *Table) listed() []*Column {
	if t.Listed != nil {
		return t.Listed
	}
	all := slices.Clone(t.Columns)
	for _, k := range t.Keys {
		if !k.Hidden {
			all = append(all, k)
		}
	}
	return all
}

// describedAs is the column that shows a key's values: one that the policy lists of the same source, or the key itself.
func (t *Table) describedAs(k *Column) *Column {
	for _, c := range t.listed() {
		if !c.Private && c.Source == k.Source {
			return c
		}
	}
	return k
}

// DescribedType is the type that catalogs show. Of a key whose type the policy does not say it is that of the key which
// it leads to, and else text: any key has a text, and none is ever read.
func (c *Column) DescribedType() (Type, int32) {
	if c.Type != 0 {
		return c.Shown()
	}
	to := c.Origin()
	if to.Table != nil && to.Table.Derived == nil {
		to = to.Table.describedAs(to)
	}
	switch {
	case to.Type != 0:
		return to.Shown()
	case c.Table == nil || c.Table.Dataset == nil:
		return Text, -1
	case c.Unit && c.Table.Dataset.Unit.Type != 0:
		return c.Table.Dataset.Unit.Type, -1
	}
	for _, t := range c.Table.Dataset.Tables { // of those that say it the first: a key that has another type leads nowhere (Constraints)
		for _, k := range t.Keys {
			if said := t.describedAs(k); said.Type != 0 && (c.Unit && k.Unit || k.Origin() == c.Origin()) {
				return said.Shown()
			}
		}
	}
	return Text, -1
}

// Shown is the type that a column says, and that expressions over it have: of a char its own.
func (c *Column) Shown() (Type, int32) {
	switch {
	case c.Blanks == 0:
		return c.Type, c.Typmod
	case c.Ragged:
		return Bpchar, -1
	}
	return Bpchar, CharTypmod(c.Blanks)
}

// Untyped tells a key whose type the policy does not say, by any way.
func (c *Column) Untyped() bool {
	if c.Type != 0 {
		return false
	}
	t, _ := c.DescribedType()
	return t == Text
}

// Always tells that no row that counts has NULL in a column: the policy leaves such rows out, or they name no unit, or
// others find their unit by it, which is proven to be NOT NULL before a question is answered.
func (t *Table) Always(c *Column) bool {
	if t.Public {
		return false
	}
	if via := t.Via; via != nil && c.Source == via.Column || t.UnitColumn != "" && c.Source == t.UnitColumn && !t.NullEach {
		return true
	}
	return !c.Join && c.Nulls == NullExclude || slices.ContainsFunc(t.Dataset.Tables, func(other *Table) bool {
		return other.Via != nil && other.Via.Table == t && other.Via.Key == c.Source
	})
}

// Numbered tells a key by which made-up rows may be numbered: the only column of its table's primary key, which leads
// nowhere else. Clients that keep rows by their primary key take a row without one for none.
func (c *Column) Numbered() bool {
	if !c.Join || c.Table.Public || c.Table.Derived != nil {
		return false
	}
	t := c.Table.Dataset.Table(c.Table.Schema, c.Table.Name) // c may be of a copy of it
	from, _, _, _ := t.leadsTo()
	keys := t.uniqueKeys()
	return len(keys) > 0 && len(keys[0]) == 1 && keys[0][0].Source == c.Source && t.Always(keys[0][0]) && (from == nil || from.Source != c.Source)
}

// Constraint is a key of a table's rows as catalogs show it.
type Constraint struct {
	Name    string
	Columns []*Column
	Primary bool        // else Unique, or a foreign key
	To      *Constraint // of a foreign key: the key of another table whose values it holds
	Of      *Table
	Met     bool // of a foreign key: rows whose value the other table does not have are left out
}

// Constraints are the keys of a dataset's tables, those of one table together, in the tables' order: which rows are one
// unit's, and what no two rows that count have in common.
//
// A table of which a unit has one row has the unit's column for primary key; one through whose key others find their
// unit has that key (it is proven to be unique before a question is answered); `unique` gives others. A foreign key
// leads where the policy says that a row's unit is found. It does not say that each visit's person is among the people:
// such a key is not validated (NOT VALID).
func (d *Dataset) Constraints() []*Constraint {
	if d.Unit.Row {
		return nil
	}
	used := map[string]bool{}
	for _, t := range d.Tables {
		used[t.Schema+"."+t.Name] = true
	}
	byTable := map[*Table][]*Constraint{}
	add := func(t *Table, c Constraint, suffix string) *Constraint {
		c.Of, c.Name = t, constraintName(t, c.Columns, c.Primary, suffix, used)
		byTable[t] = append(byTable[t], &c)
		return &c
	}
	for _, t := range d.Tables {
		for i, columns := range t.uniqueKeys() {
			add(t, Constraint{Columns: columns, Primary: i == 0 && !slices.ContainsFunc(columns, func(c *Column) bool { return !t.Always(c) })}, "key")
		}
	}
	for _, t := range d.Tables {
		from, to, key, met := t.leadsTo()
		if from == nil {
			continue
		}
		for _, have := range byTable[to] {
			if own := t.describedAs(from); have.To == nil && len(have.Columns) == 1 && have.Columns[0] == to.describedAs(key) && t.shows(own) && own.mayReferTo(have.Columns[0]) {
				add(t, Constraint{Columns: []*Column{own}, To: have, Met: met}, "fkey")
				break
			}
		}
	}
	var all []*Constraint
	for _, t := range d.Tables {
		all = append(all, byTable[t]...)
	}
	return all
}

// maxKeyColumns is the number of columns that PostgreSQL has in a key.
const maxKeyColumns = 32

// shows reports whether catalogs list a column.
func (t *Table) shows(c *Column) bool { return slices.Contains(t.Described(), c) }

// mayReferTo reports whether a server has a foreign key of a column to another's.
func (c *Column) mayReferTo(to *Column) bool {
	a, _ := c.DescribedType()
	b, _ := to.DescribedType()
	return a.family() == b.family()
}

// leadsTo is the key by which the rows of t find their unit in another table, and the key there; nil means there is
// none.
func (t *Table) leadsTo() (from *Column, to *Table, key *Column, met bool) {
	if t.Public || t.Analysed() {
		return nil, nil, nil, false
	}
	if t.Via != nil {
		return t.sourceKey(t.Via.Column), t.Via.Table, t.Via.Table.sourceKey(t.Via.Key), true
	}
	for _, other := range t.Dataset.Tables {
		if k := other.sourceKey(t.Dataset.Unit.Column); other != t && k != nil && k.Unit && names(t.Dataset.Unit.Table, other.Schema+"."+other.Name) && t.UnitColumn != "" {
			return t.sourceKey(t.UnitColumn), other, k, false
		}
	}
	return nil, nil, nil, false
}

// shownKey returns the columns of a key as they are described, or nil if one is not.
func (t *Table) shownKey(sources []string) (columns []*Column) {
	for _, source := range sources {
		k := t.sourceKey(source)
		if k == nil || !t.shows(t.describedAs(k)) {
			return nil
		}
		columns = append(columns, t.describedAs(k))
	}
	return columns
}

// uniqueKeys are the columns that no two rows which count have in common, each key once.
func (t *Table) uniqueKeys() (keys [][]*Column) {
	if t.Public || t.Analysed() {
		return nil
	}
	seen := map[string]bool{}
	add := func(sources ...string) {
		text := fmt.Sprintf("%q", sources)
		if columns := t.shownKey(sources); columns != nil && !seen[text] && len(columns) <= maxKeyColumns {
			seen[text], keys = true, append(keys, columns)
		}
	}
	if t.UnitColumn != "" && t.MaxRowsPerUnit == 1 && !t.NullEach {
		add(t.UnitColumn)
	}
	for _, other := range t.Dataset.Tables {
		if other.Via != nil && other.Via.Table == t {
			add(other.Via.Key)
		}
	}
	for _, sources := range t.Unique {
		switch {
		case slices.ContainsFunc(sources, func(s string) bool { k := t.sourceKey(s); return k != nil && k.TellsUnit() }):
			add(sources...)
		case t.UnitColumn != "":
			add(append([]string{t.UnitColumn}, sources...)...)
		}
	}
	return keys
}

// constraintName is the name that PostgreSQL gives a constraint which is written without one.
func constraintName(t *Table, columns []*Column, primary bool, suffix string, used map[string]bool) string {
	name := t.Name
	if primary {
		suffix = "pkey"
	} else {
		for _, c := range columns {
			name += "_" + c.Name
		}
	}
	const most = 63
	for i := 0; ; i++ {
		end := "_" + suffix
		if i > 0 {
			end += strconv.Itoa(i)
		}
		full := name
		for len(full)+len(end) > most {
			full = string([]rune(full)[:len([]rune(full))-1])
		}
		if full += end; !used[t.Schema+"."+full] {
			used[t.Schema+"."+full] = true
			return full
		}
	}
}

// What a policy says of tables, columns and releases, in plain words: for who reviews it, and for what changes in it.

// SpanText writes a duration as a policy file may: "30d".
func SpanText(d time.Duration) string {
	for _, u := range []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if d >= u.of && d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return d.String()
}

func (t *Table) sourceWords() string {
	switch {
	case t.View.Text != "" && t.View.Trusted:
		return "a trusted SELECT: " + t.View.Text
	case t.View.Text != "":
		return "a SELECT: " + t.View.Text
	case t.File != "":
		return "the file of " + t.Source.Name
	}
	return t.Source.Schema + "." + t.Source.Name
}

func (t *Table) boundWords() string {
	if t.MaxGroups > 0 {
		return fmt.Sprintf("%d in each of %d groups", t.MaxPerGroup, t.MaxGroups)
	}
	if t.AnyRows {
		return "any number"
	}
	return fmt.Sprint(t.MaxRowsPerUnit)
}

// totalWords is what a unit adds in all at most, "" where nothing is said.
func totalWords(most *big.Rat) string {
	if most == nil {
		return ""
	}
	return most.RatString()
}

func (t *Table) pathWords() string {
	words := t.UnitColumn
	if t.Via != nil {
		words = fmt.Sprintf("through %s, which is %s of %s", t.Via.Column, t.Via.Key, t.Via.Table.name())
	}
	if t.NullEach {
		words += ", each NULL a unit of its own"
	}
	return words
}

func (t *Table) appendWords() string {
	if t.Appends == nil {
		return ""
	}
	return fmt.Sprintf("by %s, closed after %s, of days not closed %s, bounded over its life %t", t.Appends.Column.Name, SpanText(t.Appends.Closes), map[bool]string{true: "counted", false: "left out"}[t.Appends.Count], t.Appends.Total)
}

// Words are a table in plain words: whose rows are counted, and how many of one unit.
func (t *Table) Words() string {
	if t.Public {
		return fmt.Sprintf("public: its rows, at most %d, are shown as they are", t.MaxRows)
	}
	unit := t.Dataset.UnitName()
	if t.Dataset.Unit.Row {
		return fmt.Sprintf("private; about %d rows, each about somebody else", t.ExpectedRows)
	}
	count := "at most " + t.boundWords()
	if t.AnyRows {
		count = t.boundWords()
	}
	return fmt.Sprintf("private; about %d rows; of one %s %s count", t.ExpectedRows, unit, count)
}

// Words are a column in plain words.
func (c *Column) Words() string { return c.words() }

func (c *Column) words() string {
	parts := []string{c.Type.Format(c.Typmod)}
	switch {
	case c.Private && c.List != nil:
		parts = append(parts, "the keys of "+c.List.Of.Name+"."+c.List.Key.Name+", which were not read")
	case c.Private:
		parts = append(parts, "its bounds are not known yet, and nothing is answered over it")
	case c.Any:
		parts = append(parts, "any text, never shown; conditions on it are answered")
	case c.Open != nil:
		parts = append(parts, "its keys are found")
	case c.Domain != nil:
		parts = append(parts, c.Domain.words())
	}
	if c.Domain != nil && !c.Private && !c.Any {
		parts = append(parts, "outside: "+map[OutsideRule]string{OutsideClamp: "the nearest end", OutsideOther: "other", OutsideExclude: "left out"}[c.Outside])
	}
	if c.Domain != nil && !c.Private {
		parts = append(parts, "NULL: "+map[NullRule]string{NullCell: "counted apart", NullExclude: "left out"}[c.Nulls])
	}
	for _, f := range []struct {
		is   bool
		word string
	}{{c.Source != c.Name && c.Source != "", "read from " + c.Source}, {c.Snap, "bounds move to its steps"}, {c.Extreme, "min and max as quantiles"}, {c.Ends, "min and max are its ends"}, {c.Hide, "no row for other"}, {c.Join, "rows may be joined by it"}, {c.Unit, "names the unit"}, {c.Enum, "an enumeration of the database"}, {c.Frequency.Units > 0, "of its groups those of " + c.Frequency.String()}, {c.Comment != "", "described as “" + c.Comment + "”"}} {
		if f.is {
			parts = append(parts, f.word)
		}
	}
	if c.MaxTotal != nil {
		parts = append(parts, "of one unit at most "+totalWords(c.MaxTotal)+" in all")
	}
	return strings.Join(parts, "; ")
}

// shownValues is how many values of a domain are named in words.
const shownValues = 12

func (d *Domain) words() string {
	if !d.Ordered() {
		if len(d.Values) > shownValues {
			return fmt.Sprintf("%s and %d more values (%.4x)", strings.Join(d.Values[:shownValues], ", "), len(d.Values)-shownValues, sha256.Sum256([]byte(strings.Join(d.Values, "\x00"))))
		}
		return strings.Join(d.Values, ", ")
	}
	last := FormatValue(d.Type, d.Max)
	if d.Below != nil {
		last = "below " + FormatValue(d.Type, d.Below)
	}
	return fmt.Sprintf("%s to %s in %d steps", FormatValue(d.Type, d.Min), last, d.Regular)
}

func (r *Release) words() string {
	var names []string
	for i, c := range r.Columns {
		name := c.Name
		if r.Widths != nil && r.Widths[i] > 1 {
			name = fmt.Sprintf("%s by %d cells", name, r.Widths[i])
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("%s over %s for %v", r.Kind, strings.Join(names, ", "), r.Cost)
	for _, f := range []struct {
		is   bool
		word string
	}{{r.Refresh > 0, "anew after " + SpanText(r.Refresh)}, {r.Mechanism != "", r.Mechanism}, {r.Updates > 0, fmt.Sprintf("%d updates", r.Updates)}, {r.Insist, "insisted on"},
		{r.Rows > 0, fmt.Sprintf("%d rows", r.Rows)}, {r.Queries > 0, fmt.Sprintf("%d questions", r.Queries)}} {
		if f.is {
			text += "; " + f.word
		}
	}
	return text
}

// Words are a release in plain words.
func (r *Release) Words() string { return r.words() }

// Words are a budget in plain words.
func (b Budget) Words() string { return b.words() }
