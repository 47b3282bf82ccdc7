package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// matcher joins private rows with a public table of which a row may match several rows, or whose own rows stay: by any
// condition that the cells of the private columns decide.
type matcher struct {
	b       *binder
	from    *rows
	public  *rows
	table   *policy.Table // the public one
	data    [][]policy.Value
	how     joining
	conds   []*expr // over From's columns, then the public ones
	private []*expr // conditions of ON on private rows alone, where these are not kept
	equals  *lookup // equations, by which matches are looked up
	args    []int   // positions that the conditions read
}

// match joins them.
func (b *binder) match(from, public *rows, t *policy.Table, how joining, equals *lookup) (*rows, *refuse.Refusal) {
	m := &matcher{b: b, from: from, public: public, table: t, how: how, equals: equals}
	if b.c.Public != nil {
		m.data, _ = b.c.Public.Rows(t)
	}
	if refusal := m.conditions(); refusal != nil {
		return nil, refusal
	}
	d := &derived.Matched{From: from.table, Outer: how.outer, Kept: how.kept}
	if refusal := m.matches(d); refusal != nil {
		return nil, refusal
	}
	table := derived.NewMatched(d, t.Name)
	if table == nil || len(d.Matches) > derived.MaxPairs {
		return nil, fanOut.At(how.pos, t.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows)
	}
	out := *from
	out.become(table)
	out.names, out.exprs = append(slices.Clone(from.names), public.names...), slices.Clone(from.exprs)
	digest := m.digest()
	row := columnExpr(d.Row(), policy.Int4, -1, public.pos)
	for i, c := range t.Columns {
		out.exprs = append(out.exprs, node(formOther, "matched:"+t.Name+":"+digest+":"+c.Name, ofRow{m.data, d.Row(), c.Type, c.Typmod, i}, public.pos, row))
	}
	out.parts = append(slices.Clone(from.parts), relation{public.alias(), public.parts[0].plain, len(from.names), len(out.names), 0, 0})
	out.where = append(slices.Clone(from.where), m.private...)
	if how.kept {
		out.kept = d.Row() + 1
		out.keys = slices.Clone(out.keys)
		for i := range out.keys {
			out.keys[i].present = d.Row() + 2
		}
	}
	if most := d.Most(func(int32) bool { return true }); most > 1 {
		b.said.add("rows of " + from.table.Name + " count once for each row of " + t.Name + " that they match, at most " + predicate.Text(most))
	}
	return &out, nil
}

// conditions translates those that pair rows. What WHERE asks besides is left to it.
func (m *matcher) conditions() *refuse.Refusal {
	n := len(m.from.table.Columns)
	columns := func(fields []string, pos int) (*expr, *refuse.Refusal) {
		own, missing := m.from.column(fields, pos)
		other, also := m.public.column(fields, pos)
		switch {
		case missing == nil && also == nil:
			return nil, ambiguous.At(pos, fields[len(fields)-1])
		case missing == nil:
			return own, nil
		case also == nil:
			return other.shifted(n), nil
		case missing.ID == unknownAlias.ID:
			return nil, also
		}
		return nil, missing
	}
	t := &translator{env: m.b.env, params: m.b.params, columns: columns, hook: m.from.aboutKeys, place: "ON"}
	for _, name := range m.how.using {
		own, refusal := m.from.column([]string{name}, m.how.pos)
		if refusal != nil {
			return refusal
		}
		other, refusal := m.public.column([]string{name}, m.how.pos)
		if refusal != nil {
			return refusal
		}
		e, refusal := t.combine("=", m.how.pos, own, other.shifted(n))
		if refusal != nil {
			return refusal
		}
		m.conds = append(m.conds, e)
	}
	for _, q := range m.how.quals {
		e, refusal := t.condition(q, "JOIN/ON")
		public := refusal == nil && slices.ContainsFunc(e.cols, func(c int) bool { return c >= n })
		switch {
		case m.how.fromWhere && !public:
		case refusal != nil:
			return refusal
		case public || m.how.outer || m.how.kept:
			m.conds = append(m.conds, e)
		default:
			m.private = append(m.private, e)
		}
	}
	for _, e := range m.conds {
		m.args = union(m.args, e.cols)
	}
	m.args = slices.DeleteFunc(slices.Clone(m.args), func(c int) bool { return c >= n })
	slices.SortFunc(m.args, func(a, b int) int { return derived.CompareNames(m.from.table.Columns[a], m.from.table.Columns[b]) })
	return nil
}

