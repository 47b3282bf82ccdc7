package bind

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Set operations over private rows (docs/adr/0121). In
//
//	SELECT shop, count(*) FROM (SELECT 'web' AS shop, price FROM web_sales UNION ALL SELECT 'store', price FROM store_sales) s GROUP BY shop
//
// the sub-query's rows are those of a United. UNION is that and DISTINCT, along the unit; INTERSECT and EXCEPT of
// units' keys are DISTINCT and a condition on what the unit has elsewhere.

// setRows are the private rows of a set operation. It returns nil if none of its branches passes such rows on, or if
// each branch is grouped by what it shows. Each branch is bound once: branches are nested.
func (b *Binder) setRows(sel *pg.SelectStmt, scope *Scope) (*Rows, *refuse.Refusal) {
	var branches []*Rows // nil of one without private rows
	for _, part := range branchesOf(sel, sel) {
		r, refusal := b.selectRows(part, scope)
		if refusal != nil {
			return nil, refusal
		}
		branches = append(branches, r)
	}
	if !slices.Contains(branches, nil) && !ast.IsLimited(sel) && len(sel.LockingClause) == 0 {
		combine := b.unitsBoth
		if sel.Op == pg.SetOperation_SETOP_UNION {
			combine = b.unionRows
		}
		if r, refusal := combine(sel, branches); r != nil || refusal != nil {
			return r, refusal
		}
	}
	for _, r := range branches {
		if r != nil && (sel.All || len(r.keys) > 0) {
			return nil, rowsCombined.At(r.pos, ast.SetOperation(sel.Op))
		}
	}
	return nil, nil
}

// branchesOf are the branches of a set operation. Those of a UNION ALL that is a branch of another are branches of that.
func branchesOf(whole, part *pg.SelectStmt) []*pg.SelectStmt {
	if part != whole && (whole.Op != pg.SetOperation_SETOP_UNION || !whole.All || UnionAll(part) == nil) {
		return []*pg.SelectStmt{part}
	}
	return append(branchesOf(whole, part.Larg), branchesOf(whole, part.Rarg)...)
}

// unionRows are the rows of a UNION whose branches are private rows all.
func (b *Binder) unionRows(sel *pg.SelectStmt, branches []*Rows) (*Rows, *refuse.Refusal) {
	if UnionAll(sel) != nil {
		if r, refusal := b.fanned(branches); r != nil || refusal != nil {
			return r, refusal
		}
	}
	for i, r := range branches {
		row, refusal := r.rowByRow("combined by UNION")
		if refusal != nil {
			return nil, refusal
		}
		own := *row
		branches[i] = &own
	}
	if !sel.All && !slices.ContainsFunc(branches, func(r *Rows) bool { return len(r.keys) > 0 }) {
		return nil, nil
	}
	out, refusal := b.unite(branches)
	if refusal != nil || sel.All {
		return out, refusal
	}
	return b.groups(out, len(out.names), nil, "UNION")
}

// unite puts rows one below the other.
func (b *Binder) unite(branches []*Rows) (*Rows, *refuse.Refusal) {
	first := branches[0]
	u := &derived.United{}
	exprs := make([][]*semantics.Expr, len(branches))
	for i, r := range branches {
		branch, own, refusal := b.branchOf(r, first)
		if refusal != nil {
			return nil, refusal
		}
		u.Branches, exprs[i] = append(u.Branches, branch), own
	}
	types, held := make([]policy.Type, len(first.names)), make([]policy.Type, len(first.names))
	for c := range types {
		typ, refusal := commonType(exprs, c)
		if refusal != nil {
			return nil, refusal
		}
		types[c], held[c] = typ, typ.Held()
		for i, r := range branches {
			if u.Branches[i].Values[c], refusal = b.united(r, exprs[i][c], typ); refusal != nil {
				return nil, refusal
			}
		}
	}
	out := &Rows{pos: first.pos, names: first.names, shape: first.shape}
	if out.Table = derived.NewUnited(u, held); out.Table == nil {
		return nil, unionDomain.At(first.pos)
	}
	for i, c := range out.Table.Columns {
		typmod := c.Typmod
		if types[i] == policy.Bpchar { // a part's constant has no blanks behind it
			typmod = -1
		}
		out.exprs = append(out.exprs, semantics.ColumnExpr(i, types[i], typmod, first.pos))
	}
	for j, k := range first.keys {
		out.keys = append(out.keys, linear.Key{Name: k.Name, At: j})
	}
	out.parts = []relation{{first.Alias(), nil, 0, len(out.names), 0, len(out.keys), first.parts[0].order, always}}
	return out, nil
}

