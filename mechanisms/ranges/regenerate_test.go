package ranges

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
)

// How the strategies in the directory were found and written: what TestRegenerateStrategies does.

// newTemplate returns the search space of so many free rows. It is symmetric where it can be.
func newTemplate(workload Workload, cells, rows int) *template {
	diagonal := make([]float64, cells)
	for j := range diagonal {
		if diagonal[j] = float64(cells - j); workload == AllRanges {
			diagonal[j] *= float64(j + 1)
		}
	}
	if workload == AllPrefixes {
		return templateOf(cells, rows, newSubspace(rows, diagonal, gramPrefixes))
	}
	if cells%2 == 1 {
		return templateOf(cells, rows, newSubspace(rows, diagonal, gramRanges))
	}
	even, odd := make([]float64, cells/2), make([]float64, cells/2)
	for j := range even {
		across := float64(j+1) * float64(j+1) // G of a cell and its mirror image
		even[j], odd[j] = diagonal[j]+across, diagonal[j]-across
	}
	return templateOf(cells, rows, newSubspace(rows, even, gramEven), newSubspace(rows, odd, gramOdd))
}

// gramEven and gramOdd are gramRanges on the even and odd vectors over 2·len(v) cells.
func gramEven(dst, v []float64) { gramEnds(dst, v, float64(2*len(v)+1), 0) }
func gramOdd(dst, v []float64)  { gramEnds(dst, v, float64(2*len(v)+1), 2) }

// starts returns the parameters for each layout.
func starts(workload Workload, cells int, layouts []layout) [][]float64 {
	found := make([][]float64, len(layouts))
	for i, l := range layouts {
		found[i], _ = l.start(cells, workload == AllRanges && cells%2 == 0)
	}
	return found
}

// optimiseIdentity returns the free rows of the best p-identity strategy found for a workload, and the objective before
// rounding: the starts are tried with few moves, the best of them with many. It changes the starts.
func optimiseIdentity(workload Workload, cells int, starts [][]float64, tries, moves int) (rows []band, value float64) {
	var best *template
	var at []float64
	for _, x := range starts {
		t, reached := newTemplate(workload, cells, len(x)/cells), 0.0
		if len(starts) > 1 {
			reached = t.minimise(x, tries)
		}
		if best == nil || reached < value {
			best, at, value = t, x, reached
		}
	}
	value = best.minimise(at, moves)
	return best.integers(at), value
}

// integers returns the rows of T for the parameters x: Θ·diag(1/u) times pIdentityScale, rounded down, the very small
// ones to 0.
func (t *template) integers(x []float64) []band {
	const least = 8
	t.theta(x)
	rows := make([]band, 0, t.rows)
	for i := range t.rows {
		row := make([]int64, t.cells)
		for j := range row {
			u := t.u[j%t.width]
			if j >= t.width { // symmetric
				u = t.u[t.cells-1-j]
			}
			if row[j] = int64(x[i*t.cells+j] / u * pIdentityScale); row[j] < least {
				row[j] = 0
			}
		}
		if b := bandOf(row); len(b.weights) > 0 {
			rows = append(rows, b)
		}
	}
	return rows
}

// encodeRows writes rows as decodeRows reads them.
func encodeRows(rows []band, symmetric bool) []byte {
	b := binary.AppendUvarint(nil, uint64(len(rows)))
	mirrored := byte(0)
	if symmetric {
		mirrored = 1
	}
	b = append(b, mirrored)
	for _, r := range rows {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.from)), uint64(len(r.weights)))
		last, difference := int64(0), int64(0)
		for _, w := range r.weights {
			b = binary.AppendVarint(b, w-last-difference)
			last, difference = w, w-last
		}
	}
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = z.Write(b) // to memory
	_ = z.Close()
	return out.Bytes()
}
