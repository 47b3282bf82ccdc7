package planner

import "github.com/dpproxy/dpproxy/planner/refuse"

// What online releases and made-up rows refuse.
var (
	sessionStopped = refuse.New("online-release-stopped", "DP001", "online release %[1]s has stopped: its %[2]d updates are used up, or no hypothesis agrees with what they told", "What it has told stays free, and so do its made-up rows: SELECT * FROM %[3]s LIMIT 100. The data owner may let such questions be counted afresh (stopped: count), or declare a new release.", "")
	unpaidRows     = refuse.New("unpaid-made-up-rows", "42501", "rows of private table %[1]s cannot be read, and you have not paid for the made-up rows of release %[2]s", "A preview never buys: SET dp.epsilon = %[3]s, then SELECT count(*) FROM dp.%[2]s buys them, and rows of %[1]s are shown from then on. Or ask for aggregates: SELECT count(*) FROM %[1]s.", "")
	unopenedRows   = refuse.New("unopened-online-release", "42501", "you have not opened online release %[1]s, whose hypothesis would tell these rows", "A count by %[2]s opens it, where dp.epsilon is as much as it costs: SELECT * FROM dp.releases.", "")
	notMadeUp      = refuse.New("column-not-made-up", "DP002", `column "%[1]s" is not in release %[2]s, whose made-up rows stand for the private ones`, "Compare and compute with %[3]s; other columns are shown as NULL.", "")
)
