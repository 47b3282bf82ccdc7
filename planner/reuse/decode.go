package reuse

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// HeldMeasure is a measure read back from its description: what each counter counts or adds up, by the cells of some
// columns.
type HeldMeasure struct {
	*linear.Query
	Kind   string
	Name   string
	Shared bool
	Adds   []string // by counter: the encoding of what is added up, empty means rows are counted; "?": neither, it cannot be read
	digest plans.Digest
	body   []byte // what the digest is of
}

// isPlain reports whether it counts every row of the table by cells.
func (m *HeldMeasure) isPlain() bool { return m.Filter == nil && m.countsEachRow() }

// countsEachRow reports whether it counts by cells each row that its filter admits, and nothing else.
func (m *HeldMeasure) countsEachRow() bool { return m.Adds[0] == "" && countsEachRow(m.Query) }

// Copied is a copy that can be changed.
func (m *HeldMeasure) Copied() *HeldMeasure {
	own, counts := *m, *m.Query
	own.Query = &counts
	return &own
}

// Plain is what it counts, where that is every row.
func (m *HeldMeasure) Plain() *linear.Query {
	if !m.isPlain() {
		return nil
	}
	return m.Query
}

// Held is the measure as it was bought.
func (m *HeldMeasure) Held() *plans.Measure {
	out := m.Measure(m.Kind, m.Name)
	out.Digest, out.Described, out.Shared = m.digest, m.body, m.Shared
	return out
}

// DescribedHead reads what a description says before its meaning. It is not ok when the digest is of another meaning.
func DescribedHead(h Holding) (shared bool, kind, name string, ok bool) {
	r := reader{b: h.Described}
	version := r.byte()
	shared, kind, name = r.byte() == 1, r.text(), r.text()
	return shared, kind, name, !r.failed && version == plans.DescribedVersion && plans.Digest(sha256.Sum256(r.b)) == h.Digest
}

// ReadDescribed is readHeld for counts of every row.
func ReadDescribed(h Holding, t *policy.Table) *HeldMeasure {
	if m := ReadHeld(h, t); m != nil && m.isPlain() {
		return m
	}
	return nil
}

// ReadHeld rebuilds a measure over t from a holding. It is nil when the holding means something else now: its table's
// meaning has changed, its digest disagrees with its description, or what it counts cannot be read back.
func ReadHeld(h Holding, t *policy.Table) *HeldMeasure {
	r := reader{b: h.Described, t: t}
	if r.byte() != plans.DescribedVersion {
		return nil
	}
	m := &HeldMeasure{Shared: r.byte() == 1, digest: h.Digest}
	m.Kind, m.Name, m.body = r.text(), r.text(), r.b
	if r.failed || plans.Digest(sha256.Sum256(r.b)) != h.Digest || r.text() != linear.KnownOf(t).Fingerprint {
		return nil
	}
	s := &linear.Query{Question: &linear.Question{Table: t}, Asked: linear.Counted{}, Cells: 1}
	s.Filter = r.pred()
	n := r.number()
	if r.failed || n != h.Spec.Counters || !mechanisms.Is[*mechanisms.Counts](h.Spec) {
		return nil
	}
	for range n {
		s.Counts = append(s.Counts, r.pred())
	}
	for range r.number() {
		p := r.part(n)
		if p == nil {
			return nil
		}
		s.Factors = append(s.Factors, p)
		s.Grain = append(s.Grain, p.Columns...)
		if s.Cells *= p.Classes; s.Cells > plans.MaxCells || s.Cells == 0 {
			return nil
		}
	}
	if string(r.b) == "g" {
		s.Continual, r.b = true, nil
	}
	s.Sums, s.Values, m.Adds = make([]*linear.Summand, n), make([]*linear.DistinctValues, n), make([]string, n)
	m.Query = s
	if m.readSums(&r); r.failed || s.Cells != h.Spec.Cells {
		return nil
	}
	return m
}

