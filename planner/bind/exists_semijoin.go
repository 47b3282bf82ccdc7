package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// EXISTS and IN over private rows. SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id
// = p.person_id AND v.kind = 'x') marks each row of people by whether its unit has such a row of visits: a column of a
// derived table, and so a condition like any other.

// aboutKeys translates what may be said of join keys: that two which are equal in each row are, and that one is NULL or
// not: payment_method_id IS NULL asks whether a row has one. Of a key that is not the unit's, and is never shown, that is
// asked by a mark, where rows may get one. Nil, nil means the node says nothing of keys.
func (b *noting) aboutKeys(r *Rows, n *pg.Node, marks bool) (*semantics.Expr, *refuse.Refusal) {
	pos := ast.Location(n)
	if l, k := equalKeys(n, r, r); l != nil {
		if !r.areEqual(l, k) {
			return nil, keyOnly.At(pos, l.Name, r.Table.Dataset.Unit.Name)
		}
		return r.equalPresent(l, k, pos)
	}
	test := n.GetNullTest()
	if test == nil {
		return nil, nil
	}
	k, refusal := r.KeyNode(test.Arg)
	if k == nil || refusal != nil {
		return nil, refusal
	}
	shown := r.KeyColumn(k).Unit || k.Present > 0
	if !shown && !marks {
		return nil, nil
	}
	b.SaysPartner(r, k)
	if _, refusal := r.Column(ast.Strings(test.Arg.GetColumnRef().Fields), pos); refusal == nil {
		return nil, nil // a column with a domain as well
	}
	e := r.Present(k, pos)
	if !shown {
		e = b.Known(r, k, pos)
	}
	if test.Nulltesttype == pg.NullTestType_IS_NULL {
		return (&semantics.Translator{}).Not(e)
	}
	return e, nil
}

// Present says that a key is not NULL. The unit's is never, but on the right of an outer join, and where rows without
// one are units.
func (r *Rows) Present(k *linear.Key, pos int) *semantics.Expr {
	if k.Present == 0 && r.KeyColumn(k).Unit && derived.NullableUnit(r.Table) { // it has a row of its unit: itself
		return semantics.ColumnExpr(r.mark(&derived.Marked{Other: unmarked(r.Table)}, nil), policy.Bool, -1, pos)
	}
	if k.Present == 0 {
		return semantics.ConstantExpr(true, policy.Bool, pos)
	}
	e := semantics.ColumnExpr(k.Present-1, policy.Bool, -1, pos)
	if r.Table.Columns[k.Present-1].Domain.Null >= 0 { // below another outer join
		return isTrue(e, pos)
	}
	return e
}

// isTrue says of a condition that it is true, and neither false nor NULL.
func isTrue(e *semantics.Expr, pos int) *semantics.Expr {
	s, err := scalar.IsTruth(e.Expr, true)
	if err != nil {
		panic("bind: IS TRUE of a condition: " + err.Error())
	}
	out := semantics.Node(semantics.FormIs, "istrue", s, pos, e)
	out.Want = true
	return out
}

// equalPresent says of two keys that are equal in each row where neither is NULL that they are: true, and NULL in the
// other rows, so that NOT (a.u = b.u) holds in none.
func (r *Rows) equalPresent(l, k *linear.Key, pos int) (*semantics.Expr, *refuse.Refusal) {
	t := &semantics.Translator{}
	out := r.Present(l, pos)
	if also := r.Present(k, pos); out.IsConstant() {
		out = also
	} else if !also.IsConstant() {
		var refusal *refuse.Refusal
		if out, refusal = t.Junction(semantics.FormAnd, pos, out, also); refusal != nil {
			return nil, refusal
		}
	}
	if out.IsConstant() {
		return out, nil
	}
	return t.Junction(semantics.FormOr, pos, out, semantics.ConstantExpr(nil, policy.Bool, pos))
}

