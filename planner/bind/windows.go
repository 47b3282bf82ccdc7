package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Window functions over a unit's rows (docs/adr/0120). In
//
//	SELECT avg(gap) FROM (SELECT day - lag(day) OVER (PARTITION BY person_id ORDER BY day) AS gap FROM visits WHERE ward = 'A') t
//
// the sub-query's rows are those of a Windowed over visits, with the condition and a column for lag(day): what a row
// has of its unit's other rows is as private as the row. The expression around it, and the SELECT above, read that
// column like any other.

// windowFunctions are the window functions that are no aggregates, and how many arguments they take.
var windowFunctions = map[string]struct {
	kind        derived.WindowKind
	least, most int
}{
	"row_number": {derived.WindowRowNumber, 0, 0}, "rank": {derived.WindowRank, 0, 0}, "dense_rank": {derived.WindowDenseRank, 0, 0},
	"ntile": {derived.WindowNtile, 1, 1}, "lag": {derived.WindowLag, 1, 3}, "lead": {derived.WindowLead, 1, 3},
	"first_value": {derived.WindowFirst, 1, 1}, "last_value": {derived.WindowLast, 1, 1},
}

// windows binds the window functions of one SELECT, each to a column of the table to come.
type windows struct {
	b      *Binder
	source *Rows
	sel    *pg.SelectStmt
	w      *derived.Windowed
	values map[*pg.FuncCall]*semantics.Expr
}

// windowsOf gives rows the columns that window functions of a SELECT over them say, and returns what each call is. The
// rows are narrowed by where first.
func (b *Binder) windowsOf(r *Rows, sel *pg.SelectStmt, where []*semantics.Expr, nodes []*pg.Node) (map[*pg.FuncCall]*semantics.Expr, *refuse.Refusal) {
	switch {
	case r.preserved > 0:
		return nil, preservedJoined.At(r.pos, r.Table.Name)
	case r.Table.Dataset.Unit.Row:
		return nil, WindowOnRows.At(ast.Location(nodes[0]))
	}
	for { // until the rows have all columns that are read
		b.Env.Work.Step(r.Table.Places * perPlace)
		v := &windows{b: b, source: r, sel: sel, w: &derived.Windowed{From: r.Table}, values: map[*pg.FuncCall]*semantics.Expr{}}
		var refusal *refuse.Refusal
		for _, f := range windowsIn(nodes) {
			if v.values[f], refusal = v.call(f); refusal != nil {
				return nil, refusal
			}
		}
		if v.w.Where, refusal = b.Lowered(r.Table, where); refusal != nil {
			return nil, refusal
		}
		if r.Table != v.w.From { // an argument was a sum of columns, which is one now
			continue
		}
		b.LeavesOut(r.Table, "window functions number rows")
		t := derived.NewWindowed(v.w)
		if t == nil {
			return nil, WideAggregate.At(r.pos)
		}
		r.Become(t)
		return v.values, nil
	}
}

// windowsIn are the calls of window functions in expressions.
func windowsIn(nodes []*pg.Node) (list []*pg.FuncCall) {
	for _, n := range nodes {
		ast.Holds(n, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && f.Over != nil {
				list = append(list, f)
			}
			return false
		})
	}
	return list
}

// called gives a translator the values of window functions.
func called(t *semantics.Translator, values map[*pg.FuncCall]*semantics.Expr) *semantics.Translator {
	own := *t
	own.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if f := n.GetFuncCall(); f != nil && values[f] != nil {
			return values[f], nil
		}
		if t.Hook == nil {
			return nil, nil
		}
		return t.Hook(n)
	}
	return &own
}

