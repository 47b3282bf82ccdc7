package derived

import (
	"slices"

	"github.com/dpproxy/dpproxy/policy"
)

// NullableUnit reports whether rows of a table may name no unit: then each is a unit of its own.
func NullableUnit(t *policy.Table) bool {
	if from := Widened(t); from != nil {
		return NullableUnit(from)
	}
	switch d := t.Derived.(type) {
	case *Paired:
		return d.Outer && NullableUnit(d.Left)
	case *Marked:
		return NullableUnit(d.From)
	case *Matched:
		return NullableUnit(d.From)
	case *United:
		return slices.ContainsFunc(d.Inputs(), NullableUnit)
	case nil:
		return t.NullEach
	}
	return false
}
