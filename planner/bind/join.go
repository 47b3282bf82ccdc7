package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Joins of private tables. FROM visits v JOIN people p ON p.person_id = v.person_id AND v.price > 10 pairs rows of the
// same unit: the equation of keys is what makes it a join, the rest of ON are conditions on the side that they read, or
// on the pair.

// joining is how two relations of FROM are joined.
type joining struct {
	quals     []*pg.Node // a conjunction
	also      []*pg.Node // what holds too, and is asked of rows elsewhere: it joins where quals alone do not
	using     []string
	natural   bool // using is what the sides have in common
	fromWhere bool // the conditions are in WHERE, which is bound later
	outer     bool // rows on the left without a partner stay
	full      bool // as do those on the right
	preserved bool // rows of the public table without a partner stay
	mirrored  bool // the public table is on the left
	pos       int
}

// joinRows are the private rows of a join: pairs of rows of the same unit.
func (b *Binder) joinRows(j *pg.JoinExpr, scope *Scope) (*Rows, *refuse.Refusal) {
	left, refusal := b.itemRows(j.Larg, scope)
	if refusal != nil {
		return nil, refusal
	}
	right, refusal := b.itemRows(j.Rarg, scope)
	switch {
	case refusal != nil:
		return nil, refusal
	case left == nil && right == nil:
		return nil, nil
	case left == nil || right == nil:
		return b.joinPublic(j, left, right, scope)
	}
	how := joining{quals: ast.Conjuncts(j.Quals), pos: right.pos}
	if how.using, refusal = usingOf(j, left, right); refusal != nil {
		return nil, refusal
	}
	switch j.Jointype {
	case pg.JoinType_JOIN_INNER:
	case pg.JoinType_JOIN_LEFT:
		how.outer = true
	case pg.JoinType_JOIN_RIGHT:
		how.outer = true
		left, right = right, left
	default:
		how.outer, how.full = true, true
	}
	out, refusal := b.pair(left, right, how)
	if refusal != nil {
		return nil, refusal
	}
	if j.Jointype == pg.JoinType_JOIN_RIGHT { // * shows the relations in the order of FROM
		n := len(left.parts)
		out.parts = append(slices.Clone(out.parts[n:]), out.parts[:n]...)
	}
	return out.aliased(j.Alias)
}

func (b *Binder) joinPublic(j *pg.JoinExpr, left, right *Rows, scope *Scope) (*Rows, *refuse.Refusal) {
	private, public := left, j.Rarg
	how := joining{quals: ast.Conjuncts(j.Quals), natural: j.IsNatural, using: ast.Strings(j.UsingClause)}
	if left == nil {
		private, public, how.mirrored = right, j.Larg, true
	}
	how.pos = private.pos
	switch j.Jointype {
	case pg.JoinType_JOIN_LEFT:
		how.outer, how.preserved = left != nil, left == nil
	case pg.JoinType_JOIN_RIGHT:
		how.outer, how.preserved = left == nil, left != nil
	case pg.JoinType_JOIN_FULL:
		how.outer, how.preserved = true, true
	}
	out, refusal := b.lookUp(private, public, scope, how)
	if refusal != nil {
		return nil, refusal
	}
	if left == nil { // * shows the relations in the order of FROM
		n := len(private.parts)
		out.parts = append(slices.Clone(out.parts[n:]), out.parts[:n]...)
	}
	return out.aliased(j.Alias)
}

// paired is derived.NewPaired as planning's work: the name of each column is compared with those of the others. Of a
// query that names another twice, and is named twice, each has as many columns as the two.
func paired(work *scalar.Work, p *derived.Paired) *policy.Table {
	n := len(p.Left.Columns) + len(p.Left.Keys) + len(p.Right.Columns) + len(p.Right.Keys)
	work.Step(2 * n * n)
	return derived.NewPaired(p)
}

