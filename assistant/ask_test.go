package assistant

import (
	"math/big"
	"testing"
)

// TestShown: a number has the digits that its interval leaves.
func TestShown(t *testing.T) {
	for _, c := range [][4]string{
		{"26270.453859511999", "26243.6", "26297.3", "26270 ± 27"},
		{"30190.514804003336", "28357.824594651506", "32007.082340862423", "30200 ± 1800"},
		{"6331", "6231", "6431", "6330 ± 100"},
		{"0.0514", "0.0501", "0.0527", "0.0514 ± 0.0013"},
		{"-12.3", "-15", "-9", "-12.3 ± 3.3"},
		{"5", "5", "5", "5"},
		{"1234567890123456789", "1234567890123456780", "1234567890123456798", "1234567890123456789.0 ± 9.0"},
		{"2025-01-02", "2025-01-01", "2025-01-03", ""},
		{"NaN", "0", "1", ""},
		{"1/3", "0", "1", ""},
	} {
		if got := shown(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s from %s to %s is shown as %q, not %q", c[0], c[1], c[2], got, c[3])
		}
	}
}

// TestReserve: questions side by side keep a session's limit together, and what was not charged comes back.
func TestReserve(t *testing.T) {
	a := Assistant{Limit: big.NewRat(1, 2)}
	one, settleOne := a.reserve(big.NewRat(3, 10))
	two, settleTwo := a.reserve(big.NewRat(3, 10))
	if decimal(one) != "0.3" || decimal(two) != "0.2" || a.left() != "0" {
		t.Errorf("reserved %s and %s, left %s", decimal(one), decimal(two), a.left())
	}
	settleOne(big.NewRat(1, 10))
	settleTwo(new(big.Rat))
	if a.left() != "0.4" {
		t.Errorf("left %s, not 0.4", a.left())
	}
}
