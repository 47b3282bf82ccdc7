package ranges

import (
	"slices"
	"sort"
)

// run looks at every depth.
func (s *search) run(variance func(levels int) float64) *search {
	cells := s.cells
	for below := 0; below < 20 && 1<<below < cells; below++ {
		v := variance(below + 1)
		if v == 0 {
			continue
		}
		s.variance, s.found = v, nil
		if !s.depth(below) {
			break
		}
	}
	return s
}

// search walks over the radices after the first, which is as large as the cells need.
type search struct {
	cells    int
	workload Workload
	variance float64 // of an observation at the present depth
	found    []candidate
	best     candidate
	depths   []candidate // the best of each depth
	seen     map[string]bool
}

type candidate struct {
	cells int
	below []int
	mean  float64
}

func (c candidate) radices() []int {
	block := 1
	for _, r := range c.below {
		block *= r
	}
	return append([]int{(c.cells + block - 1) / block}, c.below...)
}

// The radices combined for trees of 1, 2, 3 and 4 levels below the first.
var combined = [][]int{
	nil,
	{2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 19, 22, 26, 32, 40, 50, 64, 96, 128, 192, 256},
	{2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 21, 24, 28, 36, 48},
	{2, 3, 4, 6, 8, 11, 14, 17, 22, 30},
	{2, 4, 8, 12, 16},
}

// depth looks at the trees with so many levels below the first and reports whether a deeper one may be better: the
// error as a function of the depth has one valley, so it may unless this depth is a quarter worse than the best.
func (s *search) depth(below int) bool {
	clear(s.seen)
	if below < len(combined) {
		s.combine(make([]int, 0, below), 1, below)
	}
	even := 2
	for power(even+1, below+1) <= s.cells {
		even++
	}
	for r := max(2, even-1); r <= even+2; r++ {
		s.try(slices.Repeat([]int{r}, below))
	}
	if len(s.found) == 0 {
		return true
	}
	sort.Slice(s.found, func(i, j int) bool { return s.found[i].mean < s.found[j].mean })
	top := s.found[0]
	for _, start := range s.found[:min(3, len(s.found))] {
		if c := s.improve(start); c.mean < top.mean {
			top = c
		}
	}
	s.depths = append(s.depths, top)
	if s.best.cells == 0 || top.mean < s.best.mean {
		s.best = top
	}
	return top.mean < 1.25*s.best.mean
}

func power(base, exponent int) int {
	p := 1
	for range exponent {
		if p > 1<<21 {
			return p
		}
		p *= base
	}
	return p
}

func (s *search) combine(below []int, block, depth int) {
	if len(below) == depth {
		s.try(below)
		return
	}
	for _, r := range combined[depth] {
		if block*r >= s.cells {
			return
		}
		s.combine(append(below, r), block*r, depth)
	}
}

// try looks at one candidate.
func (s *search) try(below []int) (candidate, bool) {
	block := 1
	for _, r := range below {
		if r < 2 || block >= s.cells {
			return candidate{}, false
		}
		block *= r
	}
	if block >= s.cells {
		return candidate{}, false
	}
	key := make([]byte, 0, 16)
	for _, r := range below {
		key = append(key, byte(r), byte(r>>8), byte(r>>16))
	}
	if s.seen[string(key)] {
		return candidate{}, false
	}
	s.seen[string(key)] = true
	c := candidate{cells: s.cells, below: slices.Clone(below)}
	t, err := NewTree(s.cells, c.radices())
	if err != nil {
		return candidate{}, false
	}
	c.mean = s.variance * t.MeanVariance(s.workload)
	s.found = append(s.found, c)
	return c, true
}

// improve follows the best neighbour as long as there is a better one.
func (s *search) improve(c candidate) candidate {
	for {
		best := c
		for i, r := range c.below {
			for _, other := range []int{r - 2, r - 1, r + 1, r + 2, r / 2, 2 * r} {
				next := slices.Clone(c.below)
				next[i] = other
				best = s.better(best, next)
				for j := range next {
					pair := slices.Clone(next)
					pair[j] = max(2, pair[j]+c.below[i]-other)
					best = s.better(best, pair)
				}
			}
			for j := range i {
				next := slices.Clone(c.below)
				next[i], next[j] = next[j], next[i]
				best = s.better(best, next)
			}
		}
		if best.mean == c.mean {
			return c
		}
		c = best
	}
}

func (s *search) better(best candidate, below []int) candidate {
	if c, ok := s.try(below); ok && c.mean < best.mean {
		return c
	}
	return best
}
