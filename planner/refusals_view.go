package planner

import "github.com/dpproxy/dpproxy/planner/refuse"

// What is wrong with a SELECT that the data owner gave as a source. She is told when the policy is checked.
var (
	viewStatement = refuse.New("view-statement", "42601", "the source must be one SELECT", "Write a single SELECT, or the name of a table.", "")
	viewCircle    = refuse.New("view-circle", "42P19", "the source of table %s reads that table itself", "Read the tables below it.", "")
	viewRowsOnly  = refuse.New("view-rows", "DP002", "the source of table %s passes no rows on that belong to single units: it aggregates over all of them, or reads public tables alone", "Group by the unit's key, project and filter; or mark the table trusted: true, and see to it that each row depends on one unit.", "")
	viewColumn    = refuse.New("view-column", "42703", `the source of table %s shows no column "%s" that may be seen`, "Show it in the SELECT, or leave it out of the table's columns; a key is listed with keys: join.", "")
	viewType      = refuse.New("view-type", "42804", `column "%[2]s" of table %[1]s is declared as %[3]s, and its source makes it %[4]s`, "Declare that type, or cast in the SELECT.", "")
	viewKey       = refuse.New("view-key", "42703", `the source of table %s shows no join key "%s"`, "Show the key in the SELECT under that name.", "")
	viewName      = refuse.New("view-name", "42P01", `relation "%s" is not written in full`, "Write %[2]s: the database looks for no name in any schema by itself.", "")
	viewElsewhere = refuse.New("view-elsewhere", "42501", "the source reads the relation of table %s in dataset %s: two datasets over one relation would be two budgets over the same rows", "Read relations of one dataset.", "")
)
