package bind

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Joins with a public table of which a private row may match several rows, or whose own rows stay: SELECT r.name, count(p.age) FROM ranges r
// LEFT JOIN people p ON p.age BETWEEN r.low AND r.high GROUP BY 1. Which rows match is a function of the cells of p.age, evaluated
// when the statement is planned.

// matcher joins private rows with a public table of which a row may match several rows, or whose own rows stay: by any
// condition that the cells of the private columns decide.
type matcher struct {
	b       *Binder
	from    *Rows
	public  *Rows
	table   *policy.Table // the public one
	data    [][]policy.Value
	how     joining
	conds   []*semantics.Expr // over From's columns, then the public ones
	private []*semantics.Expr // conditions of ON on private rows alone, where rows that match nothing do not stay
	equals  *lookup           // equations, by which matches are looked up
	args    []int             // positions that the conditions read
}

// match joins them.
func (b *Binder) match(from, public *Rows, t *policy.Table, how joining, equals *lookup) (*Rows, *refuse.Refusal) {
	m := &matcher{b: b, from: from, public: public, table: t, how: how, equals: equals}
	if b.Context.Public != nil {
		m.data, _ = b.Context.Public.Rows(t)
	}
	if refusal := m.conditions(); refusal != nil {
		return nil, refusal
	}
	d := &derived.Matched{From: from.Table, Outer: how.outer, Preserved: how.preserved}
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
	row := semantics.ColumnExpr(d.Row(), policy.Int4, -1, public.pos)
	for i, c := range t.Columns {
		out.exprs = append(out.exprs, semantics.Node(semantics.FormOther, "matched:"+t.Name+":"+digest+":"+c.Name, linear.OfRow{Rows: m.data, At: d.Row(), Typ: c.Type, Mod: c.Typmod, Column: i}, public.pos, row))
	}
	out.parts = append(slices.Clone(from.parts), relation{public.alias(), public.parts[0].plain, len(from.names), len(out.names), 0, 0})
	out.where = append(slices.Clone(from.where), m.private...)
	if how.preserved {
		out.preserved = d.Row() + 1
		out.keys = slices.Clone(out.keys)
		for i := range out.keys {
			out.keys[i].Present = d.Row() + 2
		}
	}
	if most := d.Most(func(int32) bool { return true }); most > 1 {
		b.Notes.Add("rows of " + from.Table.Name + " count once for each row of " + t.Name + " that they match, at most " + predicate.Text(most))
	}
	return &out, nil
}

// conditions translates those that pair rows. What WHERE asks besides is left to it.
func (m *matcher) conditions() *refuse.Refusal {
	n := len(m.from.Table.Columns)
	columns := func(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
		own, missing := m.from.Column(fields, pos)
		other, also := m.public.Column(fields, pos)
		switch {
		case missing == nil && also == nil:
			return nil, Ambiguous.At(pos, fields[len(fields)-1])
		case missing == nil:
			return own, nil
		case also == nil:
			return other.Shifted(n), nil
		case missing.ID == UnknownAlias.ID:
			return nil, also
		}
		return nil, missing
	}
	t := &semantics.Translator{Env: m.b.Env, Params: m.b.Params, Columns: columns, Hook: func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) { return m.b.aboutKeys(m.from, n) }, Place: "ON"}
	for _, name := range m.how.using {
		own, refusal := m.from.Column([]string{name}, m.how.pos)
		if refusal != nil {
			return refusal
		}
		other, refusal := m.public.Column([]string{name}, m.how.pos)
		if refusal != nil {
			return refusal
		}
		e, refusal := t.Combine("=", m.how.pos, own, other.Shifted(n))
		if refusal != nil {
			return refusal
		}
		m.conds = append(m.conds, e)
	}
	for _, q := range m.how.quals {
		e, refusal := t.Condition(q, "JOIN/ON")
		public := refusal == nil && slices.ContainsFunc(e.Cols, func(c int) bool { return c >= n })
		switch {
		case m.how.fromWhere && !public:
		case refusal != nil:
			return refusal
		case public || m.how.outer || m.how.preserved:
			m.conds = append(m.conds, e)
		default:
			m.private = append(m.private, e)
		}
	}
	for _, e := range m.conds {
		m.args = semantics.Union(m.args, e.Cols)
	}
	m.args = slices.DeleteFunc(slices.Clone(m.args), func(c int) bool { return c >= n })
	slices.SortFunc(m.args, func(a, b int) int { return derived.CompareNames(m.from.Table.Columns[a], m.from.Table.Columns[b]) })
	return nil
}

