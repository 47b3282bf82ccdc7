package embedded

import (
	"database/sql/driver"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Functions over lists of texts: array_to_string, the text form of arrays, and the ends of intervals, which DuckDB orders
// otherwise: to it a month less 30 days is not no time at all.

// join is array_to_string: the separator, what stands for NULL or NULL to leave it out, and the elements' texts.
func join(args []driver.Value) (any, error) {
	separator, separated := args[0].(string)
	missing, shown := args[1].(string)
	list, given := args[2].([]any)
	if !separated || !given {
		return nil, nil
	}
	var parts []string
	for _, one := range list {
		text, ok := one.(string)
		switch {
		case ok:
			parts = append(parts, text)
		case shown:
			parts = append(parts, missing)
		}
	}
	return strings.Join(parts, separator), nil
}

// arrayText is the text form of an array: of a, NULL and "b c" {a,NULL,"b c"}.
func arrayText(args []driver.Value) (any, error) {
	list, given := args[0].([]any)
	if !given {
		return nil, nil
	}
	parts := make([]string, len(list))
	for i, one := range list {
		text, ok := one.(string)
		switch {
		case !ok:
			parts[i] = "NULL"
		case text == "" || strings.EqualFold(text, "null") || strings.ContainsAny(text, "{}\",\\ \t\n\r\v\f"):
			parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		default:
			parts[i] = text
		}
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

// intervalEnd finds the least (side −1) or largest (side 1) of intervals; of equal ones the last as min and max do, or the
// first as LEAST and GREATEST do.
func intervalEnd(side int, last bool) func([]driver.Value) (any, error) {
	return func(args []driver.Value) (any, error) {
		list, _ := args[0].([]any)
		var best policy.Value
		for _, one := range list {
			v, err := argument(policy.IntervalT, one)
			if err != nil {
				return nil, err
			}
			if v == nil {
				continue
			}
			if best == nil {
				best = v
			} else if c := scalar.Compare(policy.IntervalT, v, best) * side; c > 0 || c == 0 && last {
				best = v
			}
		}
		return returned(best)
	}
}
