package threats

import (
	"fmt"
	"strings"
)

// Answer is what a source of private rows answers to one of the questions that are asked before a policy over it is
// accepted (rule 30). The questions are the methods of inspect.Questions (backend/internal/inspect), and Questions
// lists them in its order.
type Answer struct {
	Source string
	Of     string // the Go type that answers, and its package below backend
	Said   [4]string
	Tests  [4][]string // "package.Test", of each
}

// Questions are asked of each source.
var Questions = [4]string{"when are two values of a key equal?", "by what does a join join, and a constraint prove?", "can a stored value fail a read, or be read as another?", "whose rows does a relation show?"}

// Answers are those of all sources.
var Answers = []Answer{
	{"PostgreSQL, Citus", "postgres.answers",
		[4]string{"where their texts are, of the types that are listed; units of others are refused (floating, numeric without a scale, interval, jsonb, citext, collations that are not deterministic), and all keys in a snapshot or on Citus",
			"both by the values of the columns' types; pairs of which one takes more for equal are refused (char beside varchar, two collations, floating beside exact numbers); a snapshot joins texts",
			"none: functions are total; columns that are computed when they are read are refused; what views call is assumed, and check says so",
			"its own, its partitions' and children's, and what its view reads; a view that calls a function which is not immutable may show any; foreign tables are assumed, and check says so"},
		[4][]string{{"backend/postgres.TestKeysThatDoNotCompareAreFatal", "backend/postgres.TestSnapshotKeys"}, {"backend/postgres.TestKeysThatDoNotCompareAreFatal", "backend/postgres.TestUniqueKeysAreProved"}, {"backend/postgres.TestColumnsThatAreComputedWhenRead", "rewrite.TestHostileRowsFailNoStatement"}, {"backend/engines.TestTablesThatShareRows"}}},
	{"tables of a DuckDB file", "duckdb.DB",
		[4]string{"where their texts are; a column under a collation is refused, of whatever use it is, and so are keys of floating numbers, intervals, lists and structures, and of texts where the policy says whole numbers",
			"a join by texts; a constraint by values, which of these types are equal where the texts are",
			"none: casts are TRY_CAST; what is computed is computed when a row is stored; what views call is assumed, and check says so",
			"what DuckDB's own plan for all of its rows scans, through views and macros; what else is scanned may be any rows"},
		[4][]string{{"backend/engines.TestNeighboursOfStrangeKeys", "backend/engines.TestTextsUnderACollation", "backend/duckdb.TestSnapshotKeysOfDuckDB"}, {"backend/engines.TestNeighboursOfStrangeKeys"}, {"rewrite.TestHostileRowsFailNoStatement"}, {"backend/engines.TestOneFileOfSeveralNames", "backend/engines.TestTablesThatShareRows"}}},
	{"CSV files", "duckdb.DB",
		[4]string{"where their texts are, or, where the policy says whole numbers, the numbers: 7 and 007 are one unit, live and in a snapshot", "a join by texts; nothing proves a key",
			"none: each field is a text, and NULL where it is no value of its column; a line of another number of fields is left out", "its file's, by device and number: links are one file"},
		[4][]string{{"backend/engines.TestNeighboursOfStrangeKeys"}, {"backend/engines.TestNeighboursOfStrangeKeys"}, {"backend/duckdb.TestFilesAreReadWithDeclaredTypes", "backend/duckdb.TestEachLineIsReadByItself"}, {"backend/engines.TestOneFileOfSeveralNames"}}},
	{"Parquet files", "duckdb.DB",
		[4]string{"as in CSV files, of the texts that DuckDB writes of its values", "a join by texts; nothing proves a key",
			"none: a text that is no UTF-8 lies outside each domain, and a moment beyond DuckDB's is NULL; decimals of more than 38 digits, times, intervals, lists and structures are refused. Of a table that DuckDB has made from such decimals nothing is known: it has a DOUBLE",
			"its file's, by device and number: links are one file"},
		[4][]string{{"backend/engines.TestNeighboursOfStrangeKeys"}, {"backend/engines.TestNeighboursOfStrangeKeys"}, {"backend/engines.TestParquetCellsFailNoRead", "backend/engines.TestParquetTypesThatAreRefused", "backend/parquet.TestBareOfNothing"}, {"backend/engines.TestOneFileOfSeveralNames"}}},
	{"MySQL, MariaDB", "mysql.answers",
		[4]string{"where the bytes are, of _bin collations in utf8, latin1 and ascii, which are read as they are stored; keys of other collations, floating numbers, and ENUM with an empty label are refused",
			"a join by texts; a primary key by values, which of these types are equal where the texts are; other unique keys prove nothing",
			"none: cells are read by total functions; columns that are computed when they are read are refused; what views call is assumed, and check says so",
			"what its view reads, by the text that the server keeps; a view whose text may not be seen, or that calls a function, may show any; engines whose tables show rows of others (MERGE, CONNECT, FEDERATED) are refused"},
		[4][]string{{"backend/engines.TestNeighboursOfMariaDBsKeys", "backend/mysql.TestMySQLKeys"}, {"backend/mysql.TestMySQLKeys"}, {"backend/mysql.TestMySQLFindings"}, {"backend/mysql.TestMySQLFindings", "backend/mysql.TestViewReads"}}},
	{"Spark", "spark.answers",
		[4]string{"where their texts are; keys of other types, and of a collation, are refused", "a join by values; pairs that Spark would convert, as texts to numbers, are refused; nothing proves a key",
			"none: functions are total; views are refused", "those of its directory, and of tables whose directories lie in it"},
		[4][]string{{"backend/spark.TestAnswersOfSpark", "backend/spark.TestSparkChecks"}, {"backend/spark.TestAnswersOfSpark"}, {"backend/spark.TestSparkChecks", "backend/spark.TestSparkBytesThatAreNoText"}, {"backend/spark.TestAnswersOfSpark"}}},
}

func answersTable() string {
	var b strings.Builder
	b.WriteString("\n| source | question | answer | tests |\n| --- | --- | --- | --- |\n")
	for _, a := range Answers {
		for i, said := range a.Said {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", a.Source, Questions[i], Cell(said), tests(a.Tests[i]))
		}
	}
	return b.String()
}
