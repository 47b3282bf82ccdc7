package selection

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// alarm is of each statistical judgement here.
const alarm = 1e-6

func seeded(n byte) io.Reader { return rand.NewChaCha8([32]byte{n, 3, 5}) }

func reader(n byte) *noise.Reader { return noise.NewReader(seeded(n)) }

func epsilon(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }

func rho(pico int64) privacy.Cost { return privacy.Cost{Rho: privacy.PicoRho(pico)} }

var one = privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustOf[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T { t.Helper(); return must(t, v, err) }
}

// judge compares draws with claimed probabilities.
func judge(t *testing.T, name string, draws int, claim []float64, draw func() int) {
	t.Helper()
	sum := 0.0
	for _, p := range claim {
		sum += p
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("%s: the twin's probabilities sum to %v", name, sum)
	}
	seen := make([]int64, draws)
	for i := range seen {
		seen[i] = int64(draw())
	}
	mass := func(k int64) float64 {
		if k < 0 || k >= int64(len(claim)) {
			return 0
		}
		return claim[k]
	}
	if len(claim) == 1 {
		return
	}
	if err := stattest.ChiSquare(seen, mass, alarm); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// The naive twins.

func exponentialTwin(losses []uint64, r float64) []float64 {
	p, sum := make([]float64, len(losses)), 0.0
	for i, g := range losses {
		p[i] = math.Exp(-r * float64(g))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// flipTwin goes through all orders.
func flipTwin(losses []uint64, r float64) []float64 {
	p := make([]float64, len(losses))
	var walk func(left []int, reached float64)
	walk = func(left []int, reached float64) {
		for at, i := range left {
			share := reached / float64(len(left))
			keep := math.Exp(-r * float64(losses[i]))
			p[i] += share * keep
			rest := append(append([]int{}, left[:at]...), left[at+1:]...)
			if keep < 1 {
				walk(rest, share*(1-keep))
			}
		}
	}
	all := []int{}
	for i := range losses {
		all = append(all, i)
	}
	walk(all, 1)
	return p
}

// gumbelRace and exponentialRace: the largest of score plus noise, by quadrature.
func exponentialRace(losses []uint64, r float64) []float64 {
	p := make([]float64, len(losses))
	const steps = 400_000
	for n := range steps {
		x := (float64(n) + .5) / steps * 60 / r // the winner's score plus noise, above the best score − 0
		for i, g := range losses {
			f := r * math.Exp(-r*(x+float64(g)))
			for j, h := range losses {
				if j != i {
					f *= -math.Expm1(-r * (x + float64(h)))
				}
			}
			p[i] += f * 60 / r / steps
		}
	}
	return p
}

// breaking is a source that fails after some bytes, and reports whether it has.
type breaking struct {
	io.Reader
	failed bool
}

var errBroken = errors.New("broken")

func breaksAfter(bytes int64, source io.Reader) *breaking {
	return &breaking{Reader: io.MultiReader(io.LimitReader(source, bytes), iotest.ErrReader(errBroken))}
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.failed = b.failed || err != nil
	return n, err
}

// Rate returns ε/spread.
func (m Mechanism) Rate() Rate { return m.rate }

// strength returns the ε that a rate was made of.
func (s Scores) strength(t testing.TB, r Rate) Strength {
	return Strength(r.num * (1e9 * uint64(mustOf(s.Spread(one))(t)) / r.den))
}

// take returns what draws of strength s take, rounded up.
func (s Strength) take(a privacy.Accountant, draws, divisor int64) (privacy.Cost, error) {
	switch a {
	case privacy.Pure:
		return privacy.Cost{Epsilon: privacy.MicroEpsilon(ceilDiv(new(big.Int).Mul(big.NewInt(int64(s)), big.NewInt(draws)), 1000))}, nil
	case privacy.ZCDP:
		square := new(big.Int).Mul(big.NewInt(int64(s)), big.NewInt(int64(s)))
		return privacy.Cost{Rho: privacy.PicoRho(ceilDiv(square.Mul(square, big.NewInt(draws)), divisor*1e6))}, nil
	}
	return privacy.Cost{}, errors.New("accountant is invalid, must be pure or zcdp")
}

func ceilDiv(a *big.Int, b int64) int64 {
	q := new(big.Int).Add(a, big.NewInt(b-1))
	q.Div(q, big.NewInt(b))
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return q.Int64()
}

// Rate returns the rate of each draw; that of Bins is not valid.
func (t Top) Rate() Rate { return t.rate }

// NewRate checks num/den.
func NewRate(num, den int64) (Rate, error) {
	if num <= 0 || den <= 0 {
		return Rate{}, fmt.Errorf("rate is %d/%d, must have a numerator and a denominator greater than 0", num, den)
	}
	return reduced(uint64(num), uint64(den)), nil
}
