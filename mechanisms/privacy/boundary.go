package privacy

import "github.com/dpproxy/dpproxy/mechanisms/internal/sealed"

// Sensitive is a value computed from private rows. Only package mechanisms opens it, inside Release.
type Sensitive[T any] = sealed.Sensitive[T]

// Released is a value that may be shown to the analyst who paid for it.
type Released[T any] = sealed.Released[T]

// Seal hides a value computed from private rows.
func Seal[T any](v T) Sensitive[T] { return sealed.Seal(v) }

// Published marks v as never having been private: it comes from the policy, the ledger's public part, a public
// table or the text of the query alone. A test lists its callers.
func Published[T any](v T) Released[T] { return sealed.Release(v) }

// PostProcess applies f to a released value. Differential privacy is closed under it, provided that f looks at
// nothing private: f must close over public values alone.
func PostProcess[A, B any](r Released[A], f func(A) B) Released[B] {
	return sealed.Release(f(r.Value()))
}

// Group is one row of a measure's SQL: the cell of each grain column and, per counter, the number of (bounded)
// rows in that combination of cells. Combinations without rows may be absent. A combination occurs at most once.
type Group struct {
	Cells  []int32
	Counts []int64
	Key    string // of a discovery: NullKey, or "=" and the key's text; its count is that of the units that have it
}

// NullKey is the key of the rows without one.
const NullKey = "n"
