package reuse

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// A line is the measures whose conditions are the same but for the cells of one column: sums and differences of them
// are measures of other cells of it. Neighbours on a line are found by the ends of their spans.
type line struct {
	bySpans map[string]*bucket
	ends    map[int]map[int]*bucket // one span alone: by one of its ends, then by the other
}

// lineKey names the line of a column on which the other conditions are others.
func lineKey(others []predicate.Pred, c *policy.Column) string {
	return string(append(predicate.EncodeText(nil, c.Name), predicate.Encode(nil, predicate.All(others...))...))
}

func (l *line) add(spans []mechanisms.Span, s *View) {
	bucketOf(l.bySpans, string(predicate.EncodeSpans(nil, spans))).add(s)
	if len(spans) != 1 {
		return
	}
	for _, e := range [][2]int{{spans[0].From, spans[0].To}, {spans[0].To, spans[0].From}} {
		if l.ends[e[0]] == nil {
			l.ends[e[0]] = map[int]*bucket{}
		}
		if l.ends[e[0]][e[1]] == nil {
			l.ends[e[0]][e[1]] = &bucket{}
		}
		l.ends[e[0]][e[1]].add(s)
	}
}

// Bounds of what is looked at on a line.
const (
	maxWhole = 24 // a line of so few different spans is looked at whole
	maxMeets = 4
	maxChain = 24
)

// near lists what may add up to the cells of spans, of so many in all.
func (l *line) near(spans []mechanisms.Span, size int) (found []*View) {
	if len(l.bySpans) <= maxWhole {
		for _, b := range l.bySpans {
			found = append(found, b.all()...)
		}
		return found
	}
	for _, s := range append(slices.Clone(spans), predicate.Outside(spans, size)...) {
		found = append(found, l.ends[s.From][s.To].all()...)
		found = append(found, l.meets(s.From, s.To)...)
		found = append(found, l.chain(s.From, s.To)...)
	}
	return found
}

// meets lists pairs of spans, one from each end, that end at the same place.
func (l *line) meets(from, to int) (found []*View) {
	near, far := l.ends[from], l.ends[to]
	if len(near) > len(far) {
		near, far = far, near
	}
	var places []int
	for place := range near {
		if far[place] != nil && place != from && place != to {
			places = append(places, place)
		}
	}
	// The least wide together first: what lies between is nearest to what is asked.
	slices.SortFunc(places, func(a, b int) int {
		if d := reachOf(a, from, to) - reachOf(b, from, to); d != 0 {
			return d
		}
		return a - b
	})
	for _, place := range places[:min(len(places), maxMeets)] {
		found = append(append(found, near[place].all()...), far[place].all()...)
	}
	return found
}

func reachOf(place, from, to int) int { return max(from-place, place-to, 0) }

// chain lists spans that follow each other from one end to the other, the longest first.
func (l *line) chain(from, to int) (found []*View) {
	for range maxChain {
		next := from
		for end := range l.ends[from] {
			if end > next && end <= to {
				next = end
			}
		}
		if next == from {
			return nil
		}
		found = append(found, l.ends[from][next].all()...)
		if from = next; from == to {
			return found
		}
	}
	return nil
}