// matches finds the public rows that each combination of cells matches, and numbers them in the order of their values: all
// of those that are kept, else those that something matches.
func (m *matcher) matches(d *derived.Matched) *refuse.Refusal {
	m.sorted()
	combinations := 1
	var sizes []int
	for _, at := range m.args {
		c := m.from.table.Columns[at]
		if c.Domain == nil {
			return domainMissing.At(m.how.pos, c.Name)
		}
		d.Args, sizes = append(d.Args, c), append(sizes, c.Domain.Size())
		if combinations *= c.Domain.Size(); combinations > maxCells {
			return tooManyCells.At(m.how.pos, fmt.Sprint(combinations), maxCells)
		}
	}
	find, work := m.finder(), 0
	cells := make([]int, len(sizes))
	box := m.box()
	for at := range combinations {
		m.b.env.Work.Step(1)
		decode(at, sizes, cells)
		for i, c := range m.args {
			box.set(c, cells[i])
		}
		list, refusal := find(box)
		if refusal != nil {
			return refusal
		}
		if work += 1 + len(list); work > maxCells {
			return tooManyCells.At(m.how.pos, "more", maxCells)
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
			return fanOut.At(m.how.pos, m.table.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows)
		}
	}
	if d.Rows = len(m.data); !m.how.kept {
		m.renumber(d)
	}
	if d.Rows > derived.MaxPairs {
		return fanOut.At(m.how.pos, m.table.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows)
	}
	return nil
}

// sorted puts the public rows into the order of their values, whatever order they were copied in.
func (m *matcher) sorted() {
	m.b.env.Work.Take(len(m.data), bytesOfLooked)
	texts := make(map[*policy.Value]string, len(m.data))
	m.data = slices.Clone(m.data)
	for _, row := range m.data {
		m.b.env.Work.Step(1 + len(row))
		texts[&row[0]] = keyText(append(slices.Clone(row), nil))
	}
	slices.SortStableFunc(m.data, func(a, b []policy.Value) int { return strings.Compare(texts[&a[0]], texts[&b[0]]) })
}

// box holds both tables' columns; a public one has one value.
func (m *matcher) box() *box {
	joint := *m.from.table
	joint.Columns = slices.Concat(m.from.table.Columns, m.table.Columns)
	return newBox(&joint, m.b.env)
}

// finder lists the public rows that may match the private columns in a box: where equations are among the conditions, those
// with equal values.
func (m *matcher) finder() func(*box) ([]int, *refuse.Refusal) {
	if len(m.equals.args) == 0 {
		all := identityOf(len(m.data))
		return func(*box) ([]int, *refuse.Refusal) { return all, nil }
	}
	index := map[string][]int{}
	for i, row := range m.data {
		m.b.env.Work.Step(1 + len(m.equals.keys))
		values := make([]policy.Value, len(m.equals.keys))
		for k, c := range m.equals.keys {
			values[k] = row[c]
		}
		if key, known := joinKey(values); known {
			index[key] = append(index[key], i)
		}
	}
	return func(b *box) ([]int, *refuse.Refusal) {
		values := make([]policy.Value, len(m.equals.args))
		for k, e := range m.equals.args {
			v, steady, refusal := b.value(e)
			if refusal == nil && !steady {
				refusal = b.unsteady(e)
			}
			if refusal != nil {
				return nil, refusal
			}
			values[k] = v
		}
		key, _ := joinKey(values)
		return index[key], nil
	}
}

// hold evaluates the conditions on the box and a public row.
func (m *matcher) hold(b *box, row int) (bool, *refuse.Refusal) {
	n := len(m.from.table.Columns)
	for i, v := range m.data[row] {
		b.low[n+i], b.high[n+i], b.inner[n+i] = v, v, v
	}
	all := true
	for _, e := range m.conds {
		v, steady, refusal := b.value(e)
		if refusal == nil && !steady {
			refusal = b.unsteady(e)
		}
		if refusal != nil {
			return false, refusal
		}
		all = all && v == true
	}
	return all, nil
}

