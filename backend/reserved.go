package backend

import (
	"math"

	"github.com/dpproxy/dpproxy/rewrite"
)

// maxReserved is the number of combinations of cells up to which the room is that of all.
const maxReserved = 1 << 20

// Reserved is how many bytes the result of a query's scan takes, whatever comes, as far as that is known before.
func Reserved(q rewrite.Query) (bytes int64) {
	for _, m := range q.Measures() {
		bytes += ReservedAlone(m)
	}
	return bytes
}

// ReservedAlone is Reserved of one measure, or 0 where that is not known before.
func ReservedAlone(q rewrite.Query) int64 {
	most := Combinations(q)
	if q.Keyed() || most > maxReserved {
		return 0
	}
	return int64(most) * int64(64+4*q.Grain()+8*q.Counters()) * 9 / 8
}

// Combinations is how many rows a query may have.
func Combinations(q rewrite.Query) int {
	most := 1
	for i := range q.Grain() {
		if size := q.Size(i); most > math.MaxInt/size {
			most = math.MaxInt
		} else {
			most *= size
		}
	}
	return most
}
