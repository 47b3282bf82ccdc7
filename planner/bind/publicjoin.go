package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A public table whose key is unique is a function of the key: joined to private rows, its columns are functions of
// cells, evaluated when the query is planned. The private database sees nothing of it and sensitivities stay as they
// are. Others are matched row by row.

// publicTable finds the public table that an item of FROM names.
func (b *Binder) publicTable(n *pg.Node, scope *Scope) (t *policy.Table, alias *pg.Alias) {
	v := n.GetRangeVar()
	if v == nil || v.Schemaname == "" && scope.Find(v.Relname) != nil {
		return nil, nil
	}
	if _, other, refusal := b.Resolve(v); refusal == nil && other.Public != nil {
		return other.Public, v.Alias
	}
	return nil, nil
}

func (b *Binder) lookUp(from *Rows, n *pg.Node, scope *Scope, j joining) (*Rows, *refuse.Refusal) {
	if n.GetJoinExpr() != nil {
		if out, refusal := lookUpEach(b, from, n, scope, j); out != nil || refusal != nil {
			return out, refusal
		}
	}
	t, alias := b.publicTable(n, scope)
	listed, answered := t == nil, false
	if listed {
		if out, refusal := b.lateral(from, n, scope, j); out != nil || refusal != nil {
			return out, refusal
		}
		t = b.listTable(n, scope)
		if t == nil && from.fan == nil && !knownSeries(b, n, scope) {
			var refusal *refuse.Refusal
			if t, alias, refusal = b.answeredTable(n, scope); refusal != nil {
				return nil, refusal
			}
			listed, answered = t == nil, t != nil
		}
		if t == nil || from.fan != nil {
			return b.meet(from, n, scope, j)
		}
	}
	from, public, refusal := beside(from, tableRows(t, ast.Location(n)), alias, &j)
	if refusal != nil {
		return nil, refusal
	}
	l := b.lookedUp(public, t)
	rest, refusal := l.conditions(from, j)
	if refusal != nil {
		return nil, refusal
	}
	if answered && len(l.Args) == 0 && !j.preserved && !j.outer {
		if out, refusal := l.constants(from, t, rest, j); out != nil || refusal != nil {
			return out, refusal
		}
	}
	refusal = l.Index(j.pos)
	if len(j.also) > 0 && (refusal != nil && refusal.ID == lookup.FanOut.ID || refusal == nil && len(l.Args) == 0) {
		j.quals, j.also = append(slices.Clone(j.quals), j.also...), nil
		l = b.lookedUp(public, t)
		if rest, refusal = l.conditions(from, j); refusal != nil {
			return nil, refusal
		}
		refusal = l.Index(j.pos)
	}
	switch {
	case refusal != nil && refusal.ID != lookup.FanOut.ID:
		return nil, refusal
	case !j.preserved && !j.outer && len(j.using) == 0 && (listed || refusal == nil && len(l.Args) == 0):
		return b.meetOrMatch(from, n, scope, j, func() (*Rows, *refuse.Refusal) { return b.match(from, public, t, j, &l.Keyed) })
	case refusal != nil || len(l.Args) == 0 || j.preserved || j.outer && len(rest) > 0:
		out, refusal := b.match(from, public, t, j, &l.Keyed)
		if refusal == nil && !(j.outer && j.preserved) {
			refusal = b.merge(out, j, len(from.names), len(out.keys))
		}
		return out, refusal
	}
	return l.columns(from, rest, j)
}

// knownSeries reports whether a function of FROM is a list that is known here, or is refused as one.
func knownSeries(b *Binder, n *pg.Node, scope *Scope) bool {
	if n.GetRangeFunction() == nil {
		return false
	}
	list, refusal := b.candidatesOf(nil, n, scope)
	return list != nil || refusal != nil
}

// innerItems are the items of FROM that inner joins put together, and what these ask.
func innerItems(n *pg.Node) (items, on []*pg.Node) {
	j := n.GetJoinExpr()
	if j == nil || j.Jointype != pg.JoinType_JOIN_INNER || j.IsNatural || len(j.UsingClause) > 0 || j.Alias != nil {
		return []*pg.Node{n}, nil
	}
	items, on = innerItems(j.Larg)
	others, also := innerItems(j.Rarg)
	return append(items, others...), slices.Concat(on, also, ast.Conjuncts(j.Quals))
}

