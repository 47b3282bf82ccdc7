package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A sub-query in an expression over private rows which reads none of the rows around it is a statement of its own (ADR
// 117). It is answered first, with noise, and what was released of it is here as constants: of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the condition is income > 31207.4 once the average is known. Until then a value of its type is there
// (Answer.Standing).

// answeredAs is what is done with the rows of a sub-query, by its form.
var answeredAs = map[pg.SubLinkType]Use{pg.SubLinkType_EXPR_SUBLINK: LookedUp, pg.SubLinkType_EXISTS_SUBLINK: Listed,
	pg.SubLinkType_ANY_SUBLINK: Listed, pg.SubLinkType_ALL_SUBLINK: Listed}

// asks reports whether sub-queries may be statements of their own here.
func asks(b *Binder) bool { return b.Inner != nil && len(b.viewing) == 0 }

// answeredFirst translates such a sub-query; nil, nil means it is none, or nobody answers it here. What is only
// explored asks nothing, since it may be above the boundary, where a sub-query has leaves beside those of the
// statement.
func (b *Binder) answeredFirst(s *pg.SubLink, t *semantics.Translator, around *Rows) (*semantics.Expr, *refuse.Refusal) {
	sel, pos := s.Subselect.GetSelectStmt(), int(s.Location)
	use, known := answeredAs[s.SubLinkType]
	if !known || !asks(b) || sel == nil || use == LookedUp && semantics.IsBareSelect(sel) || readsAround(sel, around) {
		return nil, nil
	}
	alone, refusal := b.alone(sel, around.scope, pos)
	if refusal != nil {
		return nil, refusal
	}
	var subject *semantics.Expr
	if s.Testexpr != nil { // refused before anything is asked
		if subject, refusal = t.Expr(s.Testexpr); refusal != nil {
			return nil, refusal
		}
	}
	a, refusal := b.Inner(alone, b.use(use))
	if refusal != nil {
		return nil, refusal.In(pos)
	}
	if a == nil {
		return nil, nil
	}
	if s.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK {
		exists := semantics.ConstantExpr(len(a.Rows) > 0, policy.Bool, pos)
		exists.Awaited = a.Standing
		return exists, nil
	}
	if len(a.Columns) != 1 {
		return nil, subqueryColumns.At(pos)
	}
	if endless(a) {
		return nil, semantics.ScalarRefusal(scalar.ErrInfinite, pos)
	}
	if use == LookedUp {
		return oneOf(valuesOf(a, a.Rows, pos), valuesOf(a, [][]policy.Value{{nil}}, pos)[0])
	}
	return b.comparedWithEach(s, t, subject, valuesOf(a, a.Rows, pos))
}

// endless reports whether an answer holds what is infinite.
func endless(a *plans.Answer) bool {
	return slices.ContainsFunc(a.Rows, func(row []policy.Value) bool {
		for i, v := range row {
			if a.Columns[i].Type.Endless(v) {
				return true
			}
		}
		return false
	})
}

// valuesOf are rows of an answer of one column as constants.
func valuesOf(a *plans.Answer, rows [][]policy.Value, pos int) []*semantics.Expr {
	list, only := []*semantics.Expr{}, a.Columns[0]
	for _, row := range rows {
		e := semantics.ValueExpr(row[0], only.Type, only.Typmod, pos)
		e.Awaited = a.Standing
		list = append(list, e)
	}
	return list
}

// answeredTable is a sub-query or WITH query of FROM that aggregates, or a function of constants, joined with private
// rows: it is answered first, and its rows are a list of the statement's own (ADR 122). So are charts of the most
// frequent kinds, as BI tools write them; nil means it is something else.
//
//	SELECT day, kind, count(*) FROM visits JOIN (SELECT kind AS k, count(*) FROM visits GROUP BY 1 ORDER BY 2 DESC LIMIT 5) top ON kind = k GROUP BY 1, 2
func (b *Binder) answeredTable(n *pg.Node, scope *Scope) (*policy.Table, *pg.Alias, *refuse.Refusal) {
	pos := ast.Location(n)
	sel, alias, names, within := queryIn(n, scope)
	if sel == nil || alias == nil || !asks(b) {
		return nil, nil, nil
	}
	alone, refusal := b.alone(sel, within, pos)
	if refusal != nil {
		return nil, nil, refusal
	}
	a, refusal := b.Inner(alone, b.use(Listed))
	if refusal != nil && refusal.ID == semantics.RowSubquery.ID { // of public rows alone
		return nil, nil, nil
	}
	if refusal != nil {
		return nil, nil, refusal.In(pos)
	}
	if a == nil {
		return nil, nil, nil
	}
	if endless(a) {
		return nil, nil, semantics.ScalarRefusal(scalar.ErrInfinite, pos)
	}
	if !a.Private && len(a.Rows) > maxListRows {
		return nil, nil, ManyCandidates.At(pos, len(a.Rows), maxListRows)
	}
	t := b.ownList(alias.Aliasname, a.Columns, a.Rows, a)
	for i, c := range t.Columns {
		if c.Name = a.Columns[i].Name; i < len(names) {
			c.Name = names[i]
		}
	}
	return t, alias, nil
}

// constants is a constant that package scalar does not compute, or each element of such an array, answered first like a
// sub-query (semantics.Translator.Constants). Of
//
//	SELECT count(*) FROM people WHERE region = ANY (string_to_array('north,south', ','))
//
// the elements are those of SELECT unnest(COALESCE(string_to_array('north,south', ','), '{NULL}')): a comparison with
// an array that is NULL is NULL, as with one that holds NULL alone. COALESCE takes no function of several rows.
func constants(b *Binder, n *pg.Node, each bool, around *Rows) []*semantics.Expr {
	if !asks(b) || ast.Holds(n, readsMore) || !each && n.GetSubLink() != nil { // which has been asked already
		return nil
	}
	pos := ast.Location(n)
	of := []*pg.Node{n}
	if each {
		of = append(of, pg.MakeAConstStrNode("{NULL}", -1))
	}
	value := &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: of, Location: -1}}}
	if each {
		value = pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("unnest")}, []*pg.Node{value}, -1)
	}
	sel := selecting(value, nil)
	if readsAround(sel, around) {
		return nil
	}
	alone, refusal := b.alone(sel, around.scope, pos)
	if refusal != nil {
		return nil
	}
	a, refusal := b.Inner(alone, b.use(Listed))
	if refusal != nil || a == nil || len(a.Columns) != 1 || len(a.Rows) > maxListed || endless(a) {
		return nil
	}
	if t := a.Columns[0].Type; ast.InternalNames[t] == "" && t != policy.Bpchar {
		return nil
	}
	return valuesOf(a, a.Rows, pos)
}

