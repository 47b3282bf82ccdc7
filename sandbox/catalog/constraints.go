package catalog

import (
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

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