// renumber leaves out public rows that nothing matches.
func (m *matcher) renumber(d *derived.Matched) {
	number := make([]int32, len(m.data))
	for _, match := range d.Matches {
		number[match.Row] = 1
	}
	var kept [][]policy.Value
	for i, some := range number {
		if some > 0 {
			number[i] = int32(len(kept))
			kept = append(kept, m.data[i])
		}
	}
	for i := range d.Matches {
		d.Matches[i].Row = number[d.Matches[i].Row]
	}
	m.data, d.Rows = kept, len(kept)
}

// digest names the public rows.
func (m *matcher) digest() string {
	hash := sha256.New()
	for _, row := range m.data {
		m.b.env.Work.Step(1 + len(row))
		fmt.Fprintf(hash, "%q\n", keyText(append(slices.Clone(row), nil)))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// unseen refuses a question that counts public rows without a match: whether there is one, of a unit, is what would be
// told. Aggregates of private columns leave them out, as conditions on these do.
func unseen(q *question, work *scalar.Work) *refuse.Refusal {
	columns, at := q.table.Columns, q.kept-1
	row := make(scalar.Row, len(columns))
	row[at+1] = false // it is of the private table
	all := func(where []*expr) bool {
		for _, e := range where {
			if v, err := e.Eval(row); err != nil || v != true {
				return false
			}
		}
		return true
	}
	for n := range columns[at].Domain.Regular {
		work.Step(workOf(q.where...) + len(q.counters) + len(q.choices) + 1)
		row[at] = int64(n)
		if !all(q.where) {
			continue
		}
		for _, c := range q.counters {
			if c.choice == nil && c.units == nil && all(c.where) && !missingOf(c.values, row) {
				return keptPublic.At(-1, q.table.Name)
			}
		}
		for _, set := range q.choices {
			if all(set.where) && set.arg != nil && !missing(set.arg, row) {
				return keptPublic.At(-1, q.table.Name)
			}
		}
	}
	return nil
}

// missing tells that there is no value on a row.
func missing(e *expr, row scalar.Row) bool {
	v, err := e.Eval(row)
	return err == nil && v == nil
}

// missingOf tells that a row has no value that would count as different from others.
func missingOf(v *values, row scalar.Row) bool {
	return v != nil && !v.row && missing(v.of[0], row)
}

// meetOrMatch joins rows with a list that no equation ties to them: side by side, where the SELECT allows that, else row by
// row.
func (b *binder) meetOrMatch(from *rows, n *pg.Node, scope *cte, how joining, match func() (*rows, *refuse.Refusal)) (*rows, *refuse.Refusal) {
	out, refusal := b.meet(from, n, scope, how)
	if refusal != nil {
		if alone, other := match(); other == nil {
			return alone, nil
		}
		return nil, refusal
	}
	out.matched = match
	return out, nil
}

// rowByRow are the rows as they match a list one by one; others are as they are. Done is what cannot be done with rows that
// meet a list.
func (r *rows) rowByRow(done string) (*rows, *refuse.Refusal) {
	switch {
	case r.fan == nil:
		return r, nil
	case r.matched != nil:
		return r.matched()
	}
	return nil, candidateRows.At(r.pos, done)
}

// ofCandidates tells a refusal of rows that meet a list, side by side.
func ofCandidates(r *refuse.Refusal) bool {
	return slices.Contains([]string{candidateRows.ID, candidateKeys.ID, candidateAggregate.ID, manyCandidates.ID}, r.ID)
}

// meets binds the aggregates of a SELECT over rows that meet a list: what is refused of them has another way.
func (g *grouping) meets() (refusal *refuse.Refusal) {
	bind := func(n *pg.Node) bool {
		if f := n.GetFuncCall(); refusal == nil && f != nil && ast.IsAggregate(f) {
			if _, r := g.aggregate(f); r != nil && ofCandidates(r) {
				refusal = r
			}
		}
		return false
	}
	for _, t := range g.targets {
		ast.Holds(t.node, bind)
	}
	ast.Holds(g.sel.HavingClause, bind)
	for _, n := range g.sel.SortClause {
		ast.Holds(n, bind)
	}
	return refusal
}
