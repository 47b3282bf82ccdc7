package threats

import (
	"fmt"
	"slices"
	"strings"
)

// Document is the text of docs/threats.md with its tables written anew. A threat keeps what its last two columns hold,
// at a night's length and at full length, where no figures of that length are among those given; a fault keeps the
// commit at which it was seen caught, by the same test.
func Document(text string, figures map[string][]Figure) (string, error) {
	threats, rules, faults := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	fmt.Fprintf(threats, "\n| | threat | to reach | tests | at a night's length | at full length |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, row := range Table() {
		short, full := kept(text, row.ID)
		if told := reached(figures[row.ID], false); told != "" || short == "" {
			short = strings.Trim(told+"; "+row.Note, "; ")
		}
		if told := reached(figures[row.ID], true); told != "" {
			full = told
		}
		fmt.Fprintf(threats, "| %s | %s | %s | %s | %s | %s |\n", row.ID, Cell(row.Threat), Cell(row.Pass), tests(row.Tests), Cell(short), Cell(full))
	}
	fmt.Fprintf(rules, "\n| | rule | tests |\n| --- | --- | --- |\n")
	for _, rule := range Rules {
		fmt.Fprintf(rules, "| %d | %s | %s |\n", rule.Number, Cell(rule.Rule), tests(rule.Tests))
	}
	fmt.Fprintf(faults, "\n| fault | in | caught by | seen at |\n| --- | --- | --- | --- |\n")
	for _, f := range Faults {
		by, seen := kept(text, Cell(f.Name))
		if told := reached(figures[f.Name], true) + reached(figures[f.Name], false); told != "" {
			seen = told
		} else if by != f.Test {
			seen = ""
		}
		fmt.Fprintf(faults, "| %s | %s | %s | %s |\n", Cell(f.Name), f.File, f.Test, seen)
	}
	classes, answers := &strings.Builder{}, &strings.Builder{}
	classes.WriteString(classesTable())
	answers.WriteString(answersTable())
	for name, table := range map[string]fmt.Stringer{"threats": threats, "rules": rules, "classes": classes, "answers": answers, "faults": faults} {
		_, after, found := strings.Cut(text, "<!-- "+name+": ")
		mark, _, closed := strings.Cut(after, "-->\n")
		before, rest, ended := strings.Cut(text, "<!-- end of "+name+" -->")
		if !found || !closed || !ended {
			return "", fmt.Errorf("the document has no place for its %s", name)
		}
		begins := strings.Index(before, "<!-- "+name+": ")
		text = before[:begins] + "<!-- " + name + ": " + mark + "-->\n" + table.String() + "\n<!-- end of " + name + " -->" + rest
	}
	return text, nil
}

// Told is what the tests of a row measured.
func Told(row Row, figures []Figure) string {
	var texts []string
	for _, told := range []string{reached(figures, false), reached(figures, true)} {
		if told != "" {
			texts = append(texts, told)
		}
	}
	if row.Note != "" {
		texts = append(texts, row.Note)
	}
	return Cell(strings.Join(texts, "; "))
}

// reached joins the figures of one length.
func reached(figures []Figure, full bool) string {
	var texts []string
	for _, f := range figures {
		told := f.Figure
		if f.Failed {
			told = "**failed**: " + told
		}
		if f.Full == full && !slices.Contains(texts, told) {
			texts = append(texts, told)
		}
	}
	return strings.Join(texts, "; ")
}

// kept are the last two columns of a threat in the document as it is.
func kept(text, id string) (short, full string) {
	_, after, found := strings.Cut(text, "\n| "+id+" | ")
	if !found {
		return "", ""
	}
	line, _, _ := strings.Cut(after, "\n")
	cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
	return cells[len(cells)-2], cells[len(cells)-1]
}

func tests(names []string) string {
	var short []string
	for _, name := range names {
		short = append(short, strings.Replace(name, ".Test", " Test", 1))
	}
	return strings.Join(short, ", ")
}

// Cell returns a text as it is written in a cell of a table.
func Cell(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "¦"), "\n", " ") }

// ErrorClass is a kind of error that a private database can raise while it runs a paid query, and which rows could
// raise it. One that a row could raise would be a bit without noise: the answer is the public default then (privacy
// rules 5 and 24).
type ErrorClass struct {
	Engine  string   // "PostgreSQL" or "DuckDB"
	Codes   []string // PostgreSQL's classes, the first two characters of an SQLSTATE; DuckDB's kinds
	What    string
	Rows    string   // which rows could raise it, and why none can
	Assumed string   // what is so where none can, though nothing here enforces it
	Tests   []string // "package.Test"
}