// selecting is SELECT value FROM what there is.
func selecting(value *pg.Node, from []*pg.Node) *pg.SelectStmt {
	return &pg.SelectStmt{TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(value, -1)}, FromClause: from,
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
}

// readsMore tells a part of an expression by which it is no constant: a column, an aggregate, or a function that is
// another for each row.
func readsMore(n *pg.Node) bool {
	f := n.GetFuncCall()
	if f == nil {
		return n.GetColumnRef() != nil || n.GetGroupingFunc() != nil
	}
	words := ast.Strings(f.Funcname)
	return f.Over != nil || ast.IsAggregate(f) || len(words) > 0 && volatile[words[len(words)-1]]
}

// volatile are the functions that an engine may be asked for and that have another value for each row.
var volatile = semantics.WordSet("random clock_timestamp timeofday")

// queryIn is the sub-query, the WITH query, or the SELECT * FROM a function of constants, that an item of FROM is, with
// its alias, the names that WITH gives its columns, and what is in sight of it; nil of other items.
func queryIn(n *pg.Node, scope *Scope) (sel *pg.SelectStmt, alias *pg.Alias, names []string, within *Scope) {
	if s := n.GetRangeSubselect(); s != nil && !s.Lateral {
		return s.Subquery.GetSelectStmt(), s.Alias, nil, scope
	}
	reads := func(n *pg.Node) bool { return ast.Holds(n, readsMore) }
	if f := n.GetRangeFunction(); f != nil && f.Alias != nil && !slices.ContainsFunc(f.Functions, reads) {
		return selecting(pg.MakeColumnRefNode([]*pg.Node{pg.MakeAStarNode()}, -1), []*pg.Node{n}), f.Alias, nil, scope
	}
	v := n.GetRangeVar()
	if v == nil || v.Schemaname != "" {
		return nil, nil, nil, scope
	}
	s := scope.Find(v.Relname)
	if s == nil || s.query == nil || s.recursive {
		return nil, nil, nil, scope
	}
	cte := s.query.GetCommonTableExpr()
	if alias = v.Alias; alias == nil {
		alias = &pg.Alias{Aliasname: v.Relname}
	}
	return cte.Ctequery.GetSelectStmt(), alias, ast.Strings(cte.Aliascolnames), s.next
}

