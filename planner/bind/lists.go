package bind

import (
	"cmp"
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Lists that a statement writes itself, as public tables (docs/adr/0122): calendars, VALUES, and projections of public
// tables. Of
//
//	SELECT d.day, count(v.person_id) FROM generate_series(date '2025-01-01', date '2025-01-31', interval '1 day') d(day)
//	LEFT JOIN visits v ON v.day = d.day::date GROUP BY 1
//
// the series is a table of 31 rows, which are matched with the cells of v.day when the statement is planned, as the
// rows of any public table are (publicjoin.go).

// maxListRows bounds a list that is a table.
const maxListRows = 1 << 14

// listTable makes a public table of a list of constants; nil means the item of FROM is none.
func (b *Binder) listTable(n *pg.Node, scope *Scope) *policy.Table {
	list, refusal := b.candidatesOf(nil, n, scope)
	if list == nil || refusal != nil || len(list.rows) == 0 {
		return nil
	}
	t := &policy.Table{Name: list.alias, Public: true}
	for i, name := range list.names {
		c := &policy.Column{Table: t, Name: name}
		c.Become(list.types[i], list.typmod[i])
		t.Columns = append(t.Columns, c)
	}
	rows := make([][]policy.Value, len(list.rows))
	for i, row := range list.rows {
		b.Env.Work.Step(1 + len(row))
		for _, e := range row {
			v, refusal := e.Value(nil)
			if refusal != nil || !e.IsConstant() {
				return nil
			}
			rows[i] = append(rows[i], v)
		}
	}
	b.keep(t, rows, nil)
	return t
}

// keep has a table's rows found beside those of the public tables.
func (b *Binder) keep(t *policy.Table, rows [][]policy.Value, released *plans.Answer) {
	b.Context.Public = lookup.Beside(b.Context.Public, t, rows, released)
}

// times fills a list with a series of moments. PostgreSQL's has no form for dates: they are moments of the session's
// zone.
func (b *Binder) times(list *Candidates, f *pg.FuncCall, ends []*semantics.Expr) (*Candidates, *refuse.Refusal) {
	if len(ends) != 3 {
		return nil, refuse.UnknownFunction.At(int(f.Location), "generate_series")
	}
	typ := policy.TimestampTZ
	if first, last := ends[0].Type(), ends[1].Type(); (first == policy.TimestampT || last == policy.TimestampT) && first != policy.TimestampTZ && last != policy.TimestampTZ {
		typ = policy.TimestampT
	}
	var values [3]policy.Value
	for i, to := range []policy.Type{typ, typ, policy.IntervalT} {
		e, refusal := b.asType(ends[i], to)
		if refusal == nil {
			values[i], refusal = e.Value(nil)
		}
		if refusal != nil {
			return nil, refusal
		}
		b.Params.Note(ends[i], to)
		if values[i] == nil {
			return list.typed(typ).described(b.Params, f), nil
		}
	}
	sign := semantics.StepsOf(values[2]).Sign()
	if sign == 0 {
		return nil, semantics.Evaluation.At(int(f.Location), "step size cannot equal zero")
	}
	step := scalar.Constant(values[2], policy.IntervalT)
	for x, last := values[0], semantics.StepsOf(values[1]); semantics.StepsOf(x).Cmp(last)*sign <= 0; {
		if len(list.rows) > maxListRows {
			return nil, ManyCandidates.At(int(f.Location), len(list.rows), maxListRows)
		}
		list.rows = append(list.rows, []*semantics.Expr{semantics.ConstantExpr(x, typ, int(f.Location))})
		s, err := b.Env.Call("+", scalar.Constant(x, typ), step)
		if err == nil {
			x, err = s.Eval(nil)
		}
		if err != nil {
			return nil, semantics.ScalarRefusal(err, int(f.Location))
		}
	}
	return list.typed(typ), nil
}

// castSeries is SELECT generate_series(…)::date AS day: each value of the series as the cast makes it.
func (b *Binder) castSeries(target *pg.ResTarget) (*Candidates, *refuse.Refusal) {
	n := target.Val
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	f := n.GetFuncCall()
	list, refusal := b.seriesCandidates(f, ast.Label(target))
	if list == nil || refusal != nil {
		return nil, refusal
	}
	for i, row := range list.rows {
		t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "SELECT", Hook: func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
			if n.GetFuncCall() == f {
				return row[0], nil
			}
			return nil, nil
		}}
		e, refusal := constantOutput(target.Val, t)
		if refusal != nil {
			return nil, refusal
		}
		list.rows[i], list.types[0] = []*semantics.Expr{e}, e.Type()
	}
	return list, nil
}

