package bind

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Conditions on rows elsewhere that read the row around too. In
//
//	SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v
//		WHERE v.person_id = p.person_id AND v.day BETWEEN p.hired AND p.hired + 30)
//
// what is looked for are pairs of a unit's rows, of people and of visits, for which the condition holds: a Paired, among
// whose pairs a row of people is by what the condition reads of it (derived.Marked). Of rows of which a unit has one, it
// is that one.

// meeting are the rows that a mark looks for, and by what they are equal to the row around, beside the unit. Rows that
// are beside rows around have the columns of these, of which same are to be the same.
type meeting struct {
	rows    *Rows
	on      []equation
	same    []*policy.Column
	around  bool     // they are beside the rows around
	perhaps *meeting // rows of which it is not known whether they are looked for: nil means there are none
}

// marked is whether rows have what a mark looks for.
func marked(b *Binder, r *Rows, met *meeting, pos int) (*semantics.Expr, *refuse.Refusal) {
	m := &derived.Marked{Other: met.rows.Table}
	for _, c := range met.same {
		m.Same = append(m.Same, derived.Equal{Left: c, Right: c})
	}
	var refusal *refuse.Refusal
	if m.Where, refusal = b.Lowered(m.Other, met.rows.where); refusal != nil {
		return nil, refusal
	}
	return semantics.ColumnExpr(r.mark(m, met.on), policy.Bool, -1, pos), nil
}

// besideRows finds the pairs of rows around with a sub-query's own for which conditions hold that read both.
func besideRows(b *Binder, around, own *Rows, on []equation, both []*pg.Node, pos int) (*meeting, *refuse.Refusal) {
	out, read, refusal := besideAround(b, around, own, on, both, pos)
	if refusal != nil {
		return nil, refusal
	}
	met := &meeting{rows: out, around: true}
	if around.Table.MaxRowsPerUnit == 1 {
		return met, nil
	}
	for _, e := range on {
		met.on = append(met.on, equation{e.left, e.left})
	}
	for _, e := range read {
		if refusal := semantics.Closed(around.Table, e); refusal != nil {
			return nil, refusal
		}
		for _, at := range e.Cols {
			if c := out.Table.Columns[at]; !slices.Contains(met.same, c) {
				met.same = append(met.same, c)
			}
		}
	}
	slices.SortFunc(met.same, derived.CompareNames)
	return met, nil
}

// besideAround are rows, each as often as it meets a row around, for which conditions hold that read both, and what
// these read of the row around. Their table has the columns and keys of the rows around first.
func besideAround(b *Binder, around, own *Rows, on []equation, both []*pg.Node, pos int) (
	out *Rows, read []*semantics.Expr, refusal *refuse.Refusal) {
	left := unmarked(around.Table)
	if slices.ContainsFunc(around.exprs, func(e *semantics.Expr) bool {
		return slices.ContainsFunc(e.Cols, func(c int) bool { return c >= len(left.Columns) })
	}) {
		left = around.Table
	}
	if around.preserved > 0 {
		return nil, nil, preservedJoined.At(pos, around.Table.Name)
	}
	out = own.shifted(len(left.Columns), len(left.Keys))
	p := &derived.Paired{Left: left, Right: own.Table, On: equals(left, own.Table, on)}
	p.Alike, both = alikeOf(b, around, own, both, true)
	for i, e := range p.Alike {
		at := slices.Index(around.Table.Columns, e.Left)
		p.Alike[i].Left = left.Columns[at]
		read = append(read, semantics.ColumnExpr(at, e.Left.Type, e.Left.Typmod, pos))
	}
	if out.Table = paired(b.Env.Work, p); out.Table == nil {
		return nil, nil, tooManyRows.At(pos, around.Table.Name, own.Table.Name, derived.MaxRows)
	}
	for _, n := range both {
		e, refusal := b.withinSubquery(out, around, &read).Condition(n, "WHERE")
		if refusal != nil {
			return nil, nil, refusal
		}
		out.where = append(out.where, e)
	}
	return out, read, nil
}

// alikeOf takes those of some conditions that say of a column of the rows around that it equals one of others, and have
// nothing to say of values beside: of texts alone, where numbers are compared otherwise too.
func alikeOf(b *Binder, around, own *Rows, conditions []*pg.Node, texts bool) (alike []derived.Equal, rest []*pg.Node) {
	for _, n := range conditions {
		if e, mine := equalOf(n, around, own); mine != nil && !(texts && e.Left.Domain.Ordered()) {
			alike = append(alike, e)
		} else {
			rest = append(rest, n)
		}
	}
	b.noteAlike(around, own, alike)
	slices.SortStableFunc(alike, func(a, b derived.Equal) int { return derived.CompareNames(a.Left, b.Left) })
	return alike, rest
}