// matches finds the public rows that each combination of cells matches, and numbers them in the order of their values: all
// of those that are kept, else those that something matches.
func (m *matcher) matches(d *derived.Matched) *refuse.Refusal {
	m.sorted()
	combinations := 1
	var sizes []int
	for _, at := range m.args {
		c := m.from.Table.Columns[at]
		if c.Domain == nil {
			return semantics.DomainMissing.At(m.how.pos, c.Name)
		}
		d.Args, sizes = append(d.Args, c), append(sizes, c.Domain.Size())
		if combinations *= c.Domain.Size(); combinations > plans.MaxCells {
			return linear.TooManyCells.At(m.how.pos, fmt.Sprint(combinations), plans.MaxCells)
		}
	}
	find, work := m.finder(), 0
	cells := make([]int, len(sizes))
	box := m.box()
	for at := range combinations {
		m.b.Env.Work.Step(1)
		linear.Decode(at, sizes, cells)
		for i, c := range m.args {
			box.Set(c, cells[i])
		}
		list, refusal := find(box)
		if refusal != nil {
			return refusal
		}
		if work += 1 + len(list); work > plans.MaxCells {
			return linear.TooManyCells.At(m.how.pos, "more", plans.MaxCells)
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
	if d.Rows = len(m.data); !m.how.preserved {
		m.renumber(d)
	}
	if d.Rows > derived.MaxPairs {
		return fanOut.At(m.how.pos, m.table.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows)
	}
	return nil
}

// sorted puts the public rows into the order of their values, whatever order they were copied in.
func (m *matcher) sorted() {
	m.b.Env.Work.Take(len(m.data), derived.BytesKeyed)
	texts := make(map[*policy.Value]string, len(m.data))
	m.data = slices.Clone(m.data)
	for _, row := range m.data {
		m.b.Env.Work.Step(1 + len(row))
		texts[&row[0]] = semantics.KeyText(append(slices.Clone(row), nil))
	}
	slices.SortStableFunc(m.data, func(a, b []policy.Value) int { return strings.Compare(texts[&a[0]], texts[&b[0]]) })
}

// box holds both tables' columns; a public one has one value.
func (m *matcher) box() *semantics.Box {
	joint := *m.from.Table
	joint.Columns = slices.Concat(m.from.Table.Columns, m.table.Columns)
	return semantics.NewBox(&joint, m.b.Env)
}

// finder lists the public rows that may match the private columns in a box: where equations are among the conditions, those
// with equal values.
func (m *matcher) finder() func(*semantics.Box) ([]int, *refuse.Refusal) {
	if len(m.equals.args) == 0 {
		all := semantics.IdentityOf(len(m.data))
		return func(*semantics.Box) ([]int, *refuse.Refusal) { return all, nil }
	}
	index := map[string][]int{}
	for i, row := range m.data {
		m.b.Env.Work.Step(1 + len(m.equals.keys))
		values := make([]policy.Value, len(m.equals.keys))
		for k, c := range m.equals.keys {
			values[k] = row[c]
		}
		if key, known := derived.JoinKey(values); known {
			index[key] = append(index[key], i)
		}
	}
	return func(b *semantics.Box) ([]int, *refuse.Refusal) {
		values := make([]policy.Value, len(m.equals.args))
		for k, e := range m.equals.args {
			v, steady, refusal := b.Value(e)
			if refusal == nil && !steady {
				refusal = b.Unsteady(e)
			}
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
func (m *matcher) hold(b *semantics.Box, row int) (bool, *refuse.Refusal) {
	n := len(m.from.Table.Columns)
	for i, v := range m.data[row][:len(m.table.Columns)] {
		b.Low[n+i], b.High[n+i], b.Inner[n+i] = v, v, v
	}
	all := true
	for _, e := range m.conds {
		v, steady, refusal := b.Value(e)
		if refusal == nil && !steady {
			refusal = b.Unsteady(e)
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
		m.b.Env.Work.Step(1 + len(row))
		fmt.Fprintf(hash, "%q\n", semantics.KeyText(append(slices.Clone(row), nil)))
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Unseen refuses a question that counts public rows without a match: whether there is one, of a unit, is what would be
// told. Aggregates of private columns leave them out, as conditions on these do.
func Unseen(q *linear.Question, work *scalar.Work) *refuse.Refusal {
	columns, at := q.Table.Columns, q.Preserved-1
	row := make(scalar.Row, len(columns))
	row[at+1] = false // it is of the private table
	all := func(where []*semantics.Expr) bool {
		for _, e := range where {
			if v, err := e.Eval(row); err != nil || v != true {
				return false
			}
		}
		return true
	}
	for n := range columns[at].Domain.Regular {
		work.Step(workOf(q.Where...) + len(q.Counters) + len(q.Choices) + 1)
		row[at] = int64(n)
		if !all(q.Where) {
			continue
		}
		for _, c := range q.Counters {
			if c.Choice == nil && c.Units == nil && all(c.Where) && !missingOf(c.Values, row) {
				return preservedPublic.At(-1, q.Table.Name)
			}
		}
		for _, set := range q.Choices {
			if all(set.Where) && set.Arg != nil && !missing(set.Arg, row) {
				return preservedPublic.At(-1, q.Table.Name)
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

// missingOf tells that a row has no value that would count as different from others.
func missingOf(v *linear.DistinctValues, row scalar.Row) bool {
	return v != nil && !v.Row && missing(v.Of[0], row)
}

// meetOrMatch joins rows with a list that no equation ties to them: side by side, where the SELECT allows that, else row by
// row.
func (b *Binder) meetOrMatch(from *Rows, n *pg.Node, scope *Scope, how joining, match func() (*Rows, *refuse.Refusal)) (*Rows, *refuse.Refusal) {
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
func (r *Rows) rowByRow(done string) (*Rows, *refuse.Refusal) {
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
func (g *Grouping) meets() (refusal *refuse.Refusal) {
	bind := func(n *pg.Node) bool {
		if f := n.GetFuncCall(); refusal == nil && f != nil && ast.IsAggregate(f) {
			if _, r := g.Aggregate(f); r != nil && ofCandidates(r) {
				refusal = r
			}
		}
		return false
	}
	for _, t := range g.Targets {
		ast.Holds(t.Node, bind)
	}
	ast.Holds(g.Sel.HavingClause, bind)
	for _, n := range g.Sel.SortClause {
		ast.Holds(n, bind)
	}
	return refusal
}
