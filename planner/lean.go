package planner

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// lean lets a count be read from another count of the same statement whose cells add up to it, such as a total beside the
// groups: then nothing is paid for it, the others have more, and the answers add up. It tells how many do, of so many that
// are measured. Whether it is worth it goes by the sum of the mean errors of all counts.
func (ch *chooser) lean(sheets []*sheet, measured int) (leaning int) {
	v := &sheeter{ch: ch}
	for _, sh := range sheets {
		if !sh.isPlain() {
			continue
		}
		var on *sheet
		least := math.Inf(1)
		for _, other := range sheets {
			if other == sh || other.base != nil || !other.isPlain() || slices.ContainsFunc(sheets, func(s *sheet) bool { return s.base == sh }) {
				continue
			}
			if r := coverWithin(sh.asks[0].solved, other.asks[0].solved); r != nil {
				if cells := r.meanCells(); cells < least {
					on, least = other, cells
				}
			}
		}
		if on == nil {
			continue
		}
		rest := 0.
		for _, other := range sheets {
			if other != sh && other.base == nil && len(other.asks) > 0 {
				rest += v.error(other.asks) / float64(max(1, other.values()))
			}
		}
		k := float64(measured - leaning)
		alone := (rest + v.error(sh.asks)/float64(sh.values())) * math.Pow(k, v.order())
		one := v.weight(on.asks[0]) / float64(on.values())
		if read := (rest + one*least) * math.Pow(k-1, v.order()); read <= alone*sumsClearlyWorse {
			sh.base = on
			leaning++
		}
	}
	return leaning
}

// isPlain tells a sheet of counts of rows that one ask answers.
func (sh *sheet) isPlain() bool {
	return len(sh.asks) == 1 && sh.asks[0].wanted() && sh.asks[0].summed() == nil && sh.asks[0].perGroup == 0 && sh.asks[0].marginals == nil && sh.asks[0].alarm == nil
}

// values is the number of counts that a sheet shows.
func (sh *sheet) values() int {
	n := 0
	for s := range sh.sets {
		n += len(sh.frames[s].rowOrder())
	}
	counted := 0
	for _, c := range sh.counters {
		if c.width == nil {
			counted++
		}
	}
	return n * counted
}

// leaning reads a sheet from the measure of the one that it leans on, where that is measured as itself.
func (ch *chooser) leaning(sheets []*sheet, ways [][]*way, sh *sheet, buying map[Digest]*Measure, share privacy.Cost) (*way, *refuse.Refusal) {
	m := sh.base.asks[0].solved
	if w := ways[slices.Index(sheets, sh.base)][0]; w != nil && w.measure.Digest == m.measure("", "").Digest {
		return &way{measure: w.measure, reading: coverWithin(sh.asks[0].solved, m)}, nil
	} else if w != nil && w.counts != nil {
		own, err := m.fresh(share)
		r := cover(sh.asks[0].solved, w.counts)
		if r != nil && err == nil && ch.worst(w.measure.Spec, r) <= ch.worst(own, coverWithin(sh.asks[0].solved, m)) {
			return &way{measure: w.measure, reading: r, counts: w.counts}, nil
		}
	}
	w, refusal := ch.one(sh.asks[0].solved, share)
	if refusal != nil {
		return nil, refusal
	}
	if same := buying[w.measure.Digest]; same != nil && !w.measure.Held && same.Shared == w.measure.Shared && same.Kind == w.measure.Kind {
		w.measure = same
	}
	return w, nil
}