// A LATERAL sub-query that aggregates rows of the unit of the row that it is joined to has one row for each of them,
// whose values are sub-queries over that unit (unit_value.go):
//
//	SELECT p.sex, avg(q.n) FROM people p, LATERAL (SELECT count(*) AS n, sum(v.price) AS paid FROM visits v WHERE v.person_id = p.person_id) q GROUP BY 1
//
// so that LEFT JOIN LATERAL … ON true says the same.

// lateral puts such values into sight; nil, nil means the item of FROM is something else.
func (b *Binder) lateral(from *Rows, n *pg.Node, scope *Scope, j joining) (*Rows, *refuse.Refusal) {
	s := n.GetRangeSubselect()
	if s == nil || !s.Lateral || s.Alias == nil || len(j.using) > 0 || j.natural || j.preserved {
		return nil, nil
	}
	sel, pos := s.Subquery.GetSelectStmt(), ast.Location(n)
	if sel == nil || len(sel.TargetList) == 0 {
		return nil, nil
	}
	out := *from
	out.scope = scope
	names, given := slices.Clone(from.names), ast.Strings(s.Alias.Colnames)
	if len(given) > len(sel.TargetList) {
		return nil, ColumnCount.At(pos, s.Alias.Aliasname, len(sel.TargetList), len(given))
	}
	out.exprs = slices.Clone(from.exprs)
	for i, n := range sel.TargetList {
		one := &pg.SelectStmt{WithClause: sel.WithClause, DistinctClause: sel.DistinctClause, TargetList: []*pg.Node{n}, FromClause: sel.FromClause, WhereClause: sel.WhereClause, GroupClause: sel.GroupClause,
			HavingClause: sel.HavingClause, LimitCount: sel.LimitCount, LimitOffset: sel.LimitOffset, LimitOption: sel.LimitOption, Larg: sel.Larg, Rarg: sel.Rarg, Op: sel.Op}
		e, refusal := b.ofUnit(&out, &pg.SubLink{SubLinkType: pg.SubLinkType_EXPR_SUBLINK, Subselect: ast.Select(one), Location: int32(pos)})
		if e == nil || refusal != nil {
			return nil, refusal
		}
		name := ast.Label(n.GetResTarget())
		if i < len(given) {
			name = given[i]
		}
		names, out.exprs = append(names, name), append(out.exprs, e)
	}
	if slices.ContainsFunc(from.parts, func(p relation) bool { return p.alias == s.Alias.Aliasname }) {
		return nil, duplicateAlias.At(j.pos, s.Alias.Aliasname)
	}
	out.names, out.parts = names, append(slices.Clone(from.parts), relation{s.Alias.Aliasname, nil, len(from.names), len(names), 0, 0, nil, nil})
	return out.joinedOn(b, j)
}

// joinedOn are the rows for which the conditions of ON hold, of which ON TRUE is none.
func (r *Rows) joinedOn(b *Binder, j joining) (*Rows, *refuse.Refusal) {
	if j.fromWhere {
		return r, nil
	}
	for _, q := range j.quals {
		e, refusal := b.OverRows(r, "ON").Condition(q, "JOIN/ON")
		if refusal != nil {
			return nil, refusal
		}
		if e.IsConstant() {
			v, refusal := e.Value(nil)
			if refusal != nil {
				return nil, refusal
			}
			if v == policy.Value(true) {
				continue
			}
		}
		if j.outer {
			return nil, outerCondition.At(e.Pos)
		}
		r.where = append(slices.Clone(r.where), e)
	}
	return r, nil
}

