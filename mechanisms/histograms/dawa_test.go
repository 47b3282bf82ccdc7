package histograms

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// auditAlarm is for one audit: what keeps its claim is accused with at most this probability.
const auditAlarm = 1e-6

// TestDeviationByDefinition: the least Σ|x − m| over m, which one row moves by at most 1.
func TestDeviationByDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	naive := func(x []int64) int64 {
		least := int64(math.MaxInt64)
		for _, m := range x {
			sum := int64(0)
			for _, v := range x {
				sum += max(v-m, m-v)
			}
			least = min(least, sum)
		}
		return least
	}
	for range 2000 {
		x := make([]int64, 1+random.IntN(9))
		for i := range x {
			x[i] = random.Int64N(6)
		}
		sorted := slices.Sorted(slices.Values(x))
		if got, want := deviation(sorted), naive(x); got != want {
			t.Fatalf("%v: %d, by definition %d", x, got, want)
		}
		more := slices.Clone(x)
		more[random.IntN(len(more))]++
		if d := naive(more) - naive(x); d > 1 || d < -1 {
			t.Fatalf("%v to %v moves by %d", x, more, d)
		}
	}
}

// partitions lists all partitions of block i of level l in the order in which ties are broken: the block whole first.
func partitions(l, i, cells int) [][][2]int {
	if i<<l >= cells {
		return [][][2]int{nil}
	}
	if l > 0 && (2*i+1)<<(l-1) >= cells {
		return partitions(l-1, 2*i, cells)
	}
	all := [][][2]int{{{l, i}}}
	if l == 0 {
		return all
	}
	for _, left := range partitions(l-1, 2*i, cells) {
		for _, right := range partitions(l-1, 2*i+1, cells) {
			all = append(all, append(slices.Clone(left), right...))
		}
	}
	return all
}

// TestLeastByEnumeration: the dynamic program finds the partition that looking at all of them finds.
func TestLeastByEnumeration(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		cells := 1 + random.IntN(9)
		costs := [][]int64{}
		for l := 0; ; l++ {
			level := make([]int64, (cells+1<<l-1)>>l)
			for i := range level {
				level[i] = random.Int64N(12) - 6
			}
			costs = append(costs, level)
			if 1<<l >= cells {
				break
			}
		}
		p := partitioner{scale: random.Int64N(2)}
		top := len(costs) - 1
		least, want := int64(math.MaxInt64), []int(nil)
		for _, b := range partitions(top, 0, cells) {
			sum, ends := int64(0), []int{}
			for _, at := range b {
				sum += costs[at[0]][at[1]]
				ends = append(ends, min((at[1]+1)<<at[0], cells))
			}
			for l := 1; l <= top; l++ { // a block is cut if its two halves hold no bucket that covers them both
				for i := 0; (2*i+1)<<(l-1) < cells; i++ {
					whole := false
					for _, at := range b {
						whole = whole || at[0] >= l && at[1] == i>>(at[0]-l)
					}
					if !whole {
						sum += p.charge(l, top)
					}
				}
			}
			if sum < least {
				least, want = sum, ends
			}
		}
		got := p.least(cells, costs)
		if !slices.Equal(got, want) {
			t.Fatalf("costs %v: %v, by enumeration %v", costs, got, want)
		}
	}
}

// TestCostsByDefinition: without noise, each block's cost is sixteen times its deviation.
func TestCostsByDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	tiny, err := noise.New(noise.Laplace, 1, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		cells := make([]int64, 1+random.IntN(40))
		for i := range cells {
			cells[i] = random.Int64N(100)
		}
		costs := partitioner{noise: tiny}.costs(cells, noise.NewReader(seeded(1)))
		for l, level := range costs {
			for i, got := range level {
				from, to := i<<l, min((i+1)<<l, len(cells))
				if l > 0 && from+1<<(l-1) >= to {
					continue
				}
				if want := 16 * deviation(slices.Sorted(slices.Values(cells[from:to]))); got != want {
					t.Fatalf("%v: block %d of level %d costs %d, by definition %d", cells, i, l, got, want)
				}
			}
		}
	}
}

