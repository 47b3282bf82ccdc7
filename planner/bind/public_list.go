package bind

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A sub-query over one public table, in a condition on private rows, is a list that is known when the query is planned:
// x IN (SELECT y FROM public …) is x IN (values), and EXISTS, or what reads the rows around it, is a condition on these
// for each public row, joined by OR. One that is a value, as in month = (SELECT DISTINCT month FROM days WHERE …), is
// that value. The private database sees nothing of it.

// Bounds of what such a sub-query may come to.
const (
	maxListed     = 4096 // values
	maxConditions = 256  // conditions that are different
	perBranch     = 200  // steps that translating one condition for one public row counts as
)

// listed is a sub-query over the rows of a public table.
type listed struct {
	b      *Binder
	around *Rows
	public *Rows
	data   [][]policy.Value // that its own conditions keep
	linked []*pg.Node       // conditions that read the rows around it
	pos    int
}

// comparesOtherwise tells comparisons with a sub-query's rows that are not IN, which = ANY is too.
func comparesOtherwise(s *pg.SubLink) bool {
	operator := ast.Strings(s.OperName)
	return len(operator) > 1 || len(operator) == 1 && (operator[0] != "=" || s.SubLinkType != pg.SubLinkType_ANY_SUBLINK)
}

// listedLinks are the forms of such sub-queries.
var listedLinks = map[pg.SubLinkType]bool{pg.SubLinkType_ANY_SUBLINK: true, pg.SubLinkType_EXISTS_SUBLINK: true, pg.SubLinkType_EXPR_SUBLINK: true}

// listed translates such a sub-query; nil, nil means it is another one.
func (b *Binder) listed(r *Rows, s *pg.SubLink) (*semantics.Expr, *refuse.Refusal) {
	sel, pos := s.Subselect.GetSelectStmt(), int(s.Location)
	if !listedLinks[s.SubLinkType] || comparesOtherwise(s) || !isListing(sel) {
		return nil, nil
	}
	t, alias := b.publicTable(sel.FromClause[0], r.scope)
	if t == nil {
		return nil, nil
	}
	public, refusal := tableRows(t, pos).aliased(alias)
	if refusal != nil {
		return nil, refusal
	}
	public.scope = r.scope
	l := &listed{b: b, around: r, public: public, pos: pos}
	if refusal := l.read(t, sel.WhereClause); refusal != nil {
		return nil, refusal
	}
	if s.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK {
		return l.anyRow(nil, nil)
	}
	value := sel.TargetList[0].GetResTarget().GetVal()
	if len(sel.TargetList) != 1 || value == nil {
		return nil, semantics.RowSubquery.At(pos)
	}
	if s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK {
		if len(l.linked) > 0 {
			return nil, nil
		}
		return l.value(value, IsDistinct(sel))
	}
	over := b.OverRows(r, "WHERE")
	if r.Table.Public { // it is in another such sub-query
		over = (&listed{b: b, public: r}).alone()
	}
	subject, refusal := over.Expr(s.Testexpr)
	if refusal != nil {
		return nil, refusal
	}
	if len(l.linked) > 0 {
		return l.anyRow(subject, value)
	}
	return l.values(subject, value)
}

// isListing tells a SELECT from one relation that neither groups its rows nor takes some of them.
func isListing(sel *pg.SelectStmt) bool {
	return takesRows(sel) && len(sel.FromClause) == 1 &&
		!slices.ContainsFunc(sel.TargetList, func(n *pg.Node) bool { return ast.HasAggregate(n) || ast.HasWindow(n) })
}

// takesRows reports whether a SELECT is one over the rows of FROM or VALUES that neither groups them nor takes some.
func takesRows(sel *pg.SelectStmt) bool {
	return sel != nil && sel.Larg == nil && sel.WithClause == nil && !ast.IsLimited(sel) && !IsDistinctOn(sel) &&
		len(sel.GroupClause)+len(sel.LockingClause) == 0 && sel.HavingClause == nil && sel.IntoClause == nil
}

// read takes the rows that the conditions on the public columns alone keep, and notes the other conditions.
func (l *listed) read(t *policy.Table, where *pg.Node) *refuse.Refusal {
	data, refusal := lookup.Rows(l.b.Context.Public, t, l.pos)
	if refusal != nil {
		return refusal
	}
	var own []*semantics.Expr
	for _, n := range ast.Conjuncts(where) {
		if e, refusal := l.alone().Condition(n, "WHERE"); refusal == nil {
			own = append(own, e)
		} else {
			l.linked = append(l.linked, n)
		}
	}
	each := lookup.WorkOf(own...)
	for _, row := range data {
		l.b.Env.Work.Step(1 + each)
		keep := true
		for _, e := range own {
			v, err := e.Eval(scalar.Row(row))
			if err != nil {
				return semantics.ScalarRefusal(err, e.Pos)
			}
			keep = keep && v == true
		}
		if keep {
			l.data = append(l.data, row)
		}
	}
	return nil
}

