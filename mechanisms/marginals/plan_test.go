package marginals

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

func must(p Plan, err error) Plan {
	if err != nil {
		panic(err)
	}
	return p
}

// TestBestIsNoWorse than what is usually done, on every workload.
func TestBestIsNoWorse(t *testing.T) {
	for name, w := range workloads(t) {
		for _, c := range []privacy.Contribution{oneRow, oneReplace} {
			for _, cost := range []privacy.Cost{rho(.1), eps(.4)} {
				best := must(Best(w, c, cost)).Loss()
				for _, f := range []maker{Independent, Cube, Histograms} {
					if other := must(f(w, c, cost)).Loss(); best > other*(1+1e-6) {
						t.Errorf("%s, %s, %s: best %g, other %g", name, c.Neighbors, cost, best, other)
					}
				}
			}
		}
	}
}

// TestTheSearchFindsAStationaryPoint: moving a thousandth of a share elsewhere among those in use helps nowhere.
func TestTheSearchFindsAStationaryPoint(t *testing.T) {
	for name, w := range workloads(t) {
		s := w.search(w.closure, ranges.L1)
		for _, start := range s.starts() {
			shares, loss := s.descend(start)
			if shares == nil {
				continue
			}
			for i := range shares {
				for j := range shares {
					if i == j || shares[i] == 0 || shares[j] == 0 {
						continue
					}
					moved := append([]float64(nil), shares...)
					moved[i] *= 1 - 1e-3
					moved[j] += shares[i] * 1e-3
					if other := s.loss(moved, make([]float64, len(moved))); other < loss*(1-1e-6) {
						t.Errorf("%s: moving share from %d to %d lowers the loss from %.9g to %.9g", name, i, j, loss, other)
					}
				}
			}
		}
	}
}