// lookUpEach joins public tables that are joined among themselves, one after the other, first those that a condition
// ties to what is there:
//
//	SELECT r.name, count(*) FROM regions r JOIN zones z ON z.id = r.zone JOIN people p ON p.region = r.code GROUP BY 1
//
// It returns nil, nil where they are joined otherwise.
func lookUpEach(b *Binder, from *Rows, n *pg.Node, scope *Scope, j joining) (*Rows, *refuse.Refusal) {
	items, on := innerItems(n)
	if len(items) == 1 || j.outer || j.preserved || j.natural || len(j.using) > 0 {
		return nil, nil
	}
	how := joining{quals: slices.Concat(j.quals, on), also: j.also, fromWhere: true, pos: j.pos}
	out, left := from, slices.Clone(items)
	parts := make([][]relation, len(items)) // in the order of FROM
	for len(left) > 0 {
		at := max(slices.IndexFunc(left, func(n *pg.Node) bool { return tied(b, out, n, how.quals, scope) }), 0)
		next, refusal := b.lookUp(out, left[at], scope, how)
		if refusal == nil {
			next, refusal = next.rowByRow("joined with a public table after it")
		}
		if refusal != nil {
			return nil, refusal
		}
		parts[slices.Index(items, left[at])] = next.parts[len(out.parts):]
		out, left = next, slices.Delete(left, at, at+1)
	}
	joined := *out
	joined.parts = slices.Concat(append([][]relation{from.parts}, parts...)...)
	if !j.fromWhere {
		on = how.quals
	}
	return joined.restricted(b, on, joining{pos: j.pos})
}

// tied reports whether an equation ties a public table to rows.
func tied(b *Binder, r *Rows, n *pg.Node, quals []*pg.Node, scope *Scope) bool {
	t, alias := b.publicTable(n, scope)
	if t == nil {
		return false
	}
	public, refusal := tableRows(t, ast.Location(n)).aliased(alias)
	return refusal == nil && slices.ContainsFunc(quals, func(q *pg.Node) bool {
		e := q.GetAExpr()
		l, k := e.GetLexpr(), e.GetRexpr()
		return public.readsAll(l) && r.readsAll(k) || public.readsAll(k) && r.readsAll(l)
	})
}

// beside names the rows of a public table, and refuses private rows that may not be joined to them.
func beside(from, public *Rows, alias *pg.Alias, j *joining) (private, named *Rows, refusal *refuse.Refusal) {
	if from, refusal = from.rowByRow("joined with a public table after it"); refusal != nil {
		return nil, nil, refusal
	}
	if public, refusal = public.aliased(alias); refusal != nil {
		return nil, nil, refusal
	}
	if slices.ContainsFunc(from.parts, func(p relation) bool { return p.alias == public.Alias() }) {
		return nil, nil, duplicateAlias.At(j.pos, public.Alias())
	}
	if from.preserved > 0 {
		return nil, nil, preservedJoined.At(j.pos, from.Table.Name)
	}
	if j.natural {
		j.using, refusal = usingOf(&pg.JoinExpr{IsNatural: true}, from, public)
	}
	return from, public, refusal
}

// columns are private rows with the columns of the public row that has their key, or with NULL.
func (l *lookedUp) columns(from *Rows, rest []*pg.Node, j joining) (*Rows, *refuse.Refusal) {
	out, value, found := *from, l.Column, l.Found()
	if semantics.Together(from.Table, semantics.Node(semantics.FormOther, "", nil, -1, l.Args...).Cols) > plans.MaxCells {
		table, listed, is, refusal := l.Tabulated(from.Table, j.pos)
		if refusal != nil {
			return nil, refusal
		}
		if table != nil {
			out.Become(table)
			value, found = listed, is
		}
	}
	out.names = append(slices.Clone(from.names), l.public.names...)
	out.exprs = slices.Clone(from.exprs)
	for i := range l.Table.Columns {
		out.exprs = append(out.exprs, value(i))
	}
	present := always
	if j.outer {
		present = found
	}
	out.parts = append(slices.Clone(from.parts), relation{l.public.Alias(), l.public.parts[0].plain, len(from.names), len(out.names), 0, 0, nil, present})
	if refusal := l.b.merge(&out, j, len(from.names), len(out.keys)); refusal != nil {
		return nil, refusal
	}
	if !j.outer {
		out.where = append(slices.Clone(from.where), found)
	}
	return out.restricted(l.b, rest, j)
}

// restricted are the rows for which the other conditions of ON hold.
func (r *Rows) restricted(b *Binder, rest []*pg.Node, j joining) (*Rows, *refuse.Refusal) {
	if j.fromWhere {
		return r, nil
	}
	for _, q := range rest {
		e, refusal := b.OverRows(r, "ON").Condition(q, "JOIN/ON")
		if refusal != nil {
			return nil, refusal
		}
		if j.outer {
			return nil, outerCondition.At(e.Pos)
		}
		r.where = append(slices.Clone(r.where), e)
	}
	return r, nil
}

