package rewrite

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A column's raw value is missing when it is NULL or NaN. Its normalised value is NULL, a value between the ends of an
// ordered domain, or the cell's number in an enumerated one, whatever is stored: the comparisons here are total and the
// arithmetic of cells (predicate.go) sees bounded values alone.
//
// How a raw column is read is the engine's (dialect.Words.Read): what does not fit the declared type is NULL, or else
// the statement fails when it is parsed, alike for any rows.

// raw reads the column.
func (w *columns) raw(c *policy.Column) string {
	if name, ok := w.tally[c]; ok {
		return name
	}
	if len(c.Product) > 0 {
		return w.combination(c)
	}
	if c.Reading != nil {
		return w.reading(c)
	}
	if w.dialect.Ready {
		if c.Open == nil {
			w.fail("a value that a snapshot has normalised is read as it was stored")
		}
		return "t." + w.copied(c)
	}
	column, readText := w.column(c), w.dialect.ReadText
	if c.Enum {
		readText = w.dialect.ReadEnum
	}
	if c.Open != nil && c.Type.Integer() {
		column, readText = w.cast(column, "text"), w.dialect.ReadText
	}
	if c.Open != nil {
		return w.call("left", dialect.Fill(readText, column), strconv.Itoa(c.Longest()))
	}
	if c.Type.Textual() {
		return dialect.Fill(readText, column)
	}
	return dialect.Fill(w.dialect.Read, column, w.columnType(c))
}

// column is a column of a row as it is stored.
func (w *composed) column(c *policy.Column) string {
	if !slices.Contains(w.reads, c.Source) {
		w.reads = append(w.reads, c.Source)
	}
	return "t." + w.name(c.Source)
}

// missing reports whether the raw value is NULL or NaN.
func (w *columns) missing(c *policy.Column) string {
	raw := w.raw(c)
	null := raw + " IS NULL"
	if nan := w.isNaN(c, raw); nan != "" {
		return "(" + null + " OR " + nan + ")"
	}
	return null
}

// isNaN is empty for a type without NaN.
func (w *composed) isNaN(c *policy.Column, raw string) string {
	switch {
	case c.Type.Floating():
		return dialect.Fill(w.dialect.IsNaN, raw, w.dialect.Type("float8"))
	case c.Type == policy.NumericType && w.dialect.Digits == 0:
		return dialect.Fill(w.dialect.IsNaN, raw, w.dialect.Type("numeric"))
	}
	return ""
}

// kept returns the conditions under which the column's rules leave a row in the table.
func (w *columns) kept(c *policy.Column) []string {
	nulls, outside := c.Nulls == policy.NullExclude, c.Outside == policy.OutsideExclude
	switch {
	case len(c.Product) > 0:
		return nil // the rules of its parts leave no row without a combination
	case c.Domain == nil:
		w.fail("a column without a domain")
		return nil
	case outside && nulls:
		return []string{w.declared(c, true)}
	case outside:
		return []string{"(" + w.missing(c) + " OR " + w.declared(c, true) + ")"}
	case nulls:
		return []string{"NOT " + w.missing(c)}
	}
	return nil
}

// normalised applies the rule for outside values; a missing value becomes NULL. A value that the rule excludes becomes
// NULL too, because the database may evaluate this before it leaves the row out.
func (w *columns) normalised(c *policy.Column) string {
	w.checkRules(c)
	if w.dialect.Ready && c.Open == nil && c.Reading == nil {
		return "t." + w.copied(c)
	}
	if !c.Domain.Ordered() {
		return w.normalisedEnum(c)
	}
	return w.normalisedOrdered(c)
}

// checkRules holds a column's rules against its domain.
func (w *composed) checkRules(c *policy.Column) {
	if c.Domain.Null < 0 && (c.Nulls != policy.NullExclude || c.Outside == policy.OutsideOther && c.Domain.Ordered()) {
		w.fail("a column whose rules reach a NULL cell that its domain lacks")
	}
}

// value is a column's normalised value, or the stored one where that is the same.
func (w *columns) value(c *policy.Column) string {
	if slices.Contains(w.asIs, c) {
		return w.raw(c)
	}
	if w.onRaw {
		return "(" + w.normalised(c) + ")"
	}
	return w.normalised(c)
}

