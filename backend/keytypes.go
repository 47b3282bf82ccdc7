package backend

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// keyed names the type of a column that is a key.
func (c columnShape) keyed() string {
	if c.loose {
		return c.kindOf + " under a collation that is not deterministic"
	}
	return c.kindOf
}

// exactClass names the types of PostgreSQL whose values are equal where their texts are, one name for all that it compares with each
// other so, but for char(n) and varchar (coarser); empty: of this type it is not known.
func exactClass(c columnShape) string {
	switch c.base {
	case "smallint", "integer", "bigint":
		return "whole"
	case "text", "character varying", "character", "name":
		if !c.loose {
			return "text"
		}
	case "numeric":
		if c.scale >= 0 {
			return fmt.Sprint("numeric of scale ", c.scale)
		}
	case "enum", "domain of an enum":
		return c.kindOf
	case "uuid", "boolean", "date", "timestamp without time zone", "timestamp with time zone", "time without time zone", "bytea", "oid", "inet", "cidr",
		"macaddr", "macaddr8", "bit", "bit varying":
		return c.base
	}
	return ""
}

// joinedByValue is how PostgreSQL's = compares two columns. It is coarser in three cases. 'a' and 'a ' are different in a varchar, and may be two units
// there or two values of a unique key, and both are equal to the 'a' of a char(n), without the blanks at its end; as 'a' and 'A' of a text are to the 'a' of a column whose collation is not
// deterministic. A bound on pairs counts each row's partners by what is different on their side. (A char(n) beside a text is compared as a text, and so is each of a text's values with one of its.) Whole numbers and
// numerics are converted to floating ones beside these, so that 2^53 and 2^53 + 1 are equal to one.
func joinedByValue(a, b columnShape) equality {
	bases := []string{a.base, b.base}
	floating := func(c columnShape) bool { return c.base == "real" || c.base == "double precision" }
	if slices.Contains(bases, "character") && slices.Contains(bases, "character varying") || a.loose != b.loose || floating(a) != floating(b) {
		return coarser
	}
	return ofValues
}

// unitTypeFinding says what a policy leaves out that would make numbering a unit's rows quicker: of a unit that is not declared as a
// whole number each row's text is hashed.
func unitTypeFinding(d *policy.Dataset, have shape, in dialect.Dialect) []Finding {
	if d.Unit.Row || d.Unit.Type != 0 {
		return nil
	}
	for _, t := range d.Tables {
		if t.UnitColumn == "" || t.Public || t.Analysed() || t.View.Text != "" {
			continue
		}
		schema, name := relationOf(t, in)
		switch base := have[columnName{schema, name, t.UnitColumn}].base; base {
		case "smallint", "integer", "int", "bigint":
			return []Finding{{Note: true, Text: fmt.Sprintf("unit: %s.%s is %s; saying so (type: %[3]s) lets queries that number a %s's rows do it almost twice as fast, and hides releases that were bought before", t.Name, t.UnitColumn, base, unitOf(d))}}
		}
	}
	return nil
}