// branchOf are rows as a branch of a union with those of first, without their values, and what these are.
func (b *Binder) branchOf(r, first *Rows) (branch derived.UnitedBranch, exprs []*semantics.Expr, refusal *refuse.Refusal) {
	switch {
	case r.preserved > 0:
		return branch, nil, preservedJoined.At(r.pos, r.Table.Name)
	case r.Table.Dataset.Unit.Row:
		return branch, nil, rowsCombined.At(r.pos, "UNION")
	case !r.showsAs(first):
		return branch, nil, unionColumns.At(r.pos)
	}
	settler := b.Settles(&semantics.Translator{}, r).Settler
	for _, e := range r.exprs {
		if e = settler.Settled(e); e.Form != semantics.FormColumn && !e.IsConstant() && !b.AsWritten {
			x := &lookup.Tabulator{Env: b.Env, Table: r.Table} // what the rows look up, or make of few columns
			if own, refusal := x.Column(e); refusal != nil {
				return branch, nil, refusal
			} else if own != nil {
				e = own
				r.Become(x.Table)
			}
		}
		exprs = append(exprs, e)
	}
	where, refusal := b.Lowered(r.Table, r.where)
	if refusal != nil {
		return branch, nil, refusal
	}
	branch = derived.UnitedBranch{From: r.Table, Where: where, Values: make([]derived.UnitedValue, len(r.names))}
	for j, k := range r.keys {
		switch own, have := r.KeyColumn(&k), first.KeyColumn(&first.keys[j]); {
		case k.Present > 0:
			return branch, nil, outerCondition.At(r.pos)
		case own.Unit != have.Unit || !own.Comparable(have):
			return branch, nil, keyTypes.At(r.pos, first.keys[j].Name, k.Name)
		default:
			branch.Keys = append(branch.Keys, own)
		}
	}
	return branch, exprs, nil
}

// showsAs reports whether two SELECTs show the same keys and as many columns, in the same places.
func (r *Rows) showsAs(first *Rows) bool {
	return r.shape != "" && r.shape == first.shape && len(r.names) == len(first.names) && len(r.keys) == len(first.keys)
}

// united is what a branch has in a column of the union: a column of its table, or a constant.
func (b *Binder) united(r *Rows, e *semantics.Expr, typ policy.Type) (derived.UnitedValue, *refuse.Refusal) {
	if e.IsConstant() {
		if e.Parameter > 0 {
			return derived.UnitedValue{}, unionExpression.At(e.Pos)
		}
		typed, refusal := b.asType(e, typ)
		if refusal != nil {
			return derived.UnitedValue{}, refusal
		}
		v, refusal := typed.Value(nil)
		return derived.UnitedValue{Constant: v}, refusal
	}
	if refusal := semantics.Closed(r.Table, e); refusal != nil {
		return derived.UnitedValue{}, refusal
	}
	if e.Form != semantics.FormColumn {
		return derived.UnitedValue{}, unionExpression.At(e.Pos)
	}
	c := r.Table.Columns[e.Cols[0]]
	same := c.Type == typ || c.Type.Textual() && typ.Textual() || c.Type.Integer() && (typ.Integer() || typ == policy.NumericType)
	if !same || typ.Floating() {
		return derived.UnitedValue{}, unionExpression.At(e.Pos)
	}
	return derived.UnitedValue{Column: c}, nil
}

// groups are a unit's rows in groups of what their keys and their first columns are, which are shown, and further
// targets. What is both a key and a column has one name, and is grouped by as both.
func (b *Binder) groups(r *Rows, columns int, targets []*pg.Node, operation string) (*Rows, *refuse.Refusal) {
	sel, own := &pg.SelectStmt{}, *r
	own.names, own.keys = slices.Clone(r.names), slices.Clone(r.keys)
	add := func(kind string, i int, name *string) {
		shown := *name
		*name = " " + kind + strconv.Itoa(i)
		sel.GroupClause = append(sel.GroupClause, columnNamed(*name, r.pos))
		sel.TargetList = append(sel.TargetList, pg.MakeResTargetNodeWithNameAndVal(shown, columnNamed(*name, r.pos), int32(r.pos)))
	}
	for i := range own.keys {
		add("key", i, &own.keys[i].Name)
	}
	for i := range columns {
		add("column", i, &own.names[i])
	}
	sel.TargetList = append(sel.TargetList, targets...)
	out, refusal := b.perUnit(sel, &own, true)
	if out == nil && refusal == nil {
		refusal = rowsCombined.At(r.pos, operation)
	}
	if out != nil {
		out.shape, out.parts[0].order = r.shape, r.parts[0].order
	}
	return out, refusal
}