// elsewhere translates key IN (SELECT key FROM …) and EXISTS (SELECT … WHERE key = key): whether the unit has such rows
// in another private table. Other sub-queries are translated as they are elsewhere. IN is NULL where its key is, unless
// it must hold, where false is as good: NOT IN holds then for no row whose key is NULL.
func (b *Binder) elsewhere(r *Rows, s *pg.SubLink, holding bool) (*semantics.Expr, *refuse.Refusal) {
	sel, pos := s.Subselect.GetSelectStmt(), int(s.Location)
	if sel == nil || s.SubLinkType != pg.SubLinkType_ANY_SUBLINK && s.SubLinkType != pg.SubLinkType_EXISTS_SUBLINK || comparesOtherwise(s) {
		return nil, nil
	}
	text := func() string {
		text := ast.DeparsedExpr(&pg.Node{Node: &pg.Node_SubLink{SubLink: s}})
		if holding { // it is another value then
			text += " holds"
		}
		return text
	}
	if len(r.values) > 0 {
		if same := r.valued(text(), pos); same != nil {
			return same, nil
		}
	}
	row := s.Testexpr.GetRowExpr()
	var met *meeting
	var refusal *refuse.Refusal
	switch {
	case row != nil:
		met, refusal = memberRow(b, r, row, sel, holding)
	case s.SubLinkType == pg.SubLinkType_ANY_SUBLINK:
		met, refusal = b.member(r, s, sel)
	default:
		met, refusal = b.partners(r, sel, pos)
	}
	if met == nil || refusal != nil {
		return nil, refusal
	}
	found, refusal := found(b, r, s, met, holding)
	if refusal == nil && met.around { // what is beside these rows is beside others once they have more columns
		r.values = append(slices.Clone(r.values), unitValue{text(), found})
	}
	return found, refusal
}

// found is whether rows have what a sub-query looks for.
func found(b *Binder, r *Rows, s *pg.SubLink, met *meeting, holding bool) (*semantics.Expr, *refuse.Refusal) {
	pos := int(s.Location)
	found, refusal := marked(b, r, met, pos)
	if refusal != nil {
		return nil, refusal
	}
	switch other := met.rows; {
	case holding || s.SubLinkType != pg.SubLinkType_ANY_SUBLINK:
		return found, nil
	case !other.KeyColumn(&other.keys[0]).Unit || !other.Table.OfUnits():
		b.Notes.Add("rows of " + other.Table.Name + " whose " + other.keys[0].Name +
			" is NULL are nowhere, while in plain SQL NOT IN holds for no row where there is one")
	}
	if met.perhaps != nil {
		perhaps, refusal := marked(b, r, met.perhaps, pos)
		if refusal != nil {
			return nil, refusal
		}
		return orNull(found, perhaps, pos)
	}
	k, refusal := r.KeyNode(s.Testexpr)
	if refusal != nil {
		return nil, refusal
	}
	return b.unlessNull(r, found, k, pos)
}

// unlessNull is false or true as a condition on a key says, and NULL where the key is, in which the condition is false.
func (b *noting) unlessNull(r *Rows, found *semantics.Expr, k *linear.Key, pos int) (*semantics.Expr, *refuse.Refusal) {
	there := r.Present(k, pos)
	if !r.KeyColumn(k).Unit {
		there = b.Known(r, k, pos)
	}
	if there.IsConstant() {
		return found, nil
	}
	b.Notes.Add("NOT IN holds for no row of " + r.Table.Name + " whose " + k.Name +
		" is NULL, while in plain SQL it does where the sub-query has no row")
	absent, refusal := (&semantics.Translator{}).Not(there)
	if refusal != nil {
		return nil, refusal
	}
	return orNull(found, absent, pos)
}

// orNull is true where a condition is, else NULL where another is, and else false.
func orNull(found, unknown *semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	t := &semantics.Translator{}
	null, refusal := t.Junction(semantics.FormAnd, pos, unknown, semantics.ConstantExpr(nil, policy.Bool, pos))
	if refusal != nil {
		return nil, refusal
	}
	return t.Junction(semantics.FormOr, pos, found, null)
}