// generate_series as a public list. FROM generate_series(10, 50, 10) v(n) JOIN people p ON p.age >= v.n has five
// candidates.

// seriesCandidates are the values of generate_series, or of unnest of an array, under a label or the function's name;
// nil for other functions.
func (b *Binder) seriesCandidates(f *pg.FuncCall, label string) (*Candidates, *refuse.Refusal) {
	if f == nil || !ast.IsPlainCall(f) {
		return nil, nil
	}
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, nil
	}
	list := &Candidates{alias: name, names: []string{cmp.Or(label, name)}, typmod: []int32{-1}}
	switch {
	case name == "unnest" && len(f.Args) == 1 && f.Args[0].GetAArrayExpr() != nil:
		sel := &pg.SelectStmt{}
		for _, n := range f.Args[0].GetAArrayExpr().Elements {
			sel.ValuesLists = append(sel.ValuesLists, pg.MakeListNode([]*pg.Node{n}))
		}
		if len(sel.ValuesLists) == 0 {
			return nil, nil
		}
		values, refusal := b.valuesCandidates(nil, sel)
		if refusal != nil {
			return nil, refusal
		}
		list.types, list.rows = values.types, values.rows
		return list, nil
	case name == "generate_series" && (len(f.Args) == 2 || len(f.Args) == 3):
		return b.generated(list, f)
	}
	return nil, nil
}

// generated fills a list with an arithmetic series; nil means its ends are no numbers.
func (b *Binder) generated(list *Candidates, f *pg.FuncCall) (*Candidates, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "generate_series"}
	ends, _, refusal := t.All(f.Args)
	if refusal != nil {
		return nil, refusal
	}
	if slices.ContainsFunc(ends, func(e *semantics.Expr) bool { return e.Type().Moment() || e.Type() == policy.IntervalT }) {
		return b.times(list, f, ends)
	}
	typ, refusal := commonType([][]*semantics.Expr{ends[:1], ends[1:2], ends[len(ends)-1:]}, 0)
	if refusal != nil || !typ.Integer() && typ != policy.NumericType {
		return nil, refusal
	}
	values := make([]policy.Value, len(ends))
	for i, e := range ends {
		b.Params.Note(e, typ)
		typed, refusal := b.asType(e, typ)
		if refusal != nil {
			return nil, refusal
		}
		if values[i], refusal = typed.Value(nil); refusal != nil {
			return nil, refusal
		}
		if values[i] == nil { // no rows
			return list.typed(typ).described(b.Params, f), nil
		}
	}
	numbers, scale := atOneScale(values)
	step := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	if len(ends) == 3 {
		step = numbers[2]
	}
	if step.Sign() == 0 {
		return nil, semantics.Evaluation.At(int(f.Location), "step size cannot equal zero")
	}
	for x := numbers[0]; x.Cmp(numbers[1])*step.Sign() <= 0; x = new(big.Int).Add(x, step) {
		if len(list.rows) > maxListRows {
			return nil, ManyCandidates.At(int(f.Location), len(list.rows), maxListRows)
		}
		v := policy.Value(policy.Numeric{Coefficient: x, Scale: scale})
		if typ.Integer() {
			v = x.Int64()
		}
		list.rows = append(list.rows, []*semantics.Expr{semantics.ConstantExpr(v, typ, int(f.Location))})
	}
	return list.typed(typ), nil
}

// described is a list without rows; where a statement is described, and its parameters are not there yet, it has one.
func (c *Candidates) described(params *semantics.Parameters, f *pg.FuncCall) *Candidates {
	if params.Describing {
		c.rows = [][]*semantics.Expr{{semantics.ConstantExpr(nil, c.types[0], int(f.Location))}}
	}
	return c
}