// equalOf reads a column of some rows = one of the rows around them, whose cells and values are distinguished alike; mine
// is the former in the text, or nil if it is none.
func equalOf(n *pg.Node, around, own *Rows) (e derived.Equal, mine *pg.Node) {
	a := n.GetAExpr()
	if a == nil || a.Kind != pg.A_Expr_Kind_AEXPR_OP || !slices.Equal(ast.Strings(a.Name), []string{"="}) {
		return e, nil
	}
	mine, others := a.Lexpr, a.Rexpr
	if !ofRows(mine, own) {
		mine, others = others, mine
	}
	if !ofRows(mine, own) || ofRows(others, own) || !ofRows(others, around) {
		return e, nil
	}
	l, _ := around.Column(ast.Strings(others.GetColumnRef().Fields), -1)
	r, _ := own.Column(ast.Strings(mine.GetColumnRef().Fields), -1)
	whole := l.Type().Integer() && r.Type().Integer()
	if l.Form != semantics.FormColumn || r.Form != semantics.FormColumn || l.Type() != r.Type() && !whole {
		return e, nil
	}
	e = derived.Equal{Left: around.Table.Columns[l.Cols[0]], Right: own.Table.Columns[r.Cols[0]]}
	if !distinguishedAlike(e.Left, e.Right) {
		return e, nil
	}
	return e, mine
}

// noteAlike says what columns that are equated take for equal.
func (b *noting) noteAlike(around, own *Rows, list []derived.Equal) {
	for _, e := range list {
		for _, of := range []struct {
			t *policy.Table
			c *policy.Column
		}{{around.Table, e.Left}, {own.Table, e.Right}} {
			at := slices.Index(of.t.Columns, of.c)
			read := semantics.ColumnExpr(at, of.c.Type, of.c.Typmod, -1)
			linear.NoteClampedIn(of.t, []*semantics.Expr{read}, &b.Notes)
		}
		if e.Left.Domain.Other >= 0 {
			b.Notes.Add("values of " + e.Left.Name + " outside its domain are taken for equal")
		}
	}
}

// distinguishedAlike reports whether two columns hold what is equal just where their normalised values are: numbers and
// times by value, others by the numbers of the same cells.
func distinguishedAlike(a, b *policy.Column) bool {
	c, d, whole := a.Domain, b.Domain, a.Type.Integer() && b.Type.Integer()
	if c == nil || d == nil || c.Ladder != nil || d.Ladder != nil || a.Open != nil || b.Open != nil {
		return false
	}
	same := a.Type == b.Type && a.Typmod == b.Typmod
	switch {
	case c.Ordered() != d.Ordered():
		return false
	case c.Ordered():
		return whole || same && !a.Type.Floating() && c.Scale == d.Scale
	}
	return same && slices.Equal(c.Values, d.Values) && c.Other == d.Other
}

// memberRow finds the rows of (key, x) IN (SELECT key, y FROM …): those of EXISTS (… WHERE key = key AND x = y), and,
// unless it must hold, those of which that may be NULL. Nil means no key of the unit is compared.
func memberRow(b *Binder, r *Rows, row *pg.RowExpr, sel *pg.SelectStmt, holding bool) (*meeting, *refuse.Refusal) {
	found, refusal := b.selectRows(sel, r.scope)
	if found == nil || refusal != nil {
		return nil, refusal
	}
	pos, order, units := ast.Location(row.Args[0]), found.parts[0].ordered(), false
	if len(order) != len(row.Args) || derived.NullableUnit(r.Table) {
		return nil, nil
	}
	other := *found
	other.names, other.keys = slices.Clone(found.names), slices.Clone(found.keys)
	for i := range other.names {
		other.names[i] = " output" + strconv.Itoa(i) // which nothing around has
	}
	var on []equation
	var equal, perhaps []*pg.Node
	for i, n := range row.Args {
		at := order[i]
		k, l, refusal := keysOf(r, found, n, at)
		if refusal != nil {
			return nil, refusal
		}
		if l == nil {
			is := pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, n,
				columnNamed(other.names[at], pos), int32(pos))
			equal = append(equal, is)
			perhaps = append(perhaps, &pg.Node{Node: &pg.Node_BooleanTest{BooleanTest: &pg.BooleanTest{Arg: is,
				Booltesttype: pg.BoolTestType_IS_NOT_FALSE, Location: int32(pos)}}})
			continue
		}
		e, own, refusal := equated(r, &other, l, k, pos)
		switch {
		case refusal != nil || !own && !holding: // it may be NULL
			return nil, refusal
		case own:
			units = true
		default:
			on = append(on, e)
		}
	}
	if !units {
		return nil, nil
	}
	met, refusal := besideRows(b, r, &other, on, equal, pos)
	if refusal == nil && !holding {
		met.perhaps, refusal = besideRows(b, r, &other, on, perhaps, pos)
	}
	return met, refusal
}

// keysOf are the key that an output of a sub-query is, and that around it which it is compared with, or nil where one of
// them is none.
func keysOf(r, other *Rows, around *pg.Node, at int) (k, l *linear.Key, refusal *refuse.Refusal) {
	l, refusal = r.KeyNode(around)
	if at < 0 {
		if k = &other.keys[-1-at]; l == nil && refusal == nil {
			refusal = keyOnly.At(ast.Location(around), k.Name, r.Table.Dataset.Unit.Name)
		}
		return k, l, refusal
	}
	named := func(k linear.Key) bool { return k.Name == other.names[at] }
	if i := slices.IndexFunc(other.keys, named); i >= 0 && l != nil {
		return &other.keys[i], l, refusal
	}
	return nil, nil, refusal
}