// readSums reads what the counters add up: products of factors; weights and values are noted and not read.
func (m *HeldMeasure) readSums(r *reader) {
	for len(r.b) > 0 && !r.failed {
		if r.b[0] == 'm' {
			r.marginals()
			continue
		}
		sign, c := r.byte(), r.number()
		if c >= len(m.Counts) || sign != '+' {
			m.unread(r)
			return
		}
		before := r.b
		sum, kind := &linear.Summand{}, r.byte()
		if kind == 'q' {
			sum.Over, kind = r.signed(), r.byte()
		}
		switch kind {
		case 's', 'f':
			if factors := r.factors(kind == 'f'); len(factors) > 0 {
				sum.Terms = plans.One(factors)
			}
		case 'l', 'm':
			for n := r.number(); n > 0 && !r.failed; n-- {
				sum.Terms = append(sum.Terms, plans.SumTerm{Times: r.signed(), Factors: r.factors(kind == 'm')})
			}
		default:
			r.failed = true
			return
		}
		sum.Bound = mechanisms.Bound{Low: r.signed(), High: r.signed()}
		if len(sum.Terms) == 0 { // weights by cells
			m.unread(r)
			return
		}
		m.Sums[c], m.Adds[c] = sum, string(before[:len(before)-len(r.b)])
	}
}

// unread leaves the rest of a description out: what is added up is not known.
func (m *HeldMeasure) unread(r *reader) {
	for i := range m.Adds {
		m.Adds[i] = "?"
	}
	r.b = nil
}

// reader walks a description; after the first fault all it reads is zero.
type reader struct {
	b      []byte
	t      *policy.Table
	failed bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > 1<<31 {
		r.failed = true
		return 0
	}
	r.b = r.b[size:]
	return int(n)
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > len(r.b) {
		r.failed = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// maxNested bounds the depth of a predicate that is read back.
const maxNested = 16

// pred reads a predicate.
func (r *reader) pred() predicate.Pred { return r.nested(maxNested) }

func (r *reader) nested(depth int) predicate.Pred {
	if r.failed = r.failed || depth == 0; r.failed {
		return nil
	}
	switch r.byte() {
	case 't':
		return nil
	case 'n':
		return predicate.Never{}
	case 'a':
		return predicate.AllOf(r.several(depth))
	case 'o':
		return predicate.AnyOf(r.several(depth))
	case 'i':
		c := r.column()
		var spans []mechanisms.Span
		for n := r.number(); n > 0 && !r.failed; n-- {
			spans = append(spans, mechanisms.Span{From: r.number(), To: r.number()})
		}
		return predicate.InCells{Column: c, Spans: spans}
	case 'c':
		c, op, text := r.column(), r.text(), r.text()
		if r.failed {
			return nil
		}
		v, err := policy.ParseValue(c.Type, text)
		if r.failed = err != nil || predicate.Opposite[op] == "" || predicate.Text(predicate.CanonicalValue(v)) != text; r.failed {
			return nil
		}
		return predicate.Compare{Column: c, Op: op, Value: v}
	}
	r.failed = true
	return nil
}

func (r *reader) several(depth int) (list []predicate.Pred) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		list = append(list, r.nested(depth-1))
	}
	return list
}

func (r *reader) column() *policy.Column {
	c := r.t.Column(r.text())
	if c == nil || c.Domain == nil {
		r.failed = true
	}
	return c
}

// marginals reads over which sets marginals were wanted: their spec says what can be read.
func (r *reader) marginals() {
	r.byte()
	for n := r.number(); n > 0 && !r.failed; n-- {
		for k := r.number(); k > 0 && !r.failed; k-- {
			r.number()
		}
	}
}

// factors reads what encodeFactors wrote.
func (r *reader) factors(filled bool) (list []plans.Factor) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		f := plans.Factor{Column: r.t.Column(r.text()), Exponent: int(r.signed()), Centre: r.signed(), Low: r.signed(), High: r.signed()}
		if filled && r.byte() == 1 {
			f.Filled, f.Fill = true, r.signed()
		}
		if r.failed = r.failed || f.Column == nil; !r.failed {
			list = append(list, f)
		}
	}
	return list
}

type HeldOn struct {
	Holding  Holding
	Measure  *HeldMeasure
	Declared *policy.Release
}

// A factor of a measure read back from its description: classes and masks by combination, of pieces where cells are
// alike.