// pair joins private rows with private rows, along their units.
func (b *Binder) pair(left, right *Rows, j joining) (*Rows, *refuse.Refusal) {
	left, right, refusal := pairable(left, right, j.pos)
	if refusal != nil {
		return nil, refusal
	}
	ofLeft, ofRight := *left, *right
	left, right = &ofLeft, &ofRight // which the conditions may give further columns
	units, on, rest, refusal := equate(left, right, j)
	if refusal != nil {
		return nil, refusal
	}
	if len(units) == 0 {
		if refusal := b.alongUnit(on, left, right, j.pos); refusal != nil {
			return nil, refusal
		}
	}
	onLeft, onRight := unitsPresent(units, j.pos)
	if j.full {
		return b.full(on, left, right, rest, onLeft, onRight, j)
	}
	p := &derived.Paired{Outer: j.outer}
	if j.outer {
		if right, on, refusal = b.outerConditions(p, left, right, on, rest, onLeft, onRight); refusal != nil {
			return nil, refusal
		}
		rest, onLeft, onRight = nil, nil, nil
	}
	p.Left, p.Right, p.On = left.Table, right.Table, equals(left.Table, right.Table, on)
	t := paired(b.Env.Work, p)
	if t == nil {
		return nil, tooManyRows.At(j.pos, left.Table.Name, right.Table.Name, derived.MaxRows)
	}
	out := combined(left, right, t, j.outer)
	if j.outer {
		refusal = wherePartners(b, out.exprs[len(left.exprs):], len(t.Columns)-1)
	}
	if refusal == nil {
		refusal = b.merge(out, j, len(left.names), len(left.keys))
	}
	if refusal != nil {
		return nil, refusal
	}
	for _, e := range on {
		out.equal = append(out.equal, [2]int{e.left, len(left.Table.Keys) + e.right})
	}
	out.where = append(out.where, onLeft...)
	for _, e := range onRight {
		out.where = append(out.where, e.Shifted(len(left.Table.Columns)))
	}
	return out.restricted(b, rest, j)
}

// wherePartners makes expressions over the inner side of an outer join NULL in rows without a partner, where a column is
// false and those that they read are NULL:
//
//	SELECT coalesce(f.lab, 0), count(*) FROM people p LEFT JOIN (SELECT DISTINCT person_id, 1 AS lab
//		FROM visits WHERE kind = 'lab') f USING (person_id) GROUP BY 1
func wherePartners(b *Binder, list []*semantics.Expr, present int) (refusal *refuse.Refusal) {
	for i, e := range list {
		if e.Form == semantics.FormColumn || nullOfNulls(e, present) {
			continue
		}
		there := semantics.ColumnExpr(present, policy.Bool, -1, e.Pos)
		s, err := b.Env.Case([]scalar.When{{If: there.Expr, Then: e.Expr}}, nil)
		if list[i], refusal = semantics.Made(semantics.FormOther, "case0", s, err, e.Pos, there, e); refusal != nil {
			return refusal
		}
	}
	return nil
}

// nullOfNulls tells an expression that is NULL where all of so many columns are, whatever is answered first.
func nullOfNulls(e *semantics.Expr, columns int) bool {
	if e.Answered || e.Awaited || e.Parameter > 0 {
		return false
	}
	v, refusal := e.Value(make([]policy.Value, columns))
	return refusal == nil && v == nil
}

// unitsPresent says on each side of a join that the units which it equates are not NULL, as an earlier outer join makes
// them: in a LEFT JOIN b ON b.u = a.u JOIN c ON c.u = b.u a row of a without a partner in b has none in c.
func unitsPresent(units [][2]*linear.Key, pos int) (onLeft, onRight []*semantics.Expr) {
	add := func(list []*semantics.Expr, k *linear.Key) []*semantics.Expr {
		if k.Present == 0 {
			return list
		}
		return append(list, semantics.ColumnExpr(k.Present-1, policy.Bool, -1, pos))
	}
	for _, u := range units {
		onLeft, onRight = add(onLeft, u[0]), add(onRight, u[1])
	}
	return onLeft, onRight
}