// twoHalves tells how often the partition of four cells is its two halves: 1 or 0 an answer. Between these neighbours
// one row makes the first half uneven and the whole more even, which moves T by all of 32.
func twoHalves(t *testing.T, p partitioner, cells []int64, stream byte) []float64 {
	t.Helper()
	r, answers := noise.NewReader(seeded(stream)), make([]float64, stattest.Length(60_000, 4_000_000))
	for i := range answers {
		if slices.Equal(p.choose(cells, r), []int{2, 4}) {
			answers[i] = 1
		}
	}
	return answers
}

func TestAuditOfThePartition(t *testing.T) {
	one, other := []int64{2, 2, 3, 3}, []int64{3, 2, 3, 3}
	for _, c := range []struct {
		name   string
		part   int64 // of the noise's scale that is kept
		faulty bool
	}{{"as it is", 1, false}, {"half the noise, as if the rivals' costs stood still", 2, true}} {
		d, err := NewDawa(4, oneRow, eps(4)) // the partition's share is 1
		if err != nil {
			t.Fatal(err)
		}
		if d.partition.noise, err = noise.New(noise.Laplace, 32, c.part); err != nil {
			t.Fatal(err)
		}
		d.partition.scale = 4 * 32 / c.part // charges may be any: high ones make the two halves a rare, telling answer
		bound, err := stattest.Audit{One: twoHalves(t, d.partition, one, 1), Other: twoHalves(t, d.partition, other, 2)}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: epsilon at least %.3f of 1", c.name, bound)
		if (bound > 1) != c.faulty {
			t.Errorf("seed %q: %s: epsilon at least %.3f; paid: 1", seed, c.name, bound)
		}
	}
}

// TestAuditOfTheRelease judges the count of a release, in its tree's first level, cut to between the neighbours'.
func TestAuditOfTheRelease(t *testing.T) {
	for _, c := range []struct {
		name   string
		paid   float64
		faulty bool
	}{{"as it is", 1, false}, {"1/2 of the noise", 2, true}} {
		d, err := NewDawa(2, oneRow, eps(c.paid))
		if err != nil {
			t.Fatal(err)
		}
		random := seeded(3)
		sample := func(cells []int64) []float64 {
			answers := make([]float64, stattest.Length(30_000, 1_000_000))
			for i := range answers {
				r, err := d.Release(privacy.Seal(cells), random)
				if err != nil {
					t.Fatal(err)
				}
				answers[i] = float64(min(max(r.Value().Observations[0], 5), 6))
				if len(r.Value().Ends) == 2 {
					answers[i] -= 10
				}
			}
			return answers
		}
		bound, err := stattest.Audit{One: sample([]int64{5, 0}), Other: sample([]int64{6, 0})}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: epsilon at least %.3f of 1", c.name, bound)
		if (bound > 1) != c.faulty {
			t.Errorf("seed %q: %s: epsilon at least %.3f; paid: 1", seed, c.name, bound)
		}
	}
}

// TestCostIsSplit: what the two parts take is what is charged, nearly all of it.
func TestCostIsSplit(t *testing.T) {
	for _, pico := range []int64{1_000_000, 333_333_333, 5e11, 7e12} {
		d, err := NewDawa(100, oneRow, privacy.Cost{Rho: privacy.PicoRho(pico)})
		if err != nil {
			t.Fatal(err)
		}
		micro := privacy.MicroEpsilon(32_000_000 / d.partition.scale)
		if spent := d.rho.Pico() + micro.Rho().Pico(); spent > pico+pico/4 || d.rho.Pico() > pico || d.rho.Pico() < pico*3/4 {
			t.Errorf("%d: spent %d, the buckets %d", pico, spent, d.rho.Pico())
		}
	}
}

