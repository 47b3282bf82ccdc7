package bind

import (
	"slices"
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
	perBranch     = 200  // steps that translating one condition for one public row stands for
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
	if r.Table.Public { // it stands in another such sub-query
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
