package marginals

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func TestRefusals(t *testing.T) {
	d, err := NewDomain(3, 4)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorkload(d, Marginal{3, 1})
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]func() error{
		"number of attributes is 0, must be from 1 to 64":      func() error { _, err := NewDomain(); return err },
		"size of attribute 1 is 1, must be from 2 to 16777216": func() error { _, err := NewDomain(2, 1); return err },
		"attribute is 2, must be from 0 to 1":                  func() error { _, err := d.Set(2); return err },
		"attribute 1 is named twice":                           func() error { _, err := d.Set(1, 1); return err },
		"domain has no attributes":                             func() error { _, err := NewWorkload(Domain{}, Marginal{1, 1}); return err },
		"number of marginals is 0":                             func() error { _, err := NewWorkload(d); return err },
		"weight of marginal [0] is NaN, must be from":          func() error { _, err := NewWorkload(d, Marginal{1, math.NaN()}); return err },
		"weight of marginal [0] is 0, must be from":            func() error { _, err := NewWorkload(d, Marginal{1, 0}); return err },
		"weight of marginal [0] is +Inf, must be from":         func() error { _, err := NewWorkload(d, Marginal{1, math.Inf(1)}); return err },
		"marginal [0] occurs twice":                            func() error { _, err := NewWorkload(d, Marginal{1, 1}, Marginal{1, 2}); return err },
		"marginal [2] has attribute 2, must be below 2":        func() error { _, err := NewWorkload(d, Marginal{4, 1}); return err },
		"workload is the zero value":                           func() error { _, err := Best(Workload{}, oneRow, eps(1)); return err },
		"workload is the zero value, must be made":             func() error { _, err := Residuals(Workload{}, oneRow, rho(1)); return err },
		"rows of a unit is 0, must be from 1 to 4194304": func() error {
			_, err := Best(w, privacy.Contribution{Neighbors: privacy.AddRemove}, rho(1))
			return err
		},
		"neighbor relation is 0":                             func() error { _, err := Best(w, privacy.Contribution{Rows: 1}, rho(1)); return err },
		"cost is epsilon 0 and rho 0, must name one of them": func() error { _, err := Histograms(w, oneRow, privacy.Cost{}); return err },
		"cost of residuals is epsilon 1, must name rho":      func() error { _, err := Residuals(w, oneRow, eps(1)); return err },
		"delta of marginals is": func() error {
			_, err := Best(w, oneRow, privacy.Cost{Rho: privacy.PicoRho(1), Delta: privacy.AttoDelta(1)})
			return err
		},
		"plan is the zero value":                       func() error { _, err := Release(Plan{}, nil, seeded(1)); return err },
		"plan is the zero value, must be made by a":    func() error { _, err := Plan{}.Variance(0); return err },
		"number of tallies is 0, must be the 1 of the": func() error { _, err := Release(must(Best(w, oneRow, rho(1))), nil, seeded(1)); return err },
		"tally 0 was never sealed": func() error {
			_, err := Release(must(Best(w, oneRow, rho(1))), make([]privacy.Sensitive[[]int64], 1), seeded(1))
			return err
		},
		"number of weights of attribute 0 is 2, must be 3": func() error { _, err := must(Best(w, oneRow, rho(1))).VarianceOf(Product{0: {1, 2}}); return err },
		"weight of attribute 0 is NaN, must be finite": func() error {
			_, err := must(Best(w, oneRow, rho(1))).VarianceOf(Product{0: {1, 2, math.NaN()}})
			return err
		},
		"number of observations is 1, must be the 12 of the plan": func() error {
			_, err := NewEstimate(must(Best(w, oneRow, rho(1))), privacy.Published(Noisy{[]int64{1}}))
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func must(p Plan, err error) Plan {
	if err != nil {
		panic(err)
	}
	return p
}

// TestAFailingSourceOfRandomnessIsAnError, and the tally is not opened first: it would panic.
func TestAFailingSourceOfRandomnessIsAnError(t *testing.T) {
	w := workloads(t)["nested"]
	for _, m := range makers {
		p := must(m.make(w, oneRow, m.cost))
		truth := make([]privacy.Sensitive[[]int64], len(p.Sources()))
		for i := range truth {
			truth[i] = privacy.Seal([]int64{1})
		}
		for _, n := range []int{0, 1, 255, 256, 700} {
			random := iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(make([]byte, n))))
			if r, err := Release(p, truth, random); err == nil || r.Valid() {
				t.Errorf("%s: %d bytes of randomness were enough", m.name, n)
			}
		}
		if _, err := Release(p, truth, iotest.ErrReader(errors.New("gone"))); err == nil {
			t.Error("no error")
		}
	}
}

// TestExtremes: tallies of any length and any values are observed without overflow.
func TestExtremes(t *testing.T) {
	w := workloads(t)["all two-way"]
	for _, m := range makers {
		p := must(m.make(w, oneRow, m.cost))
		if p.MostCount() < 1<<30 {
			t.Errorf("%s: cells are cut at %d", m.name, p.MostCount())
		}
		for _, cells := range [][]int64{nil, {math.MinInt64, -1}, {math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}} {
			truth := make([]privacy.Sensitive[[]int64], len(p.Sources()))
			for i := range truth {
				truth[i] = privacy.Seal(cells)
			}
			r, err := Release(p, truth, seeded(3))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r.Value().Observations {
				if x < -mostNoisy || x > mostNoisy || cells == nil && (x > 1e6 || x < -1e6) {
					t.Errorf("%s: observation %d", m.name, x)
				}
			}
			observed := make([]int64, p.Observed())
			for i, s := range p.sources {
				p.observeHistograms(i, p.clean(cells, s), observed)
				p.observeResiduals(i, p.clean(cells, s), observed)
			}
			for _, x := range observed {
				if x > 1<<61 || x < -1<<61 {
					t.Errorf("%s: %d is beyond 2^61", m.name, x)
				}
			}
		}
	}
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
		s := w.search(w.closure, privacy.Pure)
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

// TestManyAttributes: all two-way marginals of 40 columns of 10 cells: the cube has 10^40.
func TestManyAttributes(t *testing.T) {
	sizes := make([]int, 40)
	for i := range sizes {
		sizes[i] = 10
	}
	d, err := NewDomain(sizes...)
	if err != nil {
		t.Fatal(err)
	}
	list := []Marginal{}
	for i := range sizes {
		for j := range i {
			list = append(list, Marginal{1<<i | 1<<j, 1})
		}
	}
	w, err := NewWorkload(d, list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []privacy.Contribution{oneRow, oneReplace} {
		p := must(Best(w, c, rho(.5)))
		truth := make([]privacy.Sensitive[[]int64], len(p.Sources()))
		for i := range truth {
			truth[i] = privacy.Seal([]int64{1000})
		}
		r, err := Release(p, truth, seeded(4))
		if err != nil {
			t.Fatal(err)
		}
		e, err := NewEstimate(p, r)
		if err != nil {
			t.Fatal(err)
		}
		one, _ := e.Marginal(1 << 3)
		two, _ := e.Marginal(1<<3 | 1<<7)
		for i, x := range one.Value() {
			if total := sum(two.Value()[10*i : 10*i+10]); math.Abs(total-x) > 1e-6 {
				t.Errorf("cell %d is %g, in the other marginal %g", i, x, total)
			}
		}
	}
}
