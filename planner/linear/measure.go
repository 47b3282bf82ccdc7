package linear

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// known is what the planner keeps of a table of a policy, which never changes.
type known struct {
	Fingerprint string // hash of the table's meaning
	Names       []string
	Exprs       []*semantics.Expr // its columns
	Keys        []Key             // its join keys, by each name that they have
}

var knownTables sync.Map // *policy.Table → *known

// KnownOf is what is known of a table; of one of the policy it is found out once.
func KnownOf(t *policy.Table) *known {
	if k, ok := knownTables.Load(t); ok {
		return k.(*known)
	}
	hash := sha256.Sum256(t.Fingerprint())
	k := &known{Fingerprint: string(hash[:])}
	for i, c := range t.Columns {
		if c.Private {
			continue
		}
		if c.Reading != nil { // which has no name
			continue
		}
		t, typmod := c.Shown()
		e := semantics.ColumnExpr(i, t, typmod, -1)
		k.Names, k.Exprs = append(k.Names, c.Name), append(k.Exprs, e)
	}
	for i, c := range t.Keys {
		k.Keys = append(k.Keys, Key{c.Name, i, 0})
	}
	if t.Derived == nil && !t.Opened { // others live as long as their plan
		for _, c := range t.Columns {
			if at := slices.Index(t.Keys, t.Key(c.Name)); at >= 0 && t.Keys[at].Name != c.Name {
				k.Keys = append(k.Keys, Key{c.Name, at, 0})
			}
		}
		knownTables.Store(t, k)
	}
	return k
}

// meaning is the canonical encoding of what a measure counts. Its hash is the measure's digest. Of one that is longer
// than what the ledger keeps, long parts are written by their hashes.
func (s *Query) meaning() []byte {
	if b := s.encode(math.MaxInt); len(b) <= plans.MaxDescribed {
		return b
	}
	return s.encode(longPart)
}

// encode is a measure's meaning, in which the values and weights of a counter are written by their hash where they take
// more than most bytes. Nobody reads them back (reuse.ReadHeld), and a column of a million steps has millions of bytes.
func (s *Query) encode(most int) []byte {
	b := predicate.EncodeText(nil, KnownOf(s.Table).Fingerprint)
	b = predicate.Encode(b, s.Filter)
	b = binary.AppendUvarint(b, uint64(len(s.Counts)))
	for _, p := range s.Counts {
		b = predicate.Encode(b, p)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Factors)))
	for _, p := range s.Factors {
		b = binary.AppendUvarint(b, uint64(len(p.Columns)))
		for i, c := range p.Columns {
			b = predicate.EncodeText(b, s.Table.Columns[c].Name)
			if p.PiecesInSQL && p.Cuts[i] != nil {
				b = encodeCuts(binary.AppendUvarint(b, 0), p.Cuts[i], p.Ends[i])
			} else {
				b = binary.AppendUvarint(b, uint64(p.End(i)))
			}
		}
		b = p.encodeClasses(b, p.Class)
		for _, mask := range p.Masks {
			b = p.encodeMask(b, mask)
		}
	}
	for c, sum := range s.Summed() {
		if sum != nil && sum.Values > 0 {
			b = s.encodeValues(binary.AppendUvarint(append(b, '#'), uint64(c)), c, most)
			if s.Sums[c] != nil {
				b = s.encodeWeights(plans.EncodeSum(b, sum), c, most)
			}
		} else if sum != nil {
			b = plans.EncodeSum(binary.AppendUvarint(append(b, '+'), uint64(c)), sum)
			b = s.encodeWeights(b, c, most)
		}
	}
	if s.Continual {
		b = append(b, 'g')
	}
	if s.Marginals != nil {
		b = s.Marginals.encode(b)
	}
	return b
}

const longPart = 1 << 18

// shortened is a description whose part behind the first bytes is written by its hash where it takes more than most.
func shortened(b []byte, from, most int) []byte {
	if len(b)-from <= most {
		return b
	}
	hash := sha256.Sum256(b[from:])
	return append(append(b[:from], "sha256 "...), hash[:]...)
}

// encodeCuts writes the lengths of pieces, in runs of equal ones, behind the number of pieces.
func encodeCuts(b []byte, starts []int, size int) []byte {
	b = binary.AppendUvarint(b, uint64(len(starts)))
	length := func(i int) int {
		if i+1 < len(starts) {
			return starts[i+1] - starts[i]
		}
		return size - starts[i]
	}
	for at := 0; at < len(starts); {
		end := at + 1
		for end < len(starts) && length(end) == length(at) {
			end++
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(end-at)), uint64(length(at)))
		at = end
	}
	return b
}

