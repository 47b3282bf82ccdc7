package outerquery

import "github.com/dpproxy/dpproxy/planner/refuse"

// What is refused above the questions: rows as they are, and made-up rows that are not paid for.
var (
	UnpaidRows   = refuse.New("unpaid-made-up-rows", "42501", "the made-up rows of %[1]s are not there before you have paid for release %[2]s", "Rows alone never buy: SET dp.epsilon = %[3]s, then SELECT count(*) FROM dp.%[2]s buys them. Or ask for aggregates: SELECT count(*) FROM %[1]s.", "")
	unopenedRows = refuse.New("unopened-online-release", "42501", "you have not opened online release %[1]s, whose hypothesis makes these rows up", "A count by %[2]s opens it, with SET dp.release = on where the policy does not insist on it, and dp.epsilon as much as it costs: SELECT * FROM dp.releases.", "")
	rawRows      = refuse.New("raw-rows", "42501", "rows of private table %s cannot be read", "Ask for aggregates: SELECT count(*) FROM %[1]s, with WHERE or GROUP BY.", `SELECT * FROM people LIMIT 100`)
	seriesLong   = refuse.New("series-rows", "54000", "generate_series would make about %s rows, it may make %d", "Take coarser steps, or a shorter range: all rows are made before any is used, so LIMIT does not help.", `SELECT count(*) FROM generate_series(1, 1000000000000)`)
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{UnpaidRows, unopenedRows, rawRows, seriesLong}
