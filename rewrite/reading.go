package rewrite

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What a statement asks of a text (policy.Reading). Of `note LIKE '%late%'` and `left(phone, 2)`, PostgreSQL is asked
// for
//
//	(pg_catalog.left((t."note" COLLATE pg_catalog."C"), 16384) OPERATOR(pg_catalog.~~) $1::pg_catalog.text)
//	pg_catalog.left(pg_catalog.left((t."phone" COLLATE pg_catalog."C"), 16384), 2)
//
// Claim. Each part fails for no text, and is one and the same function on every engine: of the characters of the text,
// which are code points, and not of a collation or of a locale. Proof. Texts are cut to as many characters everywhere
// (policy.MaxTextLength), by the collation "C", in which equality is that of bytes, and which explicit collation all
// functions of it inherit. left, right, substr and split_part take what stands at places that are constants from 0 or 1
// on; rtrim and ltrim are given the space that they take away; letters are changed by translate, of A to Z alone,
// because lower and upper go by the server's locale. A pattern is read here, and written anew for each engine: by LIKE
// where that reads it so, else as a regular expression of literals, `.` and `.*`, which the engine matches in time
// linear in the text. An engine whose regular expressions try again (Java's, of Spark) is given each part between two
// wildcards as an atomic group, `(?>.*?part)`: the first place where it is found is kept, whatever comes after it. That
// says what LIKE does: a part has one length in characters, so that what is left after its first place contains what is
// left after any other; and what follows the last wildcard is compared at the text's end alone. Work: constants have at
// most MostPattern characters, so that one text takes at most MostTextLength times MostPattern steps, on PostgreSQL
// because a wildcard that runs out of text gives up for all wildcards before it, on DuckDB because parts between
// wildcards are looked for one after the other, as on Spark. Limits. No constant of a statement stands in PostgreSQL's
// SQL: texts travel as arguments. In DuckDB's they stand as dialect/duckdb.go proves.

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
