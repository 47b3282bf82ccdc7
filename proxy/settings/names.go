package settings

import (
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// ofTransaction tells the modes of a transaction, which end with it however they are set.
func ofTransaction(name string) bool {
	return name == "transaction_isolation" || name == "transaction_read_only" || name == "transaction_deferrable"
}

// canonical finds the lower-case name of a variable that can be set, or says why it cannot be.
func canonical(name string) (string, *pgerror.Failure) {
	low := strings.ToLower(name)
	switch {
	case low == "timezone" || low == "time zone":
		return "timezone", nil
	case low == "names":
		return "client_encoding", nil
	case known[low] != nil:
		return low, nil
	case strings.HasPrefix(low, "dp."):
		return "", Unknown(low)
	case customName(low):
		return low, nil
	}
	return "", pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
}

// Unknown refuses a dp.* name that is no variable; readable are names that SHOW knows beside the variables.
func Unknown(name string, readable ...string) *pgerror.Failure {
	if laterVariables[name] {
		return pgerror.New("42704", fmt.Sprintf("parameter %q is not available yet", name))
	}
	f := pgerror.New("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
	for i := range dpVariables {
		readable = append(readable, dpVariables[i].name)
	}
	best, nearest := 4, ""
	for _, candidate := range readable {
		if d := editDistance(name, candidate); d < best {
			best, nearest = d, candidate
		}
	}
	if nearest != "" {
		return f.WithHint(fmt.Sprintf("Perhaps you meant %s.", nearest))
	}
	return f.WithHint("There are dp.epsilon, dp.delta, dp.max_error, dp.max_cost, dp.confidence, dp.error_columns, dp.alarms, dp.release, dp.offgrid, dp.probes and dp.dialect.")
}

// Shows reports whether SHOW of a name is answered, or refused, here: all but the dp.* names that are no variables.
func Shows(name string) bool {
	low := strings.ToLower(name)
	return !strings.HasPrefix(low, "dp.") || known[low] != nil || laterVariables[low]
}

// Spelled is a variable's name as PostgreSQL writes it over the column of SHOW.
func Spelled(name string) string {
	low, f := canonical(name)
	if f != nil {
		return strings.ToLower(name)
	}
	if v := known[low]; v != nil {
		return v.name
	}
	return low
}

func customName(name string) bool {
	prefix, rest, ok := strings.Cut(name, ".")
	if !ok || prefix == "" || rest == "" || len(name) > 128 {
		return false
	}
	for _, c := range name {
		if !(c == '_' || c == '.' || c == '$' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c > 127) {
			return false
		}
	}
	return true
}

// Resettable finds the lower-case name of a variable that can be reset, or says why it cannot be.
func Resettable(name string) (string, *pgerror.Failure) {
	name, f := canonical(name)
	if f != nil {
		return "", f
	}
	if v := known[name]; v != nil && v.fixed {
		return "", pgerror.New("55P02", fmt.Sprintf("parameter %q cannot be changed", v.name))
	}
	return name, nil
}

// editDistance counts the single-character changes between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			last, row[j] = row[j], min(row[j]+1, row[j-1]+1, last+cost)
		}
	}
	return row[len(b)]
}

// Written is the value of one SET as one text; names of schemas keep their bounds.
func Written(stmt parse.Statement) string {
	list := stmt.Values
	if stmt.Name == "search_path" || stmt.Name == "temp_tablespaces" {
		list = make([]string, len(stmt.Values))
		for i, v := range stmt.Values {
			list[i] = quoteName(v)
		}
	}
	value := strings.Join(list, ", ")
	if stmt.Name == "timezone" && strings.Contains(strings.ToLower(stmt.Text), "interval") {
		return scalar.IntervalPrefix + value + "'" // no zone's name has this word, so it is the type
	}
	return value
}

// quoteName quotes an identifier where it needs it.
func quoteName(s string) string {
	plain := s != ""
	for i, c := range s {
		if !(c == '_' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			plain = false
		}
	}
	if plain {
		return s
	}
	return dialect.QuoteName(s)
}
