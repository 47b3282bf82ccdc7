package mechanisms

import (
	"crypto/rand"
	"errors"
	"io"
	"math"
	"math/big"
	weak "math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const seed = "32 bytes for the test's generator"

func seeded(stream byte) io.Reader {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return weak.NewChaCha8(key)
}

// inOrder places a group in the cell of its first grain column, for each counter.
func inOrder(cells []int32, _ int) int { return int(cells[0]) }

// silent is a cost at which a noise other than 0 has probability below exp(−10^5).
var silent = epsilon(1e12)

func groupsOf(counts ...int64) []privacy.Group {
	groups := []privacy.Group{}
	for i, c := range counts {
		groups = append(groups, privacy.Group{Cells: []int32{int32(i)}, Counts: []int64{c}})
	}
	return groups
}

func mustRelease(t testing.TB, s Spec, groups []privacy.Group, random io.Reader) privacy.Released[Noisy] {
	t.Helper()
	r, err := Release(s, inOrder, privacy.Seal(groups), random)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReleaseObservesTheTwinsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpec(t)
		s = s.scaled(func(Noise) Noise { return Noise{Kind: DiscreteLaplace, Num: 1, Den: 1_000_000} })
		rows := [][]int{}
		groups := []privacy.Group{}
		for i := range rapid.IntRange(0, 10).Draw(t, "groups") {
			row := make([]int, s.Counters)
			g := privacy.Group{Cells: []int32{int32(i)}}
			for c := range row {
				row[c] = rapid.IntRange(-2, s.Cells+1).Draw(t, "cell")
				g.Counts = append(g.Counts, rapid.Int64Range(0, 3).Draw(t, "count"))
			}
			groups = append(groups, g)
			for n := range int64(3) { // the twin counts rows: one that is not there lies nowhere
				one := slices.Clone(row)
				for c := range one {
					if n >= g.Counts[c] {
						one[c] = -1
					}
				}
				rows = append(rows, one)
			}
		}
		place := func(cells []int32, counter int) int { return rows[3*cells[0]+0][counter] }
		placed := func(cells []int32, counter int) int {
			for n := range int32(3) {
				if c := rows[3*cells[0]+n][counter]; c != -1 {
					return c
				}
			}
			return place(cells, counter)
		}
		r, err := Release(s, placed, privacy.Seal(groups), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Value().Observations, observedOf(s, rows); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: %v, twin %v", s, got, want)
		}
	})
}

func TestSaturation(t *testing.T) {
	tree := Spec{Counters: 1, Cells: 4, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{2, 2}}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1_000_000}}}
	groups := groupsOf(math.MaxInt64, MaxCount, math.MinInt64, -7)
	groups = append(groups, privacy.Group{Cells: []int32{0}, Counts: []int64{math.MaxInt64}}, privacy.Group{Cells: []int32{3}, Counts: []int64{5}})
	want := []int64{MaxCount, 5, MaxCount, MaxCount, 0, 5}
	if got := mustRelease(t, tree, groups, rand.Reader).Value().Observations; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, c := range []struct{ count, noise, want int64 }{
		{0, math.MaxInt64, MaxNoisy}, {0, math.MinInt64, -MaxNoisy}, {MaxCount, math.MinInt64, -MaxNoisy}, {MaxCount, math.MaxInt64, MaxNoisy},
		{MaxCount, MaxNoisy - MaxCount, MaxNoisy}, {MaxCount, MaxNoisy - MaxCount - 1, MaxNoisy - 1}, {MaxCount, -MaxNoisy - MaxCount, -MaxNoisy},
		{MaxCount, -MaxNoisy - MaxCount + 1, -MaxNoisy + 1}, {0, -MaxNoisy, -MaxNoisy}, {7, -9, -2},
		{-MaxCount, math.MinInt64, -MaxNoisy}, {-MaxCount, math.MaxInt64, MaxNoisy}, {-MaxCount, -MaxCount, -MaxNoisy}, {-MaxCount, MaxNoisy, MaxCount},
		{-MaxCount, MaxNoisy + MaxCount - 1, MaxNoisy - 1}, {MaxCount, -MaxNoisy - MaxCount + 1, 1 - MaxNoisy},
	} {
		if got := noise.Add(c.count, c.noise); got != c.want {
			t.Errorf("%d + %d is %d, want %d", c.count, c.noise, got, c.want)
		}
	}
	// A cut of the noise at the int64 ends never shows: every noise from there on gives the same.
	for _, count := range []int64{0, 1, MaxCount, -1, -MaxCount} {
		if noise.Add(count, math.MinInt64) != noise.Add(count, math.MinInt64+1) || noise.Add(count, math.MaxInt64) != noise.Add(count, math.MaxInt64-1) {
			t.Errorf("the ends show at %d", count)
		}
	}
}