// alone translates over the public columns.
func (l *listed) alone() *semantics.Translator {
	return &semantics.Translator{Env: l.b.Env, Params: l.b.Params, Columns: l.public.Column, Place: "WHERE", Hook: func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if s := n.GetSubLink(); s != nil {
			return l.b.listed(l.public, s)
		}
		return nil, nil
	}}
}

// on translates over the rows around the sub-query, for one public row.
func (l *listed) on(row []policy.Value) *semantics.Translator {
	t := l.b.OverKeys(l.around, "WHERE")
	around := t.Columns
	t.Columns = func(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
		e, refusal := l.public.Column(fields, pos)
		switch {
		case refusal == nil:
			return e.Worth(row[e.Cols[0]], pos), nil
		case refusal.ID == Ambiguous.ID:
			return nil, refusal
		}
		return around(fields, pos)
	}
	return t
}

// each is what an expression over the public rows comes to in each of them, and the expression.
func (l *listed) each(value *pg.Node) (list []*semantics.Expr, of *semantics.Expr, refusal *refuse.Refusal) {
	if of, refusal = l.alone().Expr(value); refusal != nil {
		return nil, nil, refusal
	}
	for _, row := range l.data {
		l.b.Env.Work.Step(lookup.WorkOf(of))
		v, err := of.Eval(scalar.Row(row))
		if err != nil {
			return nil, nil, semantics.ScalarRefusal(err, of.Pos)
		}
		list = append(list, of.Worth(v, l.pos))
	}
	return list, of, nil
}

// value is the one value of a sub-query, or NULL where it has none.
func (l *listed) value(value *pg.Node, distinct bool) (*semantics.Expr, *refuse.Refusal) {
	list, of, refusal := l.each(value)
	if refusal != nil {
		return nil, refusal
	}
	if distinct {
		list = different(list)
	}
	return oneOf(list, of.Worth(nil, l.pos))
}

// oneOf is the one value of a sub-query, or that of none.
func oneOf(list []*semantics.Expr, none *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	switch len(list) {
	case 0:
		return none, nil
	case 1:
		return list[0], nil
	}
	return nil, subqueryRows.At(none.Pos)
}

// values is a test for the values of an expression over the public rows.
func (l *listed) values(subject *semantics.Expr, value *pg.Node) (*semantics.Expr, *refuse.Refusal) {
	list, _, refusal := l.each(value)
	if refusal != nil {
		return nil, refusal
	}
	if list = different(list); len(list) == 0 {
		return semantics.ConstantExpr(false, policy.Bool, l.pos), nil
	}
	if len(list) > maxListed {
		return nil, l.tooMany(maxListed)
	}
	return l.alone().Among(subject, list, false, l.pos)
}

// anyRow is true where, for some public row, the conditions hold and, where there is a subject, the value equals it.
func (l *listed) anyRow(subject *semantics.Expr, value *pg.Node) (*semantics.Expr, *refuse.Refusal) {
	var list []*semantics.Expr
	for _, row := range l.data {
		branch, refusal := l.oneRow(l.on(row), subject, value)
		if refusal != nil {
			return nil, refusal
		}
		if list = append(list, branch); len(list) < 2*maxConditions {
			continue
		}
		if list = different(list); len(list) > maxConditions {
			return nil, l.tooMany(maxConditions)
		}
	}
	if list = different(list); len(list) > maxConditions {
		return nil, l.tooMany(maxConditions)
	}
	if len(list) == 0 {
		return semantics.ConstantExpr(false, policy.Bool, l.pos), nil
	}
	return l.alone().Junction(semantics.FormOr, l.pos, list...)
}

