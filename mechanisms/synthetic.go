package mechanisms

import (
	"errors"
	"fmt"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/histograms"
	"github.com/dpproxy/dpproxy/mechanisms/internal/memo"
	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
	"github.com/dpproxy/dpproxy/mechanisms/synthetic"
)

// SyntheticRule names how made-up rows come about. The numbers are in ledgers: never change one.
type SyntheticRule uint8

// The rules. The zero value is invalid.
const (
	MWEM          SyntheticRule = 1 + iota // a distribution fitted to noisy answers of the queries that it gets most wrong
	SmallDatabase                          // one of few rows whose answers are near
	DAWA                                   // over one ordered dimension, noisy counts of buckets whose cells are about equal
)

func (r SyntheticRule) String() string {
	return [...]string{"invalid", "MWEM", "the small database mechanism", "DAWA"}[min(r, DAWA+1)%4]
}

// Synthetic is a measurement whose outcome is made-up rows, each named by its cell. All of it is public.
type Synthetic struct {
	Rule         SyntheticRule
	Contribution Contribution
	Sizes        []int // of the dimensions that make the cells, the first one slowest
	Total        int64 // a public guess of the number of rows
	Drawn        int   // how many rows are made up
	Cost         privacy.Cost
}

// The most that a workload counts: queries, and rows of the cells' lists together.
const (
	maxSyntheticQueries = 1 << 16
	maxSyntheticMembers = 1 << 24
)

// NewSynthetic returns the Spec of made-up rows.
//
// Claim: Release of it costs y.Cost for y.Contribution, by the claims of synthetic.Weights, synthetic.Small and
// histograms.Dawa; rows are drawn from what these release, which is post-processing.
func NewSynthetic(y Synthetic) (Spec, error) {
	cells, err := y.cells()
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Counters: 1, Cells: cells, Kind: &y}
	return s, s.check()
}

func (y *Synthetic) errors(Spec, Confidence) *Errors {
	panic("mechanisms: error of a count by a Spec of made-up rows")
}

func (y *Synthetic) hasNoise() bool { return !y.Cost.IsZero() }

func (y *Synthetic) cells() (int, error) {
	cells := 1
	for _, n := range y.Sizes {
		if n < 1 || cells > MaxCells/n {
			return 0, fmt.Errorf("sizes of the dimensions are %v, must be at least 1 and together at most %d", y.Sizes, MaxCells)
		}
		cells *= n
	}
	return cells, nil
}

func (y *Synthetic) check(s Spec) error {
	cells, err := y.cells()
	switch {
	case err != nil:
		return err
	case s.Counters != 1 || s.Cells != cells:
		return fmt.Errorf("number of cells is %d in %d counters, must be %d in 1", s.Cells, s.Counters, cells)
	case y.Drawn < 1 || y.Drawn > MaxCells:
		return fmt.Errorf("number of rows is %d, must be from 1 to %d", y.Drawn, MaxCells)
	case y.Rule < MWEM || y.Rule > DAWA:
		return fmt.Errorf("rule is %d, must be MWEM, the small database mechanism or DAWA", y.Rule)
	case y.Rule == DAWA && len(y.Sizes) != 1:
		return fmt.Errorf("number of dimensions is %d, must be 1 for DAWA", len(y.Sizes))
	case y.Cost.IsZero():
		return errors.New("cost is nothing, must be something")
	}
	return checkContribution(y.Contribution)
}

// workload lists what the rows are to answer well: each dimension's values and its first ones together, and the pairs
// of values of each two dimensions.
func (y *Synthetic) workload(cells int) (synthetic.Queries, error) {
	var members [][]int32
	total := 0
	steps := make([]int, len(y.Sizes))
	for i, step := len(y.Sizes)-1, 1; i >= 0; i-- {
		steps[i] = step
		step *= y.Sizes[i]
	}
	add := func(in func(cell int) bool) {
		var list []int32
		for c := range cells {
			if in(c) {
				list = append(list, int32(c))
			}
		}
		members, total = append(members, list), total+len(list)
	}
	of := func(cell, i int) int { return cell / steps[i] % y.Sizes[i] }
	for i, n := range y.Sizes {
		for v := range n {
			if total > maxSyntheticMembers || len(members) > maxSyntheticQueries {
				break
			}
			add(func(c int) bool { return of(c, i) == v })
			if v > 0 && v < n-1 {
				add(func(c int) bool { return of(c, i) <= v })
			}
		}
	}
	for i, n := range y.Sizes {
		for j := i + 1; j < len(y.Sizes); j++ {
			if len(members)+n*y.Sizes[j] > maxSyntheticQueries || total+cells > maxSyntheticMembers {
				continue
			}
			pairs := make([][]int32, n*y.Sizes[j])
			for c := range cells {
				at := of(c, i)*y.Sizes[j] + of(c, j)
				pairs[at] = append(pairs[at], int32(c))
			}
			members, total = append(members, pairs...), total+cells
		}
	}
	return synthetic.NewQueries(cells, members)
}

