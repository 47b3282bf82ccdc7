package semantics

import (
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// The text of a key, by which groups are found: 1.0 and 1.00 have one.

// KeyText is the text of several keys together, one for all lists of equal values.
func KeyText(values []policy.Value) string {
	if len(values) == 1 {
		if values[0] == nil {
			return "n"
		}
		return "=" + keyText(values[0])
	}
	var b strings.Builder
	for _, v := range values {
		text := "n"
		if v != nil {
			text = "=" + keyText(v)
		}
		b.Write(predicate.EncodeText(nil, text))
	}
	return b.String()
}

// keyText is the text of a key: equal values have one, 1.0 and 1.00, −0 and 0, a day and 24 hours among them.
func keyText(v policy.Value) string {
	switch v := v.(type) {
	case float64:
		return predicate.Text(v + 0) // −0 + 0 is 0
	case policy.Interval:
		days, rest := int64(v.Months)*30+int64(v.Days)+v.Micros/dayMicros, v.Micros%dayMicros
		if rest < 0 {
			days, rest = days-1, rest+dayMicros
		}
		return "i" + strconv.FormatInt(days, 10) + "/" + strconv.FormatInt(rest, 10)
	}
	return predicate.Text(predicate.CanonicalValue(v))
}
