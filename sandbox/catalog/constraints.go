package catalog

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// How keys are described (docs/adr/0173): visits.person_id, which leads to people.person_id, is a row of pg_constraint beside the
// primary key of people, whose index is a row of pg_index and one of pg_class, and rows of information_schema.table_constraints,
// key_column_usage and their like. All of it is what policy.Constraints says.

// constraint is a key and its numbers.
type constraint struct {
	*policy.Constraint
	oid, index int64 // index is 0 for a foreign key
}

// constraintsOf gives a dataset's keys numbers; relations are its tables.
func constraintsOf(d *policy.Dataset, oids numbers) []constraint {
	var all []constraint
	for _, c := range d.Constraints() {
		name := d.ID + "." + c.Of.Schema + "." + c.Name
		k := constraint{Constraint: c, oid: oids.of("constraint " + name)}
		if c.To == nil {
			k.index = oids.of("index " + name)
		}
		all = append(all, k)
	}
	return all
}

// kind is how pg_constraint writes what a key is.
func (c constraint) kind() string {
	switch {
	case c.To != nil:
		return "f"
	case c.Primary:
		return "p"
	}
	return "u"
}

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

// ConstraintDefinition is what pg_get_constraintdef says of a key; always: with the schema of the table that it leads to.
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

// indexDefinition is what pg_get_indexdef says of a key's index.
func indexDefinition(c *policy.Constraint, always bool) string {
	return "CREATE UNIQUE INDEX " + QuoteIdentifier(c.Name) + " ON " + qualified(c.Of, always) + " USING btree " + columnList(c.Columns)
}

// Definitions is a table of our own: of each key and its index the text that pg_get_constraintdef and pg_get_indexdef say in the
// embedded engine, as it is and as it is when asked to be pretty, and the columns.
const Definitions = "dpproxy.definitions"

func definitionsTable() Table {
	const texts policy.Type = 1009
	return Table{Name: Definitions, Rows: sandbox.Rows{Columns: []sandbox.Column{{Name: "oid", Type: 26, Typmod: -1}, {Name: "plain", Type: policy.Text, Typmod: -1},
		{Name: "pretty", Type: policy.Text, Typmod: -1}, {Name: "columns", Type: texts, Typmod: -1}}}}
}

// attributeNumbers are the numbers of columns in their table.
func attributeNumbers(t *policy.Table, columns []*policy.Column) policy.Value {
	all, list := t.Described(), make([]policy.Value, len(columns))
	for i, c := range columns {
		list[i] = int64(slices.Index(all, c) + 1)
	}
	return list
}

// constraints describes a dataset's keys.
func (d *description) constraints(database string, keys []constraint, relations []relation) {
	byTable, index := map[*policy.Constraint]constraint{}, map[string]relation{}
	for _, k := range keys {
		byTable[k.Constraint] = k
	}
	for _, r := range relations {
		index[r.schema+"."+r.name] = r
	}
	for _, k := range keys {
		r := index[k.Of.Schema+"."+k.Of.Name]
		row := record{"oid": k.oid, "conname": k.Name, "connamespace": r.namespace, "contype": k.kind(), "convalidated": true, "conrelid": r.oid,
			"conindid": k.index, "confupdtype": " ", "confdeltype": " ", "confmatchtype": " ", "conislocal": true, "connoinherit": true,
			"conkey": attributeNumbers(k.Of, k.Columns)}
		if to := byTable[k.To]; k.To != nil {
			row["convalidated"], row["conindid"], row["confrelid"] = k.Met, to.index, index[to.Of.Schema+"."+to.Of.Name].oid
			row["confkey"], row["confupdtype"], row["confdeltype"], row["confmatchtype"] = attributeNumbers(to.Of, to.Columns), "a", "a", "s"
		} else {
			d.index(k, r)
		}
		d.put("pg_catalog", "pg_constraint", row)
		d.define(k.oid, ConstraintDefinition(k.Constraint, false), ConstraintDefinition(k.Constraint, false), nil)
	}
	d.usage(database, keys)
}

func (d *description) define(oid int64, plain, pretty string, columns []*policy.Column) {
	names := []policy.Value{}
	for _, c := range columns {
		names = append(names, QuoteIdentifier(c.Name))
	}
	d.definitions = append(d.definitions, []policy.Value{oid, plain, pretty, names})
}

