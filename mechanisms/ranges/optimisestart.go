package ranges

import (
	"math"
	"slices"
)

// The optima for ranges and prefixes look alike: levels of overlapping hats, nearly triangular, each level some six
// times as wide as the one below. From hats the descent ends lower, and a hundred times faster, than from random rows.

// layout is a number of hats for each level, the finest first.
type layout []int

// layouts returns layouts worth a try.
func layouts(workload Workload, cells int) []layout {
	widths := []float64{13, 16, 21, 26}
	if cells <= 64 {
		widths = []float64{8, 11, 13, 16, 22, 32}
	}
	found := []layout{{2}}
	for _, width := range widths {
		for _, ratio := range []float64{3, 4, 6, 8} {
			var l layout
			for n := float64(cells) / width; n >= 1.5; n /= ratio {
				hats := int(n + .5)
				if workload == AllRanges {
					hats = 2 * int(n/2+.5) // half of them are the others' mirror images
				}
				l = append(l, hats)
				if tops := len(l) == 1 && ratio == 3 || len(l) > 1 && hats < 24; tops {
					found = append(found, slices.Clone(l))
				}
			}
		}
	}
	return found
}

// start returns the parameters for a layout: of a symmetric template, the left half of the hats. Nothing is exactly 0,
// which the descent could not leave; the small excess, by the golden ratio's multiples, makes no two rows alike.
func (l layout) start(cells int, symmetric bool) (x []float64, rows int) {
	const golden = 0.6180339887498949
	for level, hats := range l {
		height := .9 - .1*float64(min(level, 3))
		apart := float64(cells) / float64(hats)
		kept := hats
		if symmetric {
			kept = (hats + 1) / 2
		}
		for k := range kept {
			middle := (float64(k) + .5) * apart
			for j := range cells {
				_, excess := math.Modf(golden * float64(len(x)+1))
				slant := 1 - math.Abs(float64(j)+.5-middle)/(1.4*apart)
				x = append(x, height*max(0, slant)+1e-3*excess)
			}
			rows++
		}
	}
	return x, rows
}
