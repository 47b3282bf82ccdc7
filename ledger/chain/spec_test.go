package chain

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// tree is a tree of 2·3 branches over 6 cells with discrete Gaussian noise 5/2.
var tree = mechanisms.Spec{Counters: 1, Cells: 6, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Tree, Radices: []int{2, 3}},
	Noise: mechanisms.Noise{Kind: mechanisms.DiscreteGaussian, Num: 5, Den: 2}}}

// treeBytes are its bytes: what is written today is read by whatever comes later.
const treeBytes = "0000000000000001" + // counts
	"0000000000000001" + // of one counter
	"0000000000000002" + "0000000000000006" + // a tree over 6 cells
	"0000000000000002" + "0000000000000002" + "0000000000000003" + // of 2·3 branches
	"0000000000000000" + "0000000000000000" + "0000000000000000" + "0000000000000000" + "0000000000000000" + "0000000000000000" + // and no more
	"0000000000000002" + "0000000000000005" + "0000000000000002" + "0000000000000000" + // its noise
	"0000000000000000" // no sums

func TestSpecsBytes(t *testing.T) {
	var e Encoder
	if e.Spec(tree); hex.EncodeToString(e.b) != treeBytes {
		t.Errorf("wrote %x, want %s", e.b, treeBytes)
	}
}

// TestSpecsAreWrittenAtOnce: a kind is shared by all that hold the Spec, and writing it leaves it alone (under the race
// detector).
func TestSpecsAreWrittenAtOnce(t *testing.T) {
	for _, kind := range []mechanisms.Kind{tree.Kind, &mechanisms.Choice{Kind: mechanisms.Popular}, &mechanisms.Alarm{Positives: 1}, &mechanisms.Online{}, &mechanisms.Synthetic{}} {
		s := mechanisms.Spec{Counters: 1, Cells: 6, Kind: kind}
		var writers sync.WaitGroup
		for range 2 {
			writers.Go(func() { new(Encoder).Spec(s) })
		}
		writers.Wait()
	}
}

func TestSpecsKeepAllOfThem(t *testing.T) {
	laplace := mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 7, Den: 3}
	count := mechanisms.Bound{Low: 0, High: 1}
	specs := []mechanisms.Spec{
		tree,
		{Counters: 2, Cells: 9, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Sums: []mechanisms.Sum{{Bound: count, Noise: laplace}, {Bound: mechanisms.Bound{Low: -5, High: 1 << 40}, Noise: tree.Counts().Noise}}}},
		{Counters: 2, Cells: 9, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Sums: []mechanisms.Sum{{Bound: count, Noise: laplace}, {Bound: count, Noise: laplace, Values: 12}}}},
		{Counters: 2, Cells: 9, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Sums: []mechanisms.Sum{{Bound: count, Noise: laplace},
			{Bound: mechanisms.Bound{Low: -5, High: 1 << 40}, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 7, Den: 3, Step: 127}}}}},
		{Counters: 1, Cells: 6, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Tree, Radices: []int{2, 3}, Weights: []int64{9, 7}}, Noise: laplace}},
		{Counters: 1, Cells: 64, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.PIdentity, Version: 1}, Noise: laplace}},
		{Counters: 1, Cells: 64, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Sine, Bits: 20, Version: 1}, Noise: laplace}},
		{Counters: 1, Cells: 2, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Matrix, Matrix: []int64{1, -2, 3, 4}}, Noise: laplace}},
		{Counters: 1, Cells: 6, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Marginals, Radices: []int{2, 3}, Marginals: []ranges.Marginal{{Attributes: 2, Residual: true, Weight: 4}, {Weight: 1}}}, Noise: laplace}},
		{Counters: 1, Cells: 6, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Product, Factors: []ranges.Description{{Kind: mechanisms.Identity, Cells: 2}, {Kind: mechanisms.Tree, Cells: 3, Radices: []int{3}}}}, Noise: laplace}},
		{Counters: 1, Cells: 9, Kind: &mechanisms.Choice{Kind: mechanisms.Quantiles, Blocks: []mechanisms.Block{{Groups: 2, Cells: 3}, {Groups: 1, Cells: 3}}, Shares: []mechanisms.Share{{Num: 0, Den: 1}, {Num: 1, Den: 2}},
			Each: mechanisms.Contribution{Rows: 2, Neighbors: privacy.AddRemove}, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(5)}}},
		{Counters: 3, Cells: 1, Kind: &mechanisms.Choice{Kind: mechanisms.Popular, Blocks: []mechanisms.Block{{Groups: 1, Cells: 3}}, Most: 2,
			Each: mechanisms.Contribution{Rows: 4, Groups: 2, PerGroup: 2, Neighbors: privacy.ReplaceOne}, Cost: privacy.Cost{Rho: privacy.PicoRho(7)}}},
		{Counters: 1, Cells: 1, Kind: &mechanisms.Alarm{Positives: 3, Restarts: 1, Contribution: mechanisms.Contribution{Rows: 4, Neighbors: privacy.ReplaceOne}, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(7)}}},
		{Counters: 2, Cells: 1, Kind: &mechanisms.Choice{Kind: mechanisms.Popular, Blocks: []mechanisms.Block{{Groups: 1, Cells: 2}}, Most: 1, Weights: []int64{3, 8},
			Each: mechanisms.Contribution{Rows: 4, Neighbors: privacy.ReplaceOne}, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(7)}}},
		{Counters: 1, Cells: 4, Kind: &mechanisms.Choice{Kind: mechanisms.Dearest, Blocks: []mechanisms.Block{{Groups: 1, Cells: 4}}, Most: 1, Weights: []int64{5, 9}, From: []int64{0, 3},
			Each: mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Cost: privacy.Cost{Rho: privacy.PicoRho(7)}}},
	}
	seen := map[string]bool{}
	for _, s := range specs {
		e := Encoder{}
		e.Spec(s)
		d := Decoder{b: e.b}
		if got := d.Spec(); d.End() != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("read %+v (%v), want %+v", got, d.End(), s)
		}
		if seen[string(e.b)] {
			t.Errorf("%+v is written as another", s)
		}
		seen[string(e.b)] = true
		damaged(t, s, e.b)
		for cut := range len(e.b) {
			d := Decoder{b: e.b[:cut]}
			if d.Spec(); d.End() == nil {
				t.Errorf("%+v, cut after %d bytes, is read", s, cut)
			}
		}
	}
	for _, kind := range []int64{-2, 0, specSynthetic + 1} {
		var e Encoder
		e.Int(kind)
		d := Decoder{b: append(e.b, make([]byte, 256)...)}
		if d.Spec(); d.End() == nil || !strings.Contains(d.End().Error(), fmt.Sprintf("kind %d is not known", kind)) {
			t.Errorf("kind %d: %v", kind, d.End())
		}
	}
}

