package histograms

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Reading reads counts of ranges and quantiles from kept prefixes. From the top down, what a prefix counts beyond its
// kept children is spread evenly over the keys that are in none of them; children that together count more than it are
// scaled down to it. So counts are never negative and add up. Rows in dropped prefixes of the first level are not in
// it, and a kept prefix, having passed the threshold, is a little too large on average where its count is near to it.
// It is post-processing, and safe for concurrent use.
type Reading struct {
	keyBits int
	pieces  []piece
	below   []float64 // counts before each piece, and of all
}

// piece is a range of keys, first to last, over which a count is even.
type piece struct {
	first, last uint64
	count       float64
}

// width returns the number of keys, which may be 2^64.
func (p piece) width() float64 { return float64(p.last-p.first) + 1 }

// Reading reads a release of the plan.
func (p Prefixes) Reading(released privacy.Released[[]Node]) (*Reading, error) {
	if p.keyBits == 0 || !released.Valid() {
		return nil, errors.New("plan or release is the zero value, must be made by NewPrefixes and Release")
	}
	nodes := released.Value()
	levels := make([][]Node, p.Levels()+1)
	for i, n := range nodes {
		if n.Level < 0 || n.Level >= p.Levels() || i > 0 && (n.Level < nodes[i-1].Level || n.Level == nodes[i-1].Level && n.First <= nodes[i-1].First) {
			return nil, fmt.Errorf("node %d is out of order: the release is another plan's", i)
		}
		levels[n.Level] = append(levels[n.Level], n)
	}
	r := &Reading{keyBits: p.keyBits}
	total := 0.0
	for _, n := range levels[0] {
		total += float64(n.Count)
	}
	r.spread(p, levels, 0, piece{0, math.MaxUint64 >> (64 - p.keyBits), total})
	r.below = make([]float64, len(r.pieces)+1)
	for i, piece := range r.pieces {
		r.below[i+1] = r.below[i] + piece.count
	}
	return r, nil
}

// spread adds the pieces of a prefix, whose children are of the given level.
func (r *Reading) spread(p Prefixes, levels [][]Node, level int, whole piece) {
	all := levels[level]
	from := sort.Search(len(all), func(i int) bool { return all[i].First >= whole.first })
	to := sort.Search(len(all), func(i int) bool { return all[i].First > whole.last })
	if from == to {
		r.pieces = append(r.pieces, whole)
		return
	}
	last := uint64(math.MaxUint64) >> (64 - p.keyBits) >> ((level + 1) * p.stride) // of a child, from its first on
	sum, free := 0.0, whole.width()
	for _, n := range all[from:to] {
		sum += float64(n.Count)
		free -= float64(last) + 1
	}
	scale, rest := math.Min(1, whole.count/sum), math.Max(0, whole.count-sum)
	if free < 1 { // no keys for the rest
		scale, rest = whole.count/sum, 0
	}
	at, ended := whole.first, false
	for _, n := range all[from:to] {
		if n.First > at {
			gap := piece{first: at, last: n.First - 1}
			gap.count = rest * gap.width() / free
			r.pieces = append(r.pieces, gap)
		}
		r.spread(p, levels, level+1, piece{n.First, n.First + last, float64(n.Count) * scale})
		at, ended = n.First+last+1, n.First+last == whole.last
	}
	if !ended {
		gap := piece{first: at, last: whole.last}
		gap.count = rest * gap.width() / free
		r.pieces = append(r.pieces, gap)
	}
}

// upTo returns the count of the keys up to and with key.
func (r *Reading) upTo(key uint64) float64 {
	i := sort.Search(len(r.pieces), func(i int) bool { return r.pieces[i].last >= key })
	if i == len(r.pieces) {
		return r.below[i]
	}
	p := r.pieces[i]
	return r.below[i] + p.count*math.Min(1, piece{first: p.first, last: key}.width()/p.width())
}

// Count returns the count of the keys from first to last, both included.
func (r *Reading) Count(first, last uint64) privacy.Released[float64] {
	if first > last {
		return sealed.Release(0.)
	}
	before := 0.0
	if first > 0 {
		before = r.upTo(first - 1)
	}
	return sealed.Release(math.Max(0, r.upTo(last)-before))
}

// Share is a part of all rows, from 0 to 1.
type Share struct{ p float64 }

// NewShare checks a share.
func NewShare(p float64) (Share, error) {
	if !(p >= 0 && p <= 1) {
		return Share{}, fmt.Errorf("share is %g, must be from 0 to 1", p)
	}
	return Share{p}, nil
}

// Quantile returns the least key up to which there is at least the share of all counted rows, 0 if none were counted.
func (r *Reading) Quantile(s Share) privacy.Released[uint64] {
	wanted := s.p * r.below[len(r.pieces)]
	i := sort.Search(len(r.pieces), func(i int) bool { return r.below[i+1] >= wanted })
	if i == len(r.pieces) || r.below[len(r.pieces)] == 0 {
		return sealed.Release(uint64(0))
	}
	p := r.pieces[i]
	if p.count == 0 {
		return sealed.Release(p.first)
	}
	steps := math.Max(0, math.Ceil((wanted-r.below[i])/p.count*p.width())-1)
	if steps >= p.width()-1 {
		return sealed.Release(p.last)
	}
	return sealed.Release(min(p.first+uint64(steps), p.last))
}