func columnNamed(name string, pos int) *pg.Node {
	return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(name)}, int32(pos))
}

// unitsBoth is INTERSECT or EXCEPT of two lists of units: those of the left that are, or are not, on the right.
func (b *Binder) unitsBoth(sel *pg.SelectStmt, sides []*Rows) (*Rows, *refuse.Refusal) {
	left, right := sides[0], sides[1]
	if !sel.All && len(left.keys)+len(right.keys) == 0 {
		return nil, nil
	}
	several, operation := false, ast.SetOperation(sel.Op)
	if sel.All {
		operation += " ALL"
	}
	for _, r := range sides {
		if sel.All || r.fan != nil || r.preserved > 0 || len(r.keys) == 0 {
			return nil, rowsCombined.At(r.pos, operation)
		}
		several = several || !r.onlyUnits()
	}
	if several {
		return b.rowsBoth(left, right, sel.Op)
	}
	out, refusal := b.groups(left, len(left.names), nil, "UNION")
	if refusal != nil {
		return nil, refusal
	}
	m := &derived.Marked{Other: right.Table}
	if m.Where, refusal = b.Lowered(right.Table, right.where); refusal != nil {
		return nil, refusal
	}
	there := semantics.ColumnExpr(out.mark(m, nil), policy.Bool, -1, right.pos)
	if sel.Op == pg.SetOperation_SETOP_EXCEPT {
		if there, refusal = (&semantics.Translator{}).Not(there); refusal != nil {
			return nil, refusal
		}
	}
	out.where = append(out.where, there)
	return out, nil
}

// onlyUnits reports whether rows show the unit's key alone, and all of them have it.
func (r *Rows) onlyUnits() bool {
	return len(r.keys) == 1 && r.shape == "k" && r.KeyColumn(&r.keys[0]).Unit && r.keys[0].Present == 0
}

// sideName is the column of a union that says which side of INTERSECT or EXCEPT a row is of.
const sideName = " side"

// rowsBoth is INTERSECT or EXCEPT of rows with keys and columns, along the unit: the rows of both sides are put below
// one another and grouped by all that they show, which counts NULLs as equal as SQL does, and of the groups those are
// left that have rows of both sides, or of the left and none of the right.
func (b *Binder) rowsBoth(left, right *Rows, op pg.SetOperation) (*Rows, *refuse.Refusal) {
	operation := ast.SetOperation(op)
	if !right.showsAs(left) {
		return nil, unionColumns.At(right.pos)
	}
	sides := []*Rows{left, right}
	if op == pg.SetOperation_SETOP_INTERSECT && right.Table.MaxRowsPerUnit < left.Table.MaxRowsPerUnit { // there are as many groups as this side has rows, at most
		sides = []*Rows{right, left}
	}
	names := left.names
	for i, r := range sides {
		own := *r
		own.names = append(slices.Clone(names), sideName)
		own.exprs = append(slices.Clone(r.exprs), semantics.ConstantExpr(int64(i), policy.Int4, r.pos))
		own.keys = slices.Clone(r.keys)
		for k := range own.keys {
			own.keys[k].Name = left.keys[k].Name
		}
		sides[i] = &own
	}
	both, refusal := b.unite(sides)
	if refusal != nil {
		return nil, refusal
	}
	of := pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, columnNamed(sideName, both.pos), pg.MakeAConstIntNode(1, int32(both.pos)), int32(both.pos))
	others := &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode("count")}, AggStar: true, AggFilter: of, Location: int32(both.pos)}
	out, refusal := b.groups(both, len(names), []*pg.Node{pg.MakeResTargetNodeWithNameAndVal(sideName, &pg.Node{Node: &pg.Node_FuncCall{FuncCall: others}}, int32(both.pos))}, operation)
	if refusal != nil {
		return nil, refusal
	}
	d, ok := out.Table.Derived.(*derived.PerUnit)
	if !ok {
		return nil, rowsCombined.At(left.pos, operation)
	}
	own, side := *d, d.From.Columns[len(names)]
	is := func(i int64) predicate.Pred {
		cell, _ := side.Domain.Cell(i)
		return predicate.InCells{Column: side, Spans: []mechanisms.Span{{From: cell, To: cell + 1}}}
	}
	own.Of = is(0)
	table := derived.NewPerUnit(&own)
	if table == nil {
		return nil, WideAggregate.At(left.pos)
	}
	out.Become(table)
	t := &semantics.Translator{Env: b.Env}
	compared := map[pg.SetOperation]string{pg.SetOperation_SETOP_INTERSECT: ">", pg.SetOperation_SETOP_EXCEPT: "="}[op]
	last := len(names)
	there, refusal := t.Combine(compared, left.pos, out.exprs[last], semantics.ConstantExpr(int64(0), policy.Int8, left.pos))
	if refusal != nil {
		return nil, refusal
	}
	out.where = append(out.where, there)
	out.names, out.exprs = out.names[:last], out.exprs[:last]
	out.parts = []relation{{left.Alias(), nil, 0, last, 0, len(out.keys), left.parts[0].order, always}}
	return out, nil
}

