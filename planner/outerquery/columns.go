package outerquery

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// What each SELECT of a bound statement shows. One walk, from the outside in, binds names and answers all that is asked
// of them: of
//
//	SELECT ward, sum(n) OVER () FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t
//
// the first column is visits.ward, through the sub-query, as PostgreSQL tells clients in each RowDescription; the
// second is a numeric that depends on released counts, and is shown as noisy; and the rows are of groups that perhaps
// nobody is in (emptygroups.go).

// walk is at one SELECT of a statement.
type walk struct {
	*asked
	with  []relation // the WITH queries in sight, the nearest last
	sight            // what FROM shows
	leaf  *aggregate.Grouping
}

// asked is what all SELECTs of a walk share.
type asked struct {
	b      *Query
	typed  bool   // types are asked for, and what depends on released counts
	noisy  []bool // by position of a column in the expressions
	groups *emptySearch

	without func(*pg.SelectStmt) bool   // SELECTs of which nothing is asked; nil means all are walked
	nested  map[*pg.SelectStmt]relation // what sub-queries of expressions show: an expression may be typed several times
}

// relation is what a SELECT hands on, or an item of FROM shows.
type relation struct {
	alias     string
	columns   []column
	known     bool           // these are all columns
	noisyRows bool           // released counts decide which rows are there
	from      []*emptyGroups // whose groups are among the rows
}

// column is one of a relation, of type 0 where its type is not known.
type column struct {
	plans.OutColumn
	of    pgcatalog.Origin // the table's column that it is
	empty emptyValue
	expr  *semantics.Expr // over a leaf's row
	at    int             // its position in expressions
}

// sight is what the names in a SELECT may mean.
type sight struct {
	relations []relation
	merged    []column // by USING, the innermost join's first
	known     bool     // of all relations
	around    *sight
}

// noisyMark is the position that means released counts in an expression.
const noisyMark = 1 << 30

// walkOf is a walk that leaves nothing behind in what has been bound.
func walkOf(b *aggregate.Binder, typed bool) *walk {
	quiet := *b
	quiet.Params = &semantics.Parameters{Values: b.Params.Values, Types: slices.Clone(b.Params.Types), Describing: b.Params.Describing}
	return &walk{asked: &asked{b: &Query{Binder: &quiet}, typed: typed}}
}

// columns are those of a statement for an engine, nil where not all of them are known, and which of them are counts of
// one leaf. Of public rows alone the engine says them, but where the answer is part of another statement, which is
// planned before it is there: WHERE product_id IN (SELECT p.product_id FROM products p JOIN categories c ON c.id =
// p.category).
func (b *Query) columns(sel *pg.SelectStmt) (columns []plans.OutColumn, shown *Shown) {
	if len(b.Questions) == 0 && !b.Inside {
		return nil, nil
	}
	out := walkOf(b.Binder, true).query(sel)
	if !out.typed() {
		return nil, nil
	}
	g := b.Groups[sel]
	if g != nil {
		shown = &Shown{Leaf: g.Leaf}
	}
	for _, c := range out.columns {
		if columns = append(columns, c.OutColumn); g != nil {
			shown.Counts = append(shown.Counts, b.countShown(g.Leaf, c.expr))
			shown.Linear = append(shown.Linear, b.linearShown(g.Leaf, c.expr))
		}
	}
	return columns, shown
}

// Outputs lists the columns of a bound statement, nil where not all of them are known by their names. Where there is a
// plan it notes the groups that nobody is in and that decide about what is shown; of a statement that is a list in
// another, also those that are in it: of
//
//	SELECT count(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE urgent GROUP BY ward)
//
// all visits are counted. Where LIMIT cuts the list, the note is of what it chooses among.
func Outputs(b *aggregate.Binder, p *plans.Plan, notes *semantics.Notes, listed bool) (list []plans.Output) {
	w := walkOf(b, false)
	if p != nil {
		w.searches(&emptySearch{plan: p, notes: notes})
	}
	out := w.all(listed)
	for _, c := range out.columns {
		if out.known {
			list = append(list, plans.Output{Name: c.Name, Of: c.of})
		}
	}
	return list
}

