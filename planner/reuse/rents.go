package reuse

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// Rents are what she has paid for counts on a table that a release over some columns would have answered.
type Rents struct {
	Columns []*policy.Column
	Paid    privacy.Cost // since the last release over the same columns
	Count   int
	Last    privacy.Cost // of that release
}

// Cube is the kind of a release over several columns that was bought by the rule.
const Cube = "cube"

// isRent reports whether a measure was bought for one question.
func (m *HeldMeasure) isRent() bool {
	return !m.Shared && (m.Kind == "count" || m.Kind == "histogram")
}
