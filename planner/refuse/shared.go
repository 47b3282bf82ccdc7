package refuse

// What more than one part of the planner refuses. What one part alone refuses is defined in that part.
var (
	Syntax          = New("syntax-error", "42601", "%s", "", `SELEC count(*) FROM people`)
	Writes          = New("read-only", "42501", "%s is not permitted: the data behind this connection is read-only", "Only SELECT is answered. Write to the database itself.", `DELETE FROM people`)
	IntoTable       = New("no-select-into", "42501", "SELECT INTO is not permitted: nothing can be created here", "Leave INTO out.", `SELECT count(*) INTO t FROM people`)
	RowLocks        = New("no-row-locks", "42501", "%s is not permitted: the data behind this connection is read-only", "Leave the locking clause out.", `SELECT count(*) FROM people FOR UPDATE`)
	BoundPlace      = New("bound-place", "42501", `%s() stands only as a column of its own in the outermost SELECT`, "Write SELECT sex, count(*), dp.low(count(*)), dp.high(count(*)) FROM …: not within an expression, a sub-query or UNION, below DISTINCT, beside *, nor as what ORDER BY and GROUP BY name.", `SELECT count(*) FROM people ORDER BY dp.low(count(*))`)
	UnknownFunction = New("unknown-function", "42883", `function %s does not exist`, "No function of that name and these arguments is available; casts may help.", `SELECT count(*) FROM people WHERE frobnicate(age) > 3`)
	UnknownType     = New("unknown-type", "42704", `type "%s" does not exist`, "Use the types of the declared columns and their usual relatives.", `SELECT count(*) FROM people WHERE age::uint8 > 3`)
	BlankPadded     = New("blank-padded", "DP002", "a cast to char(n), whose values are padded with blanks, is not answered here", "x::varchar(2) and left(x, 2) cut a text without padding it.", `SELECT sex::char(2), count(*) FROM people GROUP BY 1`)
	UnknownParam    = New("unknown-parameter", "42P02", "there is no parameter $%d", "Bind a value to each parameter.", "")
	AggregateIn     = New("aggregate-misplaced", "42803", "aggregate functions are not allowed in %s", "Use HAVING for conditions on aggregates.", `SELECT count(*) FROM people WHERE count(*) > 3`)
	Construct       = New("construct-not-permitted", "DP002", "%s is not answered here", "Write the query with plain SELECTs, joins of their results, and the usual functions.", `SELECT XMLELEMENT(NAME a)`)
)

// OfConstants is the hint of what fails on its constants alone.
const OfConstants = "Constants alone cause this error, whatever the rows: correct them. Nothing was charged."