// shapeOf tells which outputs of a SELECT are keys (k), columns (c), or both (b), so that two SELECTs have the same in
// each place.
func (r *Rows) shapeOf(target *pg.ResTarget, parts []relation) string {
	shape := ""
	for _, p := range parts { // of *
		shape += "*"
		for i := p.from; i < p.to; i++ {
			shape += r.names[i] + ","
		}
		for i := p.fromKey; i < p.toKey; i++ {
			shape += "k:" + r.keys[i].Name + ","
		}
	}
	if parts != nil {
		for _, i := range r.starredWithKeys(target, parts) { // a key that is first in one table may be last in another
			if i < 0 {
				shape += "k"
			}
			shape += ";"
		}
		return shape
	}
	k, _ := r.KeyNode(target.Val)
	names := ast.Strings(target.Val.GetColumnRef().GetFields())
	switch {
	case k == nil:
		return "c"
	case len(names) > 0:
		if _, refusal := r.Column(names, -1); refusal == nil {
			return "b"
		}
	}
	return "k"
}

// UNION ALL of rows of one table. SELECT n, count(*) FROM (SELECT age AS n FROM people UNION ALL SELECT kids FROM
// people) t GROUP BY n counts each row once for each branch, as a list of two candidates that it meets.

// UnionAll returns a UNION ALL that nothing else is done to.
func UnionAll(sel *pg.SelectStmt) *pg.SelectStmt {
	if sel == nil || sel.Op != pg.SetOperation_SETOP_UNION || !sel.All || len(sel.SortClause) > 0 || ast.IsLimited(sel) || sel.WithClause != nil || len(sel.LockingClause) > 0 {
		return nil
	}
	return sel
}

// fanned are the rows of a UNION ALL of rows of one table: each row once for each branch that passes it on. It returns
// nil if the branches are of several tables, or have keys.
func (b *Binder) fanned(branches []*Rows) (*Rows, *refuse.Refusal) {
	for _, r := range branches {
		if r.fan != nil || len(r.keys) > 0 || r.Table != branches[0].Table || len(r.names) != len(branches[0].names) {
			return nil, nil
		}
	}
	list := &Candidates{alias: branches[0].Alias(), names: branches[0].names}
	for _, r := range branches {
		list.rows, list.where = append(list.rows, slices.Clone(r.exprs)), append(list.where, r.where)
	}
	out := &Rows{Table: branches[0].Table, names: list.names, fan: list, pos: branches[0].pos}
	out.parts = []relation{{list.alias, nil, 0, len(out.names), 0, 0, nil, nil}}
	if refusal := b.typed(list); refusal != nil {
		return nil, refusal
	}
	for c, typ := range list.types {
		out.exprs = append(out.exprs, virtual(c, typ, -1))
	}
	return out, nil
}

// virtual is a column of a list for any candidate.
func virtual(c int, t policy.Type, typmod int32) *semantics.Expr {
	e := semantics.ColumnExpr(virtualColumn+c, t, typmod, -1)
	e.Monotone = false
	return e
}
