package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A column of `domain: any` holds texts that nobody declared and that are never shown nor found. A statement may ask
// what is so of them (docs/adr/0145): each thing that it asks is a Reading, a total function of one text, and a column
// of the table for that statement (With). Of
//
//	SELECT count(*) FROM orders WHERE note NOT LIKE '%late%'
//
// the table has the further column `note LIKE '%late%'`, a boolean with the domain false and true like any other.

// What of a text is read, and how much may be asked of it.
const (
	MaxTextLength = 1 << 14 // characters of a text that are looked at, the first ones, on every engine and in snapshots alike
	MaxPattern    = 256     // characters of a constant in a reading
	MaxParts      = 4       // of a reading
	MaxReadings   = 64      // of one column in one statement
)

// Reading is a function of a text: its parts, applied one after the other. The empty one is the text itself.
type Reading []Part

// Part is a function of a text and constants. Each is total, and the same function of the text on every engine
// (rewrite/column.go).
type Part struct {
	Word   Word
	From   int    // Cut: its first character, from 1 on; Field: which one, from 1 on
	Length int    // Left, Right, Cut: how many characters
	Text   string // Like: the pattern, with \ as its escape; Position: what is looked for, not empty; Field: what parts fields, not empty
}

// Word says which function a part is.
type Word uint8

// The functions. All but the last three make texts.
const (
	Left Word = 1 + iota
	Right
	Cut       // substring
	Field     // split_part
	Lower     // the letters A to Z become small
	Upper     // the letters a to z become capital
	TrimLeft  // spaces
	TrimRight // spaces
	Like      // a boolean
	Length    // in characters
	Position  // of the first character of what is looked for, 0 means it is not there
)

// Type is what the function gives.
func (r Reading) Type() Type {
	if len(r) > 0 {
		switch r[len(r)-1].Word {
		case Like:
			return Bool
		case Length, Position:
			return Int4
		}
	}
	return Text
}

// Check tells what makes a reading none that may be asked; the constants of a statement are public, and so is this.
func (r Reading) Check() error {
	if len(r) == 0 || len(r) > MaxParts {
		return fmt.Errorf("a text is looked at through more than %d functions", MaxParts)
	}
	for i, p := range r {
		switch {
		case p.Word < Left || p.Word > Position:
			return fmt.Errorf("a function that is not known")
		case p.Word >= Like && i+1 < len(r):
			return fmt.Errorf("a function of what is no text")
		case utf8.RuneCountInString(p.Text) > MaxPattern:
			return fmt.Errorf("a pattern of more than %d characters", MaxPattern)
		case !utf8.ValidString(p.Text) || strings.ContainsRune(p.Text, 0):
			return fmt.Errorf("a text constant that is not valid UTF-8 without NUL")
		case (p.Word == Position || p.Word == Field) && p.Text == "":
			return fmt.Errorf("an empty text is looked for")
		case p.From < 0 || p.From > MaxTextLength || p.Length < 0 || p.Length > MaxTextLength,
			(p.Word == Cut || p.Word == Field) && p.From < 1:
			return fmt.Errorf("a place beyond the first %d characters", MaxTextLength)
		}
		if p.Word == Like {
			if _, ok := Pattern(p.Text); !ok {
				return fmt.Errorf("LIKE pattern must not end with escape character")
			}
		}
	}
	return nil
}

// Of writes the reading of a column for people, and so that different ones are written differently: left(phone, 2).
func (r Reading) Of(column string) string {
	for _, p := range r {
		quoted := "'" + strings.ReplaceAll(p.Text, "'", "''") + "'"
		switch p.Word {
		case Left:
			column = fmt.Sprintf("left(%s, %d)", column, p.Length)
		case Right:
			column = fmt.Sprintf("right(%s, %d)", column, p.Length)
		case Cut:
			column = fmt.Sprintf("substring(%s, %d, %d)", column, p.From, p.Length)
		case Field:
			column = fmt.Sprintf("split_part(%s, %s, %d)", column, quoted, p.From)
		case Like:
			column += " LIKE " + quoted
		case Position:
			column = fmt.Sprintf("strpos(%s, %s)", column, quoted)
		default:
			column = map[Word]string{Lower: "lower", Upper: "upper", TrimLeft: "ltrim", TrimRight: "rtrim", Length: "length"}[p.Word] + "(" + column + ")"
		}
	}
	return column
}

