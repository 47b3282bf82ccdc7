package dialect

import "github.com/dpproxy/dpproxy/policy"

// Spark SQL, from version 4.0 on, in a session whose settings package backend has made (spark_settings.go): ANSI mode,
// in which an overflow or a bad cast fails the statement rather than changing a value, and what may overflow or not fit
// is written by functions that give NULL instead: no error can depend on a row. Decimals keep their digits after the
// point (spark.sql.decimalOperations.allowPrecisionLoss=false).
//
// Texts are hexadecimal digits. Claim. Whatever a text holds, it stays a constant, of its very characters: CAST(X'4f27'
// AS STRING) is O'. Proof. Of the text nothing but its bytes' digits is written, among which there is no character that
// the lexer knows, whatever a session or a version of Spark does with quotes, backslashes
// (spark.sql.parser.escapedStringLiterals) and variables (spark.sql.variable.substitute). A binary becomes a string by
// taking its bytes as they are, and those are UTF-8 (rewrite, token.go).
//
// Keys are compared as texts: in ANSI mode a number beside a text would be a cast that fails. uuid has no type there;
// its values are texts, in the form in which uuid is written, and others are none of the domain's.
var spark = Words{
	Name:     "Spark",
	Quote:    "`",
	Schema:   "default",
	Relation: "`" + SparkCatalog + "`.%1.%2",
	Text:     "CAST(X'%3' AS STRING)",
	Typed:    "CAST(%1 AS %2)",
	With:     "WITH %1 AS (%2)",

	Types: map[string]string{
		"int2": "SMALLINT", "int4": "INT", "int8": "BIGINT", "wide": "DECIMAL(38,0)", "float4": "FLOAT", "float8": "DOUBLE", "text": "STRING",
		"uuid": "STRING", "bool": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP",
	},
	Operator: "(%1 %2 %3)",
	Operators: map[string]string{
		"+": "try_add(%1, %3)", "-": "try_subtract(%1, %3)", "*": "try_multiply(%1, %3)", "/": "(%1 div %3)", "#": "(%1 ^ %3)",
	},
	Divide:  "try_divide(%1, %2)",
	Call:    "%1(%2)",
	Cast:    "try_cast(%1 AS %2)",
	Literal: "CAST('%1' AS %2)",
	Quoted:  "'%1'",

	Read:     "try_cast(%1 AS %2)",
	ReadEnum: "try_validate_utf8(try_cast(%1 AS STRING))",
	ReadText: "try_validate_utf8(try_cast(%1 AS STRING))",
	IsNaN:    "isnan(%1)",
	Key:      "CAST(%1 AS STRING)",
	TextKey:  "%1",
	Micros:   "unix_micros(try_cast(%1 AS TIMESTAMP))", // in a session whose zone is UTC a moment without one is UTC's
	Binned: "try_cast(timestamp_micros(try_subtract(unix_micros(try_cast(%1 AS TIMESTAMP)), " +
		"mod(try_subtract(unix_micros(try_cast(%1 AS TIMESTAMP)), unix_micros(try_cast(%2 AS TIMESTAMP))), CAST(%3 AS BIGINT)))) " +
		"AS %4)",
	Days:       "datediff(%1, %2)",
	WideSteps:  "(try_subtract(try_cast(%1 AS DECIMAL(38,0)), CAST('%2' AS DECIMAL(38,0))) div CAST('%3' AS DECIMAL(38,0)))",
	HexToWhole: "try_cast(conv(%1, 16, 10) AS BIGINT)",
	Rounded:    "try_cast(rint(%1) AS BIGINT)",
	Sum256:     "sha2(%1, 256)",
	Octets:     "octet_length(%1)",
	Sum:        "try_sum(try_cast(%1 AS DECIMAL(38,%2)))",

	WideQuotient: "(%1 div %2)",

	Trimmed: "%1(' ', %2)", // what is taken away is first
	Find:    "instr(%1, %2)",
	Regular: "(%1 RLIKE %2)", // of Java, as LIKE is there
	Atomic:  true,

	Position:     "nullif(array_position(array(%1), %2), 0)",
	OneOf:        "(%1 IN (%2))",
	NoneOf:       "(%1 NOT IN (%2))",
	Within:       "%1 IN (%2)",
	Row:          "(%1)",
	RowOfOne:     "(%1)",
	Comma:        ", ",
	Integers:     "array(%1)",
	OneOfNumbers: "%1 IN (%2)",
	OneOfMany:    "%1 IN (%2)", // which are hashed
	Numbers:      "array(%1)",
	Texts:        "array(%3)",
	List:         "array(%1)",
	Numbered:     "(SELECT p.col AS v, try_add(p.pos, 1) AS i FROM posexplode(%1) AS p) AS %2",
	Parallel:     "inline(arrays_zip(%2)) AS %1(%3)",
	InParallel:   "%1",

	Digits:  38,
	Narrow:  18,
	Decimal: "DECIMAL(%1,%2)",

	PlainWindows: true,

	Accepts: map[policy.Type][]string{
		policy.Bool: {"boolean"}, policy.Int2: {"smallint", "tinyint", "int", "bigint"}, policy.Int4: {"int", "tinyint", "smallint", "bigint"},
		policy.Int8: {"bigint", "tinyint", "smallint", "int"}, policy.Float4: {"float"}, policy.Float8: {"double", "float"},
		policy.NumericType: {"decimal", "tinyint", "smallint", "int", "bigint"}, policy.Text: {"string", "varchar"}, policy.Varchar: {"string", "varchar"},
		policy.DateType: {"date"}, policy.UUID: {"string"}, policy.TimestampT: {"timestamp_ntz"}, policy.TimestampTZ: {"timestamp"},
	},
}

// SparkCatalog is Spark's own catalog, in which the private tables are where a policy says nothing else: names begin
// with a catalog, so that no session's current one matters.
const SparkCatalog = "spark_catalog"

// SparkIn is Spark's dialect over the tables of one of its catalogs.
func SparkIn(catalog string) Dialect {
	if catalog == SparkCatalog {
		return Spark
	}
	words := spark
	words.Relation = words.QuoteAs(catalog) + ".%1.%2"
	return Dialect{&words}
}