// query tells what one SELECT hands on.
func (w *walk) query(sel *pg.SelectStmt) relation {
	if sel == nil || w.without != nil && w.without(sel) {
		return relation{}
	}
	w.b.Env.Work.Step(1)
	in := w.inside(sel)
	g := w.b.Groups[sel]
	switch {
	case sel.Larg != nil:
		return in.setOperation(sel)
	case len(sel.ValuesLists) > 0:
		out := relation{columns: make([]column, len(sel.ValuesLists[0].GetList().GetItems())), known: true}
		for i := range out.columns {
			out.columns[i].Name = "column" + strconv.Itoa(i+1)
		}
		return out
	case g != nil:
		in.asked = &asked{b: w.b} // of private rows names alone
	}
	star := relation{known: true}
	for _, n := range sel.FromClause {
		star = star.beside(in.item(n))
	}
	if in.asked = w.asked; g != nil {
		return in.ofLeaf(g, sel)
	}
	return in.selected(sel, star)
}

// inside is at a SELECT within another, or within none, and has its WITH queries in sight.
func (w *walk) inside(sel *pg.SelectStmt) *walk {
	in := &walk{asked: w.asked, with: slices.Clip(w.with), sight: sight{known: true, around: &w.sight}}
	queries := sel.GetWithClause().GetCtes()
	if sel.GetWithClause().GetRecursive() {
		for _, n := range queries {
			in.with = append(in.with, relation{alias: n.GetCommonTableExpr().Ctename})
		}
	}
	for _, n := range queries {
		c := n.GetCommonTableExpr()
		alias := &pg.Alias{Aliasname: c.Ctename, Colnames: c.Aliascolnames}
		in.with = append(in.with, in.query(c.Ctequery.GetSelectStmt()).as("", alias))
	}
	return in
}

// as gives a relation another name, and its columns those that the alias lists.
func (r relation) as(name string, alias *pg.Alias) relation {
	if r.alias = name; alias != nil {
		r.alias = alias.Aliasname
	}
	r.columns = slices.Clone(r.columns)
	for i, name := range ast.Strings(alias.GetColnames()) {
		if i < len(r.columns) {
			r.columns[i].Name = name
		}
	}
	return r
}

// beside are two items of FROM, as * shows them.
func (r relation) beside(other relation) relation {
	return relation{
		columns: slices.Concat(r.columns, other.columns), known: r.known && other.known, noisyRows: r.noisyRows || other.noisyRows,
	}
}

// column returns the first column of a name, or nil if there is none.
func (r relation) column(name string) *column {
	if i := slices.IndexFunc(r.columns, func(c column) bool { return c.Name == name }); i >= 0 {
		return &r.columns[i]
	}
	return nil
}

// typed reports whether all columns are known, with their types.
func (r relation) typed() bool {
	return r.known && len(r.columns) > 0 && !slices.ContainsFunc(r.columns, func(c column) bool { return c.Type == 0 })
}

func (w *walk) setOperation(sel *pg.SelectStmt) relation {
	left, right := w.query(sel.Larg), w.query(sel.Rarg)
	out := relation{columns: slices.Clone(left.columns), known: left.known, from: slices.Concat(left.from, right.from)}
	out.noisyRows = left.noisyRows || right.noisyRows || !sel.All || isCut(sel)
	for i := range out.columns {
		c, other := &out.columns[i], column{}
		if i < len(right.columns) {
			other = right.columns[i]
		}
		if c.of = (pgcatalog.Origin{}); c.Type != other.Type || len(left.columns) != len(right.columns) {
			c.Type = 0
		}
		if c.Noisy = c.Noisy || other.Noisy; c.Typmod != other.Typmod {
			c.Typmod = -1
		}
		if len(left.from) == 0 {
			c.empty = other.empty
		} else if len(right.from) > 0 {
			c.empty = emptyValue{}
		}
	}
	w.relations = []relation{out}
	w.cut(sel, out, w.valueAt)
	return out
}

