package threats

import (
	"fmt"
	"strings"
)

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