func (v *windows) call(f *pg.FuncCall) (*semantics.Expr, *refuse.Refusal) {
	pos := int(f.Location)
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, refusal
	}
	c := derived.WindowColumn{}
	if refusal := v.over(f, &c); refusal != nil {
		return nil, refusal
	}
	of, ok := windowFunctions[name]
	if ok && (ast.HasAggregateClause(f) || len(f.Args) < of.least || len(f.Args) > of.most) {
		return nil, windowCall.At(pos, name)
	}
	switch c.Kind = of.kind; c.Kind {
	case derived.WindowFirst, derived.WindowLast:
		return v.end(f, name, c)
	case derived.WindowLag, derived.WindowLead:
		return v.neighbour(f, name, c)
	case derived.WindowNtile:
		if c.Offset, refusal = v.whole(f.Args[0]); refusal != nil {
			return nil, refusal
		}
		if c.Offset < 1 {
			return nil, badNtile.At(pos)
		}
		fallthrough
	case derived.WindowRowNumber, derived.WindowRank, derived.WindowDenseRank:
		c.Frame = derived.WindowFrame{}
		return v.put(c, pos)
	}
	c.Kind = derived.WindowAggregate
	if c.Frame.Whole() { // the order decides nothing
		c.Order = nil
	}
	if f.AggDistinct || len(f.AggOrder) > 0 {
		return nil, unitAggregate.At(pos, name+" with DISTINCT or ORDER BY as a window function")
	}
	aggregates := &unitAggregates{b: v.b, source: v.source, filled: c.Frame.Filled(), put: func(a derived.UnitAggregate, pos int) (*semantics.Expr, *refuse.Refusal) {
		own := c
		own.Aggregate = a
		return v.put(own, pos)
	}}
	return aggregates.aggregate(f)
}

// put adds a function's column once, and returns it.
func (v *windows) put(c derived.WindowColumn, pos int) (*semantics.Expr, *refuse.Refusal) {
	shown := derived.WindowShown(c, v.source.Table)
	if shown == nil {
		return nil, WideAggregate.At(pos)
	}
	at := slices.IndexFunc(v.w.Columns, c.SameAs)
	if at < 0 {
		at = len(v.w.Columns)
		v.w.Columns = append(v.w.Columns, c)
	}
	typ, typmod := shown.Shown()
	if typ == policy.Bpchar { // a column of a derived table does not say which of its chars are filled up
		typmod = -1
	}
	return semantics.ColumnExpr(len(v.w.From.Columns)+at, typ, typmod, pos), nil
}

// neighbour binds lag and lead: the value that an expression over one column has in another row, and where there is
// none what this row says.
func (v *windows) neighbour(f *pg.FuncCall, name string, c derived.WindowColumn) (*semantics.Expr, *refuse.Refusal) {
	pos := int(f.Location)
	c.Frame, c.Offset = derived.WindowFrame{}, 1
	if len(f.Args) > 1 {
		var refusal *refuse.Refusal
		if c.Offset, refusal = v.whole(f.Args[1]); refusal != nil {
			return nil, refusal
		}
	}
	if c.Offset < 0 {
		c.Kind, c.Offset = derived.WindowLag+derived.WindowLead-c.Kind, -c.Offset
	}
	value, plain, refusal := v.valueOf(f, c)
	if refusal != nil || plain && len(f.Args) < 3 {
		return value, refusal
	}
	there := c
	there.Column = nil
	is, refusal := v.put(there, pos)
	if refusal != nil {
		return nil, refusal
	}
	t := v.b.Settles(v.b.OverKeys(v.source, name), v.source)
	if len(f.Args) < 3 {
		return t.Case([]*semantics.Expr{is, value}, pos)
	}
	none, refusal := t.Not(is)
	if refusal != nil {
		return nil, refusal
	}
	otherwise, refusal := t.Expr(f.Args[2]) // of the row that has no other: lag(total, 1, deposit)
	if refusal != nil {
		return nil, refusal
	}
	otherwise = t.Settler.Settled(otherwise)
	if refusal := semantics.Closed(v.source.Table, otherwise); refusal != nil {
		return nil, refusal
	}
	return t.Case([]*semantics.Expr{none, otherwise, value}, pos) // which is of the value's type, as CASE is of ELSE's
}

// end binds first_value and last_value. What they say of rows that tie is any row's in plain SQL: here it is that of
// one order of them, by which the frame goes from row to row. An end of the frame that is among rows that tie would be
// another row's.
func (v *windows) end(f *pg.FuncCall, name string, c derived.WindowColumn) (*semantics.Expr, *refuse.Refusal) {
	pos := int(f.Location)
	whole := derived.WindowFrame{Rows: true, Start: derived.FrameFirst, End: derived.FrameLast}
	switch first := c.Kind == derived.WindowFirst; {
	case first && c.Frame.Start == derived.FrameFirst && c.Frame.Filled(), !first && c.Frame.End == derived.FrameLast && c.Frame.Filled():
		c.Frame = whole
	case !c.Frame.Rows:
		return nil, windowFrame.At(pos, name)
	}
	value, plain, refusal := v.valueOf(f, c)
	if refusal == nil && !plain && !c.Frame.Filled() {
		refusal = windowFrame.At(pos, name+" of an expression")
	}
	return value, refusal
}

