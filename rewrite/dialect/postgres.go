package dialect

import "github.com/dpproxy/dpproxy/policy"

// Operators, functions and types are named with their schema, so that none that users made takes their place. A raw
// column is never cast: where it is not of the declared type, the statement fails when it is parsed, alike for any
// rows.
var postgres = Words{
	Name:     "PostgreSQL",
	Quote:    `"`,
	Schema:   "public",
	Relation: "%1.%2",
	Text:     "$%1::pg_catalog.text",
	Typed:    "%1::pg_catalog.%2",
	With:     "WITH %1 AS (%2)", // which is read once, since more than one query names it

	Types:     map[string]string{"wide": "numeric"},
	Operator:  "(%1 OPERATOR(pg_catalog.%2) %3)",
	Operators: map[string]string{},
	Divide:    "(%1 OPERATOR(pg_catalog./) %2)",
	Call:      "pg_catalog.%1(%2)",
	Cast:      "(%1)::pg_catalog.%2",
	Literal:   "'%1'::pg_catalog.%2",
	Quoted:    "'%1'::pg_catalog.text",

	Read:       "%1",
	ReadEnum:   `((pg_catalog.enum_out(%1))::pg_catalog.text COLLATE pg_catalog."C")`,
	ReadText:   `(%1 COLLATE pg_catalog."C")`, // bytes decide equality and order
	IsNaN:      "(%1 OPERATOR(pg_catalog.=) 'NaN'::pg_catalog.%2)",
	Key:        "%1",
	TextKey:    `((%1)::pg_catalog.text COLLATE pg_catalog."C")`,
	Micros:     "((EXTRACT(EPOCH FROM %1) OPERATOR(pg_catalog.*) '1000000'::pg_catalog.numeric))::pg_catalog.int8",
	Binned:     "pg_catalog.date_bin('%3 microseconds'::pg_catalog.interval, %1, %2)",
	Days:       "(%1 OPERATOR(pg_catalog.-) %2)",
	WideSteps:  "pg_catalog.div((%1 OPERATOR(pg_catalog.-) '%2'::pg_catalog.numeric), '%3'::pg_catalog.numeric)",
	Rounded:    "(%1)::pg_catalog.int8",
	Sum256:     "pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(%1, 'UTF8')), 'hex')",
	Octets:     "pg_catalog.octet_length(%1)",
	Sum:        "pg_catalog.sum(%1)",
	HexToWhole: "((('x'::pg_catalog.text OPERATOR(pg_catalog.||) %1))::pg_catalog.bit(28))::pg_catalog.int8",

	WideQuotient: "pg_catalog.div(%1, %2)",

	Trimmed: "pg_catalog.%1(%2, ' '::pg_catalog.text)",
	Find:    "pg_catalog.strpos(%1, %2)",
	Like:    "(%1 OPERATOR(pg_catalog.~~) %2)",

	Position:     "pg_catalog.array_position(ARRAY[%1], %2)",
	OneOf:        "(%1 OPERATOR(pg_catalog.=) ANY (ARRAY[%2]))",
	NoneOf:       "(%1 OPERATOR(pg_catalog.<>) ALL (ARRAY[%2]))",
	Within:       "%1 OPERATOR(pg_catalog.=) ANY (%2)",
	Row:          "ROW(%1)",
	RowOfOne:     "%1",
	Comma:        ",",
	Integers:     "'{%1}'::pg_catalog.int4[]",
	OneOfNumbers: "%1 OPERATOR(pg_catalog.=) ANY ('{%2}'::pg_catalog.int4[])",
	OneOfMany:    "%1 OPERATOR(pg_catalog.=) ANY ('{%2}'::pg_catalog.int4[])", // which are hashed
	Numbers:      "'{%1}'::pg_catalog.int8[]",
	Texts:        "$%1::pg_catalog.%2[]",
	List:         "ARRAY[%1]",
	Numbered:     "pg_catalog.unnest(%1) WITH ORDINALITY AS %2(v, i)",
	Parallel:     "(SELECT %2) AS %1",
	InParallel:   "pg_catalog.unnest(%1) AS %2",

	OneScan:        true,
	Bins:           true,
	PartialIndexes: true,
	SortsGroups:    true,
	Collates:       true,
	MarksByJoin:    true, // of a sub-query that it expects not to fit in work_mem it makes no hash table, and reads all of it for each row
	PostgreSQLs:    true,
	Binary:         true,

	Accepts: map[policy.Type][]string{
		policy.Bool: {"boolean"}, policy.Int2: {"smallint", "integer", "bigint"}, policy.Int4: {"integer", "smallint", "bigint"},
		policy.Int8: {"bigint", "integer", "smallint"}, policy.Float4: {"real"}, policy.Float8: {"double precision", "real"},
		policy.NumericType: {"numeric", "smallint", "integer", "bigint"}, policy.Text: {"text", "character varying", "character"},
		policy.Varchar: {"character varying", "text", "character"}, policy.DateType: {"date"}, policy.UUID: {"uuid"},
		policy.TimestampT: {"timestamp without time zone"}, policy.TimestampTZ: {"timestamp with time zone"},
	},
}
