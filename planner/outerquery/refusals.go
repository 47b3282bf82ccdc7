package outerquery

import "github.com/dpproxy/dpproxy/planner/refuse"

// What is refused above the questions: rows as they are, and the made-up rows that stand for them.
var (
	UnpaidRows   = refuse.New("unpaid-made-up-rows", "42501", "rows of private table %[1]s cannot be read, and you have not paid for the made-up rows of release %[2]s", "A preview never buys: SET dp.epsilon = %[3]s, then SELECT count(*) FROM dp.%[2]s buys them, and rows of %[1]s are shown from then on. Or ask for aggregates: SELECT count(*) FROM %[1]s.", "")
	unopenedRows = refuse.New("unopened-online-release", "42501", "you have not opened online release %[1]s, whose hypothesis would tell these rows", "A count by %[2]s opens it, where dp.epsilon is as much as it costs: SELECT * FROM dp.releases.", "")
	notSynthetic = refuse.New("column-not-made-up", "DP002", `column "%[1]s" is not in release %[2]s, whose made-up rows stand for the private ones`, "Compare and compute with %[3]s; other columns are shown as NULL.", "")
	rawRows      = refuse.New("raw-rows", "42501", "rows of private table %s cannot be read", "Ask for aggregates: SELECT count(*) FROM %[1]s, with WHERE or GROUP BY.", `SELECT * FROM people LIMIT 100`)
	seriesLong   = refuse.New("series-rows", "54000", "generate_series would make about %s rows, it may make %d", "Take coarser steps, or a shorter range: all rows are made before any is used, so LIMIT does not help.", `SELECT count(*) FROM generate_series(1, 1000000000000)`)
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{UnpaidRows, unopenedRows, notSynthetic, rawRows, seriesLong}