func TestDawaRefusals(t *testing.T) {
	plan, err := NewDawa(4, oneRow, eps(1))
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]func() error{
		"number of cells is 0, must be from 1 to 1048576": func() error { _, err := NewDawa(0, oneRow, eps(1)); return err },
		"rows of a unit is 0": func() error {
			_, err := NewDawa(4, privacy.Contribution{Neighbors: privacy.AddRemove}, eps(1))
			return err
		},
		"neighbor relation is 0":                             func() error { _, err := NewDawa(4, privacy.Contribution{Rows: 1}, eps(1)); return err },
		"cost is epsilon 0 and rho 0, must name one of them": func() error { _, err := NewDawa(4, oneRow, privacy.Cost{}); return err },
		"too small to be split":                              func() error { _, err := NewDawa(4, oneRow, privacy.Cost{Epsilon: privacy.MicroEpsilon(3)}); return err },
		"too small for 4000000 rows": func() error {
			_, err := NewDawa(4, privacy.Contribution{Rows: 4_000_000, Neighbors: privacy.AddRemove}, eps(.1))
			return err
		},
		"delta of a dawa histogram": func() error {
			_, err := NewDawa(4, oneRow, privacy.Cost{Epsilon: privacy.MicroEpsilon(9), Delta: privacy.AttoDelta(1)})
			return err
		},
		"plan is the zero value": func() error { _, err := Dawa{}.Release(privacy.Seal([]int64{1}), seeded(1)); return err },
		"truth was never sealed": func() error { _, err := plan.Release(privacy.Sensitive[[]int64]{}, seeded(1)); return err },
		"another plan's":         func() error { _, err := plan.Prefixes(privacy.Published(Bucketed{Ends: []int{5}})); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, n := range []int{0, 1, 256} {
		if r, err := plan.Release(privacy.Seal([]int64{1}), iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(make([]byte, n))))); err == nil || r.Valid() {
			t.Errorf("%d bytes of randomness were enough", n)
		}
	}
}

// TestDawaExtremes: any cells, any number of them, both accountants, several rows, the ends of the counts.
func TestDawaExtremes(t *testing.T) {
	for _, cost := range []privacy.Cost{eps(1), {Rho: privacy.PicoRho(5e11)}} {
		for _, c := range []privacy.Contribution{oneRow, {Rows: 5, Neighbors: privacy.ReplaceOne}} {
			for _, cells := range []int{1, 2, 3, 63, 1000} {
				d, err := NewDawa(cells, c, cost)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range [][]int64{nil, {math.MinInt64}, slices.Repeat([]int64{math.MaxInt64}, cells), slices.Repeat([]int64{40}, cells+5)} {
					r, err := d.Release(privacy.Seal(x), seeded(5))
					if err != nil {
						t.Fatal(err)
					}
					p, err := d.Prefixes(r)
					if err != nil || len(p.Value()) != cells+1 || !slices.IsSorted(p.Value()) {
						t.Errorf("%d cells: %v", cells, err)
					}
					if want := 40 * float64(cells); len(x) > cells && math.Abs(p.Value()[cells]-want) > 600 {
						t.Errorf("%d cells: total %.0f of %.0f", cells, p.Value()[cells], want)
					}
				}
			}
		}
	}
}

func ExampleDawa() {
	// 600 rows over 4096 cells, ε = 0.5: a public guess says that there are few.
	c, cost := privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(500_000)}
	fmt.Println("worth it:", dawaWins(4096, 1000, c, cost))
	plan, err := NewDawa(4096, c, cost)
	if err != nil {
		fmt.Println(err)
		return
	}
	cells := make([]int64, 4096)
	cells[0] = 400
	for i := range 200 {
		cells[1024+5*i] = 1
	}
	released, err := plan.Release(privacy.Seal(cells), seeded(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	prefixes, err := plan.Prefixes(released)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := prefixes.Value()
	fmt.Printf("%d buckets; total %.0f, first 1024 cells %.0f, second %.0f\n", len(released.Value().Ends), p[4096], p[1024], p[2048]-p[1024])
	// Output:
	// worth it: true
	// 295 buckets; total 607, first 1024 cells 418, second 178
}
