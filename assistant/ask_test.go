package assistant

import (
	"math/big"
	"testing"
)

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
