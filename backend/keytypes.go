package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Keys of different kinds of numbers do not compare as their values do. PostgreSQL converts whole numbers and numerics to
// floating ones, so that different units can be equal (2^53 and 2^53 + 1); DuckDB is made to compare texts, in which 1 and
// 1.0 differ.

// numberKind is what kind of number a type holds; empty: none.
func numberKind(kindOf string) string {
	switch base, _, _ := strings.Cut(strings.ToLower(kindOf), "("); base {
	case "smallint", "integer", "int", "bigint", "tinyint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint":
		return "whole"
	case "numeric", "decimal":
		return "decimal"
	case "real", "double precision", "float", "double":
		return "floating"
	}
	return ""
}

// unitTypeFindings refuses units of which equal values may have different texts, as 0 and −0, 1 and 1.0, or a citext's. Which
// of a unit's keys and groups stay within its bounds is said by a hash of that text, and of equal ones a database shows the
// one that it met first: other units' rows could decide it (privacy rule 10). DuckDB is made to compare texts.
func unitTypeFindings(t *policy.Table, actual columnShape, in dialect.Dialect) []Finding {
	if in.TextKeys() && numberKind(actual.base) != "floating" || !in.TextKeys() && exactClass(actual) != "" {
		return nil
	}
	return []Finding{{Fatal: true, Text: fmt.Sprintf("table %s: the unit's column %s is %s, of which equal values may have different texts; give it a type of whole numbers, "+
		"numeric with a scale, text or uuid", t.Name, t.UnitColumn, actual.keyed())}}
}

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

// coarser tells whether = between two columns takes different values of one of them for equal to one value of the other. 'a' and 'a ' are different in a varchar, and may be two units
// there or two values of a unique key, and both are equal to the 'a' of a char(n), without the blanks at its end; as 'a' and 'A' of a text are to the 'a' of a column whose collation is not
// deterministic. A bound on pairs counts each row's partners by what is different on their side. (A char(n) beside a text is compared as a text, and so is each of a text's values with one of its.)
func coarser(a, b columnShape) bool {
	bases := []string{a.base, b.base}
	return slices.Contains(bases, "character") && slices.Contains(bases, "character varying") || a.loose != b.loose
}

// numberFindings holds the types of keys that measures may compare against each other.
func numberFindings(d *policy.Dataset, have shape, in dialect.Dialect) []Finding {
	list := unitTypeFinding(d, have, in)
	for _, pair := range comparedKeys(d) {
		var shapes [2]columnShape
		var kinds, types [2]string
		for i, k := range pair {
			schema, name := relationOf(k.Table, in)
			shapes[i] = have[columnName{schema, name, k.Source}]
			types[i], kinds[i] = shapes[i].keyed(), numberKind(shapes[i].base)
		}
		if !in.TextKeys() && coarser(shapes[0], shapes[1]) {
			list = append(list, Finding{Fatal: true, Text: fmt.Sprintf("table %s, column %s (%s), and table %s, column %s (%s): %s takes different keys of the one for equal to one of the other; give both one type and collation",
				pair[0].Table.Name, pair[0].Source, types[0], pair[1].Table.Name, pair[1].Source, types[1], in.Name)})
			continue
		}
		if kinds[0] == "" || kinds[1] == "" || kinds[0] == kinds[1] {
			continue
		}
		where := fmt.Sprintf("table %s, column %s (%s), and table %s, column %s (%s)",
			pair[0].Table.Name, pair[0].Source, types[0], pair[1].Table.Name, pair[1].Source, types[1])
		switch {
		case in.TextKeys():
			list = append(list, Finding{Text: where + ": keys are compared as text, in which equal numbers of these types differ; give both one type"})
		case kinds[0] == "floating" || kinds[1] == "floating":
			list = append(list, Finding{Fatal: true, Text: where + ": " + in.Name + " compares them as floating numbers, which takes different keys for equal; give both one type"})
		}
	}
	return list
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

// keyCopyFindings refuses keys that a snapshot would compare otherwise: there units and keys that are no whole numbers are texts, which
// are equal where their bytes are. class is exactClass, or that of another database.
func keyCopyFindings(d *policy.Dataset, have shape, in dialect.Dialect, class func(columnShape) string) (list []Finding) {
	refuse := func(format string, args ...any) {
		list = append(list, Finding{Fatal: true, Text: fmt.Sprintf(format, args...)})
	}
	shapeOf := func(t *policy.Table, key string) columnShape {
		schema, name := relationOf(t, in)
		return have[columnName{schema, name, key}]
	}
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		for _, key := range keyColumns(t) {
			c := shapeOf(t, key)
			switch class := class(c); {
			case class == "":
				refuse("table %s: the key %s is %s, of which equal values may have different texts; backend.snapshot compares texts: give it another type, or read live", t.Name, key, c.keyed())
			case !strings.HasPrefix(class, "whole") && rewrite.WholeKey(t, key):
				refuse("table %s: the key %s is %s, and the policy says that it is a whole number: with backend.snapshot it must be one", t.Name, key, c.kindOf)
			}
		}
	}
	for _, pair := range comparedKeys(d) {
		one, other := shapeOf(pair[0].Table, pair[0].Source), shapeOf(pair[1].Table, pair[1].Source)
		if class(one) != class(other) {
			refuse("table %s, column %s (%s), and table %s, column %s (%s): backend.snapshot compares them as texts, in which equal values of these types differ; give both one type, or read live",
				pair[0].Table.Name, pair[0].Source, one.kindOf, pair[1].Table.Name, pair[1].Source, other.kindOf)
		}
	}
	return list
}