// SaysPartner says of a key on the right of an outer join, which is taken to be NULL just where a row has no partner,
// that it is: the unit's is so, and one that the join equates. Of another, a payment's card, rows that have a partner
// may lack it too.
func (b *noting) SaysPartner(r *Rows, k *linear.Key) {
	if k.Present > 0 && !r.KeyColumn(k).Unit && !slices.ContainsFunc(r.equal, func(e [2]int) bool { return e[0] == k.At || e[1] == k.At }) {
		b.Notes.Add(k.Name + " is taken to be NULL where a row has no partner, and nowhere else")
	}
}

// Known says that a key is not NULL: then, and only then, it equals that of some row of the unit, such as the row
// itself. A row that names no unit meets none, which is said.
func (b *noting) Known(r *Rows, k *linear.Key, pos int) *semantics.Expr {
	if derived.NullableUnit(r.Table) {
		b.Notes.Add("in rows of " + r.Table.Name + " that name no " + r.Table.Dataset.Unit.Name + " " + k.Name + " is taken to be NULL")
	}
	t := unmarked(r.Table)
	return semantics.ColumnExpr(r.mark(&derived.Marked{Other: t}, []equation{{k.At, k.At}}), policy.Bool, -1, pos)
}

// unmarked is the table that has the rows and the keys of one to which marks and what follows from a row alone were
// added, these at the same positions.
func unmarked(t *policy.Table) *policy.Table {
	for {
		of := derived.Widened(t)
		if m, marked := t.Derived.(*derived.Marked); marked {
			of = m.From
		}
		if of == nil {
			return t
		}
		t = of
	}
}

// mark adds the column of a Marked of the rows once, and returns its position. What it says depends on no other mark of
// the row.
func (r *Rows) mark(m *derived.Marked, on []equation) int {
	m.On = equals(unmarked(r.Table), m.Other, on)
	canon := string(m.EncodeWhich(m.Other.Fingerprint()))
	for _, have := range r.marks {
		if have.canon == canon {
			return have.column
		}
	}
	m.From, m.On = r.Table, equals(r.Table, m.Other, on)
	for i, e := range m.Same {
		m.Same[i].Left = r.Table.Columns[slices.Index(m.Other.Columns, e.Right)]
	}
	r.Become(derived.NewMarked(m))
	at := len(r.Table.Columns) - 1
	r.marks = append(slices.Clone(r.marks), mark{canon, at})
	return at
}

// Become gives the rows another table whose first columns and whose first keys are those of the present one, so that
// what is in sight keeps its positions.
func (r *Rows) Become(t *policy.Table) {
	r.Table = t
	if r.asked != nil {
		r.asked.Table = t
	}
}

// member finds the rows of key IN (SELECT key FROM …); nil means the left side is no key.
func (b *Binder) member(r *Rows, s *pg.SubLink, sel *pg.SelectStmt) (*meeting, *refuse.Refusal) {
	k, refusal := r.KeyNode(s.Testexpr)
	if k == nil || refusal != nil {
		return nil, refusal
	}
	other, refusal := b.selectRows(sel, r.scope)
	if refusal != nil {
		return nil, refusal
	}
	pos := int(s.Location)
	for sel.Larg != nil { // of UNION, INTERSECT and EXCEPT
		sel = sel.Larg
	}
	if other == nil || len(sel.TargetList) != 1 || len(other.keys) == 0 {
		_, refusal := r.Column(ast.Strings(s.Testexpr.GetColumnRef().Fields), pos)
		if refusal == nil && (other == nil || len(other.keys) == 0) {
			return nil, nil // a column with a domain as well, of which a list is known
		}
		return nil, crossUnit.At(pos, r.Table.Name, "the sub-query's table", r.Table.Dataset.Unit.Name)
	}
	e, units, refusal := equated(r, other, k, &other.keys[0], pos)
	if refusal != nil || units {
		return &meeting{rows: other}, refusal
	}
	on := []equation{e}
	return &meeting{rows: other, on: on}, b.alongUnit(on, r, other, pos)
}

// equation asks that a key of some rows equals one of other rows, by their positions.
type equation struct{ left, right int }

