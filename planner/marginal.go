package planner

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// marginals is how an ask of several grouping sets is measured: not its cells, but the sets' own tables, or what they have
// in common and where they differ, all at once. Then every set is read from all that is measured, and they add up.
type marginals struct {
	strategy mechanisms.Strategy
	sets     [][]int             // by wanted set: the parts that its keys are decided by
	rows     [][]mechanisms.Span // of all sets: the cells of each row
	of       []int               // by row: its set
	gain     float64             // how many times the error by sets alone is
}

// MarginalsKind is the kind of a measure of several grouping sets at once.
const MarginalsKind = "marginals"

// mostMarginalCells bounds the cells that all keys of a statement's sets make up together where marginals are considered.
const mostMarginalCells = 1 << 15

// marginal asks for all sets of a sheet at once, by marginals of the cells of all their keys; nil where they cannot be
// measured so, or where what is asked for set by set is held, or has no larger error.
func (v *sheeter) marginal(sh *sheet, counters []int, best []*ask) (*ask, *refuse.Refusal) {
	if v.setBySet || v.ch.c.Settings.MaxError > 0 || len(sh.sets) < 2 {
		return nil, nil
	}
	keys := set(unitedAll(slices.Clone(sh.sets)))
	quiet := sheeter{b: v.b, notes: new(notes), ch: v.ch}
	a, refusal := quiet.plain(sh.question, keys, counters)
	if refusal != nil || !a.wanted() || a.cells > mostMarginalCells || len(a.parts) < 2 || v.ch.open != nil && len(v.ch.open.wanted) > 0 {
		return nil, nil
	}
	for _, p := range a.parts {
		if p.classes < 2 || len(p.keys) == 0 {
			return nil, nil
		}
	}
	m := a.marginalsOf(sh.sets)
	if m == nil || !v.strategy(a, m) {
		return nil, nil
	}
	for s := range sh.sets {
		a.reads = append(a.reads, s)
	}
	switch m.gain = v.error(best) / a.weight; {
	case v.ch.holds(a):
		return a, nil
	case m.gain <= 1 || v.ch.holdsAll(best):
		return nil, nil
	}
	v.notes.addAll(*quiet.notes)
	return a, nil
}

// marginalsOf finds the rows of sets of keys among an ask's cells.
func (a *ask) marginalsOf(sets []set) *marginals {
	m := &marginals{}
	sizes, at := make([]int, len(a.parts)), make([]int, len(a.parts))
	for i, p := range a.parts {
		sizes[i] = p.classes
	}
	for n, keys := range sets {
		if slices.ContainsFunc(sets[:n], func(other set) bool { return slices.Equal(other, keys) }) {
			continue
		}
		var own []int
		classes := make([][]int, len(a.parts)) // by part: the number of the values of the set's keys, by class
		for i, p := range a.parts {
			var shown []int
			for place, k := range p.keys {
				if slices.Contains(keys, a.set[k]) {
					shown = append(shown, place)
				}
			}
			if len(shown) == 0 {
				continue
			}
			own = append(own, i)
			classes[i] = make([]int, p.classes)
			seen := map[string]int{}
			for class := range p.classes {
				text := ""
				for _, place := range shown {
					text += keyText(p.values[class][place:place+1]) + "\x00"
				}
				if _, known := seen[text]; !known {
					seen[text] = len(seen)
				}
				classes[i][class] = seen[text]
			}
		}
		rows, order := map[int]*spansOf{}, []int{}
		for cell := range a.cells {
			decode(cell, sizes, at)
			row := 0
			for i, class := range at {
				if classes[i] != nil {
					row = row*sizes[i] + classes[i][class]
				}
			}
			if rows[row] == nil {
				rows[row], order = new(spansOf), append(order, row)
			}
			rows[row].add(cell)
		}
		for _, row := range order {
			m.rows, m.of = append(m.rows, *rows[row]), append(m.of, len(m.sets))
		}
		m.sets = append(m.sets, own)
	}
	return m
}

// strategy finds the marginals with the least expected error; false where the cells themselves are better.
func (v *sheeter) strategy(a *ask, m *marginals) bool {
	q := mechanisms.Cube{}
	for _, p := range a.parts {
		q.Shape = append(q.Shape, p.classes)
	}
	for i, rows := range m.rows {
		q.Asked = append(q.Asked, mechanisms.Asked{Spans: rows, Attributes: m.sets[m.of[i]], Weight: 1})
	}
	list, err := q.Quick(a.contribution(), v.ch.share(1))
	if err != nil {
		return false
	}
	best := slices.MinFunc(list, func(x, y mechanisms.Candidate) int {
		if x.Error < y.Error {
			return -1
		}
		return 1
	})
	if best.Spec.Counts().Strategy.Kind != mechanisms.Marginals {
		return false
	}
	m.strategy = best.Spec.Counts().Strategy
	a.marginals = m
	spec, err := a.fresh(v.ch.share(1))
	if err != nil {
		a.marginals = nil
		return false
	}
	a.weight = 0
	for _, f := range a.fills {
		if c := a.counting[f.counter]; c >= 0 {
			a.weight += a.weightOf(c) * q.Error(spec.Only(c))
		}
	}
	return a.weight > 0 && !math.IsInf(a.weight, 1)
}

// holdsAll tells whether all asks are answered by what she has paid for.
func (ch *chooser) holdsAll(asks []*ask) bool {
	return ch.c.Holdings != nil && !slices.ContainsFunc(asks, func(a *ask) bool { return a.wanted() && !ch.holds(a) })
}

// holds tells whether an ask is answered by what she has paid for.
func (ch *chooser) holds(a *ask) bool {
	quiet := *ch
	q, refusal := quiet.asking(a.solved, ch.share(1))
	return refusal == nil && (least(quiet.again(q)) != nil || least(quiet.reuse(q)) != nil)
}

// encode writes which sets the marginals are for; how they are observed is the spec's.
func (m *marginals) encode(b []byte) []byte {
	b = binary.AppendUvarint(append(b, 'm'), uint64(len(m.sets)))
	for _, own := range m.sets {
		b = binary.AppendUvarint(b, uint64(len(own)))
		for _, i := range own {
			b = binary.AppendUvarint(b, uint64(i))
		}
	}
	return b
}

// why says what is gained.
func (m *marginals) why() string {
	return "the grouping sets are measured at once: the mean squared error is that of asking set by set at this price, divided by " + strconv.FormatFloat(m.gain, 'f', 2, 64)
}