func (w *columns) normalisedOrdered(c *policy.Column) string {
	raw, least, most := w.raw(c), w.constant(c, c.Domain.Min), w.constant(c, c.Domain.Max)
	switch c.Outside {
	case policy.OutsideClamp:
		sql := "CASE"
		if nan := w.isNaN(c, raw); nan != "" {
			sql += " WHEN " + nan + " THEN NULL"
		}
		return sql + " WHEN " + w.operate(raw, "<", least) + " THEN " + least +
			" WHEN " + w.operate(raw, ">", most) + " THEN " + most + " ELSE " + raw + " END"
	case policy.OutsideOther, policy.OutsideExclude:
		// NaN is greater than every number in both dialects. The last arm never holds; it widens the type.
		return "CASE WHEN " + w.operate(raw, ">=", least) + " AND " + w.operate(raw, "<=", most) + " THEN " + raw +
			" WHEN false THEN " + least + " END"
	}
	w.fail("a column without a rule for outside values")
	return "NULL"
}

// normalisedEnum is the number of the value's cell.
func (w *columns) normalisedEnum(c *policy.Column) string {
	raw, d := w.raw(c), c.Domain
	if c.Any && len(d.Values) == 0 && c.Reading == nil && !w.dialect.Ready { // whether there is one is all that is asked: no text is read
		raw = dialect.Fill(w.dialect.ReadText, w.column(c))
	}
	if c.Type == policy.Bool && c.Reading != nil && slices.Equal(d.Values, []string{"false", "true"}) { // the cell is the truth, so that the text is matched once
		return w.cast(raw, "int4")
	}
	if c.Type == policy.Bool {
		sql := "CASE"
		for cell, v := range d.Values {
			if v == "true" {
				sql += " WHEN " + raw + " THEN " + strconv.Itoa(cell)
			} else {
				sql += " WHEN NOT " + raw + " THEN " + strconv.Itoa(cell)
			}
		}
		return sql + " END"
	}
	if w.looksUp(c) {
		found := w.operate(w.found(c)+".i", "-", w.literal("1", "int8"))
		if d.Other < 0 {
			return found
		}
		return "COALESCE(" + found + ", CASE WHEN " + raw + " IS NOT NULL THEN " + w.whole(int64(d.Other)) + " END)"
	}
	declared := w.operate(dialect.Fill(w.dialect.Position, strings.Join(w.values(c, d.Values), ", "), raw), "-", "1")
	if len(d.Values) == 0 {
		declared = w.cast("NULL", "int4")
	}
	switch {
	case c.Outside == policy.OutsideOther && d.Other >= 0:
		return "COALESCE(" + declared + ", CASE WHEN " + raw + " IS NOT NULL THEN " + strconv.Itoa(d.Other) + " END)"
	case c.Outside == policy.OutsideOther && !c.Type.Textual() || c.Outside == policy.OutsideExclude:
		return declared
	}
	w.fail("a column without a rule for outside values")
	return "NULL"
}

// What a statement asks of a text (policy.Reading). Of `note LIKE '%late%'` and `left(phone, 2)`, PostgreSQL is asked
// for
//
//	(pg_catalog.left((t."note" COLLATE pg_catalog."C"), 16384) OPERATOR(pg_catalog.~~) $1::pg_catalog.text)
//	pg_catalog.left(pg_catalog.left((t."phone" COLLATE pg_catalog."C"), 16384), 2)
//
// Claim. Each part fails for no text, and is one and the same function on every engine: of the characters of the text,
// which are code points, and not of a collation or of a locale. Proof. Texts are cut to as many characters everywhere
// (policy.MaxTextLength), by the collation "C", in which equality is that of bytes, and which explicit collation all
// functions of it inherit. left, right, substr and split_part take what is at places that are constants from 0 or 1
// on; rtrim and ltrim are given the space that they take away; letters are changed by translate, of A to Z alone,
// because lower and upper go by the server's locale. A pattern is read here, and written anew for each engine: by LIKE
// where that reads it so, else as a regular expression of literals, `.` and `.*`, which the engine matches in time
// linear in the text. An engine whose regular expressions try again (Java's, of Spark) is given each part between two
// wildcards as an atomic group, `(?>.*?part)`: the first place where it is found is kept, whatever comes after it. That
// says what LIKE does: a part has one length in characters, so that what is left after its first place contains what is
// left after any other; and what follows the last wildcard is compared at the text's end alone. Work: constants have at
// most MostPattern characters, so that one text takes at most MostTextLength times MostPattern steps, on PostgreSQL
// because a wildcard that runs out of text gives up for all wildcards before it, on DuckDB because parts between
// wildcards are looked for one after the other, as on Spark. Limits. No constant of a statement is in PostgreSQL's SQL:
// texts travel as arguments. In DuckDB's they are as dialect/duckdb.go proves.