// equate finds the keys that the conditions equate. Units are those of them that leave no pair of rows of two units.
func equate(left, right *Rows, j joining) (units [][2]*linear.Key, on []equation, rest []*pg.Node, refusal *refuse.Refusal) {
	add := func(l, r *linear.Key) *refuse.Refusal {
		own, others := left.KeyColumn(l), right.KeyColumn(r)
		if !own.Comparable(others) {
			return keyTypes.At(j.pos, l.Name, r.Name)
		}
		if own.Unit && others.Unit {
			units = append(units, [2]*linear.Key{l, r})
			return nil
		}
		if e := (equation{l.At, r.At}); !slices.Contains(on, e) {
			on = append(on, e)
		}
		return nil
	}
	for _, name := range j.using {
		l, refusal := left.key([]string{name}, j.pos)
		if refusal != nil {
			return nil, nil, nil, refusal
		}
		r, refusal := right.key([]string{name}, j.pos)
		if refusal != nil {
			return nil, nil, nil, refusal
		}
		if l == nil || r == nil {
			rest = append(rest, equalColumns(left, right, name, j.pos))
			continue
		}
		if refusal := add(l, r); refusal != nil {
			return nil, nil, nil, refusal
		}
	}
	for _, n := range j.quals {
		l, r := equalKeys(n, left, right)
		if l == nil {
			rest = append(rest, n)
			continue
		}
		if refusal := add(l, r); refusal != nil {
			return nil, nil, nil, refusal
		}
	}
	return units, on, rest, nil
}

// alongUnit says what keys leave out that are equated where no units are. Rows of one unit alone are ever put together,
// so lines a JOIN lines b ON a.product_id = b.product_id counts a part of its pairs, which is said; in payments p JOIN
// rentals r ON r.rental_id = p.rental_id it is all of them as long as customers pay for their own rentals, which no
// constraint says. Equating the unit with what is none, or nothing at all, joins other rows than those of one unit by
// its very words, and is refused.
func (b *noting) alongUnit(on []equation, l, r *Rows, pos int) *refuse.Refusal {
	left, right := l.Table, r.Table
	equal := equals(left, right, on)
	b.LeavesOut(left, "rows are put together")
	b.LeavesOut(right, "rows are put together")
	if slices.ContainsFunc(equal, func(e derived.Equal) bool { return sameUnit(e.Left, e.Right) }) {
		return nil
	}
	at := slices.IndexFunc(equal, func(e derived.Equal) bool { return !e.Left.Unit && !e.Right.Unit })
	unit := left.Dataset.Unit.Name
	if at < 0 {
		return crossUnit.At(pos, left.Name, right.Name, unit)
	}
	b.Notes.Add("rows of " + left.Name + " and " + right.Name + " are put together where they are of one " + unit + ": others that share " + equal[at].Left.Name + " are not")
	return nil
}

// LeavesOut says of rows that name no unit, and count each (null_unit: each), that they are not there where units are
// looked at.
func (b *noting) LeavesOut(t *policy.Table, where string) {
	if derived.NullableUnit(t) {
		b.Notes.Add("rows of " + t.Name + " that name no " + t.Dataset.Unit.Name + " are left out where " + where)
	}
}

// sameUnit reports whether rows that share two keys are of one unit: both keys are the unit's, or hold the values of
// one key through which units are found, as in lines l JOIN orders o ON l.order_id = o.order_id where lines find their
// customer by their order.
func sameUnit(l, r *policy.Column) bool {
	return l.Unit && r.Unit || l.Origin() == r.Origin() && l.TellsUnit()
}

// equalKeys reads key = key, one of each side; nil means the node is something else.
func equalKeys(n *pg.Node, left, right *Rows) (l, r *linear.Key) {
	e := n.GetAExpr()
	// Of units that are not NULL, a IS NOT DISTINCT FROM b is a = b; rows whose unit is NULL are not there. So Tableau
	// joins what it computes by customer.
	same := e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT
	if e == nil || !same && e.Kind != pg.A_Expr_Kind_AEXPR_OP || !slices.Equal(ast.Strings(e.Name), []string{"="}) {
		return nil, nil
	}
	for _, sides := range [][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
		l, lost := left.KeyNode(sides[0])
		r, also := right.KeyNode(sides[1])
		if l != nil && r != nil && lost == nil && also == nil && (!same || left.KeyColumn(l).Unit && right.KeyColumn(r).Unit) {
			return l, r
		}
	}
	return nil, nil
}

