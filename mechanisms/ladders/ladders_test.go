package ladders

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

const seed = "ladders: the same 32 bytes again"

func seeded(stream byte) *rand.ChaCha8 {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return rand.NewChaCha8(key)
}

// pair draws the two levels of scales 2 and 1, ε = 0.5 and 1, of a count.
func pair(t testing.TB, reader *noise.Reader) func(count int64) (coarse, fine int64) {
	t.Helper()
	step, err := NewStep(scaleOf(500), scaleOf(1000))
	if err != nil {
		t.Fatal(err)
	}
	finest, err := noise.New(noise.Laplace, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	return func(count int64) (coarse, fine int64) {
		fine = count + finest.Sample(reader)
		return step.Draw(reader, fine), fine
	}
}

// mass is the law of Y by its definition, from two one-sided parts.
func mass(q1, q2 float64) func(k int64) float64 {
	side := func(k int64) float64 {
		if k == 0 {
			return (1 - q1) / (1 - q2)
		}
		return (1 - q1) / (1 - q2) * (q1 - q2) * math.Pow(q1, float64(k-1))
	}
	return func(k int64) float64 {
		sum := 0.0
		for j := int64(0); side(j) > 1e-18 || j == 0; j++ {
			sum += side(j) * side(j+max(k, -k))
		}
		return sum
	}
}

// TestRefiningUnderZCDP looks at an analyst who has seen the coarse level and, by its outcome, goes on to the fine one
// or spends the same on Gaussian noise, whichever tells more: the divergence of the whole, exactly, for counts of 0
// and 1. With ε²/2 of the fine level for going on it stays below all that was paid; with the difference of the two it
// is above.
func TestRefiningUnderZCDP(t *testing.T) {
	const coarse, fine, order, reach = .2, .4, 2., 120
	y := mass(math.Exp(-coarse), math.Exp(-fine))
	laplace := func(k int) float64 { return math.Tanh(fine/2) * math.Exp(-fine*math.Abs(float64(k))) }
	steps := make([]float64, 2*reach+1)
	for d := range steps {
		steps[d] = y(int64(d))
	}
	divergence := func(goingOn float64) (all, paid float64) {
		sum := 0.0
		for seen := -reach; seen <= reach; seen++ {
			one, other, refined := 0.0, 0.0, 0.0
			for k := -reach; k <= reach; k++ {
				step := steps[max(seen-k, k-seen)]
				p, q := laplace(k)*step, laplace(k-1)*step
				one, other, refined = one+p, other+q, refined+p*math.Pow(p/q, order-1)
			}
			spent := one * math.Pow(one/other, order-1) * math.Exp(order*(order-1)*goingOn)
			sum += max(refined, spent)
		}
		return math.Log(sum) / (order - 1), order * (coarse*coarse/2 + goingOn)
	}
	if all, paid := divergence(fine * fine / 2); all > paid {
		t.Errorf("divergence %.6f, paid %.6f", all, paid)
	}
	if all, paid := divergence(fine*fine/2 - coarse*coarse/2); all <= 1.03*paid {
		t.Errorf("paid the difference alone: divergence %.6f of %.6f, expected to be above it", all, paid)
	}
}