// equated equates keys that are never NULL; units: they are the units', which derived tables equate anyway.
func equated(left, right *Rows, l, r *linear.Key, pos int) (e equation, units bool, refusal *refuse.Refusal) {
	own, others := left.KeyColumn(l), right.KeyColumn(r)
	switch {
	case l.Present > 0 || r.Present > 0:
		return e, false, outerCondition.At(pos)
	case !own.Comparable(others):
		return e, false, keyTypes.At(pos, l.Name, r.Name)
	}
	return equation{l.At, r.At}, own.Unit && others.Unit, nil
}

// equals are equations of the keys of two tables, in the order of the left ones' names.
func equals(left, right *policy.Table, list []equation) (on []derived.Equal) {
	for _, e := range list {
		on = append(on, derived.Equal{Left: left.Keys[e.left], Right: right.Keys[e.right]})
	}
	slices.SortFunc(on, func(a, b derived.Equal) int { return derived.CompareNames(a.Left, b.Left) })
	return on
}

// partners finds the rows of EXISTS (SELECT … FROM other WHERE key = outer key AND …).
func (b *Binder) partners(r *Rows, sel *pg.SelectStmt, pos int) (*meeting, *refuse.Refusal) {
	if IsGrouped(sel) || sel.Larg != nil {
		return nil, nil
	}
	from, refusal := b.ownRows(sel, r.scope)
	if from == nil || refusal != nil {
		return nil, refusal
	}
	if refusal := b.RowPickers(sel, false); refusal != nil {
		return nil, refusal
	}
	if from, refusal = from.rowByRow("looked for"); refusal != nil {
		return nil, refusal
	}
	other := *from
	var on []equation
	var both []*pg.Node // conditions that read the row around
	units := false
	for _, n := range ast.Conjuncts(sel.WhereClause) {
		if l, k := equalKeys(n, r, &other); l != nil && !other.sees(n) {
			e, own, refusal := equated(r, &other, l, k, pos)
			if refusal != nil {
				return nil, refusal
			}
			if units = units || own; !own {
				on = append(on, e)
			}
			continue
		}
		e, refusal := b.withinSubquery(&other, r, nil).Condition(n, "WHERE")
		if refusal != nil && refusal.ID != correlated.ID {
			return nil, refusal
		}
		if refusal != nil {
			both = append(both, n)
		} else {
			other.where = append(slices.Clone(other.where), e)
		}
	}
	switch {
	case !units && len(on) == 0:
		return nil, crossUnit.At(pos, r.Table.Name, other.Table.Name, r.Table.Dataset.Unit.Name)
	case !units:
		if refusal := b.alongUnit(on, r, &other, pos); refusal != nil {
			return nil, refusal
		}
	}
	if len(both) > 0 {
		return besideRows(b, r, &other, on, both, pos)
	}
	return &meeting{rows: &other, on: on}, nil
}

// withinSubquery translates over a sub-query's own rows, and says so where a condition reads those around it; read is
// what it may read of these, by their positions, which are those of its own rows' table too.
func (b *Binder) withinSubquery(own, around *Rows, read *[]*semantics.Expr) *semantics.Translator {
	t := b.Settles(b.OverKeys(own, "WHERE"), own)
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if s := n.GetSubLink(); s != nil {
			if e, refusal := b.listed(own, s); e != nil || refusal != nil {
				return e, refusal
			}
			return b.answeredFirst(s, t, own)
		}
		return b.aboutKeys(own, n, false)
	}
	t.Columns = func(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
		e, refusal := own.Column(fields, pos)
		if refusal == nil {
			return e, nil
		}
		k, _ := around.key(fields, pos)
		e, elsewhere := around.Column(fields, pos)
		switch {
		case elsewhere != nil && k == nil:
			return nil, refusal
		case elsewhere != nil || read == nil:
			return nil, correlated.At(pos, fields[len(fields)-1])
		}
		*read = append(*read, e)
		return e, nil
	}
	return t
}

// sees tells that both sides of key = key are keys of these rows: then the condition is theirs alone.
func (r *Rows) sees(n *pg.Node) bool {
	l, _ := equalKeys(n, r, r)
	return l != nil
}
