package bind

import (
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Names.
var (
	unknownTable    = refuse.New("unknown-table", "42P01", `relation "%s" does not exist`, "SELECT * FROM dp.tables lists the tables.", `SELECT count(*) FROM persons`)
	unknownDatabase = refuse.New("other-database", "42501", `cross-database references are not permitted: "%s"`, `Name the table without its database.`, `SELECT count(*) FROM other.public.people`)
	UnknownAlias    = refuse.New("unknown-alias", "42P01", `missing FROM-clause entry for table "%s"`, "Name a table or alias of this FROM.", `SELECT count(*) FROM people WHERE p.age > 3`)
	Ambiguous       = refuse.New("ambiguous-column", "42702", `column reference "%s" is ambiguous`, "Write the table or alias before the column.", `SELECT count(*) FROM (SELECT age, income AS age FROM people) t WHERE age > 3`)
	noBounds        = refuse.New("column-without-bounds", "DP002", `column "%s" of table %s has no bounds yet, and nothing is answered over it`, `The data owner finds them with dpproxy bounds --table %[2]s, and writes them in the place of "domain: private".`, `SELECT avg(weight) FROM people`)
	systemColumn    = refuse.New("system-column", "42501", `system column "%s" is not available`, "Private rows have no identity here: use the declared columns.", `SELECT count(*) FROM people WHERE ctid = '(0,1)'`)
	BadOrdinal      = refuse.New("bad-position", "42P10", "%s position %d is not in select list", "Count the columns of the SELECT from 1.", `SELECT count(*) FROM people GROUP BY 2`)
	ColumnCount     = refuse.New("column-aliases", "42P10", `table "%s" has %d columns available but %d columns specified`, "Name at most as many columns as there are.", `SELECT count(*) FROM (SELECT age FROM people) t(a, b)`)
	duplicateAlias  = refuse.New("duplicate-alias", "42712", `table name "%s" specified more than once`, "Give each table of FROM an alias of its own.", "")
)

// What SQL itself forbids.
var (
	Ungrouped     = refuse.New("ungrouped-column", "42803", `column "%s" must appear in the GROUP BY clause or be used in an aggregate function`, "Add it to GROUP BY.", `SELECT sex, count(*) FROM people`)
	nested        = refuse.New("nested-aggregate", "42803", "aggregate function calls cannot be nested", "Aggregate in a sub-query in FROM, then aggregate its rows.", `SELECT count(count(*)) FROM people`)
	limitConstant = refuse.New("limit-not-constant", "DP002", "%s must be a constant", "Write a number or a parameter.", `SELECT sex, count(*) FROM people GROUP BY sex LIMIT sex`)
	negativeLimit = refuse.New("negative-limit", "2201W", "%s must not be negative", "Write zero or more.", `SELECT sex, count(*) FROM people GROUP BY sex LIMIT -1`)
)

// What has no private form, or none yet.
var (
	PrivateJoin     = refuse.New("private-join", "DP002", "joins of private table %s with this are not answered", "Join public tables by their key; count in a sub-query, and join the counts with anything else.", `SELECT count(*) FROM people, dp.tables`)
	preservedJoined = refuse.New("public-outer-join-below", "DP002", "an outer join that keeps rows of a public table is not answered below another join or a sub-query by unit, here of %s", "Join it last.", `SELECT count(p.age) FROM (regions r LEFT JOIN people p ON p.sex = r.code) JOIN visits v ON v.person_id = p.person_id`)
	crossUnit       = refuse.New("cross-unit-join", "DP002", "joining %s with %s so would put rows of different %[3]ss together", "Join along the %[3]s: add a condition that equates the %[3]s's key on both sides.", `SELECT count(*) FROM people a JOIN people b ON a.age = b.age`)
	naturalCross    = refuse.New("natural-join-without-columns", "DP002", "the two sides of this NATURAL JOIN have no column in common", "Write the condition: JOIN … ON ….", `SELECT count(*) FROM people NATURAL JOIN regions`)
	rowUnits        = refuse.New("rows-are-units", "DP002", "%s and %s cannot be joined: in this dataset each row is a unit of its own", "Count each table in a sub-query of its own, and join the counts.", "")
	keyOnly         = refuse.New("join-key-only", "42501", `"%s" names rows of one %s: it may join, be counted with DISTINCT, and nothing else`, "Join by it, use count(DISTINCT …), or GROUP BY it in a sub-query whose rows are then counted. Where the data owner gives it a domain it is a column like others, too.", `SELECT count(*) FROM people WHERE person_id = 7`)
	keyTypes        = refuse.New("key-types", "DP002", `keys "%s" and "%s" are not known to be of types that can be compared`, "The data owner lists both with keys: join and types that compare.", `SELECT count(*) FROM people p JOIN visits v ON p.person_id = v.person_id AND p.person_id = v.referral`)
	computedOuter   = refuse.New("computed-outer", "DP002", "computed columns on a side of FULL JOIN are not answered", "Compute them above the join.", "")
	outerCondition  = refuse.New("outer-condition", "DP002", "this condition of an outer join reads both sides, or a side that may be missing", "Equate keys, and columns of one kind, and compare the columns of one side with constants. Where a unit has one row on the side whose rows stay, as of (SELECT DISTINCT ON …), the columns of both are compared too.", "")
	correlated      = refuse.New("correlated-condition", "DP002", `a condition of this sub-query compares its rows with "%s" of the row around it`, "Equate keys of both. The sub-query's own columns are compared with each other, with constants and with columns of the row around it, but not with its keys.", `SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.person_id = v.person_id AND o.ward < v.referral)`)
	CountedAround   = refuse.New("correlated-sub-query", "DP002", `this sub-query would be counted for each row of the query around it, whose "%s" it reads`, "Join its table with that of the query around it, and GROUP BY the column that it reads: SELECT …, count(*) FROM … JOIN … ON … GROUP BY …. Or group in a sub-query of FROM, and join its counts.", `SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward < r.code) FROM regions r`)
	subqueryRows    = refuse.New("subquery-rows", "21000", "more than one row returned by a subquery used as an expression", "Aggregate without GROUP BY, or write x IN (SELECT …).", `SELECT count(*) FROM people WHERE age > (SELECT age FROM people GROUP BY age)`)
	subqueryColumns = refuse.New("subquery-columns", "42601", "subquery must return only one column", "Compare with one column.", `SELECT count(*) FROM people WHERE age > (SELECT avg(age), count(*) FROM people)`)
	SubqueryType    = refuse.New("subquery-type", "DP002", "the type of this sub-query's column is not known before it is answered", "Cast it in the sub-query: SELECT (…)::numeric FROM ….", "")
	SubqueryDepth   = refuse.New("subquery-depth", "54001", "sub-queries that are answered one after the other stand %d deep, the most is %d", "Ask for the innermost by itself, and write its value.", "")
	belowJoin       = refuse.New("condition-below-join", "DP002", "this condition reads several columns at once, which is not answered below a join or a sub-query of one", "Compare single columns with constants, or move the condition above the join.", "")
	tooManyRows     = refuse.New("too-many-joined-rows", "DP002", "joining %s with %s, one unit could have more than %[3]d rows", "Aggregate one side in a sub-query first.", "")
	unitAggregate   = refuse.New("unit-aggregate", "DP002", "%s over the rows of one unit is not answered", "count, sum and avg of whole numbers and decimals, min, max, bool_or, bool_and and count(DISTINCT x) are answered, of a column, of what grows with one, and of what reads few declared values, CASE WHEN price > 9.99 THEN 1 ELSE 0 END; sum(CASE WHEN p THEN x END) is sum(x) FILTER (WHERE p).", "")
	WideAggregate   = refuse.New("unit-aggregate-range", "DP002", "this aggregate over the rows of one unit has no bounded range of values", "Declare narrower bounds for the column, or fewer rows per unit.", "")
	limitedRows     = refuse.New("limited-rows", "DP002", "%s over private rows has no private form: which rows stay would be told exactly", "Leave it out of the sub-query, and write least(count(*), 1000) for a count that stops at 1000. LIMIT may stand above the aggregation.", `SELECT count(*) FROM (SELECT * FROM people LIMIT 10) t`)
	NoAggregate     = refuse.New("aggregate-unavailable", "DP002", "%s over private rows is not available yet", "count, sum, avg, stddev, variance, corr, covar_*, regr_*, median, percentile_cont, percentile_disc, mode, rank, percent_rank and cume_dist of a constant, bool_or, bool_and, every, and bit_and and bit_or of a column are answered, with FILTER too.", `SELECT bit_xor(kids) FROM people`)
	noSets          = refuse.New("grouping-sets", "DP002", "GROUPING SETS, ROLLUP and CUBE over the rows of one unit are not answered", "Group the sub-query by its keys alone; grouping sets may stand above it.", "")
	rowsCombined    = refuse.New("combined-rows", "DP002", "%s of private rows is not available yet", "Count in each part, and combine the counts.", `SELECT count(*) FROM (SELECT person_id FROM people INTERSECT ALL SELECT person_id FROM visits) t`)
	unionColumns    = refuse.New("union-columns", "DP002", "the parts of this UNION of private rows do not have the same keys and columns in the same places", "List the columns of each part, with keys where the others have keys.", `SELECT count(*) FROM (SELECT person_id, age FROM people UNION ALL SELECT age, kids FROM people) t`)
	unionExpression = refuse.New("union-expression", "DP002", "a part of this UNION of private rows computes a value that is no column's, or has a column of another type", "Select plain columns, constants and what is looked up in public tables in each part, and compute above the UNION.", `SELECT d, count(*) FROM (SELECT person_id, income AS d FROM people UNION ALL SELECT person_id, income * 2 FROM people) t GROUP BY d`)
	unionDomain     = refuse.New("union-domain", "DP002", "what the parts of this UNION have in one place has no domain in common", "Select columns of one kind in each part, or declare narrower bounds and fewer rows per unit.", "")
	ownCatalogue    = refuse.New("relation-not-permitted", "42501", `relation "%s" is not available here`, "PostgreSQL shows it to administrators alone. The other catalogs are answered: they show what the policy declares, nothing of the server.", `SELECT * FROM pg_catalog.pg_authid`)
	WindowOnRows    = refuse.New("window-on-rows", "DP002", "window functions over private rows have no private form where they look across units, or are shown row by row", "In a sub-query of FROM, PARTITION BY the unit's key, and aggregate above: SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY … ORDER BY …) AS n FROM …) t GROUP BY n. Over counts any window is answered.", `SELECT row_number() OVER (), age FROM people`)
	windowOrder     = refuse.New("window-order", "DP002", "a window over private rows is not ordered by %s here", "ORDER BY what is made of columns with few values, or columns that are numbers, dates or times, or keys that are whole numbers.", `SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY person_id ORDER BY day USING >) AS n FROM visits) t GROUP BY n`)
	windowFrame     = refuse.New("window-frame", "DP002", "the frame of %s over private rows is not answered", "Write ROWS BETWEEN … AND …, with numbers of rows, or RANGE, without EXCLUDE; last_value sees all rows with ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.", `SELECT n, count(*) FROM (SELECT last_value(ward) OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) t GROUP BY n`)
	windowRange     = refuse.New("window-range", "DP002", "RANGE with a distance needs one number, date or moment as ORDER BY here, and a constant distance without months, or days of a clock that changes", "Write hours in place of days, days in place of months, or ROWS.", `SELECT n, count(*) FROM (SELECT count(*) OVER (PARTITION BY person_id ORDER BY day RANGE '1 month' PRECEDING) AS n FROM visits) t GROUP BY n`)
	windowArgument  = refuse.New("window-argument", "DP002", "a window function over private rows reads an expression over one column", "Take each column by a window function of its own, and compute with what they say.", `SELECT n, count(*) FROM (SELECT lag(ward || day) OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) t GROUP BY n`)
	windowConstant  = refuse.New("window-constant", "DP002", "a window over private rows needs a constant whole number here, not below 0", "Write a number or a parameter.", `SELECT n, count(*) FROM (SELECT ntile(ward) OVER (PARTITION BY person_id) AS n FROM visits) t GROUP BY n`)
	windowCall      = refuse.New("window-call", "42883", "%s does not exist with these arguments, or with FILTER, DISTINCT or an order within", "FILTER, DISTINCT and ORDER BY in the call are of aggregates; take the rows that count by WHERE in the sub-query.", `SELECT n, count(*) FROM (SELECT row_number() FILTER (WHERE ward = 'A') OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) t GROUP BY n`)
	noWindow        = refuse.New("unknown-window", "42704", `window "%s" does not exist`, "Define it: SELECT … FROM … WINDOW name AS (…).", `SELECT n, count(*) FROM (SELECT row_number() OVER w AS n FROM visits) t GROUP BY n`)
	badNtile        = refuse.New("ntile-argument", "22014", "argument of ntile must be greater than zero", "Write how many parts the rows are to have.", `SELECT n, count(*) FROM (SELECT ntile(0) OVER (PARTITION BY person_id) AS n FROM visits) t GROUP BY n`)
	distinctOnOrder = refuse.New("distinct-on-order", "42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions", "Begin ORDER BY with what stands in DISTINCT ON.", `SELECT ward, count(*) FROM (SELECT DISTINCT ON (person_id) ward FROM visits ORDER BY day) t GROUP BY ward`)
)

// What cannot be asked of private rows that meet a public list.
var (
	CandidateRows  = refuse.New("candidate-rows", "DP002", "private rows that meet a public list cannot be %s", "Join one list where rows are grouped by its columns: SELECT c.name, count(*) FROM …, LATERAL (VALUES ('a', …), ('b', …)) c(name, yes) WHERE yes GROUP BY c.name.", `SELECT count(*) FROM (SELECT v.n FROM people, LATERAL (VALUES (age), (kids)) v(n)) t`)
	ManyCandidates = refuse.New("candidate-number", "54000", "the public list has %d rows, it must have from 1 to %d", "Narrow the list with WHERE in a sub-query, or take coarser steps.", `SELECT v.n, count(*) FROM people, generate_series(1, 50000) v(n) WHERE age > v.n GROUP BY v.n`)
	mixedValues    = refuse.New("values-types", "42804", "VALUES types %s and %s cannot be matched", "Give all rows of a column the same type: '…'::type.", `SELECT v.n, count(*) FROM people, (VALUES (1), (current_date)) v(n) GROUP BY v.n`)
)

// What is wrong with a SELECT that the data owner gave as a source. It is reported when the policy is checked.
var (
	viewStatement = refuse.New("view-statement", "42601", "the source must be one SELECT", "Write a single SELECT, or the name of a table.", "")
	viewCircle    = refuse.New("view-circle", "42P19", "the source of table %s reads that table itself", "Read the tables below it.", "")
	viewRowsOnly  = refuse.New("view-rows", "DP002", "the source of table %s passes no rows on that belong to single units: it aggregates over all of them, or reads public tables alone", "Group by the unit's key, project and filter; or mark the table trusted: true, and see to it that each row depends on one unit.", "")
	viewColumn    = refuse.New("view-column", "42703", `the source of table %s shows no column "%s" that may be seen`, "Show it in the SELECT, or leave it out of the table's columns; a key is listed with keys: join.", "")
	viewType      = refuse.New("view-type", "42804", `column "%[2]s" of table %[1]s is declared as %[3]s, and its source makes it %[4]s`, "Declare that type, or cast in the SELECT.", "")
	viewKey       = refuse.New("view-key", "42703", `the source of table %s shows no join key "%s"`, "Show the key in the SELECT under that name.", "")
	ViewName      = refuse.New("view-name", "42P01", `relation "%s" is not written in full`, "Write %[2]s: the database looks for no name in any schema by itself.", "")
	ViewElsewhere = refuse.New("view-elsewhere", "42501", "the source reads the relation of table %s in dataset %s: two datasets over one relation would be two budgets over the same rows", "Read relations of one dataset.", "")
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{
	unknownTable, unknownDatabase, UnknownAlias, Ambiguous, noBounds, systemColumn, BadOrdinal, ColumnCount, duplicateAlias,
	Ungrouped, nested, limitConstant, negativeLimit, PrivateJoin, lookup.FanOut,
	lookup.NotCopied, lookup.PreservedPublic, preservedJoined, naturalCross, crossUnit, rowUnits, keyOnly, keyTypes, computedOuter, outerCondition,
	correlated, CountedAround, subqueryRows, subqueryColumns, SubqueryType, SubqueryDepth, belowJoin, tooManyRows, unitAggregate, WideAggregate, limitedRows, NoAggregate,
	noSets, rowsCombined, unionColumns, unionExpression, unionDomain,
	ownCatalogue, WindowOnRows, windowOrder, windowFrame, windowRange, windowArgument, windowConstant, windowCall, noWindow, badNtile, distinctOnOrder, viewStatement, viewCircle, viewRowsOnly, viewColumn, viewType, viewKey, ViewName,
	ViewElsewhere, discovery.NoDelta, discovery.DeltaRange, CandidateRows, ManyCandidates,
	mixedValues,
}
