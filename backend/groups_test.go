package backend

import (
	"testing"
	"unsafe"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestResultsTakeTheirRoom: what a result takes in memory, which runs short for everybody, is the same whatever rows come, and
// is what was reserved for it.
func TestResultsTakeTheirRoom(t *testing.T) {
	t.Parallel()
	h := duckHouse(t)
	q := render(t, measure(t, h.policy, "visits", "clinic", "minutes"), h)
	size := func(rows int) int64 {
		c := newCollector(q)
		for n, at := 0, make([]int32, q.Grain()); n < rows; n++ {
			counts := make([]int64, q.Counters())
			if err := c.add(at, counts); err != nil {
				t.Fatalf("row %d: %v", n, err)
			}
			for i := len(at) - 1; i >= 0; i-- {
				if at[i]++; int(at[i]) < q.Size(i) {
					break
				}
				at[i] = 0
			}
		}
		if len(c.seen) > 0 {
			t.Error("what has come is kept by its size")
		}
		return int64(cap(c.groups))*int64(unsafe.Sizeof(privacy.Group{})) + int64(cap(c.cells))*4 + int64(cap(c.counts))*8 + int64(cap(c.bits))*8
	}
	none, most := size(0), combinations(q)
	for _, rows := range []int{1, 2, most / 2, most} {
		if got := size(rows); got != none {
			t.Errorf("%d rows take %d bytes, none %d", rows, got, none)
		}
	}
	if reserved := Reserved(q); none > reserved || reserved > 2*none {
		t.Errorf("%d bytes are reserved of %d", reserved, none)
	}
}