// readsAround reports whether a sub-query names a relation of the rows around it, and none of its own by that name.
func readsAround(sel *pg.SelectStmt, around *Rows) (reads bool) {
	own := map[string]bool{}
	ast.Each(sel.ProtoReflect(), func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.RangeVar:
			own[v.Relname] = own[v.Relname] || v.Alias == nil
		case *pg.Alias:
			own[v.Aliasname] = true
		}
	})
	ast.Each(sel.ProtoReflect(), func(m protoreflect.Message) {
		if v, ok := m.Interface().(*pg.ColumnRef); ok && len(v.Fields) > 1 {
			words := ast.Strings(v.Fields)
			alias := words[max(len(words)-2, 0)]
			if v.Fields[len(v.Fields)-1].GetAStar() != nil {
				alias = words[len(words)-1]
			}
			reads = reads || !own[alias] && len(around.named([]string{alias})) > 0
		}
	})
	return reads
}

// comparedWithEach is x op ANY (…) or x op ALL (…) over values.
func (b *noting) comparedWithEach(s *pg.SubLink, t *semantics.Translator, subject *semantics.Expr,
	list []*semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	pos, all := int(s.Location), s.SubLinkType == pg.SubLinkType_ALL_SUBLINK
	if list = different(list); len(list) == 0 {
		return semantics.ConstantExpr(all, policy.Bool, pos), nil
	}
	if len(list) > maxListed {
		return nil, semantics.RowSubquery.At(pos).Hinting("The sub-query has too many rows: ORDER BY count(*) DESC LIMIT 100 in it.")
	}
	if !all && !comparesOtherwise(s) {
		return t.Among(subject, list, false, pos)
	}
	operator, form := ast.Strings(s.OperName), semantics.FormOr
	if len(operator) == 0 {
		operator = []string{"="}
	}
	if all {
		form = semantics.FormAnd
	}
	if len(list) > maxConditions {
		return nil, semantics.RowSubquery.At(pos).Hinting("The sub-query has too many rows: compare with its least or its largest value.")
	}
	for i, e := range list {
		var refusal *refuse.Refusal
		if list[i], refusal = t.Combine(operator[len(operator)-1], pos, subject, e); refusal != nil {
			return nil, refusal
		}
	}
	return t.Junction(form, pos, list...)
}

// alone is a sub-query as a statement of its own: with the WITH queries that it names, and those that these name.
func (b *noting) alone(sel *pg.SelectStmt, scope *Scope, pos int) (*pg.SelectStmt, *refuse.Refusal) {
	var needed []*pg.Node
	recursive := false
	named := map[string]bool{}
	note := func(m protoreflect.Message) {
		if v, ok := m.Interface().(*pg.RangeVar); ok && v.Schemaname == "" {
			named[v.Relname] = true
		}
	}
	ast.Each(sel.ProtoReflect(), note)
	for s := scope; s != nil; s = s.next { // the innermost first: what one names is before it
		if !named[s.name] || s.query == nil {
			continue
		}
		if slices.ContainsFunc(needed, func(n *pg.Node) bool { return n.GetCommonTableExpr().Ctename == s.name }) {
			return nil, refuse.Construct.At(pos, "a sub-query in sight of two WITH queries of the name "+s.name)
		}
		needed, recursive = append(needed, s.query), recursive || s.recursive
		ast.Each(s.query.ProtoReflect(), note)
	}
	if len(needed) == 0 {
		return sel, nil
	}
	slices.Reverse(needed)
	if w := sel.WithClause; w != nil {
		needed, recursive = append(needed, w.Ctes...), recursive || w.Recursive
	}
	out := &pg.SelectStmt{WithClause: &pg.WithClause{Ctes: needed, Recursive: recursive, Location: -1}, DistinctClause: sel.DistinctClause, TargetList: sel.TargetList, FromClause: sel.FromClause,
		WhereClause: sel.WhereClause, GroupClause: sel.GroupClause, GroupDistinct: sel.GroupDistinct, HavingClause: sel.HavingClause, WindowClause: sel.WindowClause, ValuesLists: sel.ValuesLists,
		SortClause: sel.SortClause, LimitOffset: sel.LimitOffset, LimitCount: sel.LimitCount, LimitOption: sel.LimitOption, LockingClause: sel.LockingClause, Op: sel.Op, All: sel.All, Larg: sel.Larg, Rarg: sel.Rarg}
	return out, nil
}