// isCut tells clauses by which values decide about rows.
func isCut(sel *pg.SelectStmt) bool {
	return sel.LimitCount != nil || sel.LimitOffset != nil || len(sel.DistinctClause) > 0
}

// item puts an item of FROM in sight, and returns what * shows of it.
func (w *walk) item(n *pg.Node) relation {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeSubselect:
		return w.see(w.query(v.RangeSubselect.Subquery.GetSelectStmt()).as("", v.RangeSubselect.Alias))
	case *pg.Node_RangeVar:
		return w.see(w.table(v.RangeVar).as(v.RangeVar.Relname, v.RangeVar.Alias))
	case *pg.Node_RangeFunction:
		return w.see(w.function(n, v.RangeFunction))
	case *pg.Node_JoinExpr:
		return w.join(v.JoinExpr)
	}
	return w.see(relation{})
}

// function is a function in FROM. Of a series whose ends are columns or sub-queries its type is known where it is one
// of numbers; what it depends on decides which rows there are.
func (w *walk) function(n *pg.Node, f *pg.RangeFunction) relation {
	alias, columns := w.b.Series(n)
	out := relation{known: columns != nil, noisyRows: w.typed && slices.ContainsFunc(f.Functions, w.holdsCounts)}
	for _, c := range columns {
		out.columns = append(out.columns, column{OutColumn: c})
	}
	if columns != nil {
		return out.as(alias, nil)
	}
	out.columns = make([]column, len(f.Alias.GetColnames()))
	if len(out.columns) == 0 && f.Alias != nil { // unnest(…) AS n has a column n
		out.columns = []column{{OutColumn: plans.OutColumn{Name: f.Alias.Aliasname}}}
	}
	if typ := w.seriesType(f); typ != 0 && len(out.columns) == 1 {
		out.known, out.columns[0].Type, out.columns[0].Typmod = true, typ, -1
	}
	for i := range out.columns {
		out.columns[i].Noisy = out.noisyRows
	}
	return out.as("", f.Alias)
}

// seriesType returns the type of generate_series of numbers, or 0 if it is another function, or not known.
func (w *walk) seriesType(f *pg.RangeFunction) (typ policy.Type) {
	if !w.typed || f.Ordinality || len(f.Functions) != 1 || len(f.Functions[0].GetList().GetItems()) == 0 {
		return 0
	}
	call := f.Functions[0].GetList().Items[0].GetFuncCall()
	if call == nil || len(call.Args) < 2 {
		return 0
	}
	if name, refusal := ast.FunctionName(call); refusal != nil || name != "generate_series" {
		return 0
	}
	typ = policy.Int4
	for _, n := range call.Args {
		e, refusal := w.translator(false).Output(n)
		switch {
		case refusal != nil || !e.Type().Integer() && e.Type() != policy.NumericType:
			return 0
		case e.Type() == policy.NumericType || typ == policy.NumericType:
			typ = policy.NumericType
		case e.Type() == policy.Int8:
			typ = policy.Int8
		}
	}
	return typ
}

// holdsCounts reports whether something within a node, a column or a sub-query, depends on counts.
func (w *walk) holdsCounts(n *pg.Node) bool {
	if n.GetColumnRef() != nil || n.GetSubLink() != nil {
		return w.isNoisyNode(n)
	}
	return slices.ContainsFunc(ast.Children(n), w.holdsCounts)
}

// perColumn is what a column in sight takes of Work: FROM t x, t y has those of t twice.
const perColumn = 1 << 9

// see puts a relation in sight.
func (w *walk) see(r relation) relation {
	w.b.Env.Work.Step(len(r.columns) * perColumn)
	for i := range r.columns {
		w.place(&r.columns[i])
	}
	w.relations, w.known = append(w.relations, r), w.known && r.known
	return r
}

// place gives a column its position in expressions.
func (w *walk) place(c *column) {
	c.at = len(w.noisy)
	w.noisy = append(w.noisy, c.Noisy)
}