// reading writes what a column says of the text beside it.
func (w *columns) reading(c *policy.Column) string {
	if c.Beside == nil || c.Beside.Table != c.Table || c.Reading.Check() != nil {
		w.fail("a function of a text that is not there")
		return "NULL"
	}
	x := w.raw(c.Beside)
	for _, p := range c.Reading {
		x = w.part(p, x)
	}
	return x
}

const (
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	smalls   = "abcdefghijklmnopqrstuvwxyz"
)

// part applies a function to a text.
func (w *composed) part(p policy.Part, x string) string {
	plain := func(s string) string { return dialect.Fill(w.dialect.Quoted, s) }
	switch p.Word {
	case policy.Left:
		return w.call("left", x, strconv.Itoa(p.Length))
	case policy.Right:
		return w.call("right", x, strconv.Itoa(p.Length))
	case policy.Cut:
		return w.call("substr", x, strconv.Itoa(p.From), strconv.Itoa(p.Length))
	case policy.Field:
		return w.call("split_part", x, w.text(p.Text, "text"), strconv.Itoa(p.From))
	case policy.Lower:
		return w.call("translate", x, plain(capitals), plain(smalls))
	case policy.Upper:
		return w.call("translate", x, plain(smalls), plain(capitals))
	case policy.TrimLeft:
		return dialect.Fill(w.dialect.Trimmed, "ltrim", x)
	case policy.TrimRight:
		return dialect.Fill(w.dialect.Trimmed, "rtrim", x)
	case policy.Like:
		return w.like(x, p.Text)
	case policy.Length:
		return w.call("length", x)
	case policy.Position:
		return dialect.Fill(w.dialect.Find, x, w.text(p.Text, "text"))
	}
	w.fail("a function of a text that is not known")
	return "NULL"
}

// like compares a text with a pattern.
func (w *composed) like(x, pattern string) string {
	var like, regular strings.Builder
	simple := true
	list, _ := policy.Pattern(pattern)
	if w.dialect.Atomic {
		return dialect.Fill(w.dialect.Regular, x, w.text(atomic(list), "text"))
	}
	for _, c := range list {
		switch c {
		case policy.Wildcard:
			like.WriteByte('%')
			regular.WriteString(".*")
		case policy.AnyOne:
			simple = false
			like.WriteByte('_')
			regular.WriteByte('.')
		case '%', '_', '\\':
			simple = simple && c == '\\'
			if w.dialect.Regular == "" {
				like.WriteByte('\\')
			}
			like.WriteRune(c)
			regular.WriteString(regexp.QuoteMeta(string(c)))
		default:
			like.WriteRune(c)
			regular.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if simple || w.dialect.Regular == "" {
		return dialect.Fill(w.dialect.Like, x, w.text(like.String(), "text"))
	}
	return dialect.Fill(w.dialect.Regular, x, w.text(regular.String(), "text"))
}

// atomic is a pattern as a regular expression that is matched without trying a part again: '%late%ly' is
// \A(?>.*?late).*ly\z.
func atomic(pattern []rune) string {
	parts := [][]rune{nil}
	for _, c := range pattern {
		if c == policy.Wildcard {
			parts = append(parts, nil)
		} else {
			parts[len(parts)-1] = append(parts[len(parts)-1], c)
		}
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i, part := range parts {
		between := i > 0 && i+1 < len(parts)
		switch {
		case between:
			b.WriteString(`(?>.*?`)
		case i > 0:
			b.WriteString(`.*`)
		}
		for _, c := range part {
			if c == policy.AnyOne {
				b.WriteByte('.')
			} else {
				b.WriteString(regexp.QuoteMeta(string(c)))
			}
		}
		if between {
			b.WriteByte(')')
		}
	}
	b.WriteString(`\z`)
	return b.String()
}
