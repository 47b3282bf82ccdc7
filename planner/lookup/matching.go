package lookup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Matching is a join of private rows with a public table of which a row may match several rows, or whose own rows stay:
// by any condition that the cells of the private columns decide.
type Matching struct {
	Env       scalar.Env
	Private   *policy.Table
	Public    *policy.Table
	Rows      [][]policy.Value
	Preserved bool              // rows of the public table without a partner stay
	Conds     []*semantics.Expr // over the private columns, then the public ones
	Equals    *Keyed            // equations, by which matches are looked up
	Args      []int             // positions of private columns that the conditions read
	Pos       int
}

// Matches finds the public rows that each combination of cells matches, and numbers them in the order of their values:
// all of those that are kept, else those that something matches.
func (m *Matching) Matches(d *derived.Matched) *refuse.Refusal {
	m.sorted()
	combinations := 1
	var sizes []int
	for _, at := range m.Args {
		c := m.Private.Columns[at]
		if c.Domain == nil {
			return semantics.DomainMissing.At(m.Pos, c.Name)
		}
		d.Args, sizes = append(d.Args, c), append(sizes, c.Domain.Size())
		if combinations *= c.Domain.Size(); combinations > plans.MaxCells {
			return linear.TooManyCells.At(m.Pos, fmt.Sprint(combinations), plans.MaxCells)
		}
	}
	find, work := m.finder(), 0
	cells := make([]int, len(sizes))
	box := m.box()
	for at := range combinations {
		m.Env.Work.Step(1)
		linear.Decode(at, sizes, cells)
		for i, c := range m.Args {
			box.Set(c, cells[i])
		}
		list, refusal := find(box)
		if refusal != nil {
			return refusal
		}
		if work += 1 + len(list); work > plans.MaxCells {
			return linear.TooManyCells.At(m.Pos, "more", plans.MaxCells)
		}
		for _, row := range list {
			holds, refusal := m.hold(box, row)
			if refusal != nil {
				return refusal
			}
			if holds {
				d.Matches = append(d.Matches, derived.Match{Combination: int32(at), Row: int32(row)})
			}
		}
		if len(d.Matches) > derived.MaxPairs {
			return fansOut(m.Pos, m.Public)
		}
	}
	if d.Rows = len(m.Rows); !m.Preserved {
		m.renumber(d)
	}
	if d.Rows > derived.MaxPairs {
		return fansOut(m.Pos, m.Public)
	}
	return nil
}

// sorted puts the public rows into the order of their values, whatever order they were copied in.
func (m *Matching) sorted() {
	m.Env.Work.Take(len(m.Rows), derived.BytesKeyed)
	texts := make(map[*policy.Value]string, len(m.Rows))
	m.Rows = slices.Clone(m.Rows)
	for _, row := range m.Rows {
		m.Env.Work.Step(1 + len(row))
		texts[&row[0]] = semantics.KeyText(append(slices.Clone(row), nil))
	}
	slices.SortStableFunc(m.Rows, func(a, b []policy.Value) int { return strings.Compare(texts[&a[0]], texts[&b[0]]) })
}

// box holds both tables' columns; a public one has one value.
func (m *Matching) box() *semantics.Box {
	joint := *m.Private
	joint.Columns = slices.Concat(m.Private.Columns, m.Public.Columns)
	return semantics.NewBox(&joint, m.Env)
}

// finder lists the public rows that may match the private columns in a box: where equations are among the conditions,
// those with equal values.
func (m *Matching) finder() func(*semantics.Box) ([]int, *refuse.Refusal) {
	if len(m.Equals.Args) == 0 {
		all := semantics.IdentityOf(len(m.Rows))
		return func(*semantics.Box) ([]int, *refuse.Refusal) { return all, nil }
	}
	index := map[string][]int{}
	for i, row := range m.Rows {
		m.Env.Work.Step(1 + len(m.Equals.Keys))
		values := make([]policy.Value, len(m.Equals.Keys))
		for k, c := range m.Equals.Keys {
			values[k] = c.Of(row)
		}
		if key, known := derived.JoinKey(values); known {
			index[key] = append(index[key], i)
		}
	}
	return func(b *semantics.Box) ([]int, *refuse.Refusal) {
		values := make([]policy.Value, len(m.Equals.Args))
		for k, e := range m.Equals.Args {
			v, refusal := b.Steady(e)
			if refusal != nil {
				return nil, refusal
			}
			values[k] = v
		}
		key, _ := derived.JoinKey(values)
		return index[key], nil
	}
}

// hold evaluates the conditions on the box and a public row.
func (m *Matching) hold(b *semantics.Box, row int) (bool, *refuse.Refusal) {
	n := len(m.Private.Columns)
	for i, v := range m.Rows[row][:len(m.Public.Columns)] {
		b.Low[n+i], b.High[n+i], b.Inner[n+i] = v, v, v
	}
	all := true
	for _, e := range m.Conds {
		v, refusal := b.Steady(e)
		if refusal != nil {
			return false, refusal
		}
		all = all && v == true
	}
	return all, nil
}

// renumber leaves out public rows that nothing matches.
func (m *Matching) renumber(d *derived.Matched) {
	number := make([]int32, len(m.Rows))
	for _, match := range d.Matches {
		number[match.Row] = 1
	}
	var kept [][]policy.Value
	for i, some := range number {
		if some > 0 {
			number[i] = int32(len(kept))
			kept = append(kept, m.Rows[i])
		}
	}
	for i := range d.Matches {
		d.Matches[i].Row = number[d.Matches[i].Row]
	}
	m.Rows, d.Rows = kept, len(kept)
}

// Digest names the public rows.
func (m *Matching) Digest() string {
	hash := sha256.New()
	for _, row := range m.Rows {
		m.Env.Work.Step(1 + len(row))
		fmt.Fprintf(hash, "%q\n", semantics.KeyText(append(slices.Clone(row), nil)))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Unseen refuses a question that counts public rows without a match: whether there is one, of a unit, is what would be
// revealed. Aggregates of private columns leave them out, as conditions on these do.
func Unseen(q *linear.Question, work *scalar.Work) *refuse.Refusal {
	columns, at := q.Table.Columns, q.Preserved-1
	row := make(scalar.Row, len(columns))
	row[at+1] = false // it is of the private table
	all := func(where []*semantics.Expr) bool {
		return !slices.ContainsFunc(where, func(e *semantics.Expr) bool {
			v, err := e.Eval(row)
			return err != nil || v != true
		})
	}
	for n := range columns[at].Domain.Regular {
		work.Step(WorkOf(q.Where...) + len(q.Counters) + len(q.Choices) + 1)
		row[at] = int64(n)
		if !all(q.Where) {
			continue
		}
		for _, c := range q.Counters {
			if c.Choice == nil && c.Units == nil && all(c.Where) && (c.Values == nil || c.Values.Row || !missing(c.Values.Of[0], row)) {
				return PreservedPublic.At(-1, q.Table.Name)
			}
		}
		for _, set := range q.Choices {
			if all(set.Where) && set.Arg != nil && !missing(set.Arg, row) {
				return PreservedPublic.At(-1, q.Table.Name)
			}
		}
	}
	return nil
}

// missing tells that there is no value on a row.
func missing(e *semantics.Expr, row scalar.Row) bool {
	v, err := e.Eval(row)
	return err == nil && v == nil
}
