package mechanisms

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// maxRows keeps the exact arithmetic of sensitivities short, maxMagnitude that of sums.
const (
	maxRows      = 1 << 22
	maxMagnitude = 1 << 40
)

// checkContribution refuses bounds that no unit can have or that contradict each other.
func checkContribution(c Contribution) error {
	switch {
	case c.Rows < 1 || c.Rows > maxRows:
		return fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, maxRows)
	case c.Groups < 0 || c.Groups > c.Rows:
		return fmt.Errorf("groups of a unit is %d, must be from 0 (not bounded) to its %d rows", c.Groups, c.Rows)
	case c.PerGroup < 0 || c.PerGroup > c.Rows:
		return fmt.Errorf("rows of a unit in one group is %d, must be from 0 (not bounded) to its %d rows", c.PerGroup, c.Rows)
	case c.Groups > 0 && c.PerGroup > 0 && c.Groups*c.PerGroup < c.Rows:
		return fmt.Errorf("rows of a unit is %d, must be at most the %d of %d groups with %d rows each", c.Rows, c.Groups*c.PerGroup, c.Groups, c.PerGroup)
	case c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne:
		return fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	return nil
}

// check refuses a bound that a row cannot have, and one that makes every sum 0.
func (b Bound) check() error {
	switch {
	case b.Low > b.High:
		return fmt.Errorf("bound of a sum is from %d to %d, must not be empty", b.Low, b.High)
	case b.Low < -maxMagnitude || b.High > maxMagnitude:
		return fmt.Errorf("bound of a sum is from %d to %d, must be within ±%d", b.Low, b.High, int64(maxMagnitude))
	case b.Low == 0 && b.High == 0:
		return fmt.Errorf("bound of a sum is from 0 to 0, must hold another number")
	}
	return nil
}

// extremes returns how far the bound reaches from 0 to its farther and to its nearer side.
func (b Bound) extremes() (large, small int64) {
	up, down := max(b.High, 0), -min(b.Low, 0)
	return max(up, down), min(up, down)
}

// signed reports whether a sum can be below 0.
func (b Bound) signed() bool { return b.Low < 0 }
