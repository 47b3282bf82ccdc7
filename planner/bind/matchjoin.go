package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Joins with a public table of which a private row may match several rows, or whose own rows stay: SELECT r.name,
// count(p.age) FROM ranges r LEFT JOIN people p ON p.age BETWEEN r.low AND r.high GROUP BY 1. Which rows match is a
// function of the cells of p.age, evaluated when the statement is planned.

// matcher joins private rows with such a table.
type matcher struct {
	b       *Binder
	from    *Rows
	public  *Rows
	how     joining
	private []*semantics.Expr // conditions of ON on private rows alone, where rows that match nothing do not stay
	lookup.Matching
}

func (b *Binder) match(from, public *Rows, t *policy.Table, how joining, equals *lookup.Keyed) (*Rows, *refuse.Refusal) {
	m := &matcher{b: b, from: from, public: public, how: how}
	m.Matching = lookup.Matching{Env: b.Env, Private: from.Table, Public: t, Preserved: how.preserved, Equals: equals, Pos: how.pos}
	if b.Context.Public != nil {
		m.Rows, _ = b.Context.Public.Rows(t)
	}
	if refusal := m.conditions(); refusal != nil {
		return nil, refusal
	}
	d := &derived.Matched{From: from.Table, Outer: how.outer, Preserved: how.preserved}
	if refusal := m.Matches(d); refusal != nil {
		return nil, refusal
	}
	table := derived.NewMatched(d, t.Name)
	if table == nil || len(d.Matches) > derived.MaxPairs {
		return nil, lookup.FanOut.At(how.pos, t.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows)
	}
	out := *from
	out.Become(table)
	out.names, out.exprs = append(slices.Clone(from.names), public.names...), slices.Clone(from.exprs)
	digest := m.Digest()
	row := semantics.ColumnExpr(d.Row(), policy.Int4, -1, public.pos)
	for i, c := range t.Columns {
		typ, typmod := c.Shown()
		out.exprs = append(out.exprs, semantics.Node(semantics.FormOther, "matched:"+t.Name+":"+digest+":"+c.Name, linear.OfRow{Rows: m.Rows, At: d.Row(), Typ: typ, Mod: typmod, Column: i}, public.pos, row))
	}
	out.parts = append(slices.Clone(from.parts), relation{public.Alias(), public.parts[0].plain, len(from.names), len(out.names), 0, 0, nil, nil})
	if !how.outer {
		out.parts[len(from.parts)].present = always
	}
	out.where = append(slices.Clone(from.where), m.private...)
	if how.preserved {
		out.preserved = d.Row() + 1
		out.keys = slices.Clone(out.keys)
		for i := range out.keys {
			out.keys[i].Present = d.Row() + 2
		}
		for i, p := range from.parts {
			out.parts[i].present = p.on(d.Row() + 1)
		}
	}
	if most := d.Most(func(int32) bool { return true }); most > 1 {
		b.Notes.Add("rows of " + from.Table.Name + " count once for each row of " + t.Name + " that they match, at most " + predicate.Text(most))
	}
	return &out, nil
}

// column is a column of either side. Those of the public side stand after the others.
func (m *matcher) column(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	own, missing := m.from.Column(fields, pos)
	other, also := m.public.Column(fields, pos)
	switch {
	case missing == nil && also == nil:
		return nil, Ambiguous.At(pos, fields[len(fields)-1])
	case missing == nil:
		return own, nil
	case also == nil:
		return other.Shifted(len(m.Private.Columns)), nil
	case missing.ID == UnknownAlias.ID:
		return nil, also
	}
	return nil, missing
}

// conditions translates those that pair rows. What WHERE asks besides is left to it.
func (m *matcher) conditions() *refuse.Refusal {
	n := len(m.from.Table.Columns)
	t := &semantics.Translator{Env: m.b.Env, Params: m.b.Params, Columns: m.column, Hook: func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) { return m.b.aboutKeys(m.from, n, false) }, Place: "ON"}
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
		m.Conds = append(m.Conds, e)
	}
	for _, q := range m.how.quals {
		e, refusal := t.Condition(q, "JOIN/ON")
		public := refusal == nil && slices.ContainsFunc(e.Cols, func(c int) bool { return c >= n })
		switch {
		case m.how.fromWhere && !public:
		case refusal != nil:
			return refusal
		case public || m.how.outer || m.how.preserved:
			m.Conds = append(m.Conds, e)
		default:
			m.private = append(m.private, e)
		}
	}
	for _, e := range m.Conds {
		m.Args = semantics.Union(m.Args, e.Cols)
	}
	m.Args = slices.DeleteFunc(slices.Clone(m.Args), func(c int) bool { return c >= n })
	slices.SortFunc(m.Args, func(a, b int) int { return derived.CompareNames(m.from.Table.Columns[a], m.from.Table.Columns[b]) })
	return nil
}

// meetOrMatch joins rows with a list that no equation ties to them: side by side, where the SELECT allows that, else
// row by row.
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

// rowByRow are the rows as they match a list one by one; others are as they are. Done is what cannot be done with rows
// that meet a list.
func (r *Rows) rowByRow(done string) (*Rows, *refuse.Refusal) {
	switch {
	case r.fan == nil:
		return r, nil
	case r.matched != nil:
		return r.matched()
	}
	return nil, CandidateRows.At(r.pos, done)
}

// OtherWay gives rows that meet a list as they match it one by one; nil means there is no other way for them.
func (r *Rows) OtherWay() func() (*Rows, *refuse.Refusal) { return r.matched }