// table finds what a name in FROM means: a WITH query, a table of the policy, or a relation of the catalogs.
func (w *walk) table(v *pg.RangeVar) (out relation) {
	for i := len(w.with) - 1; i >= 0 && v.Schemaname == ""; i-- {
		if w.with[i].alias == v.Relname {
			return w.with[i]
		}
	}
	t, other, refusal := w.b.Resolve(v)
	if refusal != nil {
		return out
	}
	if catalog := pgcatalog.Lookup(other.Schema, other.Name); t == nil && other.Public == nil && catalog != nil {
		for _, c := range catalog.Columns {
			out.columns = append(out.columns, columnOf(other.Schema, other.Name, c.Name))
		}
	}
	if t == nil {
		t = other.Public
	}
	if out.known = out.columns != nil || t != nil; t == nil {
		return out
	}
	for _, c := range t.Described() {
		shown := columnOf(t.Schema, t.Name, c.Name)
		if t.Public {
			shown.Type, shown.Typmod = c.DescribedType()
		}
		out.columns = append(out.columns, shown)
	}
	return out
}

// columnOf is a column of a table, without its type.
func columnOf(schema, table, name string) column {
	of := pgcatalog.Origin{Schema: schema, Relation: table, Column: name}
	return column{OutColumn: plans.OutColumn{Name: name}, of: of}
}

// join puts both sides of a join in sight. A column of USING is the left side's, a right join's the right side's, and a
// full join's is computed.
func (w *walk) join(j *pg.JoinExpr) relation {
	first, merged := len(w.relations), len(w.merged)
	left, right := w.item(j.Larg), w.item(j.Rarg)
	both := left.beside(right)
	both.noisyRows = both.noisyRows || w.isNoisyNode(j.Quals)
	if j.Jointype == pg.JoinType_JOIN_INNER {
		w.where(j.Quals, first)
	}
	names := ast.Strings(j.UsingClause)
	for _, c := range left.columns {
		if j.IsNatural && right.column(c.Name) != nil {
			names = append(names, c.Name)
		}
	}
	for _, name := range names {
		merged := w.merge(j, left.column(name), right.column(name), name)
		w.merged, both.noisyRows = append(w.merged, merged), both.noisyRows || merged.Noisy
	}
	if len(names) > 0 {
		rest := slices.DeleteFunc(both.columns, func(c column) bool { return slices.Contains(names, c.Name) })
		both.columns = slices.Concat(w.merged[len(w.merged)-len(names):], rest)
	}
	if j.Alias == nil {
		return both
	}
	aliased := both.as("", j.Alias)
	for _, r := range w.relations[first:] {
		aliased.from = append(aliased.from, r.from...)
	}
	w.relations, w.merged = w.relations[:first], w.merged[:merged]
	return w.see(aliased)
}

// merge is a column of USING.
func (w *walk) merge(j *pg.JoinExpr, left, right *column, name string) (out column) {
	if left != nil {
		out = *left
	}
	if right != nil && j.Jointype == pg.JoinType_JOIN_RIGHT {
		out = *right
	}
	if out.Name = name; j.Jointype == pg.JoinType_JOIN_FULL {
		out.of = pgcatalog.Origin{}
	}
	if left == nil || right == nil || left.Type != right.Type || left.Typmod != right.Typmod {
		out.Type = 0
	} else {
		out.Noisy = left.Noisy || right.Noisy
	}
	w.place(&out)
	return out
}

// find finds a column by its name, perhaps behind its relation's.
func (s *sight) find(fields []string) *column {
	if len(fields) == 0 {
		return nil
	}
	name, alias := fields[len(fields)-1], ""
	if len(fields) > 1 {
		alias = fields[len(fields)-2]
	}
	for i := len(s.merged) - 1; i >= 0 && alias == ""; i-- {
		if s.merged[i].Name == name {
			return &s.merged[i]
		}
	}
	for i := len(s.relations) - 1; i >= 0; i-- {
		if r := s.relations[i]; alias == "" || alias == r.alias {
			if c := r.column(name); c != nil {
				return c
			}
		}
	}
	return nil
}