// TestSignedSums: sums of values of both signs are exact wherever they lie in between, cut when they are known, and the
// same in whatever order the groups come.
func TestSignedSums(t *testing.T) {
	quiet := Noise{Kind: DiscreteLaplace, Num: 1, Den: 1_000_000}
	both := []Sum{{Bound: counted, Noise: quiet}, {Bound: Bound{-5, 5}, Noise: quiet}}
	for _, s := range []Spec{
		{Counters: 2, Cells: 4, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Sums: both}},
		{Counters: 2, Cells: 4, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{2, 2}}, Sums: both}},
		{Counters: 2, Cells: 4, Kind: &Counts{Strategy: Strategy{Kind: Tree, Radices: []int{2, 2}, Weights: []int64{3, 1000}}, Sums: both}},
	} {
		rapid.Check(t, func(t *rapid.T) {
			groups, exact := []privacy.Group{}, make([]*big.Int, 8)
			for i := range exact {
				exact[i] = new(big.Int)
			}
			values := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64())
			for range rapid.IntRange(0, 9).Draw(t, "groups") {
				g := privacy.Group{Cells: []int32{rapid.Int32Range(0, 3).Draw(t, "cell")}, Counts: []int64{values.Draw(t, "count"), values.Draw(t, "sum")}}
				groups = append(groups, g)
				exact[g.Cells[0]].Add(exact[g.Cells[0]], big.NewInt(max(g.Counts[0], 0)))
				exact[4+g.Cells[0]].Add(exact[4+g.Cells[0]], big.NewInt(g.Counts[1]))
			}
			want := []int64{}
			for counter := range 2 {
				cells := exact[4*counter : 4*counter+4]
				for _, c := range cells {
					c.SetInt64(cutBig(c, MaxCount))
				}
				for i, span := range spansOf(s) {
					sum, weight := new(big.Int), int64(1)
					for _, c := range cells[span.From:span.To] {
						sum.Add(sum, c)
					}
					if s.Counts().Strategy.Weights != nil {
						weight = s.Counts().Strategy.Weights[min(i/2, 1)]
					}
					want = append(want, weight*cutBig(sum, MaxCount/weight))
				}
			}
			weak.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
			r, err := Release(s, inOrder, privacy.Seal(groups), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Value().Observations; !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: %v, want %v", groups, got, want)
			}
		})
	}
}

func cutBig(n *big.Int, most int64) int64 {
	if n.CmpAbs(big.NewInt(most)) > 0 {
		return most * int64(n.Sign())
	}
	return n.Int64()
}

func TestReleaseFailsOnlyOnPublicThings(t *testing.T) {
	s, err := Plain(2, 3, oneRow, silent)
	if err != nil {
		t.Fatal(err)
	}
	whole := privacy.Seal(groupsOf(1, 2, 3))
	if _, err := Release(s, nil, whole, rand.Reader); err == nil || err.Error() != "placement is nil, must be a function" {
		t.Error(err)
	}
	if _, err := Release(s, inOrder, privacy.Sensitive[[]privacy.Group]{}, rand.Reader); err == nil || err.Error() != "truth was never sealed" {
		t.Error(err)
	}
	// What the database may hold: cells out of the domain, too few counts, and a placement that trips over a group.
	odd := []privacy.Group{{Cells: []int32{-1}, Counts: []int64{1, 1}}, {Cells: []int32{99}, Counts: []int64{1, 1}}, {Cells: []int32{1}, Counts: []int64{4}}, {}, {Counts: []int64{1, 1, 1}}}
	r, err := Release(s, inOrder, privacy.Seal(odd), rand.Reader)
	if err != nil || !reflect.DeepEqual(r.Value().Observations, []int64{0, 4, 0, 0, 0, 0}) {
		t.Error(r, err)
	}
	none, err := Release(s, inOrder, privacy.Seal([]privacy.Group(nil)), rand.Reader)
	if err != nil || !reflect.DeepEqual(none.Value().Observations, make([]int64, 6)) {
		t.Error(none, err)
	}
}

func TestNothingIsOpenedWhenRandomnessFails(t *testing.T) {
	broken := errors.New("no entropy")
	for _, good := range []int64{0, 8, 255, 256, 700} {
		s, err := Ranges(4096, oneRow, epsilon(100_000))
		if err != nil {
			t.Fatal(err)
		}
		opened := false
		place := func([]int32, int) int { opened = true; return 0 }
		random := io.MultiReader(io.LimitReader(rand.Reader, good), failing{broken})
		r, err := Release(s, place, privacy.Seal(groupsOf(1)), random)
		if !errors.Is(err, broken) || opened || r.Valid() {
			t.Errorf("after %d bytes: %v, opened %t, released %t", good, err, opened, r.Valid())
		}
	}
	s, _ := Plain(1, 1, oneRow, silent)
	if _, err := Release(s, inOrder, privacy.Seal(groupsOf(1)), nil); err == nil || !strings.Contains(err.Error(), "no source of randomness") {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTheOrderOfGroupsDoesNotMatter(t *testing.T) {
	s, err := Plain(1, 300, oneRow, silent)
	if err != nil {
		t.Fatal(err)
	}
	groups := []privacy.Group{}
	for i := range int32(500) {
		groups = append(groups, privacy.Group{Cells: []int32{i % 310}, Counts: []int64{int64(i) << (i % 60)}})
	}
	before := mustRelease(t, s, groups, seeded(1)).Value()
	weak.New(weak.NewPCG(1, 2)).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	if after := mustRelease(t, s, groups, seeded(1)).Value(); !reflect.DeepEqual(before, after) {
		t.Error("the release depends on the order of the groups")
	}
}

func BenchmarkRelease(b *testing.B) {
	count, err := Plain(1, 1, oneRow, epsilon(100_000))
	if err != nil {
		b.Fatal(err)
	}
	ordered, err := Ranges(4096, oneRow, epsilon(100_000))
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]Spec{"count": count, "range4096": ordered} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustRelease(b, s, groupsOf(1000), rand.Reader)
			}
		})
	}
	noisy := mustRelease(b, ordered, groupsOf(1000), rand.Reader)
	b.Run("estimate4096", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewEstimate(ordered, noisy); err != nil {
				b.Fatal(err)
			}
		}
	})
	sure, _ := NewConfidence(.95)
	b.Run("error", func(b *testing.B) {
		for b.Loop() {
			ordered.Error([]Span{{100, 3000}}, sure)
		}
	})
	b.Run("errors4096", func(b *testing.B) {
		for b.Loop() {
			e := ordered.Errors(sure)
			for i := range 4096 {
				e.Of([]Span{{i, i + 1}})
			}
		}
	})
}