// oneRow is the condition for one public row: that it is among those of the sub-query, which is never NULL, and its
// value's equality.
func (l *listed) oneRow(t *semantics.Translator, subject *semantics.Expr, value *pg.Node) (*semantics.Expr, *refuse.Refusal) {
	branch := semantics.ConstantExpr(true, policy.Bool, l.pos)
	for i, n := range l.linked {
		l.b.Env.Work.Step(perBranch)
		e, refusal := t.Condition(n, "WHERE")
		if refusal == nil && i > 0 {
			e, refusal = t.Junction(semantics.FormAnd, l.pos, branch, e)
		}
		if branch = e; refusal != nil {
			return nil, refusal
		}
	}
	l.b.Env.Work.Step(perBranch)
	sure := isTrue(branch, l.pos)
	if subject == nil {
		return sure, nil
	}
	of, refusal := t.Expr(value)
	if refusal != nil {
		return nil, refusal
	}
	equal, refusal := t.Combine("=", l.pos, subject, of)
	if refusal != nil {
		return nil, refusal
	}
	return t.Junction(semantics.FormAnd, l.pos, sure, equal)
}

func (l *listed) tooMany(most int) *refuse.Refusal {
	return semantics.RowSubquery.At(l.pos).Hinting("More than " + predicate.Text(int64(most)) + " rows of the public table are different here: join it, or filter it further.")
}

// different leaves out what is there twice, and puts the rest into an order that does not depend on the table's.
func different(list []*semantics.Expr) []*semantics.Expr {
	slices.SortFunc(list, func(a, b *semantics.Expr) int { return strings.Compare(a.Canon, b.Canon) })
	return slices.CompactFunc(list, func(a, b *semantics.Expr) bool { return a.Canon == b.Canon })
}

// A sub-query over private rows that is counted for each row of a public table, by a column that equals one of that
// row, is one question for all of them:
//
//	SELECT r.label, (SELECT count(*) FROM visits v WHERE v.ward = r.code) FROM regions r
//
// counts by ward, and each row of regions reads its own: (SELECT t.value FROM (SELECT v.ward AS key_1, count(*) AS
// value FROM visits v GROUP BY v.ward) t WHERE t.key_1 = r.code).

// EachOf is such a sub-query as groups: one for each value of the columns that it equates with the row around it.
type EachOf struct {
	Groups *pg.SelectStmt // its targets are the keys, in the order of Around, and the value
	Around []*pg.Node     // what the keys equal
	Else   *pg.Node       // what it is where there are no rows, a constant; nil means NULL
}

// equatedAround are expressions over the rows that a condition equates with what reads none of them, these, and the rest
// of the condition.
func (r *Rows) equatedAround(where *pg.Node) (own, around, rest []*pg.Node) {
	for _, n := range ast.Conjuncts(where) {
		e := n.GetAExpr()
		equation := e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && slices.Equal(ast.Strings(e.Name), []string{"="})
		switch {
		case equation && r.readsAll(e.Lexpr) && r.readsNone(e.Rexpr):
			own, around = append(own, e.Lexpr), append(around, e.Rexpr)
		case equation && r.readsAll(e.Rexpr) && r.readsNone(e.Lexpr):
			own, around = append(own, e.Rexpr), append(around, e.Lexpr)
		default:
			rest = append(rest, n)
		}
	}
	return own, around, rest
}

// ofNone is a count of no rows; nil where that is not shown, by min_frequency.
func ofNone(t *policy.Table) *pg.Node {
	if t != nil && !t.Public && t.Dataset != nil {
		if _, rule := t.MinFrequency(); rule.Units > 0 {
			return nil
		}
	}
	return pg.MakeAConstIntNode(0, -1)
}

// forEach reads a sub-query over rows as groups, nil means it is another one. What must hold of a row around it beside
// the sub-query, by the column that is equated alone, narrows the groups too: conditions are the conjuncts of the WHERE
// clause that it is in.
func forEach(sel *pg.SelectStmt, from *Rows, conditions []*pg.Node) *EachOf {
	target := sel.TargetList[0].GetResTarget().GetVal()
	out := &EachOf{}
	counts := ast.IsCount(target)
	switch c := target.GetCoalesceExpr(); {
	case counts:
		out.Else = ofNone(from.Table)
	case c != nil && len(c.Args) == 2 && ast.IsConstant(c.Args[1]):
		target, out.Else = c.Args[0], c.Args[1]
	}
	own, around, keep := from.equatedAround(sel.WhereClause)
	out.Around = around
	nulls := ast.NullsOfNone(target)
	if len(own) == 0 || !counts && len(nulls) == 0 {
		return nil
	}
	out.Groups = &pg.SelectStmt{WithClause: sel.WithClause, FromClause: sel.FromClause, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	for i, n := range own {
		out.Groups.TargetList, out.Groups.GroupClause = append(out.Groups.TargetList, pg.MakeResTargetNodeWithNameAndVal(KeyOfEach(i), n, -1)), append(out.Groups.GroupClause, n)
		for _, c := range conditions {
			if narrowed := ofColumn(c, out.Around[i], n); narrowed != nil {
				keep = append(keep, narrowed)
			}
		}
	}
	out.Groups.TargetList = append(out.Groups.TargetList, pg.MakeResTargetNodeWithNameAndVal(ValueOfEach, target, -1))
	if out.Groups.WhereClause = AllOf(keep); !counts { // a group in which nobody has a value has no sum
		var read []*pg.Node
		for _, f := range nulls {
			if n := ast.Counting(f); !slices.ContainsFunc(read, func(have *pg.Node) bool { return ast.SameTree(have, n) }) {
				read = append(read, n)
			}
		}
		for i, n := range read {
			read[i] = pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(">")}, n, pg.MakeAConstIntNode(0, -1), -1)
		}
		out.Groups.HavingClause = AllOf(read)
	}
	return out
}

