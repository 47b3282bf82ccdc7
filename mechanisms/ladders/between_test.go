package ladders

import (
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// betweenCases are rates of coarse, middle and finest levels, per mille.
var betweenCases = [][3]int64{{500, 1000, 3000}, {300, 310, 3000}, {50, 900, 910}, {20, 100, 500}}

func scaleOf(permille int64) Scale { return Scale{1000, permille} }

func laplaceMass(permille int64) func(k int64) float64 {
	q := math.Exp(-float64(permille) / 1000)
	return func(k int64) float64 { return (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(k))) }
}

func stepMass(coarse, fine int64) func(k int64) float64 {
	return mass(math.Exp(-float64(coarse)/1000), math.Exp(-float64(fine)/1000))
}

// TestMiddleIsALevel: a level drawn after the coarse one is distributed as one drawn before it: its noise, its steps
// from the finest and to the coarse level, that these two are independent, and the coarse level's noise; twenty
// judgements at stattest.Usual.
func TestMiddleIsALevel(t *testing.T) {
	const n = 60_000
	for number, c := range betweenCases {
		reader := noise.NewReader(seeded(byte(20 + number)))
		step, err := NewStep(scaleOf(c[0]), scaleOf(c[2]))
		if err != nil {
			t.Fatal(err)
		}
		between, err := NewBetween(scaleOf(c[0]), scaleOf(c[1]), scaleOf(c[2]))
		if err != nil {
			t.Fatal(err)
		}
		finest, err := noise.New(noise.Laplace, 1000, c[2])
		if err != nil {
			t.Fatal(err)
		}
		own, coarse, down, up, pair := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
		cut := func(k int64) int64 { return min(max(k, -2), 2) + 2 }
		for i := range n {
			z := finest.Sample(reader)
			y := step.Draw(reader, z)
			m := between.Draw(reader, z, y)
			own[i], coarse[i], down[i], up[i], pair[i] = m, y, m-z, y-m, 5*cut(m-z)+cut(y-m)
		}
		var parts [2][5]float64
		for k := int64(-700); k <= 700; k++ {
			parts[0][cut(k)] += stepMass(c[1], c[2])(k)
			parts[1][cut(k)] += stepMass(c[0], c[1])(k)
		}
		for _, judged := range []struct {
			name    string
			samples []int64
			mass    func(k int64) float64
		}{
			{"noise", own, laplaceMass(c[1])}, {"coarse", coarse, laplaceMass(c[0])}, {"down", down, stepMass(c[1], c[2])}, {"up", up, stepMass(c[0], c[1])},
			{"pair", pair, func(k int64) float64 {
				if k < 0 || k > 24 {
					return 0
				}
				return parts[0][k/5] * parts[1][k%5]
			}},
		} {
			if err := stattest.ChiSquare(judged.samples, judged.mass, stattest.Usual); err != nil {
				t.Errorf("seed %q, %v: %s: %v", seed, c, judged.name, err)
			}
		}
	}
}

// TestStepInFixedWork: a step of a fixed-work source has its law, and takes as many words of it where it moves as where
// it stays: their number and its square have the same means, by Welch's test. Four judgements of laws at
// stattest.Usual, four of words at 1e-7.
func TestStepInFixedWork(t *testing.T) {
	const n = 150_000
	for number, c := range betweenCases {
		if number < 2 {
			continue // steps so large need as many words either way: nothing would be seen
		}
		source := &counted{source: seeded(byte(60 + number))}
		step, err := NewStep(scaleOf(c[0]), scaleOf(c[2]))
		if err != nil {
			t.Fatal(err)
		}
		finest, err := noise.New(noise.Laplace, 1000, c[2])
		if err != nil {
			t.Fatal(err)
		}
		moved, coarse := make([]int64, n), make([]int64, n)
		var words [2][]float64 // where it stays and where it moves
		for i := range n {
			source.bytes = 0
			reader := noise.NewReader(noise.FixedWork(source))
			z := finest.Sample(reader)
			coarse[i] = step.Draw(reader, z)
			moved[i] = coarse[i] - z
			used := source.bytes / 8
			for before := source.bytes; source.bytes == before; used-- { // what was read ahead, word by word
				reader.Below(1 << 63)
			}
			far := min(max(moved[i], -moved[i]), 1)
			words[far] = append(words[far], used+1)
			if reader.Err() != nil {
				t.Fatal(reader.Err())
			}
		}
		for name, err := range map[string]error{
			"step":   stattest.ChiSquare(moved, stepMass(c[0], c[2]), stattest.Usual),
			"coarse": stattest.ChiSquare(coarse, laplaceMass(c[0]), stattest.Usual),
		} {
			if err != nil {
				t.Errorf("seed %q, %v: %s: %v", seed, c, name, err)
			}
		}
		if len(words[0]) < 300 || len(words[1]) < 300 {
			t.Errorf("%v: %d steps stay and %d move: nothing was tested", c, len(words[0]), len(words[1]))
		}
		for power := 1.0; power <= 2; power++ {
			stattest.Spend(1e-7)
			var mean [2]float64
			spread := 0.0
			for far, list := range words {
				sum, squares, count := 0.0, 0.0, float64(len(list))
				for _, w := range list {
					x := math.Pow(w, power)
					sum, squares = sum+x, squares+x*x
				}
				mean[far] = sum / count
				spread += (squares/count - mean[far]*mean[far]) / count
			}
			if off, most := math.Abs(mean[0]-mean[1]), 5.4*math.Sqrt(spread); off > most {
				t.Errorf("seed %q, %v: the mean of words^%g is %.2f where it stays and %.2f where it moves, further apart than %.2f", seed, c, power, mean[0], mean[1], most)
			}
		}
	}
}