var total = []string{"rewrite.TestCatalogue", "rewrite.TestCatalogueIsTotal", "rewrite.TestHostileRowsFailNoStatement", "test/attacks.TestExtremePerson"}

// ErrorClasses are all of them. The two lists of testdata say what all is.
var ErrorClasses = []ErrorClass{
	{"PostgreSQL", []string{"00", "01", "02"}, "success, warning, no data", "no error: warnings are not sent for, and an answer without rows is zeros", "", []string{"backend/postgres.TestSettingsOfOthersAreNotFollowed"}},
	{"PostgreSQL", []string{"03", "09", "0B", "0F", "0L", "0P", "0Z", "10", "20", "24", "26", "27", "2B", "2D", "34", "38", "39", "3B", "44", "P0", "F0"},
		"cursors, savepoints, procedures, triggers, grants, prepared names, XQuery, configuration files",
		"none: a query is one SELECT of pg_catalog's functions in a transaction of its own. A view may call others", "the functions that a view of the policy calls do not fail; check warns of each view",
		[]string{"rewrite.TestCatalogue", "backend/postgres.TestNamesOfTheDatabaseAreNotUsed", "backend/postgres.TestPlanningReadsNoRows"}},
	{"PostgreSQL", []string{"08", "28", "3D"}, "connection, login, no such database", "none: a message is at most 4 MiB and what a row adds to one is cut; a database that goes away does so for all rows", "the network and the server stay up, or fail for reasons of their own",
		[]string{"backend/postgres.TestHostileDatabase", "test/attacks.TestRule5UnreachableBeforeDispatch", "test/timing.TestT3AnswersThroughFaults"}},
	{"PostgreSQL", []string{"0A", "3F", "42"}, "not supported, no such schema, no such name, no right", "none: the query is planned before its charge, by the same role, with the same settings and arguments, and no row is read for it", "",
		[]string{"backend/engines.TestQueriesArePlannedBeforeTheCharge", "backend/postgres.TestPlanningReadsNoRows", "test/attacks.TestUnplannedIsFree", "backend/engines.TestDriftIsFoundBeforeACharge"}},
	{"PostgreSQL", []string{"21"}, "a sub-query with two rows", "none: no sub-query stands for a value but aggregates without groups", "", []string{"rewrite.TestCatalogue"}},
	{"PostgreSQL", []string{"22"}, "data exceptions: conversion, overflow, division by zero, dates and texts out of range, an encoding without a counterpart",
		"none: every function and operator is total over its type (NaN, infinities, year 5874897, BC and 1 MB of text among what is tried), text is UTF-8 on both sides, and constants come checked", "",
		append([]string{"test/attacks.TestBitOfAnEncoding", "backend/postgres.TestOtherEncodingsAreRefused", "test/attacks.TestT1ErrorOracle"}, total...)},
	{"PostgreSQL", []string{"23"}, "constraints", "none: nothing is written", "", []string{"test/attacks.TestWritingIsRefused", "backend/engines.TestRolesThatAreTooStrong"}},
	{"PostgreSQL", []string{"25"}, "transaction state", "none: read-only is what a query needs, and no limit on idle or long transactions is followed", "", []string{"backend/postgres.TestSettingsOfOthersAreNotFollowed", "backend/postgres.TestEverySettingHasItsPlace"}},
	{"PostgreSQL", []string{"2F"}, "SQL routines", "none: no routine of the database is called; a view may call one, and check warns of views", "", []string{"rewrite.TestCatalogue"}},
	{"PostgreSQL", []string{"40"}, "serialization failure, deadlock", "none of a primary: REPEATABLE READ that only reads takes no lock that conflicts with rows being written. A hot standby cancels queries that hold back its replay: check warns of one", "a hot standby that is served waits for the queries", []string{"test/attacks.TestT10NothingIsLeftBehind"}},
	{"PostgreSQL", []string{"53"}, "out of resources: disk, memory, connections", "none of a limit: temp_file_limit must be -1, connection limits above dpproxy's pools, work_mem is at most 1 GB, and no hash table and no bitmap of a scan lies in shared memory: what parallel workers share is sized by the plan", "the disk holds a sorted copy of the largest table, whoever else fills it, and the machine has the memory, and the shared memory, that its settings promise",
		[]string{"test/attacks.TestBitOfTemporaryFiles", "backend/postgres.TestWordsForSettings", "backend/postgres.TestLimitsThatComeLater", "backend/postgres.TestNoSharedBitmaps"}},
	{"PostgreSQL", []string{"54"}, "program limits: a statement, a row or a text too large", "the statement's size is public, and it is planned before the charge", "no text of a unit's key is above 500 MB, of which two would not fit one value", []string{"backend/engines.TestQueriesArePlannedBeforeTheCharge", "test/attacks.TestExtremePerson"}},
	{"PostgreSQL", []string{"55"}, "object in use, lock not available", "none: lock_timeout is 0 in each transaction; who locks a table is not decided by its rows", "", []string{"backend/postgres.TestSettingsOfOthersAreNotFollowed"}},
	{"PostgreSQL", []string{"57"}, "cancelled, shut down, deadline", "the owner's deadline: rows decide how long a query takes", "the deadline is far above what the query takes with any one unit more; the answer of one that reaches it is noise on zero (ADR 45)",
		[]string{"test/timing.TestT7DeadlineOnOneSide", "backend/engines.TestResultsAtAPublicMoment"}},
	{"PostgreSQL", []string{"58", "72", "XX"}, "input and output, snapshots too old, internal errors", "a damaged page, a lost file, a bug: whatever reads them", "storage and server are sound", []string{"test/attacks.TestRule5AfterTheChargeOnlyAnAnswer"}},
	{"PostgreSQL", []string{"HV"}, "foreign data", "rows of a foreign table that its wrapper cannot read", "there are none; check warns of each foreign table", []string{"backend/engines.TestInspectRefusesPublicViews"}},

	{"DuckDB", []string{"Out of Range", "Conversion", "Decimal", "Divide by Zero", "Object Size", "Invalid Input", "Mismatch Type", "Invalid type"}, "values that do not fit",
		"none: casts are TRY_CAST, and every function is total over its type; a text above 4 GB cannot be stored", "", total},
	{"DuckDB", []string{"Constraint", "Transaction", "Index", "Sequence", "Dependency"}, "writing", "none: the database is read-only, or filled before anybody asks", "", []string{"backend/duckdb.TestLockdown"}},
	{"DuckDB", []string{"Unknown Type", "Not implemented", "Expression", "Catalog", "Parser", "Planner", "syntax", "Settings", "Binder", "Optimizer", "Parameter Not Resolved", "Parameter Not Allowed", "Missing Extension", "Extension Autoloading", "Invalid Configuration", "Permission", "Stat", "INVALID"},
		"binding and planning", "none: the query is bound before its charge, and nothing that binds it can change while the process lives. The optimizer reads statistics, and fails no statement that it does not know how to improve", "",
		[]string{"backend/engines.TestQueriesArePlannedBeforeTheCharge", "backend/duckdb.TestLockdown"}},
	{"DuckDB", []string{"Out of Memory"}, "memory", "none within the disk: what is sorted and grouped beyond the memory goes to files", "the disk of TMPDIR holds a sorted copy of the largest table, and one text that is compared fits in memory", []string{"backend/duckdb.TestSortsGoToFiles"}},
	{"DuckDB", []string{"IO", "Serialization", "Network", "Connection", "HTTP"}, "files", "none: the file was opened and its catalog read at the start, and no other file can be reached", "storage is sound", []string{"backend/duckdb.TestLockdown", "backend/duckdb.TestBrokenFilesAreRefusedWithoutTheirContents"}},
	{"DuckDB", []string{"INTERRUPT"}, "the owner's deadline", "rows decide how long a query takes", "the deadline is far above it, as of PostgreSQL's class 57", []string{"backend/engines.TestResultsAtAPublicMoment"}},
	{"DuckDB", []string{"Scheduler", "Executor", "NullPointer", "FATAL", "INTERNAL"}, "faults of the engine", "none that is known; after one the process is to be started again", "the engine is sound", []string{"test/timing.TestT3AnswersThroughFaults"}},
}

// classesTable is the part of docs/threats.md that lists them.
func classesTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| engine | errors | of what | which rows could raise it | assumed | tests |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, c := range ErrorClasses {
		holds := c.Assumed
		if holds == "" {
			holds = "nothing"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.Engine, strings.Join(c.Codes, ", "), Cell(c.What), Cell(c.Rows), Cell(holds), tests(c.Tests))
	}
	return b.String()
}

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
