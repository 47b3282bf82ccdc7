package online

import (
	"io"
	"math"
	weak "math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// naive is the dense twin: private multiplicative weights as one would write it on a blackboard, with maps, on the
// same noise.
type naive struct {
	rows, threshold, left  int64
	belief                 map[int]float64
	slab                   float64
	random                 *noise.Reader
	d                      sources
	z, answer              int64
	haveZ, haveAnswer, end bool
	zcdp                   bool
	told                   []func(i int) bool
	tolds                  []float64
}

func newNaive(t *testing.T, p Plan, random io.Reader) *naive {
	t.Helper()
	d, err := p.sources()
	if err != nil {
		t.Fatal(err)
	}
	n := &naive{
		rows: p.spec.Rows, threshold: p.threshold, left: int64(p.spec.Updates), belief: map[int]float64{},
		random: noise.NewReader(random), d: d, zcdp: p.spec.Accountant == privacy.ZCDP,
		slab: .2 * p.width / float64(p.spec.Rows),
	}
	for i := range p.spec.Cells {
		n.belief[i] = 1 / float64(p.spec.Cells)
	}
	return n
}

func (n *naive) believes(in func(int) bool) float64 {
	sum := 0.0
	for i := range len(n.belief) {
		if in(i) {
			sum += n.belief[i]
		}
	}
	return sum
}

// odds moves the belief in in to target, everything else in proportion.
func (n *naive) odds(in func(int) bool, target float64) {
	target = min(max(target, .25/float64(n.rows)), 1-.25/float64(n.rows))
	now := n.believes(in)
	if now <= 0 || now >= 1 {
		return
	}
	for i := range n.belief {
		if in(i) {
			n.belief[i] *= target / now
		} else {
			n.belief[i] *= (1 - target) / (1 - now)
		}
	}
}

func (n *naive) learn(in func(int) bool, told float64) {
	n.told, n.tolds = append(n.told, in), append(n.tolds, told)
	n.odds(in, told)
	for range passes {
		moved := false
		for j, f := range n.told {
			now := n.believes(f)
			if off := now - n.tolds[j]; off > n.slab*(1+1e-6) {
				n.odds(f, n.tolds[j]+n.slab)
				moved = true
			} else if off < -n.slab*(1+1e-6) {
				n.odds(f, n.tolds[j]-n.slab)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// geometric draws until the noise is not negative.
func (n *naive) geometric(d noise.Distribution) int64 {
	k := d.Sample(n.random)
	for k < 0 {
		k = d.Sample(n.random)
	}
	return k
}

func (n *naive) ask(cells []int64, in func(int) bool) (value int64, hard, ok bool) {
	if n.end {
		return 0, false, false
	}
	if !n.haveZ {
		n.z, n.haveZ = n.geometric(n.d.threshold), true
	}
	if !n.haveAnswer {
		n.answer, n.haveAnswer = n.d.answer.Sample(n.random), true
	}
	y := n.geometric(n.d.comparison)
	truth := int64(0)
	for i, c := range cells {
		if in(i) {
			truth += c
		}
	}
	guess := int64(math.Round(min(n.believes(in), 1) * float64(n.rows)))
	if float64(max(truth-guess, guess-truth)+y) < float64(n.threshold+n.z) {
		return guess, false, true
	}
	value = truth + n.answer
	n.haveAnswer = false
	if n.zcdp {
		n.haveZ = false
	}
	n.left--
	n.end = n.left == 0
	n.learn(in, float64(value)/float64(n.rows))
	return value, true, true
}

// contradicted tells that the noisy answers leave a cell next to nothing: from then on rounding decides what comes of
// them.
func (n *naive) contradicted() bool {
	for _, p := range n.belief {
		if p < 1e-8 {
			return true
		}
	}
	return false
}

func abs(n int64) int64 { return max(n, -n) }

// TestSessionsEqualTheNaiveTwin: answer for answer, until both stop, over accountants and seeds. A guess may be
// one row off: the two add up in different orders before they round.
func TestSessionsEqualTheNaiveTwin(t *testing.T) {
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		hards, easies := 0, 0
		for stream := range byte(20) {
			s := small(false, accountant)
			s.Restarts, s.Updates = 0, 40
			p := planned(t, s, 1000)
			session, twin := opened(t, p, skewed, seeded(stream), keep), newNaive(t, p, seeded(stream))
			random := weak.New(generator(stream + 100))
			for i := range 150 {
				q := randomQuery(t, 8, random)
				in := func(i int) bool { return q.has(i) }
				value, hard, ok := twin.ask(skewed, in)
				a, err := session.Answer(q)
				if (err == nil) != ok || ok && (abs(a.Value().Value-value) > 1 || hard && a.Value().Value != value || a.Value().Hard != hard) {
					t.Fatalf("%s, seed %q %d: query %d is answered %v (%v), the twin says %d, %v, %v", accountant, seed, stream, i, a, err, value, hard, ok)
				}
				if twin.contradicted() {
					break
				}
				if hard {
					hards++
				} else if ok {
					easies++
				}
			}
		}
		if hards < 50 || easies < 50 {
			t.Errorf("%s: %d hard and %d easy answers show little", accountant, hards, easies)
		}
	}
}