// valueOf is the value that the first argument has in the row that c finds; plain: it is a column, NULL where there is
// no such row.
func (v *windows) valueOf(f *pg.FuncCall, c derived.WindowColumn) (value *semantics.Expr, plain bool, refusal *refuse.Refusal) {
	t := v.b.Settles(v.b.OverKeys(v.source, "a window function"), v.source)
	e, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, false, refusal
	}
	e = t.Settler.Settled(e)
	if refusal := semantics.Closed(v.source.Table, e); refusal != nil {
		return nil, false, refusal
	}
	if len(e.Cols) != 1 {
		return nil, false, windowArgument.At(e.Pos)
	}
	c.Column = v.source.Table.Columns[e.Cols[0]]
	column, refusal := v.put(c, int(f.Location))
	if refusal != nil || e.Form == semantics.FormColumn {
		return column, true, refusal
	}
	return e.Moved(column.Cols[0]), false, nil
}

// whole reads a constant that is an integer.
func (v *windows) whole(n *pg.Node) (int64, *refuse.Refusal) {
	value, refusal := v.constant(n, policy.Int4)
	if refusal != nil {
		return 0, refusal
	}
	return value.(int64), nil
}

// constant reads a constant of a type, which is not NULL. A parameter whose value is not there yet is 1, or no time.
func (v *windows) constant(n *pg.Node, typ policy.Type) (policy.Value, *refuse.Refusal) {
	t := &semantics.Translator{Env: v.b.Env, Params: v.b.Params, Place: "a window"}
	e, refusal := t.Expr(n)
	if refusal != nil {
		return nil, windowConstant.At(ast.Location(n))
	}
	if v.b.Params.Note(e, typ); e.Parameter > 0 && v.b.Params.Describing {
		if typ == policy.IntervalT {
			return policy.Interval{}, nil
		}
		return int64(1), nil
	}
	value, refusal := ConstantAs(v.b.Env, e, typ, ast.Location(n))
	if refusal == nil && value == nil {
		refusal = windowConstant.At(ast.Location(n))
	}
	return value, refusal
}

// over binds the contents of OVER: it must partition by the unit.
func (v *windows) over(f *pg.FuncCall, c *derived.WindowColumn) *refuse.Refusal {
	over, refusal := v.defined(f.Over)
	if refusal != nil {
		return refusal
	}
	if slices.ContainsFunc(ast.Children(&pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}), ast.HasWindow) {
		return semantics.WindowIn.At(int(f.Location), "a window function")
	}
	unit := false
	for _, n := range over.PartitionClause {
		k, refusal := v.source.KeyNode(n)
		switch {
		case refusal != nil:
			return refusal
		case k != nil && k.Present > 0:
			return outerCondition.At(ast.Location(n))
		case k != nil:
			own := v.source.KeyColumn(k)
			if unit = unit || own.TellsUnit(); !own.Unit && !slices.Contains(c.JoinKeys, own) {
				c.JoinKeys = append(c.JoinKeys, own)
			}
			continue
		}
		if refusal := v.partition(n, c); refusal != nil {
			return refusal
		}
	}
	if !unit {
		return acrossUnits(over, int(f.Location))
	}
	slices.SortFunc(c.JoinKeys, derived.CompareNames)
	slices.SortFunc(c.Keys, func(a, b derived.UnitKey) int { return derived.CompareNames(a.Column, b.Column) })
	for _, n := range over.OrderClause {
		if refusal := v.order(n.GetSortBy(), c); refusal != nil {
			return refusal
		}
	}
	return v.frame(over, c)
}

// acrossUnits refuses a window that looks across units. A rank by one value is most often a step on the way to its
// quantiles: row_number() OVER (ORDER BY days), and above it min(days) FILTER (WHERE n >= 0.5 * total).
func acrossUnits(over *pg.WindowDef, pos int) *refuse.Refusal {
	out := WindowOnRows.At(pos)
	if len(over.OrderClause) == 1 {
		by := ast.DeparsedExpr(over.OrderClause[0].GetSortBy().GetNode())
		out.Hint = "Quantiles need no rank: percentile_disc(0.5) WITHIN GROUP (ORDER BY " + by +
			"), with GROUP BY in place of PARTITION BY. " + out.Hint
	}
	return out
}