// constants are private rows beside the one row of a table, as in people, (SELECT avg(income) AS a FROM people) q; nil:
// it has several, or none.
func (l *lookedUp) constants(from *Rows, t *policy.Table, rest []*pg.Node, j joining) (*Rows, *refuse.Refusal) {
	rows, _ := l.b.Context.Public.Rows(t)
	rows, refusal := l.Filtered(rows)
	if len(rows) != 1 || refusal != nil {
		return nil, refusal
	}
	out, released := *from, l.Released()
	out.names, out.exprs = slices.Concat(from.names, l.public.names), slices.Clone(from.exprs)
	for i, c := range t.Columns {
		t, typmod := c.DescribedType()
		e := semantics.ValueExpr(rows[0][i], t, typmod, l.public.pos)
		e.Awaited = released.Standing
		out.exprs = append(out.exprs, e)
	}
	out.parts = append(slices.Clone(from.parts), relation{l.public.Alias(), nil, len(from.names), len(out.names), 0, 0, nil, always})
	return out.restricted(l.b, rest, j)
}

// lookedUp is a public table that is joined by what its columns equal.
type lookedUp struct {
	b      *Binder
	public *Rows
	lookup.Keyed
}

func (b *Binder) lookedUp(public *Rows, t *policy.Table) *lookedUp {
	return &lookedUp{b, public, lookup.Keyed{Public: b.Context.Public, Env: b.Env, Table: t, Pos: public.pos}}
}

// conditions takes the join's conditions apart: equations of a public column with a private expression, conditions on
// the public columns alone, and the rest.
func (l *lookedUp) conditions(from *Rows, j joining) (rest []*pg.Node, refusal *refuse.Refusal) {
	for _, name := range j.using {
		key, refusal := l.public.Column([]string{name}, j.pos)
		if refusal != nil {
			return nil, refusal
		}
		arg, refusal := from.Column([]string{name}, j.pos)
		if refusal != nil {
			return nil, refusal
		}
		if !lookup.Comparable(arg.Type(), key.Type()) {
			rest = append(rest, equalColumns(from, l.public, name, j.pos))
			continue
		}
		if refusal := l.Equate(arg, key.Cols[0], key); refusal != nil {
			return nil, refusal
		}
	}
	for _, n := range j.quals {
		if l.equation(n, from) {
			continue
		}
		public := &semantics.Translator{Env: l.b.Env, Params: l.b.Params, Columns: l.public.Column, Place: "ON"}
		if e, refusal := public.Condition(n, "JOIN/ON"); refusal == nil && !e.IsConstant() {
			l.Filter = append(l.Filter, e)
			continue
		}
		rest = append(rest, n)
	}
	return rest, nil
}

// equation reads private expression = public column.
func (l *lookedUp) equation(n *pg.Node, from *Rows) bool {
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || !slices.Equal(ast.Strings(e.Name), []string{"="}) {
		return false
	}
	for _, sides := range [][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
		fields := ast.Strings(sides[1].GetColumnRef().GetFields())
		if len(fields) == 0 {
			if l.computed(sides[0], sides[1], from) {
				return true
			}
			continue
		}
		key, refusal := l.public.Column(fields, -1)
		if refusal != nil {
			continue
		}
		if len(fields) == 1 {
			if _, refusal := from.Column(fields, -1); refusal == nil {
				continue // either side's: SQL calls it ambiguous
			}
		}
		arg, refusal := l.b.OverKeys(from, "ON").Expr(sides[0])
		if refusal != nil || arg.IsConstant() || !lookup.Comparable(arg.Type(), key.Type()) {
			continue
		}
		return l.Equate(arg, key.Cols[0], key) == nil
	}
	return false
}

// computed reads private expression = expression over the columns of a list of the statement's own.
func (l *lookedUp) computed(private, public *pg.Node, from *Rows) bool {
	key, refusal := (&semantics.Translator{Env: l.b.Env, Params: l.b.Params, Columns: l.public.Column, Place: "ON"}).Expr(public)
	if refusal != nil || key.IsConstant() {
		return false
	}
	arg, refusal := l.b.OverKeys(from, "ON").Expr(private)
	if refusal != nil || arg.IsConstant() || !lookup.Comparable(arg.Type(), key.Type()) {
		return false
	}
	at, ok := l.Extended(key)
	return ok && l.Equate(arg, at, key) == nil
}

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

// column is a column of either side. Those of the public side are after the others.
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