// factor reads one factor of a measure of so many counters.
func (r *reader) part(counters int) *linear.Factor {
	p := &linear.Factor{Masks: make([][]bool, counters), Weights: make([][]int64, counters), Shows: make([][]int32, counters)}
	combinations := 1
	for n := r.number(); n > 0 && !r.failed; n-- {
		c := r.column()
		size := r.number()
		if r.failed {
			return nil
		}
		var cuts []int
		if size == 0 {
			if cuts = r.cuts(c.Domain.Size()); cuts == nil {
				return nil
			}
			size = len(cuts)
		} else if c.Domain.Size() != size {
			return nil
		}
		p.Cuts, p.Ends = append(p.Cuts, cuts), append(p.Ends, c.Domain.Size())
		p.Columns, p.Sizes = append(p.Columns, plans.ColumnIndex(r.t, c)), append(p.Sizes, size)
		if combinations *= size; combinations > plans.MaxCells {
			return nil
		}
	}
	if p.PiecesInSQL = p.Pieced(); !p.PiecesInSQL {
		p.Cuts, p.Ends = nil, nil
	}
	runs, ok := r.classes(p, combinations)
	if !ok {
		return nil
	}
	masks := make([]string, counters) // packed; empty means none
	for c := range masks {
		switch r.byte() {
		case 't':
		case 'm':
			if masks[c] = r.text(); len(masks[c]) != (combinations+7)/8 {
				return nil
			}
		default:
			return nil
		}
	}
	if r.failed {
		return nil
	}
	p.Spread(runs, masks, combinations)
	return p
}

// cuts reads the pieces of a column of so many cells; nil means they are not.
func (r *reader) cuts(size int) []int {
	n, at := r.number(), 0
	if r.failed || n > plans.MaxCells {
		return nil
	}
	starts := make([]int, 0, n)
	for len(starts) < n {
		count, length := r.number(), r.number()
		if r.failed || count == 0 || length == 0 || count > n-len(starts) || length > (size-at)/count {
			return nil
		}
		for ; count > 0; count-- {
			starts = append(starts, at)
			at += length
		}
	}
	if at != size {
		return nil
	}
	return starts
}

// classes reads the runs of equal classes; none means each combination is one.
func (r *reader) classes(p *linear.Factor, combinations int) (runs []derived.ClassRun, ok bool) {
	switch r.byte() {
	case 'i':
		p.Classes = combinations
		return nil, true
	case 'r':
		for at := 0; at < combinations; {
			n, class := r.number(), int32(r.number())-1
			if r.failed || n == 0 || n > combinations-at {
				return nil, false
			}
			runs, at = append(runs, derived.ClassRun{Length: n, Class: class}), at+n
			p.Classes = max(p.Classes, int(class)+1)
		}
		return runs, true
	}
	return nil, false
}

const OfAnotherEpoch = "of an epoch gone by"

// Hold makes a measure one that is held.
func Hold(m *plans.Measure, h Holding, why string) {
	m.Spec, m.Held, m.HeldID, m.Cost, m.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// IsRelease tells releases, which answer whatever they can for free, from the answer to one question.
func IsRelease(m *plans.Measure) bool {
	return m.Shared || m.Kind == "range" || m.Kind == "keys" || m.Kind == Cube || m.Kind == policy.OnlineRelease.String()
}

// DeclaredAs finds the policy's release that a measure holds.
func DeclaredAs(t *policy.Table, shared bool, name string) *policy.Release {
	for _, r := range t.All() {
		if shared && r.Name == name {
			return r
		}
	}
	return nil
}

// EpochOf numbers the epoch of a time.
func EpochOf(at time.Time, refresh time.Duration) int64 { return at.UnixNano() / int64(refresh) }

// EpochDate writes when the epoch of a time began.
func EpochDate(at time.Time, refresh time.Duration) string {
	begin := time.Unix(0, EpochOf(at, refresh)*int64(refresh)).UTC()
	switch {
	case refresh%(24*time.Hour) == 0:
		return begin.Format("2006-01-02")
	case refresh%time.Minute == 0:
		return begin.Format("2006-01-02 15:04 UTC")
	}
	return begin.Format("2006-01-02 15:04:05 UTC")
}