// outerConditions folds the conditions of an outer join, with those already known: on its right rows, and on the left
// rows that find partners. Where a unit has one left row, the right rows that it may find are beside it for conditions
// that read both. It returns the right rows and what is equated of them then.
func (b *Binder) outerConditions(p *derived.Paired, left, right *Rows, on []equation, quals []*pg.Node,
	onLeft, onRight []*semantics.Expr) (*Rows, []equation, *refuse.Refusal) {
	onLeft, onRight, both, refusal := b.ofSides(left, right, quals, onLeft, slices.Concat(right.where, onRight))
	if refusal != nil {
		return nil, nil, refusal
	}
	alike, others := alikeOf(b, left, right, both, false)
	switch {
	case len(others) == 0:
		p.Alike = alike
	case left.Table.MaxRowsPerUnit > 1:
		return nil, nil, noneReadsBoth(others)
	default:
		own, keys := *right, len(right.Table.Keys)
		own.where = onRight
		if right, _, refusal = besideAround(b, left, &own, on, both, right.pos); refusal != nil {
			return nil, nil, refusal
		}
		onRight, on = right.where, slices.Clone(on)
		for i := range on {
			on[i].right += len(right.Table.Keys) - keys
		}
	}
	if p.Where, refusal = b.Lowered(right.Table, onRight); refusal != nil {
		return nil, nil, refusal
	}
	p.Only, refusal = b.Lowered(left.Table, onLeft)
	return right, on, refusal
}

// ofSides adds the conditions of an outer join to those on the side that each reads; both are those that read both.
func (b *Binder) ofSides(left, right *Rows, quals []*pg.Node, onLeft, onRight []*semantics.Expr) (
	ofLeft, ofRight []*semantics.Expr, both []*pg.Node, refusal *refuse.Refusal) {
	for _, n := range quals {
		if refusal := inSight(n, left, right); refusal != nil {
			return nil, nil, nil, refusal
		}
		e, refusal := b.Settles(b.OverKeys(right, "ON"), right).Condition(n, "JOIN/ON")
		if refusal == nil {
			onRight = append(onRight, e)
			continue
		}
		if e, refusal = b.Settles(b.OverKeys(left, "ON"), left).Condition(n, "JOIN/ON"); refusal == nil {
			onLeft = append(onLeft, e)
		} else {
			both = append(both, n)
		}
	}
	return onLeft, onRight, both, nil
}

// noneReadsBoth refuses conditions of an outer join that read both sides.
func noneReadsBoth(list []*pg.Node) *refuse.Refusal {
	if len(list) == 0 {
		return nil
	}
	return outerCondition.At(ast.Location(list[0]))
}

// inSight refuses a condition of a join for a name that neither side has as a column, or both have. A key that is no
// column is one that may be equated, and nothing else: ON l.order_id = r.order_id AND l.line_no = 2.
func inSight(n *pg.Node, left, right *Rows) (refusal *refuse.Refusal) {
	ast.Holds(n, func(n *pg.Node) bool {
		names := ast.Strings(n.GetColumnRef().GetFields())
		if len(names) == 0 || refusal != nil {
			return false
		}
		_, first := left.Column(names, ast.Location(n))
		_, second := right.Column(names, ast.Location(n))
		switch {
		case first == nil && second == nil:
			if len(names) == 1 {
				refusal = Ambiguous.At(ast.Location(n), names[0])
			}
		case first == nil || second == nil:
		case second.ID == UnknownAlias.ID || first.ID == keyOnly.ID || first.ID == semantics.UnknownColumn.ID && second.ID == semantics.UnknownColumn.ID && nearer(first, second):
			refusal = first
		default:
			refusal = second
		}
		return false
	})
	return refusal
}

// nearer reports whether the first of two refusals of an unknown name knows a like one.
func nearer(first, second *refuse.Refusal) bool {
	return first.Hint != semantics.UnknownColumn.Hint || second.Hint == semantics.UnknownColumn.Hint
}