// Measure makes the Measure of a solved question, without noise and cost.
func (s *Query) Measure(kind, name string) *plans.Measure {
	m := &plans.Measure{Kind: kind, Name: name, Table: s.Table, Where: s.Filter, Counters: s.Counts, Sums: s.Summed(), Place: s.placement(), Weigh: s.weighing(), Rows: s.Rows, PerGroup: s.PerGroup, Described: s.meaning()}
	for _, c := range s.Grain {
		m.Grain = append(m.Grain, s.Table.Columns[c])
	}
	for _, p := range s.Factors {
		if p.PiecesInSQL {
			if m.Cuts == nil {
				m.Cuts = make([][]int, len(m.Grain))
			}
			copy(m.Cuts[slices.Index(s.Grain, p.Columns[0]):], p.Cuts)
		}
		partly := slices.ContainsFunc(p.Masks, func(mask []bool) bool { return mask != nil })
		group := plans.Grouping{Columns: len(p.Columns), Cells: p.combinations(), Classes: p.Classes, Partly: partly}
		if s.Table.MaxGroups > 0 {
			group.Runs = p.runs()
		}
		m.Groups = append(m.Groups, group)
	}
	m.Digest = sha256.Sum256(m.Described)
	return m
}

// Identity is the measure over every cell of some columns: what a declared release holds.
func Identity(t *policy.Table, columns []*policy.Column) *Query {
	s := &Query{Question: &Question{Table: t}, Asked: Counted{}, Counts: []predicate.Pred{nil}, Sums: []*Summand{nil}, Values: []*DistinctValues{nil}, Cells: 1}
	for _, c := range columns {
		at := plans.ColumnIndex(t, c)
		p := &Factor{Columns: []int{at}, Sizes: []int{c.Domain.Size()}, Class: make([]int32, c.Domain.Size()), Classes: c.Domain.Size(), Masks: make([][]bool, 1)}
		for i := range p.Class {
			p.Class[i] = int32(i)
		}
		s.Factors = append(s.Factors, p)
		s.Cells *= p.Classes
	}
	sortFactors(t, s.Factors)
	for _, p := range s.Factors {
		s.Grain = append(s.Grain, p.Columns...)
	}
	return s
}

// placement maps the cells of the grain to a cell of the measure.
func (s *Query) placement() mechanisms.Placement {
	parts, values := s.Factors, s.shownValues()
	return func(cells []int32, counter int) int {
		out, from, shown := 0, 0, int32(0)
		for _, p := range parts {
			at := p.combination(cells[min(from, len(cells)):])
			if at < 0 {
				return -1
			}
			from += len(p.Sizes)
			class := p.Class[at]
			if class < 0 || counter < len(p.Masks) && counter >= 0 && p.Masks[counter] != nil && !p.Masks[counter][at] {
				return -1
			}
			if counter >= 0 && counter < len(p.Shows) && p.Shows[counter] != nil {
				if shown = p.Shows[counter][at]; shown < 0 {
					return -1
				}
			}
			out = out*p.Classes + int(class)
		}
		if counter >= 0 && counter < len(values) && values[counter] > 0 {
			return out*values[counter] + int(shown)
		}
		return out
	}
}

// Asked is what is asked of a query's cells: Counted, *Chosen or *ThresholdColumn, and nothing else. Of
//
//	SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY age), bool_or(age > 100) FROM people
//
// the first column is counted, the second is chosen, and the third, where dp.alarms is on, compared with a threshold:
// three queries, whose answers one leaf shows. A package tells the kinds apart in one type switch, which names all of
// them.
type Asked interface {
	// ShownBy is the index of the leaf that shows the answer, of a query that was made for leaf own.
	ShownBy(own int) int
	asked()
}

// Counted asks for the rows and sums in the cells. Where only an order of them is shown, they need not be counted.
type Counted struct {
	First int   // above 0: the numbers of so many cells with the most rows will do
	TopK  *TopK // set: the names of the first candidates will do
}

// Ranked reports whether an order will do.
func (c Counted) Ranked() bool { return c.First > 0 || c.TopK != nil }

// ShownBy is the leaf that the query was made for.
func (Counted) ShownBy(own int) int { return own }

// ShownBy is the leaf of the question whose aggregate chooses.
func (c *Chosen) ShownBy(int) int { return c.Leaf }

// ShownBy is the leaf of the question whose comparison it is.
func (c *ThresholdColumn) ShownBy(int) int { return c.Leaf }

func (Counted) asked()          {}
func (*Chosen) asked()          {}
func (*ThresholdColumn) asked() {}