// damaged: whatever byte of a Spec is another one, what is read is written as it was read, or nothing is.
func damaged(t *testing.T, s mechanisms.Spec, written []byte) {
	t.Helper()
	for at := range written {
		for _, flip := range []byte{1, 0x80} {
			b := bytes.Clone(written)
			b[at] ^= flip
			d := Decoder{b: b}
			got := d.Spec()
			if d.End() != nil {
				continue
			}
			var again Encoder
			if again.Spec(got); !bytes.Equal(again.b, b) {
				t.Errorf("%+v with byte %d wrong is read as %+v", s, at, got)
			}
		}
	}
}

// TestSpecsOfInstancesRoundTrip: what a synthetic or online release was measured by is read back equal, and equal specs
// have equal bytes.
func TestSpecsOfInstancesRoundTrip(t *testing.T) {
	made := mechanisms.Spec{Counters: 1, Cells: 12, Kind: &mechanisms.Synthetic{Rule: mechanisms.SmallDatabase, Sizes: []int{3, 4}, Total: 77, Drawn: 9,
		Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}, Cost: privacy.Cost{Rho: privacy.PicoRho(5)}}}
	online := mechanisms.Spec{Counters: 1, Cells: 8, Kind: &mechanisms.Online{Rule: mechanisms.MultiplicativeWeights, Rows: 1000, Spare: 1000, Updates: 5,
		Contribution: privacy.Contribution{Rows: 2, Groups: 2, PerGroup: 1, Neighbors: privacy.AddRemove}, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6)}}}
	for _, s := range []mechanisms.Spec{made, online} {
		var e, again Encoder
		e.Spec(s)
		again.Spec(s)
		d := Decoder{b: e.b}
		if got := d.Spec(); d.End() != nil || !reflect.DeepEqual(got, s) || !bytes.Equal(e.b, again.b) {
			t.Errorf("%+v (%v), want %+v", got, d.err, s)
		}
		damaged(t, s, e.b)
		for cut := range e.b {
			d := Decoder{b: e.b[:cut]}
			d.Spec()
			if d.End() == nil {
				t.Fatalf("cut at %d passes", cut)
			}
		}
	}
}