// Lowered folds conditions into a predicate that the database tests.
func (b *Binder) Lowered(t *policy.Table, where []*semantics.Expr) (predicate.Pred, *refuse.Refusal) {
	var out predicate.Pred
	var notes semantics.Notes
	v := &linear.Solver{Lowerer: semantics.Lowerer{Table: t, Env: b.Env, Box: semantics.NewBox(t, b.Env), Notes: &notes, OffGrid: b.Context.Settings.OffGrid}}
	v.Box.Below = true
	residual, refusal := v.Fold(where, &out)
	if refusal == nil && len(residual) > 0 {
		refusal = belowJoin.At(residual[0].Pos)
	}
	b.Notes.AddAll(notes)
	linear.NoteClampedIn(t, where, &b.Notes)
	return out, refusal
}

// pairable are the rows of both sides where these may be paired.
func pairable(left, right *Rows, pos int) (*Rows, *Rows, *refuse.Refusal) {
	for _, side := range []*Rows{left, right} {
		if side.preserved > 0 {
			return nil, nil, preservedJoined.At(pos, side.Table.Name)
		}
	}
	for _, side := range []**Rows{&left, &right} {
		var refusal *refuse.Refusal
		if *side, refusal = (*side).rowByRow("joined with other private rows after it"); refusal != nil {
			return nil, nil, refusal
		}
	}
	if left.Table.Dataset.Unit.Row {
		return nil, nil, rowUnits.At(pos, left.Table.Name, right.Table.Name)
	}
	for _, l := range left.parts {
		if l.alias != "" && slices.ContainsFunc(right.parts, func(r relation) bool { return l.alias == r.alias }) {
			return nil, nil, duplicateAlias.At(pos, l.alias)
		}
	}
	return left, right, nil
}

// shifted are the rows over a table that has so many other columns and keys before theirs.
func (r *Rows) shifted(columns, keys int) *Rows {
	move := func(list []*semantics.Expr) (moved []*semantics.Expr) {
		for _, e := range list {
			moved = append(moved, e.Shifted(columns))
		}
		return moved
	}
	out := *r
	out.exprs, out.where, out.marks, out.values, out.asked = move(r.exprs), move(r.where), nil, nil, nil
	out.keys, out.parts, out.equal = slices.Clone(r.keys), slices.Clone(r.parts), slices.Clone(r.equal)
	for i, k := range out.keys {
		if out.keys[i].At += keys; k.Present > 0 {
			out.keys[i].Present += columns
		}
	}
	for i, p := range out.parts {
		if p.present != nil {
			out.parts[i].present = p.present.Shifted(columns)
		}
	}
	for i := range out.equal {
		out.equal[i][0], out.equal[i][1] = out.equal[i][0]+keys, out.equal[i][1]+keys
	}
	return &out
}

// combined puts two relations into sight together, over the table of their pairs.
func combined(left, right *Rows, t *policy.Table, outer bool) *Rows {
	out := &Rows{Table: t, pos: left.pos, where: slices.Clone(left.where), parts: slices.Clone(left.parts), hidden: slices.Clone(left.hidden), merged: slices.Clone(left.merged),
		hiddenKeys: slices.Clone(left.hiddenKeys), lost: slices.Concat(left.lost, right.lost)}
	right = right.shifted(len(left.Table.Columns), len(left.Table.Keys))
	for _, i := range right.hidden {
		out.hidden = append(out.hidden, i+len(left.names))
	}
	for _, i := range right.merged {
		out.merged = append(out.merged, i+len(left.names))
	}
	for _, i := range right.hiddenKeys {
		out.hiddenKeys = append(out.hiddenKeys, i+len(left.keys))
	}
	out.names = slices.Concat(left.names, right.names)
	out.exprs = slices.Concat(left.exprs, right.exprs)
	if !outer {
		out.where = append(out.where, right.where...)
	}
	for i, k := range right.keys {
		if outer && k.Present == 0 { // else the partner's own column is NULL where there is no partner
			right.keys[i].Present = len(t.Columns)
		}
	}
	out.keys = slices.Concat(left.keys, right.keys)
	for _, p := range right.parts {
		n, m := len(left.names), len(left.keys)
		if outer && p.present == always {
			p.present = p.on(len(t.Columns) - 1)
		}
		p.from, p.to, p.fromKey, p.toKey = p.from+n, p.to+n, p.fromKey+m, p.toKey+m
		out.parts = append(out.parts, p)
	}
	out.equal = slices.Concat(left.equal, right.equal)
	return out
}