// aggregatesAlone tells a SELECT of one expression over aggregates of all its rows.
func aggregatesAlone(sel *pg.SelectStmt) bool {
	return sel != nil && sel.Larg == nil && len(sel.GroupClause)+len(sel.DistinctClause) == 0 && sel.HavingClause == nil && sel.LimitCount == nil && sel.LimitOffset == nil && len(sel.TargetList) == 1
}

// ForEach reads a sub-query as groups; nil means it is another one.
func (b *Binder) ForEach(sel *pg.SelectStmt, scope *Scope, conditions []*pg.Node) (*EachOf, *refuse.Refusal) {
	if !aggregatesAlone(sel) {
		return nil, nil
	}
	from, refusal := b.ownRows(sel, scope)
	if from == nil || refusal != nil {
		return nil, refusal
	}
	return forEach(sel, from, conditions), nil
}

// GroupsOfEach is the alias of the groups in what ForEach makes, and ValueOfEach their value. What is around the
// sub-query is compared with them within it, where a name of theirs would hide one of the rows around: x(value) is what
// people call a list.
const (
	GroupsOfEach = "groups of each"
	ValueOfEach  = GroupsOfEach + " value"
)

func KeyOfEach(i int) string { return GroupsOfEach + " key " + strconv.Itoa(i+1) }

// AllOf holds where each of some conditions does; nil means there are none.
func AllOf(list []*pg.Node) *pg.Node {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, list, -1)
}

// columnsOf are the references to columns in an expression, and whether it holds a sub-query.
func columnsOf(n *pg.Node) (list []*pg.Node, queries bool) {
	ast.Holds(n, func(n *pg.Node) bool {
		if n.GetColumnRef() != nil {
			list = append(list, n)
		}
		queries = queries || n.GetSubLink() != nil
		return false
	})
	return list, queries
}

// has reports whether a reference is to a column or a key of these rows.
func (r *Rows) has(n *pg.Node) bool {
	k, _ := r.KeyNode(n)
	return k != nil || ofRows(n, r)
}

// readsAll tells an expression of which every column is one of these rows, readsNone one of which none is, and some is
// another's.
func (r *Rows) readsAll(n *pg.Node) bool {
	list, queries := columnsOf(n)
	return len(list) > 0 && !queries && !slices.ContainsFunc(list, func(n *pg.Node) bool { return !ofRows(n, r) })
}

func (r *Rows) readsNone(n *pg.Node) bool {
	list, queries := columnsOf(n)
	return len(list) > 0 && !queries && !slices.ContainsFunc(list, r.has)
}

// readsOthers tells a condition of which some column is not one of these rows.
func (r *Rows) readsOthers(where *pg.Node) bool {
	return slices.ContainsFunc(ast.Conjuncts(where), func(n *pg.Node) bool {
		list, queries := columnsOf(n)
		return !queries && slices.ContainsFunc(list, func(n *pg.Node) bool { return !r.has(n) })
	})
}

// ofColumn is a condition column IN (…) said of another expression; nil means it is another one.
func ofColumn(condition, column, other *pg.Node) *pg.Node {
	s := condition.GetSubLink()
	if s == nil || s.SubLinkType != pg.SubLinkType_ANY_SUBLINK || len(s.OperName) > 0 || column.GetColumnRef() == nil || !ast.SameTree(s.Testexpr, column) {
		return nil
	}
	return &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: s.SubLinkType, Testexpr: other, Subselect: s.Subselect, Location: s.Location}}}
}
