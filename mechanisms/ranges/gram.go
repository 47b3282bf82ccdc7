package ranges

// Gram returns the function x ↦ B'B·x of a strategy, for readings that need more than Fit, or nil if it is not known.
// It is prepared once, so that it is fast to call again and again.
func Gram(s Strategy) func(x []float64) []float64 {
	switch s := s.(type) {
	case Tree:
		return s.gramTimes
	case *convolution:
		return s.gramTimes()
	case *matrix:
		return s.gramTimes
	case *pIdentity:
		return s.gramTimes
	case *closedTree:
		return s.gramTimes
	case *banded:
		return s.gramTimes
	}
	return nil
}

// gramTimes gives each cell the weighted sums of the nodes that it is in.
func (t Tree) gramTimes(x []float64) []float64 {
	product := make([]float64, t.cells)
	for _, l := range t.levels {
		square := float64(l.weight) * float64(l.weight)
		for from := 0; from < t.cells; from += l.block {
			to, sum := min(from+l.block, t.cells), 0.0
			for _, c := range x[from:to] {
				sum += c
			}
			for i := from; i < to; i++ {
				product[i] += square * sum
			}
		}
	}
	return product
}

// gramTimes multiplies by Q·diag(b) and then by its transpose, diag(b)·Q.
func (s *convolution) gramTimes() func(x []float64) []float64 {
	q := kernel[float64]{s.kernel.kind, s.kernel.cells, make([]float64, len(s.kernel.q))}
	for i, v := range s.kernel.q {
		q.q[i] = float64(v)
	}
	f := newFilter(q)
	return func(x []float64) []float64 {
		scaled := make([]float64, len(x))
		for i, b := range s.scales {
			scaled[i] = float64(b) * x[i]
		}
		product := f.product(f.product(scaled))
		for i, b := range s.scales {
			product[i] *= float64(b)
		}
		return product
	}
}

func (m *matrix) gramTimes(x []float64) []float64 {
	product := make([]float64, m.cells)
	for j := range m.rows {
		row, sum := m.row(j), 0.0
		for i, e := range row {
			sum += float64(e) * x[i]
		}
		for i, e := range row {
			product[i] += float64(e) * sum
		}
	}
	return product
}

func (s *pIdentity) gramTimes(x []float64) []float64 {
	product := make([]float64, s.cells)
	for i, b := range s.own {
		product[i] = float64(b) * float64(b) * x[i]
	}
	for k := range s.rows {
		r := &s.rows[k]
		sum := r.dot(x)
		for i, w := range r.weights {
			product[r.from+i] += float64(w) * sum
		}
	}
	return product
}
