package planner

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// rents are what she has paid for counts on a table that a release over some columns would have answered.
type rents struct {
	columns []*policy.Column
	paid    privacy.Cost // since the last release over the same columns
	count   int
	last    privacy.Cost // of that release
}

// cube is the kind of a release over several columns that was bought by the rule.
const cube = "cube"

// isRent tells whether a measure was bought for one question.
func (m *heldMeasure) isRent() bool {
	return !m.shared && (m.kind == "count" || m.kind == "histogram")
}
