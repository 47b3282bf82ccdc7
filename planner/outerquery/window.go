package outerquery

import (
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The types of window functions: in SELECT ward, count(*), rank() OVER (ORDER BY count(*) DESC) FROM visits GROUP BY
// ward the third column is a bigint that depends on the counts, the second a count as it is.

// Shown says which output columns are counts of one leaf as they are.
type Shown struct {
	Leaf   int
	Counts []int // by output column: the leaf's count column, or −1
	Linear []*Linear
}

// windowTypes are the types of window functions that do not depend on their arguments.
var windowTypes = map[string]policy.Type{
	"count": policy.Int8, "row_number": policy.Int8, "rank": policy.Int8, "dense_rank": policy.Int8, "ntile": policy.Int4,
	"percent_rank": policy.Float8, "cume_dist": policy.Float8,
}

func windowResult(name string, arg policy.Type) policy.Type {
	switch name {
	case "min", "max", "first_value", "last_value", "nth_value", "lag", "lead":
		return arg
	case "sum":
		if arg == policy.IntervalT {
			return arg
		}
		return semantics.AggregateType(name, arg)
	case "bool_and", "bool_or", "every":
		return policy.Bool
	case "string_agg":
		return policy.Text
	case "avg", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp":
		return semantics.AggregateType(name, arg)
	}
	return 0
}