// Counted is what a query asks that counts; Chosen and Threshold are the like. Only who has distinguished the kinds may
// ask.
func (s *Query) Counted() Counted { return s.Asked.(Counted) }

// Chosen is what a query asks that chooses.
func (s *Query) Chosen() *Chosen { return s.Asked.(*Chosen) }

// Threshold is what a query asks that compares.
func (s *Query) Threshold() *ThresholdColumn { return s.Asked.(*ThresholdColumn) }

// Chooses and Compares are for what concerns one kind alone.
func (s *Query) Chooses() bool { _, ok := s.Asked.(*Chosen); return ok }

// Compares tells a query that compares with a threshold.
func (s *Query) Compares() bool { _, ok := s.Asked.(*ThresholdColumn); return ok }

// Measured reports whether anything has to be counted: a question without counts, or whose condition no row can
// satisfy, is answered from public facts.
func (s *Query) Measured() bool { return !s.Empty && len(s.Counts) > 0 }

// RowOrder lists the question's cells in the order of their keys.
func (s *Query) RowOrder() []int {
	if s.Empty && len(s.Keys) > 0 {
		return nil
	}
	if s.Empty {
		return []int{0}
	}
	order := semantics.IdentityOf(s.Cells)
	if len(s.Keys) == 0 {
		return order
	}
	ranks := make([][]int, len(s.Keys))
	for k := range s.Keys {
		ranks[k] = s.ranks(k)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for k := range ranks {
			if ranks[k] == nil {
				continue
			}
			if d := ranks[k][s.classOf(k, a)] - ranks[k][s.classOf(k, b)]; d != 0 {
				return d
			}
		}
		return 0
	})
	return order
}

// Concealed are the columns because of which some groups of the question are not shown: see Solver.concealed.
func (s *Query) Concealed() (columns []*policy.Column) {
	for _, p := range s.Factors {
		if !slices.Contains(p.shown, false) {
			continue
		}
		for _, at := range p.Columns {
			if c := s.Table.Columns[at]; c.HiddenCell() >= 0 {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// ShownRows is RowOrder without the groups that the policy hides.
func (s *Query) ShownRows() []int {
	order := s.RowOrder()
	if len(s.Concealed()) == 0 {
		return order
	}
	return slices.DeleteFunc(order, func(cell int) bool {
		for i := len(s.Factors) - 1; i >= 0; i-- {
			p := s.Factors[i]
			if len(p.shown) > 0 && !p.shown[cell%p.Classes] {
				return true
			}
			cell /= p.Classes
		}
		return false
	})
}

// factorOf is the factor that decides key k, nil for a constant key.
func (s *Query) factorOf(k int) (p *Factor, at int) {
	for _, p := range s.Factors {
		if at := slices.Index(p.Keys, k); at >= 0 {
			return p, at
		}
	}
	return nil, -1
}

// classOf is the class of key k's factor in a cell of the question.
func (s *Query) classOf(k, cell int) int {
	for i := len(s.Factors) - 1; i >= 0; i-- {
		p := s.Factors[i]
		if slices.Contains(p.Keys, k) {
			return cell % p.Classes
		}
		cell /= p.Classes
	}
	return 0
}

// KeyValue is key k's value in a cell of the question.
func (s *Query) KeyValue(k, cell int) policy.Value {
	p, at := s.factorOf(k)
	if p == nil {
		v, _ := s.Keys[k].Eval(nil)
		return v
	}
	return p.Values[s.classOf(k, cell)][at]
}

// ranks orders the classes of key k: a bare column by its cells, so that 'other' and NULL come last, any other key by
// value, NULL last.
func (s *Query) ranks(k int) []int {
	p, at := s.factorOf(k)
	if p == nil {
		return nil
	}
	e, ranks := s.Keys[k], make([]int, p.Classes)
	if e.Form == semantics.FormColumn {
		for i := range ranks {
			ranks[i], _ = s.Table.Columns[e.Cols[0]].Domain.Cell(p.Values[i][at])
		}
		return ranks
	}
	byClass := semantics.IdentityOf(p.Classes)
	compare := func(a, b policy.Value) int {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		return scalar.Compare(e.Type(), a, b)
	}
	slices.SortStableFunc(byClass, func(a, b int) int { return compare(p.Values[a][at], p.Values[b][at]) })
	for i, class := range byClass {
		ranks[class] = i
		if i > 0 && compare(p.Values[byClass[i-1]][at], p.Values[class][at]) == 0 {
			ranks[class] = ranks[byClass[i-1]]
		}
	}
	return ranks
}