// Folds reports whether it changes the case of letters.
func (r Reading) Folds() bool {
	return slices.ContainsFunc(r, func(p Part) bool { return p.Word == Lower || p.Word == Upper })
}

// Cuts reports whether it may be another for a text than for the text's first MaxTextLength characters: not where it
// depends on some of the first alone.
func (r Reading) Cuts() bool {
	if len(r) == 0 { // what it equals is a constant, and shorter
		return false
	}
	switch p := r[0]; p.Word {
	case Left, Cut:
		return false
	case Lower, Upper:
		return r[1:].Cuts()
	case Like:
		pattern, _ := Pattern(p.Text)
		at := slices.Index(pattern, Wildcard)
		return at >= 0 && at < len(pattern)-1
	}
	return true
}

// Wildcard in a pattern's runes is any number of characters, AnyOne is one.
const (
	Wildcard rune = -1
	AnyOne   rune = -2
)

// Pattern reads a pattern of LIKE with \ as its escape; not ok: it ends with one. Of neighbouring wildcards one is
// left.
func Pattern(text string) (list []rune, ok bool) {
	escaped := false
	for _, c := range text {
		switch {
		case escaped:
			list, escaped = append(list, c), false
		case c == '\\':
			escaped = true
		case c == '%':
			if len(list) == 0 || list[len(list)-1] != Wildcard {
				list = append(list, Wildcard)
			}
		case c == '_':
			list = append(list, AnyOne)
		default:
			list = append(list, c)
		}
	}
	return list, !escaped
}

// newReading makes the column that a reading of a column of `domain: any` is; tables of a statement have copies of it
// (With).
func newReading(of *Column, r Reading) *Column {
	c := &Column{Table: of.Table, Name: r.Of(of.Name), Type: r.Type(), Typmod: -1, Nulls: of.Nulls, Outside: OutsideOther, Reading: r, Beside: of}
	rules := Rules{Nulls: of.Nulls, Outside: OutsideClamp}
	switch c.Type {
	case Bool:
		rules.Outside = OutsideOther
		c.Domain, _ = Enumerate(Bool, nil, rules)
	case Int4:
		c.Outside = OutsideClamp
		c.Domain, _ = Steps(Int4, -1, int64(0), int64(MaxTextLength), Step{Whole: 1}, rules)
	default:
		c.Open, c.Any, c.NullKey = c, true, true
		c.Domain = openDomain(c, nil)
	}
	return c
}

// NewReading is the column that a reading of a policy's column is.
func NewReading(of *Column, r Reading) (*Column, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return newReading(of, r), nil
}

// Longest is how many characters of a column of open texts are read.
func (c *Column) Longest() int {
	if c.Any {
		return MaxTextLength
	}
	return MaxKeyLength
}

// Made tells a column of a statement's own table that the database has none of: combinations of others, or what is
// asked of a text.
func (c *Column) Made() bool { return len(c.Product) > 0 || c.Reading != nil }

// MaxKeyLength is the number of characters that the values of an open column are cut to.
const MaxKeyLength = 128

// MaxKeys is the number of keys of an open column that a statement works with.
const MaxKeys = 1 << 14

// openColumn reads a column of `keys: discover`: texts or whole numbers of which nobody declared the values.
func openColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the values of this column are to be discovered",
		map[string]bool{"domain": !f.Domain.empty(), "outside": f.Outside != "", "offgrid": f.Offgrid != ""})
	switch {
	case !col.Type.Textual() && !col.Type.Integer():
		at.key("keys").problem("keys: discover is for columns of text, varchar and whole numbers")
		return
	case col.Table.Public:
		at.key("keys").problem("keys: discover is for private tables")
	case col.Table.Dataset.Unit.Row:
		at.key("keys").problem("keys: discover needs a unit that is a key: keys are shown that enough units have")
	}
	if f.Nulls == "exclude" {
		col.Nulls = NullExclude
	}
	col.Open, col.Domain = col, openDomain(col, nil)
}

