package noise

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// TestShortUniformIsExact goes through all 2^16 words: each number comes equally often, and the rest is refused.
func TestShortUniformIsExact(t *testing.T) {
	all := []byte{}
	for w := range 1 << 16 {
		all = binary.LittleEndian.AppendUint16(all, uint16(w))
	}
	for _, n := range []uint64{2, 3, 5, 7, 1000, 10_000, 12_345, 1 << 14, 1<<15 - 1, 1 << 15} {
		r, counts := &Reader{buffer: all, bit: 1}, make([]int, n)
		for {
			k := r.below16(n)
			if r.Err() != nil {
				break
			}
			counts[k]++
		}
		for k, c := range counts {
			if c != 1<<16/int(n) {
				t.Fatalf("below %d: %d comes %d times of 65536", n, k, c)
			}
		}
	}
}

// TestLongUniformsRefuseTheRest: of 8 words in a row 3, 3 and 2 would be the remainders of three; the claim is a third
// each.
func TestLongUniformsRefuseTheRest(t *testing.T) {
	for name, draw := range map[string]func(r *Reader) uint64{
		"32 bits": func(r *Reader) uint64 { return uint64(r.below32(3 << 29)) }, "64 bits": func(r *Reader) uint64 { return r.below(3 << 61) },
		"a word": func(r *Reader) uint64 { return r.belowWord(3 << 61) },
	} {
		r, samples := seeded(41), make([]int64, 60_000)
		for i := range samples {
			samples[i] = int64(draw(r) % 3)
		}
		if err := stattest.ChiSquare(samples, func(k int64) float64 {
			if k < 0 || k > 2 {
				return 0
			}
			return 1. / 3
		}, stattest.Usual); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheRestOfAnAcceptance: with y = u/num the first trial of exp(−y/64) has had 1/64 of its success, and
// exp(−y/64) = 63/64 + p/64 leaves p to be drawn. An error here would hardly show in a sample, but make a step at every
// 64th part of the scale.
func TestTheRestOfAnAcceptance(t *testing.T) {
	const num = 1000
	for _, u := range []uint64{0, 1, 250, 500, 999} {
		y := float64(u) / num
		c := stattest.Coverage{Trials: 100_000, Claim: 1 + 64*math.Expm1(-y/64)}
		r := seeded(42)
		for range c.Trials {
			if expMinusRest(r, u, num) {
				c.Hits++
			}
		}
		if err := c.Exactly(stattest.Usual); err != nil {
			t.Errorf("u = %d: %v", u, err)
		}
	}
}
