package stattest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mechanism is a small one, right unless a fault is planted: per-unit values clamped to [0, 4], counted in a tree of
// four levels over eight cells, noise of scale levels/ε on every node, ε = 1.
type mechanism struct {
	noise       float64 // what the noise is multiplied with; right: 1
	sensitivity float64 // by which the noise is too small, right: 1
	unclamped   bool
	charged     int // levels, right: 4
}

var right = mechanism{noise: 1, sensitivity: 1, charged: 4}

const levels = 4

func (m mechanism) scale() float64 { return m.noise * float64(m.charged) / m.sensitivity }

// tree answers with the nodes above cell 0, where the neighbours differ by one.
func (m mechanism) tree(r *rand.Rand, count int64) (nodes [levels]int64) {
	for i := range nodes {
		nodes[i] = count + twoSided(r, m.scale())
	}
	return nodes
}

// sum answers with the sum of the clamped values at the scale that 4 levels pay for, 4 being the largest value.
func (m mechanism) sum(r *rand.Rand, values ...int64) int64 {
	sum := twoSided(r, m.scale())
	for _, v := range values {
		if !m.unclamped {
			v = min(max(v, 0), 4)
		}
		sum += v
	}
	return sum
}

// audits returns the bounds of ε that the judge finds in the tree and in the sum, of 100,000 answers a side.
func (m mechanism) audits(t *testing.T) (tree, sum float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	likelihood := func(nodes [levels]int64) float64 { // its logarithm, up to a factor
		ratio := 0.0
		for _, n := range nodes {
			ratio += float64(min(max(n, 10), 11))
		}
		return ratio
	}
	trees, sums := Audit{}, Audit{}
	for range 100_000 {
		trees.One = append(trees.One, likelihood(m.tree(r, 10)))
		trees.Other = append(trees.Other, likelihood(m.tree(r, 11)))
		sums.One = append(sums.One, float64(m.sum(r, 1, 2, 3)))
		sums.Other = append(sums.Other, float64(m.sum(r, 1, 2, 3, 5)))
	}
	tree, err := trees.Epsilon(1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err = sums.Epsilon(1e-6); err != nil {
		t.Fatal(err)
	}
	return tree, sum
}

// TestAuditRejectsEachFault: the judge accepts the right mechanism and rejects each planted fault.
func TestAuditRejectsEachFault(t *testing.T) {
	for _, c := range []struct {
		name      string
		m         mechanism
		tree, sum bool // rejected
	}{
		{"right", right, false, false},
		{"sensitivity off by 1.2", mechanism{noise: 1, sensitivity: 1.2, charged: 4}, true, true},
		{"dropped clamp", mechanism{noise: 1, sensitivity: 1, charged: 4, unclamped: true}, false, true},
		{"a level too few", mechanism{noise: 1, sensitivity: 1, charged: 3}, true, true},
	} {
		tree, sum := c.m.audits(t)
		t.Logf("%s: epsilon at least %.4f (tree), %.4f (sum), claimed 1", c.name, tree, sum)
		if tree > 1 != c.tree || sum > 1 != c.sum {
			t.Errorf("seed %d: %s: epsilon at least %.4f (tree), %.4f (sum), claimed 1; must be rejected: %t, %t", seed, c.name, tree, sum, c.tree, c.sum)
		}
	}
}

// TestThreePercentTooLittleNoise at an alarm of 1e-6: the variance of 100,000 samples tells, the distribution of
// 300,000.
func TestThreePercentTooLittleNoise(t *testing.T) {
	for _, m := range []mechanism{right, {noise: .97, sensitivity: 1, charged: 4}} {
		r := rand.New(rand.NewPCG(seed, 12))
		var nodes []int64
		var real []float64
		for range 75_000 {
			for _, n := range m.tree(r, 0) {
				nodes, real = append(nodes, n), append(real, float64(n))
			}
		}
		mass := massOf(right.scale())
		wrong := m != right
		if err := Variance(real[:100_000], MomentsOf(mass, 1000), 1e-6); (err != nil) != wrong {
			t.Errorf("seed %d: %+v: variance: %v", seed, m, err)
		}
		if err := ChiSquare(nodes, mass, 1e-6); (err != nil) != wrong {
			t.Errorf("seed %d: %+v: distribution: %v", seed, m, err)
		}
	}
}

// TestAuditComesCloseToTheClaim prints how close, for discrete Laplace noise at ε = 1.
func TestAuditComesCloseToTheClaim(t *testing.T) {
	for _, c := range []struct {
		answers int
		least   float64
	}{{10_000, .8}, {100_000, .95}, {Length(100_000, 1_000_000), .95}} {
		r := rand.New(rand.NewPCG(seed, 13))
		audit := Audit{}
		for range c.answers {
			audit.One = append(audit.One, float64(twoSided(r, 1)))
			audit.Other = append(audit.Other, float64(1+twoSided(r, 1)))
		}
		bound, err := audit.Epsilon(1e-6)
		t.Logf("%d answers a side: epsilon at least %.4f of 1", c.answers, bound)
		if err != nil || bound > 1 || bound < c.least {
			t.Errorf("seed %d: %d answers: epsilon at least %.4f, must be from %.2f to 1 (%v)", seed, c.answers, bound, c.least, err)
		}
	}
}

// TestAuditIsNotWrongTooOften: at the exact claim, with a large alarm, the bound is above it no more often than that.
func TestAuditIsNotWrongTooOften(t *testing.T) {
	const alarm, runs = .2, 2000
	for _, delta := range []float64{0, .05} {
		wrong := 0
		for i := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, i))
			audit := Choices{Delta: delta}
			for range 1000 { // randomised response at ε = 1, and with δ a sign of the database
				leak := r.Float64() < delta
				one, other := leaning(r, 2, 0, 1), leaning(r, 2, 1, 1)
				if leak {
					one, other = 2, 3
				}
				audit.One, audit.Other = append(audit.One, one), append(audit.Other, other)
			}
			bound, err := audit.epsilon(alarm) // not spent: it is tested, it does not test
			if err != nil {
				t.Fatal(err)
			}
			if bound > 1 {
				wrong++
			}
		}
		t.Logf("delta %g: above the claim in %d of %d runs, allowed %.0f", delta, wrong, runs, alarm*runs)
		low, _ := interval(wrong, runs, 1e-7)
		if low > alarm {
			t.Errorf("delta %g: above the claim in %d of %d runs, allowed %.0f", delta, wrong, runs, alarm*runs)
		}
		if delta == 0 && wrong < runs/50 {
			t.Errorf("above the claim in %d of %d runs: the bound is needlessly low", wrong, runs)
		}
	}
}

func TestAlarmsAddUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alarms")
	t.Setenv("DPPROXY_ALARMS", file)
	before, total := Spent()
	Spend(1e-6)
	if err := (Coverage{Hits: 950, Trials: 1000, Claim: .95}).AtLeast(1e-7); err != nil {
		t.Error(err)
	}
	after, sum := Spent()
	if after-before != 2 || sum-total < 1.0999e-6 || sum-total > 1.1001e-6 {
		t.Errorf("%d judgements, %g", after-before, sum-total)
	}
	text, err := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || len(lines) != 2 || !strings.HasSuffix(lines[0], "mechanisms/stattest 1e-06") || !strings.HasSuffix(lines[1], "mechanisms/stattest 1e-07") {
		t.Errorf("%q (%v)", text, err)
	}
}
