package aggregate

import "github.com/dpproxy/dpproxy/planner/refuse"

// What cannot be asked of private rows, or not in this form. What no rows can be made for is package bind's to refuse.
var (
	noList     = refuse.New("list-of-rows", "DP002", "%s over private rows has no private form: it would list their values one by one", "Group by the column and count. Above that, %[1]s is plain SQL over the keys whose counts are clearly above their error.", `SELECT array_agg(sex) FROM people`)
	noAnyValue = refuse.New("any-value-of-rows", "DP002", "%s over private rows has no private form: it would show the value of one row", "Ask for the value that most rows have: mode() WITHIN GROUP (ORDER BY …).", `SELECT any_value(sex) FROM people`)
	notRanked  = refuse.New("quantile-type", "DP002", "%s of values of type %s over private rows is not answered", "Quantiles are of numbers, dates, times and what lies between two of them. For other columns ask for mode() WITHIN GROUP (ORDER BY …), or GROUP BY the column.", `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY sex) FROM people`)
	notShare   = refuse.New("quantile-share", "DP002", "the quantile must be a constant with at most six decimals", "Write a number from 0 to 1, such as 0.5, or an array of such numbers.", `SELECT percentile_cont(sex) WITHIN GROUP (ORDER BY age) FROM people`)
	shareRange = refuse.New("quantile-range", "22003", "percentile value %s is not between 0 and 1", "The median is 0.5.", `SELECT percentile_cont(50) WITHIN GROUP (ORDER BY age) FROM people`)
	noExtremes = refuse.New("extremes-not-permitted", "42501", "%s is not permitted for column %s: the policy does not declare extremes for it", "Ask for a quantile with rows beyond it: percentile_disc(0.01) WITHIN GROUP (ORDER BY %[2]s) for min, 0.99 for max.", `SELECT max(income) FROM people`)
	noDistinct = refuse.New("distinct-aggregate", "DP002", "%s(DISTINCT …) over private rows is not answered", "Leave DISTINCT out. count, sum, avg, variance and stddev (DISTINCT x) are answered.", `SELECT corr(DISTINCT age, kids) FROM people`)
	notColumns = refuse.New("pair-of-expressions", "DP002", "%s over private rows takes two columns",
		"Leave out factors above 0 and constants that are added: corr is the same without them. Of expressions "+
			"that are never NULL, covar_pop(y, x) is avg(y * x) - avg(y) * avg(x), and regr_slope(y, x) is that "+
			"divided by var_pop(x).", `SELECT corr(CASE WHEN active THEN 1 ELSE 0 END, age) FROM people`)
	distinctRow        = refuse.New("distinct-key-row", "DP002", "different rows with join key \"%s\" among their columns are not counted", "Count them in a sub-query: SELECT count(*) FROM (SELECT DISTINCT key, column FROM …) t.", `SELECT count(DISTINCT (person_id, sex)) FROM people`)
	manySets           = refuse.New("too-many-grouping-sets", "54000", "the statement has more than %d grouping sets", "Ask for fewer keys in CUBE, or list the sets that you need in GROUPING SETS.", `SELECT count(*) FROM people GROUP BY CUBE (sex, age, kids, active, income, hired, seen)`)
	notGrouped         = refuse.New("grouping-arguments", "42803", "arguments to GROUPING must be grouping expressions of the associated query level", "Write expressions of GROUP BY.", `SELECT sex, grouping(age), count(*) FROM people GROUP BY ROLLUP (sex)`)
	candidateKeys      = refuse.New("candidate-keys", "DP002", `GROUP BY does not tell the rows of "%[1]s" apart: a private row would count several times in one group`, `Group by columns of "%[1]s" that differ between all its rows, or take its rows DISTINCT in a sub-query. Where its key is unique, equate it with an expression over the private rows.`, `SELECT count(*) FROM people, LATERAL (VALUES (age), (kids)) v(n) WHERE v.n > 3`)
	candidateAggregate = refuse.New("candidate-aggregate", "DP002", "this aggregate of private rows that meet a public list is not answered", "count(*), count(x), and sums and averages of private columns are; under min_frequency only where a unit has one row.", `SELECT v.n, percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people, LATERAL (VALUES ('a', active), ('b', age > 40)) v(n, yes) WHERE yes GROUP BY v.n`)
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{
	noList, noAnyValue, notRanked, notShare, shareRange, noExtremes, noDistinct, notColumns, distinctRow,
	manySets, notGrouped, candidateKeys, candidateAggregate,
}
