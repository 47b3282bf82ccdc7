package rewrite

import (
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// A column's raw value is missing when it is NULL or NaN. Its normalised value is a declared value, 'other', or NULL,
// whatever is stored: the comparisons here are total and the arithmetic of cells (cell.go) sees bounded values alone.
//
// In PostgreSQL a raw column is never cast. Where it is not of the declared type the statement fails when it is parsed,
// alike for any rows. DuckDB has TRY_CAST, which makes NULL of what does not fit.

// raw reads the column.
func (w *writer) raw(c *policy.Column) string {
	column := "t." + w.name(c.Source)
	switch {
	case w.dialect == DuckDB:
		kind, err := ColumnType(c)
		if err != nil {
			w.fail("%v", err)
		}
		return "TRY_CAST(" + column + " AS " + kind + ")"
	case c.Type.Textual():
		return `(` + column + ` COLLATE pg_catalog."C")` // bytes decide equality and order
	}
	return column
}

// missing tells whether the raw value is NULL or NaN.
func (w *writer) missing(c *policy.Column) string {
	raw := w.raw(c)
	null := raw + " IS NULL"
	if nan := w.isNaN(c, raw); nan != "" {
		return "(" + null + " OR " + nan + ")"
	}
	return null
}

// isNaN is empty for a type without NaN.
func (w *writer) isNaN(c *policy.Column, raw string) string {
	switch {
	case c.Type.Floating() && w.dialect == DuckDB:
		return "isnan(" + raw + ")"
	case c.Type.Floating():
		return w.operate(raw, "=", w.literal("NaN", "float8"))
	case c.Type == policy.NumericType && w.dialect == PostgreSQL:
		return w.operate(raw, "=", w.literal("NaN", "numeric"))
	}
	return ""
}

// kept returns the conditions under which the column's rules leave a row in the table.
func (w *writer) kept(c *policy.Column) []string {
	nulls, outside := c.Nulls == policy.NullExclude, c.Outside == policy.OutsideExclude
	switch {
	case c.Domain == nil:
		w.fail("a column without a domain")
		return nil
	case outside && nulls:
		return []string{"(" + w.normalised(c) + ") IS NOT NULL"}
	case outside:
		return []string{"(" + w.missing(c) + " OR (" + w.normalised(c) + ") IS NOT NULL)"}
	case nulls:
		return []string{"NOT " + w.missing(c)}
	}
	return nil
}

// normalised applies the rule for outside values; a missing value becomes NULL. A value that the rule excludes becomes
// NULL too, because the database may evaluate this before it leaves the row out.
func (w *writer) normalised(c *policy.Column) string {
	if c.Domain.Null < 0 && (c.Nulls != policy.NullExclude || c.Outside == policy.OutsideOther && c.Domain.Ordered()) {
		w.fail("a column whose rules reach a NULL cell that its domain lacks")
	}
	switch {
	case c.Type == policy.Bool:
		raw := w.raw(c)
		return "CASE WHEN " + raw + " THEN " + w.argument("true", "text") +
			" WHEN NOT " + raw + " THEN " + w.argument("false", "text") + " END"
	case !c.Domain.Ordered():
		return w.normalisedEnum(c)
	}
	return w.normalisedOrdered(c)
}

func (w *writer) normalisedOrdered(c *policy.Column) string {
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

func (w *writer) normalisedEnum(c *policy.Column) string {
	raw := w.raw(c)
	sql := "CASE WHEN " + w.among(raw, w.values(c)) + " THEN " + raw
	switch {
	case c.Outside == policy.OutsideOther && c.Type.Textual():
		sql += " WHEN " + raw + " IS NOT NULL THEN " + w.argument(policy.OtherValue, "text")
	case c.Outside == policy.OutsideOther || c.Outside == policy.OutsideExclude:
	default:
		w.fail("a column without a rule for outside values")
	}
	return sql + " END"
}

// values writes the declared values, and 'other' after them where it has a cell of its own.
func (w *writer) values(c *policy.Column) []string {
	var list []string
	for _, v := range c.Domain.Values {
		list = append(list, w.argument(v, element(c)))
	}
	return list
}

// element is the type in which an enumerated column's values are compared.
func element(c *policy.Column) string {
	if c.Type == policy.UUID {
		return "uuid"
	}
	return "text"
}

// among tells whether a value is one of a list.
func (w *writer) among(value string, list []string) string {
	switch {
	case len(list) == 0:
		return "false"
	case len(list) == 1:
		return w.operate(value, "=", list[0])
	case w.dialect == PostgreSQL:
		return value + " OPERATOR(pg_catalog.=) ANY (" + w.list(list) + ")"
	}
	return value + " IN (" + strings.Join(list, ", ") + ")"
}

func (w *writer) list(values []string) string {
	if w.dialect == PostgreSQL {
		return "ARRAY[" + strings.Join(values, ", ") + "]"
	}
	return "[" + strings.Join(values, ", ") + "]"
}
