package catalog

import (
	"fmt"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What \d+ and obj_description say of a table or a column: whether it is private, what is protected, which values a
// column has and how to group by it. All of it is in the policy.

// PublicComment begins the comments of public tables, and of no others.
const PublicComment = "public table: "

// Asking says how one asks here: whoever comes by a catalog alone, as an assistant does, reads it in the comment of
// whatever she looks at first: the database, a schema, a private table or a view of schema dp.
const Asking = "Private tables answer aggregates with noise, and each new question is charged to your budget. " +
	"EXPLAIN says what a question costs and errs by, for nothing. SELECT * FROM dp.last shows cost, error and what is " +
	"left after an answer; what is paid for stays free."

// ViewComment says what a view of schema dp shows, and how to ask.
func ViewComment(name string) string { return viewComments[name] + "; reading it is free. " + Asking }

// MadeUpComment says of the view of a table's made-up rows what they are, and how to ask.
func MadeUpComment(t *policy.Table) string {
	return "made-up rows in the place of those of " + t.Name + ": none is that of a " + t.Dataset.Unit.Name + ". " +
		Asking
}

var viewComments = map[string]string{
	"budget":   "what you have spent and what is left, by dataset",
	"charges":  "what you were charged for, each charge a row",
	"releases": "what the policy offers, and what you hold: answers from what is paid for are free",
	"tables":   "the tables that may be asked about, private and public",
	"columns":  "their columns: domains, cells, and what becomes of NULL and of values outside",
	"last":     "cost, error, balance and notices of your last answer",
}

// TableComment says what an analyst needs to know of a table: whether it is private, what is protected, and how to ask.
func TableComment(t *policy.Table) string {
	if t.Public {
		return PublicComment + "queries over it alone are exact and free"
	}
	if t.Analysed() {
		return "private table: a SELECT over other tables. " + Asking
	}
	unit := "each row is protected"
	if t.Dataset != nil && !t.Dataset.Unit.Row {
		rows := "at most " + itoa(t.MaxRowsPerUnit) + " rows"
		switch {
		case t.AnyRows:
			rows = "any number of rows"
		case t.MaxRowsPerUnit == 1:
			rows = "one row at most"
		}
		unit = "each " + t.Dataset.Unit.Name + " is protected, with " + rows
		if t.MaxGroups > 0 {
			unit += " (in " + itoa(t.MaxGroups) + " groups, " + itoa(t.MaxPerGroup) + " in each)"
		}
	}
	return "private table: " + unit + ". " + Asking
}

// ColumnComment says what an analyst needs to know of a column: its domain, and how to group by it; of a key, what it
// is there for.
func ColumnComment(c *policy.Column) string {
	var parts []string
	if c.Comment != "" {
		parts = append(parts, c.Comment)
	}
	if c.Join {
		return strings.Join(append(parts, keyText(c)), "; ")
	}
	if c.Domain != nil {
		parts = append(parts, domainText(c))
		if c.Any {
			return strings.Join(parts, "; ")
		}
		if !c.Domain.Ordered() || c.Domain.Single() {
			parts = append(parts, "GROUP BY "+c.Name)
		} else {
			parts = append(parts, "GROUP BY width_bucket or ranges of "+c.Name)
		}
		switch c.Outside {
		case policy.OutsideClamp:
			parts = append(parts, "values outside count as the nearest end")
		case policy.OutsideExclude:
			parts = append(parts, "rows outside are left out")
		}
		if c.Hide {
			parts = append(parts, "values outside have no group of their own")
		}
	}
	return strings.Join(parts, "; ")
}

// keyText says what a key may be used for, which is not to be read.
func keyText(c *policy.Column) string {
	text := "a key, never shown: JOIN by it, count(DISTINCT " + c.Name + "), or GROUP BY it in a sub-query"
	if unit := c.Table.Dataset.Unit; c.TellsUnit() {
		text = "names rows of one " + unit.Name + ", " + strings.TrimPrefix(text, "a key, ")
	}
	if to := c.Refers; to != nil {
		text += "; leads to " + to.Table.Name + "." + to.Name
	}
	if c.Untyped() {
		text += "; text stands for its type, which the policy does not say"
	}
	return text
}

// domainText writes a column's domain in words.
func domainText(c *policy.Column) string {
	d := c.Domain
	if c.Any {
		return "any text, never shown: LIKE, =, IN, left(…) and the like count it"
	}
	if !d.Ordered() && len(d.Values) == 0 {
		return "open: = and IN count any value; GROUP BY shows the keys that enough units have"
	}
	if !d.Ordered() {
		shown := d.Values
		more := ""
		if len(shown) > 20 {
			shown, more = shown[:20], fmt.Sprintf(", … (%d values)", len(d.Values))
		}
		return "one of " + strings.Join(shown, ", ") + more
	}
	env := scalar.Env{Zone: time.UTC}
	text := env.FormatText(d.Type, d.Min) + " to " + env.FormatText(d.Type, d.Max)
	if d.Below != nil {
		text = env.FormatText(d.Type, d.Min) + " to below " + env.FormatText(d.Type, d.Below)
	}
	switch {
	case d.Type.Integer() && d.Step.Whole != 1:
		text += ", step " + itoa(d.Step.Whole)
	case d.Type == policy.DateType && d.Step.Whole != 1:
		text += ", step " + itoa(d.Step.Whole) + " days"
	case d.Type == policy.TimestampT || d.Type == policy.TimestampTZ:
		text += ", step " + spanText(d.Step.Whole)
	case d.Type == policy.NumericType || d.Type.Floating():
		text += ", step " + d.Step.Decimal.String()
	}
	return text
}

// spanText writes microseconds as the policy file may: in the largest unit that divides them.
func spanText(micros int64) string {
	for _, u := range []struct {
		name   string
		micros int64
	}{{"day", 86_400_000_000}, {"hour", 3_600_000_000}, {"minute", 60_000_000}} {
		switch n := micros / u.micros; {
		case micros == u.micros:
			return "1 " + u.name
		case micros%u.micros == 0:
			return itoa(n) + " " + u.name + "s"
		}
	}
	return (time.Duration(micros) * time.Microsecond).String()
}

// How keys are described (docs/adr/0173): visits.person_id, which leads to people.person_id, and the primary key of
// people are constraints of the twin's tables, and rows of information_schema.table_constraints, key_column_usage and
// their like, which a server shows to a table's owner alone. All of it is what policy.Constraints says.

// qualified is a table's name, with its schema unless that is public and need not be.
func qualified(t *policy.Table, always bool) string {
	if t.Schema == "public" && !always {
		return QuoteIdentifier(t.Name)
	}
	return QuoteIdentifier(t.Schema) + "." + QuoteIdentifier(t.Name)
}

func columnList(columns []*policy.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = QuoteIdentifier(c.Name)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// ConstraintDefinition is what pg_get_constraintdef says of a key; always: with the schema of the table that it leads
// to.
func ConstraintDefinition(c *policy.Constraint, always bool) string {
	switch {
	case c.To != nil:
		text := "FOREIGN KEY " + columnList(c.Columns) + " REFERENCES " + qualified(c.To.Of, always) + columnList(c.To.Columns)
		if !c.Met {
			text += " NOT VALID"
		}
		return text
	case c.Primary:
		return "PRIMARY KEY " + columnList(c.Columns)
	}
	return "UNIQUE " + columnList(c.Columns)
}

// usageOf are the rows of a relation of information_schema about keys. It reports false for another relation, or where
// it has no rows.
func usageOf(d *policy.Dataset, relation string) (sandbox.Rows, bool) {
	rows := map[string][]record{}
	for _, k := range d.Constraints() {
		describeUsage(rows, d.ID, k)
	}
	if rows[relation] == nil {
		return sandbox.Rows{}, false
	}
	return rowsOf("information_schema", relation, rows[relation]...), true
}

// describeUsage adds what information_schema says of a key to the rows of its relations.
func describeUsage(rows map[string][]record, database string, k *policy.Constraint) {
	put := func(relation string, r record) { rows[relation] = append(rows[relation], r) }
	named := func(prefix string, c *policy.Constraint, rest record) record {
		rest[prefix+"constraint_catalog"], rest[prefix+"constraint_schema"], rest[prefix+"constraint_name"] = database, c.Of.Schema, c.Name
		return rest
	}
	table := func(t *policy.Table, rest record) record {
		rest["table_catalog"], rest["table_schema"], rest["table_name"] = database, t.Schema, t.Name
		return named("", k, rest)
	}
	row := record{"is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}
	of := k
	switch {
	case k.To != nil:
		of, row["constraint_type"] = k.To, "FOREIGN KEY"
		put("referential_constraints", named("unique_", k.To, named("", k, record{"match_option": "NONE", "update_rule": "NO ACTION",
			"delete_rule": "NO ACTION"})))
	case k.Primary:
		row["constraint_type"] = "PRIMARY KEY"
	default:
		row["constraint_type"], row["nulls_distinct"] = "UNIQUE", "YES"
	}
	put("table_constraints", table(k.Of, row))
	for i, c := range k.Columns {
		row := record{"column_name": c.Name, "ordinal_position": int64(i + 1)}
		if k.To != nil {
			row["position_in_unique_constraint"] = int64(i + 1)
		}
		put("key_column_usage", table(k.Of, row))
	}
	for _, c := range of.Columns {
		put("constraint_column_usage", table(of.Of, record{"column_name": c.Name}))
	}
	put("constraint_table_usage", table(of.Of, record{}))
}
