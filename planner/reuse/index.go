package reuse

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Index is what one analyst has paid for, indexed so that planning takes no longer for ten thousand releases than for
// ten: a description is read once, and a plan looks at the few releases that its question can be made of. It is safe
// for concurrent use; holdings are only ever added.
type Index struct {
	mu       sync.RWMutex
	byDigest map[plans.Digest][]Holding
	ByTable  map[string][]Holding // by the fingerprint that their descriptions name, oldest first
	views    map[*policy.Table]*Views
}

// NewIndex returns an empty one.
func NewIndex() *Index {
	return &Index{byDigest: map[plans.Digest][]Holding{}, ByTable: map[string][]Holding{}, views: map[*policy.Table]*Views{}}
}

// Add adds a release that was bought after all that were added before.
func (v *Index) Add(h Holding) {
	if h.Spec.Check() != nil {
		return // saved by a version that knows more strategies: paid for, but not to be read by this one
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	list := append(slices.Clone(v.byDigest[h.Digest]), h)
	if len(list) > 1 {
		slices.SortStableFunc(list, func(a, b Holding) int { return cmp.Compare(inexactness(a.Spec), inexactness(b.Spec)) })
	}
	v.byDigest[h.Digest] = list
	r := reader{b: h.Described}
	if r.byte() == plans.DescribedVersion {
		r.byte()
		r.text()
		r.text()
		if of := r.text(); !r.failed {
			v.ByTable[of] = append(v.ByTable[of], h)
		}
	}
}

// inexactness orders releases of one measure: the smaller, the more exact.
func inexactness(s mechanisms.Spec) float64 {
	if s.Counts().Strategy.IsCube() { // which reads some sums alone: that of all cells is among them
		return math.Sqrt(s.Variance([]mechanisms.Span{{From: 0, To: s.Cells}}))
	}
	return s.RMSE(mechanisms.AllRanges)
}

// Held returns the releases of a measure, the most exact first.
func (v *Index) Held(d plans.Digest) []Holding {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.byDigest[d]
}

// Bounds of what an index keeps and reads at once.
const (
	maxViews     = 256
	maxTransient = 128 // holdings over a table that lives as long as its plan: they are read anew for each
)

// Views returns what is held over a table.
func (v *Index) Views(t *policy.Table) *Views {
	of := linear.KnownOf(t).Fingerprint
	v.mu.RLock()
	s, list := v.views[t], v.ByTable[of]
	v.mu.RUnlock()
	if s != nil && s.Extent().Read == len(list) {
		return s
	}
	if t.Derived != nil || t.Opened {
		if len(list) > maxTransient {
			list = list[len(list)-maxTransient:]
		}
		s = newViews(t)
		s.add(list)
		return s
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s = v.views[t]; s == nil {
		if len(v.views) >= maxViews { // tables of policies that are no longer in force
			clear(v.views)
		}
		s = newViews(t)
		v.views[t] = s
	}
	s.add(v.ByTable[of])
	return s
}

// Views is what is held over one table, by what it can be used for.
type Views struct {
	mu       sync.RWMutex
	table    *policy.Table
	extent   Extent
	wide     map[string]*bucket            // counts of every row by cells of the same columns
	byFilter map[string]map[string]*bucket // by condition, then by columns of the cells
	lines    map[string]*line              // see line
	rents    rentViews
	found    map[MixKey][]CombinedReading // by combining, since the last was added
}

// Extent is how much is held over a table.
type Extent struct {
	Read    int   // so many holdings of the index's list have been read
	Combine int   // how many can be used in sums and differences
	Only    int64 // the first of these
	Eldest  int   // its age; −1: there is none
	Ages    bool  // some of what is held becomes stale with time
}

// View is a holding that has been read.
type View struct {
	HeldOn
	Order    int    // of what is held over the table, by age
	columns  string // of its cells
	inexact  float64
	conjunct []predicate.Pred // of its condition
}

// bucket holds releases of one kind: those that a plan looks at are the oldest and the most exact.
type bucket struct {
	oldest, best []*View
}

// maxOfBucket is how many of each are looked at.
const maxOfBucket = 4

func (b *bucket) add(s *View) {
	if len(b.oldest) < maxOfBucket {
		b.oldest = append(b.oldest, s)
	}
	at, _ := slices.BinarySearchFunc(b.best, s, func(have, s *View) int { return cmp.Compare(have.inexact, s.inexact) })
	if at < maxOfBucket {
		best := slices.Insert(slices.Clone(b.best), at, s)
		b.best = best[:min(len(best), maxOfBucket)]
	}
}

// all lists them, each once, oldest first.
func (b *bucket) all() []*View {
	if b == nil {
		return nil
	}
	list := slices.Clone(b.oldest)
	for _, s := range b.best {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func newViews(t *policy.Table) *Views {
	return &Views{table: t, extent: Extent{Eldest: -1}, wide: map[string]*bucket{}, byFilter: map[string]map[string]*bucket{}, lines: map[string]*line{}, found: map[MixKey][]CombinedReading{}}
}

// Extent returns what there is of it.
func (s *Views) Extent() Extent {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.extent
}

// add reads the holdings of a list behind those that have been.
func (s *Views) add(list []Holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.extent.Read < len(list) {
		clear(s.found)
	}
	for ; s.extent.Read < len(list); s.extent.Read++ {
		if m := ReadHeld(list[s.extent.Read], s.table); m != nil {
			s.put(list[s.extent.Read], m)
		}
	}
}

func (s *Views) put(h Holding, m *HeldMeasure) {
	columns := ColumnsKey(m.Grain)
	declared := DeclaredAs(s.table, m.Shared, m.Name)
	s.extent.Ages = s.extent.Ages || declared != nil && declared.Refresh > 0
	one := &View{HeldOn: HeldOn{h, m, declared}, Order: s.extent.Read, columns: columns, inexact: inexactness(h.Spec), conjunct: predicate.Conjuncts(m.Filter)}
	if m.isPlain() && m.Cells > 1 {
		bucketOf(s.wide, columns).add(one)
		s.rents.add(one)
	}
	if !m.combines() || h.Spec.Counts().Strategy.IsCube() {
		return
	}
	if s.extent.Combine++; s.extent.Combine == 1 {
		s.extent.Eldest, s.extent.Only = one.Order, h.ID
	}
	filter := string(predicate.Encode(nil, m.Filter))
	if s.byFilter[filter] == nil {
		s.byFilter[filter] = map[string]*bucket{}
	}
	bucketOf(s.byFilter[filter], columns).add(one)
	for i, p := range one.conjunct {
		if in, ok := p.(predicate.InCells); ok {
			key := lineKey(without(one.conjunct, i), in.Column)
			if s.lines[key] == nil {
				s.lines[key] = &line{bySpans: map[string]*bucket{}, ends: map[int]map[int]*bucket{}}
			}
			s.lines[key].add(in.Spans, one)
		}
	}
}

func bucketOf(m map[string]*bucket, key string) *bucket {
	if m[key] == nil {
		m[key] = &bucket{}
	}
	return m[key]
}

// ColumnsKey names a set of columns by their positions.
func ColumnsKey(columns []int) string {
	sorted := slices.Clone(columns)
	slices.Sort(sorted)
	b := make([]byte, 0, 2*len(sorted))
	for _, c := range sorted {
		b = append(b, byte(c>>8), byte(c))
	}
	return string(b)
}

// hasColumns reports whether a set contains another.
func hasColumns(set, wanted string) bool {
	at := 0
	for i := 0; i < len(set) && at < len(wanted); i += 2 {
		if set[i:i+2] == wanted[at:at+2] {
			at += 2
		}
	}
	return at == len(wanted)
}

// without is a list without one of its parts.
func without(list []predicate.Pred, at int) []predicate.Pred {
	return slices.Delete(slices.Clone(list), at, at+1)
}

// Finer lists counts of every row, or of those that a question counts, by cells of at least its columns, oldest first.
func (s *Views) Finer(q *linear.Query) (found []*View) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	collect := func(sets map[string]*bucket, columns []*policy.Column) {
		wanted := ColumnsKey(PositionsOf(s.table, columns))
		for set, b := range sets {
			if !hasColumns(set, wanted) {
				continue
			}
			for _, h := range b.all() {
				if h.Measure.countsEachRow() {
					found = append(found, h)
				}
			}
		}
	}
	columns, _ := q.Columns()
	collect(s.wide, columns)
	if q.Filter != nil {
		bare := *q
		bare.Filter = nil
		columns, _ = bare.Columns()
		collect(s.byFilter[string(predicate.Encode(nil, q.Filter))], columns)
	}
	slices.SortFunc(found, func(a, b *View) int { return a.Order - b.Order })
	return found
}

// MixKey names a question and how exactly it is asked.
type MixKey struct {
	Of plans.Digest
	At string
}

// maxRemembered bounds the questions whose combinations are kept.
const maxRemembered = 1 << 12

// Remembered returns what was found for a question before, while nothing has been added since.
func (s *Views) Remembered(key MixKey, find func() []CombinedReading) []CombinedReading {
	s.mu.RLock()
	list, known := s.found[key]
	seen := s.extent.Read
	s.mu.RUnlock()
	if !known {
		list = find()
		s.mu.Lock()
		if s.extent.Read == seen && len(s.found) < maxRemembered {
			s.found[key] = list
		}
		s.mu.Unlock()
	}
	out := slices.Clone(list)
	for i := range out { // measures are changed when they are taken
		out[i].Measures = slices.Clone(out[i].Measures)
		for j, m := range out[i].Measures {
			own := *m
			out[i].Measures[j] = &own
		}
	}
	return out
}

// What was paid for single questions by cells of the same columns since a release over these columns: see rents. It is
// added up as releases are read, so that it need not be for each plan.
type rentViews struct {
	open []Rents                 // by columns
	last map[string]privacy.Cost // of her own release over exactly these columns
}

// add notes a count of every row by cells.
func (r *rentViews) add(s *View) {
	var columns []*policy.Column
	for _, g := range s.Measure.Grain {
		columns = append(columns, s.Measure.Table.Columns[g])
	}
	if !s.Measure.isRent() {
		r.open = slices.DeleteFunc(slices.Clone(r.open), func(have Rents) bool { return ContainsAll(columns, have.Columns) })
		if !s.Measure.Shared {
			if r.last == nil {
				r.last = map[string]privacy.Cost{}
			}
			r.last[s.columns] = s.Holding.Cost
		}
		return
	}
	r.open = slices.Clone(r.open)
	at := slices.IndexFunc(r.open, func(have Rents) bool {
		return len(have.Columns) == len(columns) && ContainsAll(columns, have.Columns)
	})
	if at < 0 {
		at = len(r.open)
		r.open = append(r.open, Rents{Columns: columns})
	}
	r.open[at].Paid, r.open[at].Count = r.open[at].Paid.Plus(s.Holding.Cost), r.open[at].Count+1
}

// Rented is what has been paid so.
func (s *Views) Rented() ([]Rents, map[string]privacy.Cost) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last := map[string]privacy.Cost{}
	for key, cost := range s.rents.last {
		last[key] = cost
	}
	return s.rents.open, last
}

// PositionsOf are the places of columns in their table.
func PositionsOf(t *policy.Table, columns []*policy.Column) []int {
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = plans.ColumnIndex(t, c)
	}
	return at
}

// Rents are what she has paid for counts on a table that a release over some columns would have answered.
type Rents struct {
	Columns []*policy.Column
	Paid    privacy.Cost // since the last release over the same columns
	Count   int
	Last    privacy.Cost // of that release
}

// Cube is the kind of a release over several columns that was bought by the rule.
const Cube = "cube"

// isRent reports whether a measure was bought for one question.
func (m *HeldMeasure) isRent() bool {
	return !m.Shared && (m.Kind == "count" || m.Kind == "histogram")
}