// defined is a window with what it has from the WINDOW clause.
func (v *windows) defined(over *pg.WindowDef) (*pg.WindowDef, *refuse.Refusal) {
	name := over.Name
	if name == "" {
		name = over.Refname
	}
	if name == "" {
		return over, nil
	}
	for _, n := range v.sel.WindowClause {
		if d := n.GetWindowDef(); d.Name == name {
			base, refusal := v.defined(&pg.WindowDef{Refname: d.Refname, PartitionClause: d.PartitionClause, OrderClause: d.OrderClause, FrameOptions: d.FrameOptions,
				StartOffset: d.StartOffset, EndOffset: d.EndOffset, Location: d.Location})
			if over.Name != "" || refusal != nil {
				return base, refusal
			}
			out := &pg.WindowDef{PartitionClause: base.PartitionClause, OrderClause: base.OrderClause, FrameOptions: over.FrameOptions, StartOffset: over.StartOffset, EndOffset: over.EndOffset, Location: over.Location}
			if len(over.OrderClause) > 0 {
				out.OrderClause = over.OrderClause
			}
			return out, nil
		}
	}
	return nil, noWindow.At(int(over.Location), name)
}

// partition adds an expression over one column to what a unit's rows are partitioned by.
func (v *windows) partition(n *pg.Node, c *derived.WindowColumn) *refuse.Refusal {
	t := v.b.OverKeys(v.source, "PARTITION BY")
	e, refusal := t.Expr(n)
	if refusal != nil {
		return refusal
	}
	if e.IsConstant() {
		return nil
	}
	k, refusal := v.b.unitKey(v.source, e)
	if refusal == nil {
		c.Keys = append(c.Keys, k)
	}
	return refusal
}

func (v *windows) order(s *pg.SortBy, c *derived.WindowColumn) *refuse.Refusal {
	o := derived.WindowOrder{Descending: s.SortbyDir == pg.SortByDir_SORTBY_DESC}
	o.NullsFirst = s.SortbyNulls == pg.SortByNulls_SORTBY_NULLS_FIRST || o.Descending && s.SortbyNulls != pg.SortByNulls_SORTBY_NULLS_LAST
	if s.SortbyDir == pg.SortByDir_SORTBY_USING {
		return windowOrder.At(ast.Location(s.Node), "USING")
	}
	if k, refusal := v.source.KeyNode(s.Node); refusal != nil {
		return refusal
	} else if k != nil {
		if o.Column, refusal = v.orderedKey(k, ast.Location(s.Node)); o.Column != nil {
			c.Order = append(c.Order, o)
		}
		return refusal
	}
	t := v.b.Settles(v.b.OverKeys(v.source, "ORDER BY"), v.source)
	e, refusal := t.Expr(s.Node)
	if refusal != nil {
		return refusal
	}
	e = t.Settler.Settled(e)
	switch refusal := semantics.Closed(v.source.Table, e); {
	case refusal != nil:
		return refusal
	case e.IsConstant():
		return nil
	}
	pos := e.Pos
	if e, refusal = (&unitAggregates{b: v.b, source: v.source}).listed(e, s.Node, true); refusal != nil {
		return refusal
	}
	if e == nil || e.Form != semantics.FormColumn {
		return windowOrder.At(pos, "an expression")
	}
	if o.Column = v.source.Table.Columns[e.Cols[0]]; !inOrder(o.Column) {
		return windowOrder.At(pos, "values of type "+o.Column.Type.Name())
	}
	c.Order = append(c.Order, o)
	return nil
}

// orderedKey is the column of a key that ORDER BY names, or nil of the unit, which all rows of a partition have.
func (v *windows) orderedKey(k *linear.Key, pos int) (*policy.Column, *refuse.Refusal) {
	own := v.source.KeyColumn(k)
	switch to := own.Origin(); {
	case k.Present > 0:
		return nil, outerCondition.At(pos)
	case own.Unit:
		return nil, nil
	case !own.Type.Integer() || !to.Type.Integer() || to.Unit:
		return nil, windowOrder.At(pos, "keys that are no whole numbers")
	}
	return own, nil
}

// windowCalls are the outputs of a SELECT that call window functions.
func windowCalls(sel *pg.SelectStmt) (list []*pg.Node) {
	for _, n := range sel.TargetList {
		if v := n.GetResTarget().Val; ast.HasWindow(v) {
			list = append(list, v)
		}
	}
	return list
}
