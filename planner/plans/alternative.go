package plans

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Alternative is a way to answer a leaf that was weighed, for EXPLAIN (ALTERNATIVES).
type Alternative struct {
	Leaf  string
	Path  string // the access path: the source that it comes from
	Kind  string
	Name  string
	Held  bool
	Cost  privacy.Cost
	Error mechanisms.Error // the largest over the rows; of choices Rank instead
	Rank  float64          // how many rows a choice is off at most
	Taken bool
	Why   string // why it is taken, or why not
}
