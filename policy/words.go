package policy

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

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
	return fmt.Sprint(t.MaxRowsPerUnit)
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
	return fmt.Sprintf("private; about %d rows; of one %s at most %s count", t.ExpectedRows, unit, t.boundWords())
}

// Words are a column in plain words.
func (c *Column) Words() string { return c.words() }

func (c *Column) words() string {
	parts := []string{c.Type.Format(c.Typmod)}
	switch {
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
	}{{c.Source != c.Name && c.Source != "", "read from " + c.Source}, {c.Snap, "bounds move to its steps"}, {c.Extreme, "min and max as quantiles"}, {c.Ends, "min and max are its ends"}, {c.Hide, "no row for other"}, {c.Join, "rows may be joined by it"}, {c.Unit, "names the unit"}, {c.Enum, "an enumeration of the database"}, {c.Comment != "", "described as “" + c.Comment + "”"}} {
		if f.is {
			parts = append(parts, f.word)
		}
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
