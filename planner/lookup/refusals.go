package lookup

import (
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// What public rows are too many for, or missing.
var (
	FanOut          = refuse.New("public-join-fan-out", "DP002", "private rows match too many rows of public table %[1]s: one row more than %[2]d, or all together more than %[3]d, or one unit's rows become more than %[4]d", "Join by a narrower condition, or group the public table's rows in the database first.", "")
	NotCopied       = refuse.New("public-table-not-copied", "DP002", "public table %s has not been copied yet", "Try again later.", "")
	PreservedPublic = refuse.New("public-outer-join", "DP002", "rows of the public table that match no row of %s would be counted here, and that they match none is private", "Count a column of the private side, such as count(its key), which leaves them out, or join without keeping them: groups are shown with zero counts anyway.", `SELECT r.code, count(*) FROM regions r LEFT JOIN people p ON p.sex = r.code GROUP BY 1`)
)

func fansOut(pos int, t *policy.Table) *refuse.Refusal {
	return FanOut.At(pos, t.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows)
}
