package pipeline

import (
	"strings"
	"testing"
)

// TestLongListsAreShortened: EXPLAIN shows lists of many numbers by their first ones, with how many there are; others,
// and all else, as they are sent.
func TestLongListsAreShortened(t *testing.T) {
	numbers := func(n int, sep string) string { return strings.TrimSuffix(strings.Repeat("17"+sep, n), sep) }
	for text, want := range map[string]string{
		"unnest(CAST('[" + numbers(80_000, ",") + "]' AS INTEGER[])) AS c":         "unnest(CAST('[17,17,17,17,17,17,17,17, … 80000 numbers]' AS INTEGER[])) AS c",
		"{" + strings.Repeat("NULL,-3,", 5_000) + "9}":                             "{NULL,-3,NULL,-3,NULL,-3,NULL,-3, … 10001 numbers}",
		"n1 IN (" + numbers(300, ", ") + ") AND n2 IN (" + numbers(63, ", ") + ")": "n1 IN (17, 17, 17, 17, 17, 17, 17, 17, … 300 numbers) AND n2 IN (" + numbers(63, ", ") + ")",
		"get_bit(CAST('" + strings.Repeat("10", 40_000) + "' AS BIT), 3)":          "get_bit(CAST('10101010… 80000 bits' AS BIT), 3)",
		"CASE n WHEN 1 THEN 10000000000000000000000000000000000000000 END":         "CASE n WHEN 1 THEN 10000000000000000000000000000000000000000 END",
	} {
		if got := shortened(text); got != want {
			t.Errorf("%.80s: %.200s, want %s", text, got, want)
		}
	}
}
