package planner

// Limits on the text, applied before the grammar's C code sees it.
var (
	tooLong     = newReason("statement-too-long", "54000", "the statement has %d bytes, more than the limit of %d", "Send the statements of a script one by one, and shorten lists of values.", "")
	tooMany     = newReason("too-many-tokens", "54000", "the statement has more than %d tokens", "Shorten lists of values, or split the statement.", "")
	tooDeep     = newReason("nesting-too-deep", "54001", "the statement is nested deeper than %d levels", "Write it with fewer parentheses, sub-queries or CASE levels.", "")
	chainLong   = newReason("chain-too-long", "54001", "an expression chains more than %d operators", "Use IN (…) instead of long chains of OR, and split long expressions.", "")
	tooUnions   = newReason("too-many-set-operations", "54001", "more than %d UNION, INTERSECT or EXCEPT at one level", "Use GROUP BY, or count(*) FILTER (WHERE …) for each part.", "")
	listLong    = newReason("list-too-long", "54000", "a list after IN has more than %d values", "Use a range (BETWEEN), or split the list.", "")
	nameLong    = newReason("name-too-long", "42622", "a name has %d bytes, more than the limit of %d", "Shorten the name or alias; it is not cut silently.", `SELECT count(*) AS a_name_that_goes_on_and_on_until_it_has_more_bytes_than_postgres_keeps FROM people`)
	badEncoding = newReason("invalid-text", "22021", "the statement is not valid UTF-8 text", "Send the statement in UTF-8, without NUL bytes.", "")
)

// Statements that never run here.
var (
	definitions   = newReason("no-definitions", "42501", "%s is not permitted: nothing can be created or changed here", "The data owner changes tables and rights in the database and in the policy file.", `CREATE TABLE t (a int)`)
	copies        = newReason("no-copy", "42501", "COPY %s is not permitted", "Only COPY (SELECT …) TO STDOUT is answered; psql's \\copy writes what it brings to a file of yours.", `COPY people FROM STDIN`)
	copyOption    = newReason("copy-option", "22023", "%s", "FORMAT text, csv or binary, DELIMITER, NULL, HEADER, QUOTE, ESCAPE, FORCE_QUOTE and ENCODING 'UTF8' are known.", `COPY (SELECT count(*) FROM people) TO STDOUT (FORMAT xml)`)
	copySyntax    = newReason("copy-options-conflict", "42601", "%s", "Give each option once, and to binary none but its format.", `COPY (SELECT count(*) FROM people) TO STDOUT (FORMAT binary, DELIMITER ';')`)
	cursorOptions = newReason("cursor-options", "42P11", "a cursor cannot be %s at once", "Leave one of them out.", `DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT count(*) FROM people`)
	otherKind     = newReason("statement-not-permitted", "42501", "%s is not permitted here", "Only SELECT, EXPLAIN, SET, SHOW and transaction statements are answered.", `CHECKPOINT`)
	notifies      = newReason("no-notifications", "42501", "NOTIFY is not permitted: no session hears another here", "LISTEN is accepted, and nothing ever comes; ask the database itself to notify.", `NOTIFY channel, 'message'`)
	twoPhase      = newReason("no-two-phase", "42501", "two-phase transactions are not permitted here", "Use BEGIN and COMMIT.", `PREPARE TRANSACTION 'x'`)
	explained     = newReason("explain-select-only", "42501", "EXPLAIN is answered for SELECT only", "EXPLAIN SELECT …", `EXPLAIN DELETE FROM people`)
	explainArg    = newReason("explain-option", "22023", "EXPLAIN option %s is not recognised here", "EXPLAIN SELECT …, or EXPLAIN (FORMAT JSON), EXPLAIN (ALTERNATIVES), EXPLAIN (SQL off).", `EXPLAIN (FORMAT XML) SELECT count(*) FROM people`)
)

// These reasons, in the order of the catalogue.
var (
	RefusedTexts      = []*reason{tooLong, tooMany, tooDeep, chainLong, tooUnions, listLong, nameLong, badEncoding, syntax}
	RefusedStatements = []*reason{writes, definitions, copies, copyOption, copySyntax, cursorOptions, otherKind, notifies, twoPhase, intoTable, rowLocks, explained, explainArg}
	RefusedMySQL      = []*reason{mysqlSyntax, mysqlConstruct, mysqlCollation, mysqlUntyped, mysqlTemporal, mysqlAmbiguous, mysqlDeep}
)
