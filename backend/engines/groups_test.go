package engines

import (
	"testing"
	"unsafe"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestResultsTakeTheirRoom: what a result takes in memory, which runs short for everybody, is the same whatever rows
// come, and is what was reserved for it.
func TestResultsTakeTheirRoom(t *testing.T) {
	t.Parallel()
	h := backendtest.DuckHouse(t)
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic", "minutes"), h)
	size := func(rows int) int64 {
		c := execute.NewCollector(q)
		for n, at := 0, make([]int32, q.Grain()); n < rows; n++ {
			counts := make([]int64, q.Counters())
			if err := c.Add(at, counts); err != nil {
				t.Fatalf("row %d: %v", n, err)
			}
			for i := len(at) - 1; i >= 0; i-- {
				if at[i]++; int(at[i]) < q.Size(i) {
					break
				}
				at[i] = 0
			}
		}
		if len(c.Seen) > 0 {
			t.Error("what has come is kept by its size")
		}
		return int64(cap(c.Groups))*int64(unsafe.Sizeof(privacy.Group{})) + int64(cap(c.Cells))*4 + int64(cap(c.Counts))*8 + int64(cap(c.Bits))*8
	}
	none, most := size(0), backend.Combinations(q)
	for _, rows := range []int{1, 2, most / 2, most} {
		if got := size(rows); got != none {
			t.Errorf("%d rows take %d bytes, none %d", rows, got, none)
		}
	}
	if reserved := backend.Reserved(q); none > reserved || reserved > 2*none {
		t.Errorf("%d bytes are reserved of %d", reserved, none)
	}
}
