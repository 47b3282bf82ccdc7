package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A sub-query that is counted for each private row, by columns that equal some of that row, is answered first for all
// rows (ADR 127). Of
//
//	SELECT count(*) FROM lines l WHERE l.quantity < (SELECT 0.2 * avg(o.quantity) FROM lines o WHERE o.part = l.part)
//
// the averages of all parts are a statement of their own (ADR 117). What was released of it is a list, in which l.part
// is looked up as in a public table. A sub-query over a public table alone is added up here, and asks nothing.

// eachFirst translates such a sub-query; nil, nil means it is another one.
func (b *Binder) eachFirst(r *Rows, s *pg.SubLink, t *semantics.Translator) (*semantics.Expr, *refuse.Refusal) {
	sel, pos := s.Subselect.GetSelectStmt(), int(s.Location)
	if s.SubLinkType != pg.SubLinkType_EXPR_SUBLINK || !aggregatesAlone(sel) || len(b.viewing) > 0 {
		return nil, nil
	}
	table, each, refusal := r.groupsOfEach(b, sel, pos)
	if table == nil || refusal != nil {
		return nil, refusal
	}
	l := b.lookedUp(tableRows(table, pos), table)
	keys := l.public.exprs
	for i, n := range each.Around {
		arg, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		if !lookup.Comparable(arg.Type(), keys[i].Type()) {
			return nil, nil
		}
		if refusal := l.Equate(arg, i, keys[i]); refusal != nil {
			return nil, refusal
		}
	}
	if refusal := l.Index(pos); refusal != nil {
		if refusal.ID == lookup.FanOut.ID { // groups by a varchar that are one to a char
			return nil, nil
		}
		return nil, refusal
	}
	value := len(table.Columns) - 1
	e := l.Column(value)
	if each.Else == nil {
		return e, nil
	}
	other, refusal := t.Expr(each.Else)
	if refusal != nil {
		return nil, refusal
	}
	c, err := b.Env.Coalesce(e.Expr, other.Expr)
	return semantics.Made(semantics.FormOther, "coalesce", c, err, pos, e, other)
}

// groupsOfEach are the groups of a sub-query, added up here or answered first; nil means it is no such sub-query.
func (r *Rows) groupsOfEach(b *Binder, sel *pg.SelectStmt, pos int) (*policy.Table, *EachOf, *refuse.Refusal) {
	public, alias := (*policy.Table)(nil), (*pg.Alias)(nil)
	if len(sel.FromClause) == 1 && sel.WithClause == nil {
		public, alias = b.publicTable(sel.FromClause[0], r.scope)
	}
	if public == nil {
		return b.groupsFirst(r, sel, pos)
	}
	rows, refusal := tableRows(public, pos).aliased(alias)
	if refusal != nil {
		return nil, nil, refusal
	}
	rows.scope = r.scope
	each := forEach(sel, rows, nil)
	if each == nil {
		return nil, nil, nil
	}
	table, refusal := b.addedUp(rows, each)
	return table, each, refusal
}

// groupsFirst has the groups of a sub-query over private rows answered; nil means it is no such sub-query, or nobody
// answers it here.
func (b *Binder) groupsFirst(r *Rows, sel *pg.SelectStmt, pos int) (*policy.Table, *EachOf, *refuse.Refusal) {
	if b.Inner == nil {
		return nil, nil, nil
	}
	scope, refusal := b.With(sel, r.scope)
	if refusal != nil {
		return nil, nil, refusal
	}
	from, refusal := b.FromRows(sel, scope)
	if from == nil || refusal != nil {
		return nil, nil, nil // whoever else translates it reports what is wrong with it
	}
	each := forEach(sel, from, nil)
	if each == nil || from.readsOthers(each.Groups.WhereClause) {
		return nil, nil, nil
	}
	alone, refusal := b.alone(each.Groups, r.scope, pos)
	if refusal != nil {
		return nil, nil, refusal
	}
	a, refusal := b.Inner(alone, b.use(LookedUp))
	if refusal != nil {
		return nil, nil, refusal.In(pos)
	}
	if a == nil || len(a.Columns) != len(each.Around)+1 {
		return nil, nil, nil
	}
	rows := a.Rows
	if a.Standing { // where a key is NULL it has a placeholder, which may be another's
		seen := map[string]bool{}
		rows = slices.DeleteFunc(slices.Clone(rows), func(row []policy.Value) bool {
			text, _ := derived.JoinKey(row[:len(each.Around)])
			again := seen[text]
			seen[text] = true
			return again
		})
	}
	return b.ownList(GroupsOfEach, a.Columns, rows, a), each, nil
}

