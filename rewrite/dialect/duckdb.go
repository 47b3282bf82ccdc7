package dialect

import "github.com/dpproxy/dpproxy/policy"

// Catalog is the name under which a DuckDB backend attaches the private tables. They lie outside the search path, so
// nothing that their file defines can take the place of a built-in function.
const Catalog = "private"

// Texts are in the SQL: a statement with parameters is planned anew at each execution, and its lists are not folded
// (docs/adr/0108). Claim. Whatever a text holds, it stays a constant, of its very characters. Proof. DuckDB's lexer,
// which is PostgreSQL's with standard_conforming_strings, ends a constant at a quote that is not followed by another
// one, and takes two for one; nothing else has a meaning within it, a backslash and a dollar included, for no letter
// is before the quote that opens it. In what is written no quote of the text is alone, and none follows the text but
// the one that closes it. A text with NUL, or that is not UTF-8, is refused (rewrite, token.go). Limits. Such is the
// lexer of the DuckDB that is built in: rewrite.TestTextsStayConstants asks it.
//
// A raw column is read by TRY_CAST, which makes NULL of what does not fit. Keys may be of different types, whose
// conversions can fail but for those to text. Its tables order text by its bytes.
var duckdb = Words{
	Name:     "DuckDB",
	Quote:    `"`,
	Schema:   "main",
	Relation: `"` + Catalog + `".%1.%2`,
	Text:     "CAST('%2' AS VARCHAR)",
	Typed:    "CAST(%1 AS %2)",
	With:     "WITH %1 AS MATERIALIZED (%2)",

	Types: map[string]string{
		"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "wide": "HUGEINT", "float4": "FLOAT", "float8": "DOUBLE", "text": "VARCHAR",
		"uuid": "UUID", "bool": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "interval": "INTERVAL",
	},
	Operator:  "(%1 %2 %3)",
	Operators: map[string]string{"/": "(%1 // %3)", "#": "xor(%1, %3)"},
	Divide:    "(%1 / %2)",
	Call:      "%1(%2)",
	Cast:      "CAST(%1 AS %2)",
	Literal:   "CAST('%1' AS %2)",
	Quoted:    "'%1'",

	Read:       "TRY_CAST(%1 AS %2)",
	ReadEnum:   "TRY_CAST(%1 AS VARCHAR)",
	ReadText:   "TRY_CAST(%1 AS VARCHAR)",
	IsNaN:      "isnan(%1)",
	Key:        "CAST(%1 AS VARCHAR)",
	TextKey:    "%1",
	Micros:     "epoch_us(%1)",
	Binned:     "time_bucket(to_microseconds(%3), %1, %2)",
	Days:       "(%1 - %2)",
	WideSteps:  "((CAST(%1 AS HUGEINT) - CAST(CAST('%2' AS BIGINT) AS HUGEINT)) // CAST('%3' AS BIGINT))",
	Rounded:    "CAST(%1 AS BIGINT)",
	Sum256:     "sha256(%1)",
	Octets:     "strlen(%1)",
	Sum:        "sum(%1)",
	HexToWhole: "TRY_CAST('0x' || %1 AS BIGINT)",

	WideQuotient: "(%1 // %2)",

	Trimmed: "%1(%2, ' ')",
	Find:    "strpos(%1, %2)",
	Like:    "(%1 LIKE %2)", // without ESCAPE a backslash means itself
	Regular: "regexp_full_match(%1, %2, 's')",

	Position:     "list_position([%1], %2)",
	OneOf:        "(%1 IN (%2))",
	NoneOf:       "(%1 NOT IN (%2))",
	Within:       "%1 IN (%2)",
	Row:          "(%1)",
	RowOfOne:     "(%1)",
	Comma:        ", ",
	Integers:     "CAST([%1] AS INTEGER[])",
	OneOfNumbers: "%1 IN (%2)",
	OneOfMany:    "get_bit(CAST('%3' AS BIT), GREATEST(LEAST(%1, %4), 0)) = 1", // IN compares with one after the other; NULL is at the last place
	Numbers:      "CAST('[%1]' AS BIGINT[])",
	Texts:        "[%3]",
	List:         "[%1]",
	Numbered:     "(SELECT unnest(%1) AS v, unnest(range(1, %3)) AS i) AS %2",
	Parallel:     "(SELECT %2) AS %1",
	InParallel:   "unnest(CAST('[%3]' AS INTEGER[])) AS %2", // of 80,000 constants each an expression, its optimiser takes 20 s

	EndsApart: true,

	Digits:  38,
	Narrow:  18,
	Decimal: "DECIMAL(%1,%2)",

	Accepts: map[policy.Type][]string{
		policy.Bool: {"BOOLEAN"}, policy.Int2: {"SMALLINT", "TINYINT", "UTINYINT", "INTEGER", "USMALLINT", "UINTEGER", "BIGINT"},
		policy.Int4:   {"INTEGER", "TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "UINTEGER", "BIGINT"},
		policy.Int8:   {"BIGINT", "TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "UBIGINT", "HUGEINT"},
		policy.Float4: {"FLOAT"}, policy.Float8: {"DOUBLE", "FLOAT"},
		policy.NumericType: {"DECIMAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}, policy.Text: {"VARCHAR", "ENUM"},
		policy.Varchar: {"VARCHAR", "ENUM"}, policy.DateType: {"DATE"}, policy.UUID: {"UUID"},
		policy.TimestampT:  {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"},
		policy.TimestampTZ: {"TIMESTAMP WITH TIME ZONE"},
	},
}
