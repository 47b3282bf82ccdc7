package linear

import "github.com/dpproxy/dpproxy/planner/refuse"

// What is too large to be measured, or cannot be.
var (
	TooManyCells = refuse.New("too-many-cells", "DP002", "the question needs %[1]s cells, more than %[2]d", "Group by fewer or coarser keys, or compare fewer columns with each other. Where the data owner sets large_products: threshold, GROUP BY of plain columns shows the combinations that enough units have.", `SELECT age, hired, income, count(*) FROM people GROUP BY 1, 2, 3`)
	unnamedTexts = refuse.New("unnamed-texts", "DP002", "%[1]s has no values that were declared, and its groups would be the texts of rows", "Say which there may be: WHERE %[1]s IN ('first', 'second') GROUP BY %[1]s, or group by conditions on it (LIKE).", `SELECT left(note, 2), count(*) FROM visits GROUP BY 1`)
	AnyRows      = refuse.New("any-rows", "DP002",
		"a %[1]s may have any number of rows in %[2]s: this is counted by rows, and the policy has no max_rows_per_unit "+
			"for the table",
		"Counts, sums and averages are answered, of what each %[1]s adds in all, without dp.max_error; so are "+
			"sub-queries with one row of each. For others the data owner declares max_rows_per_unit.", "")
	NoMechanism = refuse.New("no-mechanism", "DP002", "this question cannot be measured: %s", "Ask for fewer keys or filters in one statement.", "")
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{TooManyCells, unnamedTexts, AnyRows, NoMechanism}
