package parse

import "github.com/dpproxy/dpproxy/planner/refuse"

// Limits on the text, applied before the grammar's C code sees it.
var (
	tooLong     = refuse.New("statement-too-long", "54000", "the statement has %d bytes, more than the limit of %d", "Send the statements of a script one by one, and shorten lists of values.", "")
	tooMany     = refuse.New("too-many-tokens", "54000", "the statement has more than %d tokens", "Shorten lists of values, or split the statement.", "")
	tooDeep     = refuse.New("nesting-too-deep", "54001", "the statement is nested deeper than %d levels", "Write it with fewer parentheses, sub-queries or CASE levels.", "")
	chainLong   = refuse.New("chain-too-long", "54001", "an expression chains more than %d operators", "Use IN (…) instead of long chains of OR, and split long expressions.", "")
	tooUnions   = refuse.New("too-many-set-operations", "54001", "more than %d UNION, INTERSECT or EXCEPT at one level", "Use GROUP BY, or count(*) FILTER (WHERE …) for each part.", "")
	listLong    = refuse.New("list-too-long", "54000", "a list after IN has more than %d values", "Use a range (BETWEEN), or split the list.", "")
	nameLong    = refuse.New("name-too-long", "42622", "a name has %d bytes, more than the limit of %d", "Shorten the name or alias; it is not cut silently.", `SELECT count(*) AS a_name_that_goes_on_and_on_until_it_has_more_bytes_than_postgres_keeps FROM people`)
	badEncoding = refuse.New("invalid-text", "22021", "the statement is not valid UTF-8 text", "Send the statement in UTF-8, without NUL bytes.", "")
)

// Statements that never run here.
var (
	definitions   = refuse.New("no-definitions", "42501", "%s is not permitted: nothing can be created or changed here", "The data owner changes tables and rights in the database and in the policy file.", `CREATE TABLE t (a int)`)
	copies        = refuse.New("no-copy", "42501", "COPY %s is not permitted", "Only COPY (SELECT …) TO STDOUT is answered; psql's \\copy writes what it brings to a file of yours.", `COPY people FROM STDIN`)
	copyOption    = refuse.New("copy-option", "22023", "%s", "FORMAT text, csv or binary, DELIMITER, NULL, HEADER, QUOTE, ESCAPE, FORCE_QUOTE and ENCODING 'UTF8' are known.", `COPY (SELECT count(*) FROM people) TO STDOUT (FORMAT xml)`)
	copySyntax    = refuse.New("copy-options-conflict", "42601", "%s", "Give each option once, and to binary none but its format.", `COPY (SELECT count(*) FROM people) TO STDOUT (FORMAT binary, DELIMITER ';')`)
	cursorOptions = refuse.New("cursor-options", "42P11", "a cursor cannot be %s at once", "Leave one of them out.", `DECLARE c SCROLL NO SCROLL CURSOR FOR SELECT count(*) FROM people`)
	otherKind     = refuse.New("statement-not-permitted", "42501", "%s is not permitted here", "Only SELECT, EXPLAIN, SET, SHOW and transaction statements are answered.", `CHECKPOINT`)
	notifies      = refuse.New("no-notifications", "42501", "NOTIFY is not permitted: no session hears another here", "LISTEN is accepted, and nothing ever comes; ask the database itself to notify.", `NOTIFY channel, 'message'`)
	twoPhase      = refuse.New("no-two-phase", "42501", "two-phase transactions are not permitted here", "Use BEGIN and COMMIT.", `PREPARE TRANSACTION 'x'`)
	explained     = refuse.New("explain-select-only", "42501", "EXPLAIN is answered for SELECT only", "EXPLAIN SELECT …", `EXPLAIN DELETE FROM people`)
	explainArg    = refuse.New("explain-option", "22023", "EXPLAIN option %s is not recognised here", "EXPLAIN SELECT …, or EXPLAIN (FORMAT JSON), EXPLAIN (ALTERNATIVES), EXPLAIN (VERBOSE).", `EXPLAIN (FORMAT XML) SELECT count(*) FROM people`)
)

// These reasons, in the order of the catalogue.
var (
	RefusedTexts      = []*refuse.Reason{tooLong, tooMany, tooDeep, chainLong, tooUnions, listLong, nameLong, badEncoding, refuse.Syntax}
	RefusedStatements = []*refuse.Reason{refuse.Writes, definitions, copies, copyOption, copySyntax, cursorOptions, otherKind, notifies, twoPhase, refuse.IntoTable, refuse.RowLocks, explained, explainArg}
	RefusedMySQL      = []*refuse.Reason{mysqlSyntax, mysqlConstruct, mysqlCollation, mysqlUntyped, mysqlTemporal, mysqlAmbiguous, mysqlDeep}
)

// Reasons of MySQL's dialect. Their examples are sent with SET dp.dialect = mysql.
var (
	mysqlSyntax    = refuse.New("mysql-syntax", "42601", "%s", "This is not MySQL as it is read here (docs/mysql.md). RESET dp.dialect reads PostgreSQL again.", `SET dp.dialect = mysql; SELECT count(*) FROM people WHERE age = = 3`)
	mysqlConstruct = refuse.New("mysql-construct", "DP002", "%s is not read in MySQL's dialect", "Write it otherwise, or write the statement for PostgreSQL: RESET dp.dialect.", `SET dp.dialect = mysql; SELECT GROUP_CONCAT(sex) FROM people`)
	mysqlCollation = refuse.New("mysql-collation", "DP002", "%s depends on MySQL's collation, which does not tell upper from lower case", "Compare by bytes: BINARY column = 'value'.", `SET dp.dialect = mysql; SELECT count(*) FROM people WHERE sex < 'm'`)
	mysqlUntyped   = refuse.New("mysql-untyped", "DP002", "what %s means in MySQL depends on a type that is not known here", "CAST it, or write the statement for PostgreSQL: RESET dp.dialect.", `SET dp.dialect = mysql; SELECT x.a / 2 FROM dp.budget x`)
	mysqlTemporal  = refuse.New("mysql-temporal", "DP002", "%s is not read in MySQL's dialect", "Write dates as '2024-12-31', and add INTERVALs to dates and times.", `SET dp.dialect = mysql; SELECT count(*) FROM people WHERE hired = '0000-00-00'`)
	mysqlAmbiguous = refuse.New("mysql-ambiguous", "42702", "%s is ambiguous", "Give the alias another name.", `SET dp.dialect = mysql; SELECT age + 1 AS sex, count(*) FROM people GROUP BY sex`)
	mysqlDeep      = refuse.New("mysql-too-deep", "54001", "%s is not translated", "Write it with fewer parentheses, sub-queries or operators in a row.", "")
)
