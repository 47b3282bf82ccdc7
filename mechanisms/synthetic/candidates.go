package synthetic

import (
	"math"
)

// multisets returns C(cells+m−1, m), or more than any limit.
func multisets(cells, m int64) int64 {
	count := int64(1)
	for i := int64(1); i <= m; i++ {
		if count > math.MaxInt64/(cells+i) {
			return math.MaxInt64
		}
		count = count * (cells + i - 1) / i
	}
	return count
}

// each visits every candidate with its worst error max_q |m·q(D) − N·q(y)|.
func (s Small) each(answers []int64, visit func(i, worst int64)) {
	scaled := make([]int64, len(answers))
	for i, a := range answers {
		scaled[i] = s.rows * a // below 2^12·2^50
	}
	w := walk{small: s, visit: visit, adds: make([][]int64, s.queries.cells), levels: make([][]int64, s.rows+1)}
	unit := make([]int64, s.queries.cells)
	for c := range w.adds {
		unit[c] = 1
		w.adds[c] = s.queries.truth(unit)
		unit[c] = 0
		for j := range w.adds[c] {
			w.adds[c][j] *= s.total
		}
	}
	w.levels[0] = scaled
	for i := range w.levels[1:] {
		w.levels[i+1] = make([]int64, len(scaled))
	}
	w.from(0, 0)
}

// walk lists multisets as falling-free sequences of cells, each level holding what the rows chosen so far leave of the
// scaled answers.
type walk struct {
	small  Small
	visit  func(i, worst int64)
	adds   [][]int64 // a cell: N for each query that counts it
	levels [][]int64
	next   int64
}

// from chooses the row at a depth among the cells from first on.
func (w *walk) from(depth, first int) {
	rest := w.levels[depth]
	last := depth == int(w.small.rows)-1
	for c := first; c < w.small.queries.cells; c++ {
		add := w.adds[c][:len(rest)]
		if last {
			worst := int64(0)
			for j, r := range rest {
				r -= add[j]
				worst = max(worst, r, -r)
			}
			w.visit(w.next, worst)
			w.next++
			continue
		}
		deeper := w.levels[depth+1][:len(rest)]
		for j, r := range rest {
			deeper[j] = r - add[j]
		}
		w.from(depth+1, c)
	}
}

// candidate returns the candidate of a number: rows a cell.
func (s Small) candidate(number int64) []int64 {
	y := make([]int64, s.queries.cells)
	c := int64(0)
	for left := s.rows; left > 0; left-- {
		// Sequences that go on with cell c: the rest of them from c on.
		for {
			size := multisets(int64(s.queries.cells)-c, left-1)
			if number < size {
				break
			}
			number -= size
			c++
		}
		y[c]++
	}
	return y
}