// column finds a column with a type, in the innermost query first.
func (w *walk) column(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	for s := &w.sight; s != nil; s = s.around {
		if c := s.find(fields); c != nil && c.Type != 0 {
			return semantics.ColumnExpr(c.at, c.Type, c.Typmod, pos), nil
		} else if c != nil || len(fields) == 1 && !s.known {
			break
		}
	}
	return nil, semantics.UnknownColumn.At(pos, strings.Join(fields, "."))
}

// selected tells the columns of a SELECT over the relations in sight.
func (w *walk) selected(sel *pg.SelectStmt, star relation) relation {
	w.subQueries(sel, sel.WhereClause)
	w.where(sel.WhereClause, 0)
	out := relation{known: true, noisyRows: star.noisyRows || w.isNoisyNode(sel.WhereClause)}
	for _, n := range sel.GroupClause {
		out.noisyRows = out.noisyRows || w.isNoisyNode(w.groupItem(n, sel))
	}
	t := w.translator(out.noisyRows)
	for _, n := range sel.TargetList {
		target := n.GetResTarget()
		of, isStar := w.star(target.Val, star)
		if !isStar {
			of = relation{columns: []column{w.shown(ast.Label(target), target.Val, t)}, known: true}
		}
		out.columns, out.known = append(out.columns, of.columns...), out.known && of.known
	}
	out.noisyRows = out.noisyRows || w.isNoisyNode(sel.HavingClause) || isCut(sel)
	w.groupsAmong(sel, &out)
	return out
}

// star returns what * and alias.* mean. (row).* is as many columns as the row has, which are not known.
func (w *walk) star(n *pg.Node, all relation) (of relation, isStar bool) {
	if path := n.GetAIndirection().GetIndirection(); len(path) > 0 && path[len(path)-1].GetAStar() != nil {
		return of, true
	}
	if !ast.IsStar(n) {
		return of, false
	}
	words := ast.Strings(n.GetColumnRef().Fields)
	if len(words) == 0 {
		return all, true
	}
	for _, r := range w.relations {
		if r.alias == words[len(words)-1] {
			return r, true
		}
	}
	return of, true
}

// shown is a column that is written out.
func (w *walk) shown(label string, n *pg.Node, t *semantics.Translator) (c column) {
	if found := w.find(ast.Strings(n.GetColumnRef().GetFields())); found != nil {
		c.of, c.empty = found.of, found.empty
	} else if w.leaf == nil {
		c.empty = w.computed(n)
	}
	c.Name = label
	if w.typed {
		if e, refusal := t.Output(n); refusal == nil {
			c.OutColumn, c.expr = outColumn(label, e, w.isNoisy(e)), e
		}
	}
	return c
}

// outColumn is a column of an answer, of the type that an expression has there.
func outColumn(name string, e *semantics.Expr, noisy bool) plans.OutColumn {
	t, typmod := e.Type(), e.Typmod()
	return plans.OutColumn{Name: name, Type: t, Typmod: typmod, Noisy: noisy}
}

// ofLeaf tells the columns of an aggregation over private rows.
func (w *walk) ofLeaf(g *aggregate.Grouping, sel *pg.SelectStmt) relation {
	w.leaf = g
	having := ast.HasAggregate(g.Sel.HavingClause) || w.isNoisyNode(aggregate.Having(g))
	out := relation{known: true, noisyRows: having || isCut(g.Sel)}
	t := w.translator(having)
	for _, target := range g.Targets {
		out.columns = append(out.columns, w.shown(target.Label, target.Node, t))
	}
	w.subQueries(g.Sel, nil) // WHERE is below
	w.groupsOfLeaf(g, sel, &out)
	return out
}

// groupItem returns the expression that a position or an output name in GROUP BY means.
func (w *walk) groupItem(n *pg.Node, sel *pg.SelectStmt) *pg.Node {
	if w.find(ast.Strings(n.GetColumnRef().GetFields())) != nil {
		return n
	}
	return bind.OutputOf(sel, n)
}