// mechanism plans the release.
func (y *Synthetic) mechanism(cells int) (func(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[synthetic.Database], error), error) {
	if y.Rule == DAWA {
		plan, err := histograms.NewDawa(cells, y.Contribution, y.Cost)
		if err != nil {
			return nil, err
		}
		return func(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[synthetic.Database], error) {
			return even(plan, truth, random)
		}, nil
	}
	queries, err := y.workload(cells)
	if err != nil {
		return nil, err
	}
	if y.Rule == MWEM {
		rounds := synthetic.Rounds(synthetic.Total(y.Total), y.Cost)
		w, err := synthetic.NewWeights(queries, synthetic.Total(y.Total), rounds, y.Contribution, y.Cost)
		if err != nil {
			return nil, err
		}
		return w.Release, nil
	}
	small, err := synthetic.NewSmall(queries, smallRows(cells, queries.Len()), synthetic.Total(y.Total), y.Contribution, y.Cost)
	if err != nil {
		return nil, err
	}
	return small.Release, nil
}

// even releases the buckets of a plan, each spread evenly over its cells. Where the noise leaves no rows, all cells are
// alike: after the charge there is always an answer.
func even(plan histograms.Dawa, truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[synthetic.Database], error) {
	var none privacy.Released[synthetic.Database]
	buckets, err := plan.Release(truth, random)
	if err != nil {
		return none, err
	}
	prefixes, err := plan.Prefixes(buckets)
	if err != nil {
		return none, err
	}
	return privacy.PostProcess(prefixes, func(p []float64) synthetic.Database {
		d := synthetic.Database{Cells: make([]float64, len(p)-1), Total: p[len(p)-1] - p[0]}
		for i := range d.Cells {
			if d.Cells[i] = max(p[i+1]-p[i], 0); !(d.Total > 0) {
				d.Cells[i] = 1
			}
		}
		return d
	}), nil
}

// maxScored bounds the steps of scoring candidates.
const maxScored = 1 << 28

// smallRows is the largest number of rows of a small database whose candidates can be listed: few, and fewer the more
// cells.
func smallRows(cells, queries int) int64 {
	candidates, rows := 1.0, int64(0)
	for m := int64(1); m <= 64; m++ {
		candidates = candidates * float64(int64(cells)+m-1) / float64(m)
		if candidates > selection.MaxCandidates || candidates*float64(queries) > maxScored {
			break
		}
		rows = m
	}
	return max(rows, 1)
}

// CanRelease reports whether the rows can be made: it plans the release, without data.
func (y *Synthetic) CanRelease(cells int) error {
	return plannedRows.Of(fmt.Sprintf("%+v", *y), 1, func() error {
		_, err := y.mechanism(cells)
		return err
	})
}

var plannedRows = memo.Map[string, error]{Most: memo.Small}

// release draws the rows: the observations are the cells of the rows, in the order in which they were drawn.
func (y *Synthetic) release(s Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	draw, err := y.mechanism(s.Cells)
	if err != nil {
		return none, err
	}
	cells, err := Tally(1, s.Cells, place, truth)
	if err != nil {
		return none, err
	}
	database, err := draw(cells, random)
	if err != nil {
		return none, err
	}
	rows, err := synthetic.Rows(database, y.Drawn, random)
	if err != nil {
		return none, err
	}
	return privacy.PostProcess(rows, func(list []int32) Noisy {
		out := Noisy{Observations: make([]int64, len(list))}
		for i, c := range list {
			out.Observations[i] = int64(c)
		}
		return out
	}), nil
}

// Rows makes up rows in the proportions of the hypothesis, by their cells: a function of released answers. Equal
// hypotheses give equal rows.
func (b *Belief) Rows(n int) privacy.Released[[]int32] {
	shares := b.shares
	total := 0.0
	for _, p := range shares {
		total += p
	}
	rows, at, sum := make([]int32, 0, n), 0, shares[0]
	for i := range n { // the middles of n equal parts of all mass
		for middle := (float64(i) + .5) / float64(n) * total; sum < middle && at < len(shares)-1; {
			at++
			sum += shares[at]
		}
		rows = append(rows, int32(at))
	}
	return sealed.Release(shuffled(rows))
}

// shuffled brings rows into an order that does not depend on their cells: a fixed one.
func shuffled(rows []int32) []int32 {
	state := uint64(0x9e3779b97f4a7c15)
	for i := len(rows) - 1; i > 0; i-- {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		j := int(state % uint64(i+1))
		rows[i], rows[j] = rows[j], rows[i]
	}
	return rows
}