// index describes the index of a key: a relation of its own.
func (d *description) index(k constraint, r relation) {
	n := int64(len(k.Columns))
	d.put("pg_catalog", "pg_class", record{"oid": k.index, "relname": k.Name, "relnamespace": r.namespace, "relowner": OwnerOid, "relam": btree,
		"reltuples": float64(-1), "relpersistence": "p", "relkind": "i", "relnatts": n, "relispopulated": true, "relreplident": "n"})
	classes, collations, options := make([]policy.Value, n), make([]policy.Value, n), make([]policy.Value, n)
	for i, c := range k.Columns {
		t, _ := c.DescribedType()
		classes[i], collations[i], options[i] = classOf(t).oid, typeRow(t)["typcollation"], int64(0)
	}
	d.put("pg_catalog", "pg_index", record{"indexrelid": k.index, "indrelid": r.oid, "indnatts": n, "indnkeyatts": n, "indisunique": true, "indisprimary": k.Primary,
		"indimmediate": true, "indisvalid": true, "indisready": true, "indislive": true, "indkey": attributeNumbers(k.Of, k.Columns), "indcollation": collations,
		"indclass": classes, "indoption": options})
	d.put("pg_catalog", "pg_indexes", record{"schemaname": r.schema, "tablename": r.name, "indexname": k.Name, "indexdef": indexDefinition(k.Constraint, true)})
	for i, c := range k.Columns {
		typ, typmod := c.DescribedType()
		d.attribute(k.index, int64(i+1), attribute{name: c.Name, oid: typ, typmod: typmod})
	}
	d.define(k.index, indexDefinition(k.Constraint, true), indexDefinition(k.Constraint, false), k.Columns)
}

// btree is the access method of indexes of keys.
const btree = int64(403)

// operatorClass is how a btree compares values of a type, by default.
type operatorClass struct {
	oid    int64
	name   string
	family int64
	of     policy.Type
}

// operatorClasses are those of the types that a policy may give a column, as PostgreSQL 15 numbers them.
var operatorClasses = []operatorClass{
	{10003, "bool_ops", 424, policy.Bool}, {1979, "int2_ops", 1976, policy.Int2}, {1978, "int4_ops", 1976, policy.Int4}, {3124, "int8_ops", 1976, policy.Int8},
	{3125, "numeric_ops", 1988, policy.NumericType}, {10012, "float4_ops", 1970, policy.Float4}, {3123, "float8_ops", 1970, policy.Float8},
	{3126, "text_ops", 1994, policy.Text}, {10004, "bpchar_ops", 426, policy.Bpchar}, {3122, "date_ops", 434, policy.DateType},
	{3128, "timestamp_ops", 434, policy.TimestampT}, {3127, "timestamptz_ops", 434, policy.TimestampTZ}, {10065, "uuid_ops", 2968, typeUUID},
}

const typeUUID policy.Type = 2950

// classOf is the operator class of a type; varchar has that of text.
func classOf(t policy.Type) operatorClass {
	for _, c := range operatorClasses {
		if c.of == t {
			return c
		}
	}
	return classOf(policy.Text)
}

func operatorClassRows() []record {
	var all []record
	for _, c := range operatorClasses {
		all = append(all, record{"oid": c.oid, "opcmethod": btree, "opcname": c.name, "opcnamespace": oidPgCatalog, "opcowner": OwnerOid,
			"opcfamily": c.family, "opcintype": int64(c.of), "opcdefault": true})
	}
	return all
}

// usage describes keys as information_schema does.
func (d *description) usage(database string, keys []constraint) {
	for _, k := range keys {
		named := func(prefix string, c *policy.Constraint, rest record) record {
			rest[prefix+"constraint_catalog"], rest[prefix+"constraint_schema"], rest[prefix+"constraint_name"] = database, c.Of.Schema, c.Name
			return rest
		}
		table := func(t *policy.Table, rest record) record {
			rest["table_catalog"], rest["table_schema"], rest["table_name"] = database, t.Schema, t.Name
			return named("", k.Constraint, rest)
		}
		row := record{"constraint_type": map[string]string{"f": "FOREIGN KEY", "p": "PRIMARY KEY", "u": "UNIQUE"}[k.kind()], "is_deferrable": "NO",
			"initially_deferred": "NO", "enforced": "YES"}
		if k.kind() == "u" {
			row["nulls_distinct"] = "YES"
		}
		d.put("information_schema", "table_constraints", table(k.Of, row))
		of := k.Constraint
		if k.To != nil {
			of = k.To
			d.put("information_schema", "referential_constraints", named("unique_", k.To, named("", k.Constraint, record{"match_option": "NONE",
				"update_rule": "NO ACTION", "delete_rule": "NO ACTION"})))
		}
		for i, c := range k.Columns {
			row := record{"column_name": c.Name, "ordinal_position": int64(i + 1)}
			if k.To != nil {
				row["position_in_unique_constraint"] = int64(i + 1)
			}
			d.put("information_schema", "key_column_usage", table(k.Of, row))
		}
		for _, c := range of.Columns {
			d.put("information_schema", "constraint_column_usage", table(of.Of, record{"column_name": c.Name}))
		}
		d.put("information_schema", "constraint_table_usage", table(of.Of, record{}))
	}
}

// usageOf are the rows of a relation of information_schema about keys, which a server shows to a table's owner alone.
func usageOf(d *policy.Dataset, relation string) (sandbox.Rows, bool) {
	var all description
	oids := numbers{used: map[int64]bool{}}
	all.usage(d.ID, constraintsOf(d, oids))
	for _, t := range all.tables() {
		if t.Name == "information_schema."+relation {
			return t.Rows, true
		}
	}
	return sandbox.Rows{}, false
}