// anyColumn reads a column of `domain: any`: text of which a statement may ask what is so, and whose values are neither
// found nor shown.
func anyColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the domain is any: every text is in it",
		map[string]bool{"outside": f.Outside != "", "offgrid": f.Offgrid != "", "other": f.Other != ""})
	switch {
	case !col.Type.Textual() || col.Blanks > 0:
		at.key("domain").problem("domain is any, which is for text and varchar columns")
		return
	case f.Keys == "discover":
		at.key("keys").problem("keys: discover finds values, and domain: any says that none are shown: give one of the two")
		return
	}
	if f.Nulls == "exclude" {
		col.Nulls = NullExclude
	}
	col.Open, col.Any, col.NullKey = col, true, true
	col.Domain = openDomain(col, nil)
}

// openDomain is a domain of some values of an open column: any other is 'other', or, among whole numbers, one that is
// none of the values.
func openDomain(c *Column, values []string) *Domain {
	d := &Domain{Type: c.Type, Scale: -1, Regular: len(values), Other: len(values), Null: -1, Values: values}
	d.index = make(map[string]int, len(values))
	for i, v := range values {
		d.index[v] = i
	}
	if declared, ok := d.index[OtherValue]; ok {
		d.Other = declared
	}
	for _, taken := d.index[strconv.FormatInt(d.none, 10)]; taken; _, taken = d.index[strconv.FormatInt(d.none, 10)] {
		d.none++
	}
	if c.Nulls == NullCell {
		d.Null = max(d.Regular, d.Other+1)
	}
	return d
}

// IsOpen reports whether the table has a column of `keys: discover` or `domain: any`.
func (t *Table) IsOpen() bool {
	return slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Open != nil })
}

// Finds reports whether it has one of `keys: discover`.
func (t *Table) Finds() bool {
	return slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Open != nil && !c.Any })
}

// Found is what is known of an open column: values, sorted, and whether NULL is a key.
type Found struct {
	Values []string
	Null   bool
}

// With returns the table as a statement sees it that knows some values of its open columns, and asks things of its
// texts: the readings, in the order of their names, come behind its columns. Releases that the policy declares are over
// the table as it is, and not of it.
func (t *Table) With(found map[*Column]Found, readings ...*Column) *Table {
	own := *t
	own.Opened, own.Releases, own.Columns, own.Keys = true, nil, make([]*Column, len(t.Columns)), make([]*Column, len(t.Keys))
	move := func(to, from []*Column) {
		for i, c := range from {
			copied := *c
			copied.Table = &own
			if f, ok := found[c.Open]; ok && c.Open != nil {
				copied.Domain, copied.NullKey = openDomain(c, f.Values), f.Null || c.Any
			}
			to[i] = &copied
		}
	}
	move(own.Columns, t.Columns)
	move(own.Keys, t.Keys)
	asked := make([]*Column, len(readings))
	move(asked, readings)
	for _, c := range asked {
		c.Beside = own.Columns[slices.Index(t.Columns, c.Beside)]
	}
	own.Columns = append(own.Columns, asked...)
	return &own
}

// WithProduct returns the table with one more open column, whose values are the combinations of the cells of some
// columns, written as numbers with commas.
func (t *Table) WithProduct(columns []*Column) *Table {
	own := t.With(nil)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	col := &Column{Table: own, Name: "combinations of " + strings.Join(names, ", "), Type: Text, Typmod: -1, Nulls: NullExclude, Outside: OutsideOther, Product: columns}
	col.Open, col.Domain = col, openDomain(col, nil)
	own.Columns = append(own.Columns, col)
	return own
}