func (c *Candidates) typed(t policy.Type) *Candidates {
	c.types = []policy.Type{t}
	return c
}

// atOneScale are numbers of one type in units of 10^−scale.
func atOneScale(values []policy.Value) (numbers []*big.Int, scale int32) {
	for _, v := range values {
		if n, ok := v.(policy.Numeric); ok {
			scale = max(scale, n.Scale)
		}
	}
	for _, v := range values {
		if n, ok := v.(policy.Numeric); ok {
			numbers = append(numbers, n.At(scale))
		} else {
			numbers = append(numbers, big.NewInt(v.(int64)))
		}
	}
	return numbers, scale
}

// What a SELECT shows, and what GROUP BY means by it. SELECT *, age / 10 AS decade FROM people shows each column of
// people, then decade, which GROUP BY decade and GROUP BY 8 name.

// Target is one output column.
type Target struct {
	Label string
	Node  *pg.Node
}

// Targets are the output columns of a SELECT over the rows, with * written out. The keys that catalogs list are among
// them: SELECT DISTINCT * FROM visits tells rows of two people apart, and so is refused, where the names and times
// alone would be groups of both.
func (r *Rows) Targets(sel *pg.SelectStmt) (targets []Target) {
	for _, n := range sel.TargetList {
		t := n.GetResTarget()
		parts, refusal := r.star(t)
		if parts == nil || refusal != nil {
			targets = append(targets, Target{ast.Label(t), t.Val})
			continue
		}
		pos := ast.Location(t.Val)
		for _, i := range r.starredWithKeys(t, parts) {
			p := parts[slices.IndexFunc(parts, func(p relation) bool { return i >= p.from && i < p.to || -1-i >= p.fromKey && -1-i < p.toKey })]
			name := ""
			if i >= 0 {
				name = r.names[i]
			} else {
				name = r.keys[-1-i].Name
			}
			targets = append(targets, Target{name, pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(p.alias), pg.MakeStrNode(name)}, int32(pos))})
		}
	}
	return targets
}

// unstarred is a SELECT with * written out.
func (r *Rows) unstarred(sel *pg.SelectStmt) *pg.SelectStmt {
	if !slices.ContainsFunc(sel.TargetList, func(n *pg.Node) bool { parts, _ := r.star(n.GetResTarget()); return parts != nil }) {
		return sel
	}
	var list []*pg.Node
	for _, t := range r.Targets(sel) {
		list = append(list, pg.MakeResTargetNodeWithNameAndVal(t.Label, t.Node, int32(ast.Location(t.Node))))
	}
	return &pg.SelectStmt{DistinctClause: sel.DistinctClause, TargetList: list, FromClause: sel.FromClause, WhereClause: sel.WhereClause, GroupClause: sel.GroupClause,
		GroupDistinct: sel.GroupDistinct, HavingClause: sel.HavingClause, WindowClause: sel.WindowClause, SortClause: sel.SortClause, LimitOffset: sel.LimitOffset, LimitCount: sel.LimitCount,
		LimitOption: sel.LimitOption, LockingClause: sel.LockingClause, WithClause: sel.WithClause, Op: sel.Op}
}

// GroupItem returns the expression that an item of GROUP BY means: an output column by its position, or by its name
// where no column of the rows has it.
func (r *Rows) GroupItem(n *pg.Node, targets []Target) (*pg.Node, *refuse.Refusal) {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil && !c.Isnull {
		i := int(c.GetIval().Ival)
		if i < 1 || i > len(targets) {
			return nil, BadOrdinal.At(int(c.Location), "GROUP BY", i)
		}
		return targets[i-1].Node, nil
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 {
		if _, refusal := r.Column(names, ast.Location(n)); refusal != nil && refusal.ID == semantics.UnknownColumn.ID {
			for _, t := range targets {
				if t.Label == names[0] {
					return t.Node, nil
				}
			}
		}
	}
	return n, nil
}