// ownList makes a list of the statement's own of rows, of the columns that an answer has.
func (b *Binder) ownList(
	name string, columns []plans.AnswerColumn, rows [][]policy.Value, released *plans.Answer,
) *policy.Table {
	t := &policy.Table{Name: name, Public: true}
	for i, of := range columns {
		c := &policy.Column{Table: t, Name: KeyOfEach(i), Type: of.Type, Typmod: -1}
		if of.Type == policy.Bpchar {
			c.Become(of.Type, of.Typmod)
			rows = slices.Clone(rows)
			for r := range rows {
				rows[r] = slices.Clone(rows[r])
				rows[r][i] = policy.Trimmed(of.Type, rows[r][i])
			}
		}
		t.Columns = append(t.Columns, c)
	}
	b.keep(t, rows, released)
	return t
}

// addedUp are the groups of a sub-query over a public table; nil means it has what is not added up here.
func (b *Binder) addedUp(public *Rows, each *EachOf) (*policy.Table, *refuse.Refusal) {
	l := &listed{b: b, around: public, public: public, pos: public.pos}
	if refusal := l.read(public.Table, each.Groups.WhereClause); refusal != nil || len(l.linked) > 0 {
		return nil, refusal
	}
	var keys []*semantics.Expr
	for _, n := range each.Groups.GroupClause {
		e, refusal := l.alone().Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		keys = append(keys, e)
	}
	var order []string
	groups := map[string][][]policy.Value{}
	found := map[string][]policy.Value{}
	for _, row := range l.data {
		b.Env.Work.Step(lookup.WorkOf(keys...))
		var values []policy.Value
		for _, k := range keys {
			v, refusal := k.Value(row)
			if refusal != nil {
				return nil, refusal
			}
			values = append(values, v)
		}
		text, known := derived.JoinKey(values)
		if !known { // NULL equals nothing
			continue
		}
		if found[text] == nil {
			order, found[text] = append(order, text), values
		}
		groups[text] = append(groups[text], row)
	}
	slices.Sort(order)
	target := each.Groups.TargetList[len(keys)].GetResTarget().Val
	var columns []plans.AnswerColumn
	column := func(e *semantics.Expr) {
		t, typmod := e.Type(), e.Typmod()
		columns = append(columns, plans.AnswerColumn{Type: t, Typmod: typmod})
	}
	for _, k := range keys {
		column(k)
	}
	var rows [][]policy.Value
	for _, text := range append(order, "") { // of no rows too, for the type alone
		b.Env.Work.Step(perBranch)
		e, refusal := l.over(groups[text]).Expr(target)
		if e == nil || refusal != nil {
			return nil, refusal
		}
		v, refusal := e.Value(nil)
		if refusal != nil {
			return nil, refusal
		}
		if text == "" {
			column(e)
		} else {
			rows = append(rows, append(slices.Clone(found[text]), v))
		}
	}
	return b.ownList(GroupsOfEach+" of "+public.Table.Name, columns, rows, nil), nil
}

// over translates over the aggregates of some public rows.
func (l *listed) over(rows [][]policy.Value) *semantics.Translator {
	t := l.alone()
	t.Place = "SELECT"
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
			return l.aggregate(f, rows)
		}
		return nil, nil
	}
	return t
}

// aggregate is count, sum, avg, min or max over public rows.
func (l *listed) aggregate(f *pg.FuncCall, rows [][]policy.Value) (*semantics.Expr, *refuse.Refusal) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, refusal
	}
	env, pos := l.b.Env, int(f.Location)
	if name == "count" && f.AggStar && f.AggFilter == nil {
		return semantics.ConstantExpr(int64(len(rows)), policy.Int8, pos), nil
	}
	if !slices.Contains([]string{"count", "sum", "avg", "min", "max"}, name) || len(f.Args) != 1 || ast.HasAggregateClause(f) {
		return nil, NoAggregate.At(pos, name)
	}
	arg, refusal := l.alone().Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	typ := arg.Type()
	if slices.Contains([]string{"sum", "avg"}, name) {
		if !semantics.Numeric(arg) {
			return nil, refuse.UnknownFunction.At(pos, name+"("+typ.Name()+")")
		}
		typ = semantics.AggregateType(name, typ)
	}
	var values []policy.Value
	for _, row := range rows {
		env.Work.Step(1 + lookup.WorkOf(arg))
		v, refusal := arg.Value(row)
		if refusal != nil {
			return nil, refusal
		}
		if v != nil {
			values = append(values, v)
		}
	}
	out, refusal := semantics.Aggregated(env, name, values, arg.Type(), typ, pos)
	if refusal == nil && typ == policy.Bpchar { // min and max
		out = arg.Worth(semantics.MustConstant(out), pos)
	}
	return out, refusal
}

// The first rows of each unit, by a number that a window function gives them (windows.go): DISTINCT ON, and WHERE n <=
// 3 over a row_number.

