package synthetic

import "math"

// fit is a distribution over the cells and the measurements that it is fitted to. It sees released numbers alone.
//
// One projection moves the odds of a query's cells so that their sum is the measurement: of all distributions that
// agree with it, the nearest in relative entropy. Measurements are noisy, so no distribution agrees with all; sweeps
// over them, with steps that shrink until nothing moves, end between them.
type fit struct {
	queries  Queries
	total    float64
	cells    []float64
	fitted   []float64
	chosen   []int
	measured []float64
}

const (
	sweeps    = 100
	converged = 1e-3 // of a row: the largest move of a sweep that ends it
	// leastShare is the least of what an even distribution has in a cell. Measurements that contradict each other halve
	// the cells between them with each sweep; a later one would have to raise what is nothing by then, and nothing
	// times infinity is no number.
	leastShare = 1e-9
)

func newFit(q Queries, total float64) *fit {
	f := &fit{queries: q, total: total, cells: make([]float64, q.cells), fitted: make([]float64, q.Len())}
	for i := range f.cells {
		f.cells[i] = total / float64(q.cells)
	}
	return f
}

func (f *fit) answers() []float64 { return f.queries.answers(f.cells, f.fitted) }

// add takes a measurement in and refits. A query measured before keeps the mean of its measurements' worth by being in
// the list twice.
func (f *fit) add(query int, value float64) {
	f.chosen, f.measured = append(f.chosen, query), append(f.measured, value)
	step := 1.0
	f.project(len(f.chosen)-1, step)
	for sweep := range sweeps {
		moved := 0.0
		for i := range f.chosen {
			moved = max(moved, f.project(i, step))
		}
		if moved < converged {
			return
		}
		if sweep >= 5 {
			step *= .95
		}
	}
}

// project moves the answer of one measurement by a step towards it and returns by how much.
func (f *fit) project(i int, step float64) float64 {
	now := min(max(f.queries.answer(f.chosen[i], f.cells), 0), f.total)
	least := min(.5, f.total/4)
	goal := now + step*(min(max(f.measured[i], least), f.total-least)-now)
	if now <= 0 || now >= f.total || goal <= 0 || goal >= f.total {
		return 0
	}
	f.queries.scale(f.chosen[i], f.cells, goal/now, (f.total-goal)/(f.total-now), f.total*leastShare/float64(len(f.cells)))
	return math.Abs(goal - now)
}

// result returns the cells, normalised to the total.
func (f *fit) result() []float64 {
	sum := 0.0
	for _, c := range f.cells {
		sum += c
	}
	for i := range f.cells {
		f.cells[i] *= f.total / sum
	}
	return f.cells
}
