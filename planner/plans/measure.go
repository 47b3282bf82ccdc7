package plans

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// DescribedVersion is the first byte of a description of a measure.
const DescribedVersion = 1

// Describe is the planner's description of the measure, from which a later plan reads it again.
func (m *Measure) Describe() []byte {
	b := []byte{DescribedVersion, 0}
	if m.Shared {
		b[1] = 1
	}
	b = predicate.EncodeText(predicate.EncodeText(b, m.Kind), m.Name)
	return append(b, m.Described...)
}

// ColumnIndex is the place of a column in its table; −1: it is of another.
func ColumnIndex(t *policy.Table, c *policy.Column) int { return slices.Index(t.Columns, c) }

// ColumnNames lists columns for people.
func ColumnNames(columns []*policy.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// MaxCells bounds the cells of a question and the combinations of cells that a plan evaluates expressions on.
var MaxCells = policy.MaxCells // tests set it

// JoinSpans are the spans of several cells together.
func JoinSpans(list [][]mechanisms.Span) []mechanisms.Span {
	if len(list) == 1 {
		return list[0]
	}
	var all []mechanisms.Span
	for _, spans := range list {
		all = append(all, spans...)
	}
	return predicate.Unite(all, nil)
}
