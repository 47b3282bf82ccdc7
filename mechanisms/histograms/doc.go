// Package histograms releases histograms whose strategy depends on the data, privately. Dawa, for few rows over many
// ordered cells, first chooses a partition of the cells into even buckets, then observes the buckets. The package knows
// neither SQL nor users.
//
// An example: `{kind: synthetic, columns: [income], mechanism: dawa, epsilon: 0.5}` over 201 cells. An eighth is paid
// for where the buckets end, say at 12, 40 and 201; three eighths for noisy counts of the three; the rows that are made
// up are as many in each cell of a bucket.
package histograms

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const maxRows = 1 << 22

// bounds is a checked contribution: a unit has at most so many rows; under replace-one they go and others come.
type bounds struct {
	rows       int64
	replaceOne bool
}

// boundsOf checks a contribution. A unit's rows may be in one bucket however many cells they are in, so only their
// number counts.
func boundsOf(c privacy.Contribution) (bounds, error) {
	b := bounds{rows: c.Rows, replaceOne: c.Neighbors == privacy.ReplaceOne}
	if c.Rows < 1 || c.Rows > maxRows {
		return b, fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, maxRows)
	}
	if c.Groups < 0 || c.PerGroup < 0 {
		return b, fmt.Errorf("groups of a unit is %d with %d rows each, must not be negative", c.Groups, c.PerGroup)
	}
	if c.Groups > 0 && c.PerGroup > 0 && c.Groups <= maxRows && c.PerGroup <= maxRows {
		b.rows = min(b.rows, c.Groups*c.PerGroup)
	}
	if c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne {
		return b, fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	return b, nil
}

// times is 2 under replace-one, where a unit's rows leave one place and come to another, else 1.
func (b bounds) times() int64 {
	if b.replaceOne {
		return 2
	}
	return 1
}