// translator types expressions over the relations in sight, or over a leaf's row.
func (w *walk) translator(noisyRows bool) *semantics.Translator {
	t := &semantics.Translator{Env: w.b.Env, Params: w.b.Params, Columns: w.column, Place: "SELECT"}
	if w.leaf != nil {
		t.Columns = nil
	}
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if s := n.GetSubLink(); s != nil && (w.leaf == nil || s.Testexpr == nil) {
			return w.subLink(s, t)
		}
		if f := n.GetFuncCall(); f != nil && (f.Over != nil || w.leaf == nil && ast.IsAggregate(f)) {
			return w.call(f, t, noisyRows)
		}
		if w.leaf != nil {
			return w.leaf.Hook(n)
		}
		return nil, nil
	}
	return t
}

// subLink is a sub-query of an expression: a value, EXISTS, or a comparison with its rows.
func (w *walk) subLink(s *pg.SubLink, t *semantics.Translator) (*semantics.Expr, *refuse.Refusal) {
	pos := int(s.Location)
	sel := s.Subselect.GetSelectStmt()
	r, walked := w.nested[sel]
	if !walked {
		if r = w.query(sel); w.nested == nil {
			w.nested = map[*pg.SelectStmt]relation{}
		}
		w.nested[sel] = r
	}
	if !r.typed() {
		return nil, semantics.RowSubquery.At(pos)
	}
	noisy := r.noisyRows
	for _, c := range r.columns {
		noisy = noisy || c.Noisy && s.SubLinkType != pg.SubLinkType_EXISTS_SUBLINK
	}
	if s.Testexpr != nil {
		e, refusal := t.Expr(s.Testexpr)
		if refusal != nil {
			return nil, refusal
		}
		noisy = noisy || w.isNoisy(e)
	}
	switch s.SubLinkType {
	case pg.SubLinkType_EXPR_SUBLINK:
		return standIn(r.columns[0].Type, noisy), nil
	case pg.SubLinkType_EXISTS_SUBLINK, pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
		return standIn(policy.Bool, noisy), nil
	}
	return nil, semantics.RowSubquery.At(pos)
}

// call is an aggregate or a window function. It depends on counts where its operands do, its window, or the rows that
// it sees.
func (w *walk) call(f *pg.FuncCall, t *semantics.Translator, noisyRows bool) (*semantics.Expr, *refuse.Refusal) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, refusal
	}
	typ := windowTypes[name]
	if len(f.Args) > 0 && typ == 0 {
		arg, refusal := t.Output(f.Args[0])
		if refusal != nil {
			return nil, refusal
		}
		of := arg.Type()
		typ = windowResult(name, of)
	}
	if typ == 0 || f.AggWithinGroup {
		return nil, semantics.NoForm.At(int(f.Location), name)
	}
	noisy := noisyRows || f.GetOver().GetName()+f.GetOver().GetRefname() != "" // defined in WINDOW
	for _, n := range ast.Children(&pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}) {
		if s := n.GetSortBy(); s != nil {
			n = s.Node
		}
		noisy = noisy || w.isNoisyNode(n)
	}
	return standIn(typ, noisy), nil
}

// standIn is an expression of a type of which only its dependence on counts is known.
func standIn(t policy.Type, noisy bool) *semantics.Expr {
	out := *semantics.ConstantExpr(nil, t, -1)
	out.Form = semantics.FormOther
	if noisy {
		out.Cols = []int{noisyMark}
	}
	return &out
}

func (w *walk) isNoisy(e *semantics.Expr) bool {
	return slices.ContainsFunc(e.Cols, func(c int) bool {
		return c == noisyMark || w.leaf != nil && c >= len(w.leaf.Question.Keys) || w.leaf == nil && w.noisy[c]
	})
}

// isNoisyNode reports whether a condition depends on counts, where that is asked.
func (w *walk) isNoisyNode(n *pg.Node) bool {
	if n.GetNode() == nil || !w.typed {
		return false
	}
	e, refusal := w.translator(false).Output(n)
	return refusal != nil || w.isNoisy(e) // what is not known here may
}