// counted counts the bytes that are read.
type counted struct {
	source io.Reader
	bytes  float64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.bytes += float64(n)
	return n, err
}

// TestMiddleGivenBoth: the law of the middle level for one finest and one coarse value, against the conditional law
// that is computed from the steps; sixteen judgements. The sampler with the values' roles exchanged must fail it.
func TestMiddleGivenBoth(t *testing.T) {
	const n = 20_000
	for number, c := range betweenCases {
		reader := noise.NewReader(seeded(byte(40 + number)))
		between, err := NewBetween(scaleOf(c[0]), scaleOf(c[1]), scaleOf(c[2]))
		if err != nil {
			t.Fatal(err)
		}
		down, up := stepMass(c[1], c[2]), stepMass(c[0], c[1])
		for _, d := range []int64{0, 1, -7, 40} {
			law, total := map[int64]float64{}, 0.
			for a := int64(-600); a <= 600; a++ {
				law[a] = down(a) * up(d-a)
				total += law[a]
			}
			conditional := func(k int64) float64 { return law[k] / total }
			right, mirrored := make([]int64, n), make([]int64, n)
			for i := range right {
				right[i] = between.Draw(reader, 100, 100+d) - 100
				mirrored[i] = d - right[i]
			}
			if err := stattest.ChiSquare(right, conditional, stattest.Usual); err != nil {
				t.Errorf("seed %q, %v, %d apart: %v", seed, c, d, err)
			}
			if d != 0 && c[1] != 310 && stattest.ChiSquare(mirrored, conditional, stattest.Usual) == nil && d != 1 {
				t.Errorf("%v, %d apart: the planted fault passed", c, d)
			}
		}
	}
}

// TestBetweenRefuses what is no ladder.
func TestBetweenRefuses(t *testing.T) {
	for _, c := range []struct {
		coarse, middle, finest Scale
		want                   string
	}{
		{Scale{1, 1}, Scale{2, 1}, Scale{1, 2}, "scale of the coarser level is 1/1, must be above 2/1"},
		{Scale{2, 1}, Scale{1, 1}, Scale{1, 1}, "scale of the coarser level is 1/1, must be above 1/1"},
		{Scale{0, 1}, Scale{1, 1}, Scale{1, 2}, "scale of a level is 0/1, must be above 0 and at most 2^50"},
		{Scale{math.MaxInt64, 1}, Scale{1, 1}, Scale{1, 2}, fmt.Sprintf("scale of a level is %d/1, must be above 0 and at most 2^50", int64(math.MaxInt64))},
	} {
		if _, err := NewBetween(c.coarse, c.middle, c.finest); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c, err, c.want)
		}
	}
}

// BenchmarkMiddle refines one count.
func BenchmarkMiddle(b *testing.B) {
	reader := noise.NewReader(seeded(60))
	for _, c := range [][3]int64{{500, 1000, 3000}, {1, 100, 1000}} {
		step, _ := NewStep(scaleOf(c[0]), scaleOf(c[2]))
		between, _ := NewBetween(scaleOf(c[0]), scaleOf(c[1]), scaleOf(c[2]))
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			for b.Loop() {
				between.Draw(reader, 0, step.Draw(reader, 0))
			}
		})
	}
}
