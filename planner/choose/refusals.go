package choose

import "github.com/dpproxy/dpproxy/planner/refuse"

// What cannot be had within what a statement may cost, or may be off.
var (
	epsilonSmall = refuse.New("epsilon-too-small", "22023", "dp.epsilon = %s is too small for the %d measurements of this statement", "SET dp.epsilon to more, or ask for fewer aggregates at once.", "")
	unknownError = refuse.New("error-untold", "DP002", "how far %s will be off depends on the data, so dp.max_error cannot be kept for it", "Ask for the counts and sums that it is made of, or SET dp.max_error = off.", `SET dp.max_error = 50; SELECT avg(age) FROM people`)
	errorKeys    = refuse.New("error-keys", "DP002", `the keys of column "%s" are not known yet: what counting them costs at dp.max_error cannot be told`, "Find them first: SET dp.max_error = off, GROUP BY the column once, then set it again.", "")
	errorDear    = refuse.New("error-too-dear", "DP002", "an error of at most %s would cost %s, more than the %s that dp.epsilon lets a statement cost", "SET dp.epsilon or dp.max_error to more.", `SET dp.max_error = 5; SELECT count(*) FROM people`)
	distinctKeys = refuse.New("distinct-units-by-rows", "DP002", "different %[1]ss are not counted by a key over several columns at once", "Group by single columns, or by expressions over one column each. Or take the columns in a sub-query, and count its rows, one for each %[1]s and values: SELECT a - b, count(*) FROM (SELECT DISTINCT key, a, b FROM …) t GROUP BY 1.", "")
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{epsilonSmall, unknownError, errorKeys, errorDear, distinctKeys}
