package online

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestTheHistogramWins on the Covid-like universe: mechanisms.md has it at ε .0012 for every query at α .05, β .001,
// where the best session costs fifty times as much; and it never wins by a hypothesis, only by public numbers.
func TestTheHistogramWins(t *testing.T) {
	c := covid{rows: 600_000, alpha: .05}
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		for _, median := range []bool{false, true} {
			p, err := planFor(c.spec(median, accountant, 60), c.target())
			if err != nil {
				t.Fatal(err)
			}
			b, err := better(p, covidMiss)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, median %v: session %s for ±%d; histogram ±%d at that cost, or %s", accountant, median, b.Cost, b.Width, b.HistogramSame, b.HistogramCost)
			if !b.Histogram() || b.Width > 30_000 || b.Width < 29_700 {
				t.Errorf("%+v", b)
			}
			if at := b.HistogramCost.Epsilon.Micro(); accountant == privacy.Pure && (at < 1700 || at > 3700) {
				t.Errorf("the histogram costs ε %s", b.HistogramCost.Epsilon)
			}
			width, err := p.histogram(b.HistogramCost.Epsilon.Micro()+b.HistogramCost.Rho.Pico(), covidMiss)
			if err != nil || width > b.Width || width < b.Width*98/100 {
				t.Errorf("at its cost the histogram's width is %d of %d (%v)", width, b.Width, err)
			}
		}
	}
	// Two million cells and few updates under zCDP are beyond the cross-over: 3e5 to 2e6 cells.
	s := c.spec(false, privacy.ZCDP, 20)
	s.Cells = 1 << 22
	p, err := planFor(s, c.target())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := better(p, covidMiss); err != nil || b.Histogram() || b.HistogramCost.Fits(b.Cost) {
		t.Errorf("%+v (%v)", b, err)
	}
}

func TestUpdatesBounds(t *testing.T) {
	if got := ProvedUpdates(128, .05); got != 7764 {
		t.Errorf("proved updates %v, want 4·ln(128)/.0025", got)
	}
	if got := LikelyUpdates(128, .05); got != 88 {
		t.Errorf("likely updates %v", got)
	}
}