// ranked gives rows what a SELECT says by window functions, and by DISTINCT ON, whose rows are those that are first: of
//
//	SELECT DISTINCT ON (person_id) person_id, ward FROM visits ORDER BY person_id, day
//
// those whose row_number() OVER (PARTITION BY person_id ORDER BY day) is 1. It returns the conditions that are left:
// the others have chosen the rows that the functions see.
func (b *Binder) ranked(r *Rows, sel *pg.SelectStmt, where []*semantics.Expr, calls []*pg.Node) (map[*pg.FuncCall]*semantics.Expr, []*semantics.Expr, *refuse.Refusal) {
	if !IsDistinctOn(sel) {
		values, refusal := b.windowsOf(r, sel, where, calls)
		return values, nil, refusal
	}
	pos := ast.Location(sel.DistinctClause[0])
	var on, order []*pg.Node
	same := func(n *pg.Node) bool {
		return slices.ContainsFunc(on, func(o *pg.Node) bool {
			k, _ := r.KeyNode(o)
			l, _ := r.KeyNode(n)
			return ast.SameTree(o, n) || k != nil && l != nil && r.areEqual(k, l)
		})
	}
	for _, n := range sel.DistinctClause {
		on = append(on, OutputOf(sel, n))
	}
	for i, n := range sel.SortClause {
		s := n.GetSortBy()
		switch by := OutputOf(sel, s.Node); {
		case same(by):
		case i < len(on):
			return nil, nil, distinctOnOrder.At(ast.Location(s.Node))
		default:
			order = append(order, &pg.Node{Node: &pg.Node_SortBy{SortBy: &pg.SortBy{Node: by, SortbyDir: s.SortbyDir, SortbyNulls: s.SortbyNulls}}})
		}
	}
	f := &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode("row_number")}, Location: int32(pos), Over: &pg.WindowDef{PartitionClause: on, OrderClause: order, Location: int32(pos)}}
	values, refusal := b.windowsOf(r, sel, where, append(calls, &pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}))
	if refusal != nil {
		if refusal.ID == WindowOnRows.ID {
			refusal = limitedRows.At(pos, "DISTINCT ON")
		}
		return nil, nil, refusal
	}
	one := semantics.ConstantExpr(int64(1), policy.Int8, -1)
	s, err := b.Env.Call("=", values[f].Expr, one.Expr)
	if err != nil {
		return nil, nil, semantics.ScalarRefusal(err, pos)
	}
	return values, []*semantics.Expr{semantics.Node(semantics.FormCompare, "=", s, pos, values[f], one)}, nil
}

// OutputOf is the output that an item of ORDER BY or DISTINCT ON names by its place or name; another item is what it
// is.
func OutputOf(sel *pg.SelectStmt, n *pg.Node) *pg.Node {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil {
		if i := int(c.GetIval().Ival); i >= 1 && i <= len(sel.TargetList) {
			return sel.TargetList[i-1].GetResTarget().Val
		}
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 {
		for _, t := range sel.TargetList {
			if target := t.GetResTarget(); ast.Label(target) == names[0] {
				return target.Val
			}
		}
	}
	return n
}

// maxNumbers is how many values of a row_number are looked at to find those that a condition leaves.
const maxNumbers = 1 << 20

// First narrows rows to those that a condition on their row_number within the unit leaves: WHERE n = 1 leaves one row a
// unit, whose noise is then that of one row. Conditions stay where they are, and hold of all that are left.
func (r *Rows) First(where []*semantics.Expr, work *scalar.Work) {
	w, ok := r.Table.Derived.(*derived.Windowed)
	if !ok || w.First > 0 || w.From.MaxRowsPerUnit > maxNumbers {
		return
	}
	least, most, by := int64(1), w.From.MaxRowsPerUnit, -1
	for i, c := range w.Columns {
		if c.Kind != derived.WindowRowNumber || len(c.Keys)+len(c.JoinKeys) > 0 {
			continue
		}
		at := len(w.From.Columns) + i
		if from, to := numbersLeft(where, at, w.From.MaxRowsPerUnit, work); to-from < most-least {
			least, most, by = from, to, i
		}
	}
	if by < 0 {
		return
	}
	own := *w
	own.By, own.First, own.Last = by, least, most
	if t := derived.NewWindowed(&own); t != nil {
		r.Become(t)
	}
}

// numbersLeft are the least and the largest number of a column for which all conditions on it alone may hold.
func numbersLeft(where []*semantics.Expr, column int, most int64, work *scalar.Work) (from, to int64) {
	var about []*semantics.Expr
	steps := 1
	for _, e := range linear.Conjuncts(where) {
		if len(e.Cols) == 1 && e.Cols[0] == column {
			about = append(about, e)
			steps += e.Steps()
		}
	}
	row := make(scalar.Row, column+1)
	for n := int64(1); n <= most; n++ {
		row[column] = n
		work.Step(steps)
		holds := !slices.ContainsFunc(about, func(e *semantics.Expr) bool {
			v, refusal := e.Value(row)
			return refusal == nil && v != true
		})
		if holds && from == 0 {
			from = n
		}
		if holds {
			to = n
		}
	}
	return max(from, 1), max(to, 1)
}
