package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Private rows may meet a public list: FROM t, LATERAL (VALUES ('apple', apple), ('banana', banana)) v(fruit, likes),
// or FROM prices p JOIN bids b ON b.bid >= p.price. Each row then counts once for each candidate of the list that it
// meets, which is a counter for each candidate (docs/adr/0020): the private database never sees the list, and how far a
// unit moves the counters is known. So such rows may only be grouped by the candidates; they pass through no sub-query.

// Candidates is a public list that private rows meet. Its columns are constants, or, of LATERAL VALUES, expressions
// over the private rows.
type Candidates struct {
	alias  string
	names  []string
	types  []policy.Type
	typmod []int32
	rows   [][]*semantics.Expr // by candidate
	where  [][]*semantics.Expr // by candidate: conditions of the join
	at     int                 // of the list's columns among the rows' names
}

// Alias is the name of the list in FROM, Len how many candidates it has, and Where the conditions of the join for one
// of them.
func (c *Candidates) Alias() string                         { return c.alias }
func (c *Candidates) Len() int                              { return len(c.rows) }
func (c *Candidates) Where(candidate int) []*semantics.Expr { return c.where[candidate] }

// MaxCandidates bounds a list.
const MaxCandidates = 1 << 10

// virtualColumn is the position of a list's first column where it means any candidate.
const virtualColumn = 1 << 20

func (b *Binder) meet(from *Rows, n *pg.Node, scope *Scope, j joining) (*Rows, *refuse.Refusal) {
	list, refusal := b.candidatesOf(from, n, scope)
	if refusal != nil {
		return nil, refusal
	}
	switch {
	case list == nil:
		return nil, PrivateJoin.At(j.pos, from.Table.Name)
	case len(list.rows) > MaxCandidates:
		return nil, ManyCandidates.At(ast.Location(n), len(list.rows), MaxCandidates)
	case from.fan != nil:
		return nil, CandidateRows.At(j.pos, "joined with a second list")
	case j.outer:
		return nil, outerCondition.At(j.pos)
	case len(j.using) > 0:
		return nil, CandidateRows.At(j.pos, "joined by USING")
	case slices.ContainsFunc(from.parts, func(p relation) bool { return p.alias == list.alias }):
		return nil, duplicateAlias.At(j.pos, list.alias)
	}
	out := *from
	out.fan, list.at = list, len(from.names)
	out.names, out.exprs = slices.Concat(from.names, list.names), slices.Clone(from.exprs)
	for i, t := range list.types {
		out.exprs = append(out.exprs, virtual(i, t, list.typmod[i]))
	}
	out.parts = append(slices.Clone(from.parts), relation{list.alias, nil, len(from.names), len(out.names), 0, 0, nil, nil})
	list.where = make([][]*semantics.Expr, len(list.rows))
	if j.fromWhere {
		return &out, nil
	}
	for i := range list.rows {
		t := b.OverKeys(out.Meeting(i), "ON")
		for _, q := range j.quals {
			e, refusal := t.Condition(q, "JOIN/ON")
			if refusal != nil {
				return nil, refusal
			}
			list.where[i] = append(list.where[i], e)
		}
	}
	return &out, nil
}

// Candidates is the public list that the rows meet; nil means they meet none.
func (r *Rows) Candidates() *Candidates { return r.fan }

// MeetsList tells rows that meet a public list, or one candidate of it.
func (r *Rows) MeetsList() bool { return r.fan != nil || r.met }

// Meeting are the rows as they meet one candidate.
func (r *Rows) Meeting(candidate int) *Rows {
	out := *r
	out.fan, out.met = nil, true
	out.exprs = slices.Clone(r.exprs)
	copy(out.exprs[r.fan.at:], r.fan.rows[candidate])
	out.where = slices.Concat(r.where, r.fan.where[candidate])
	return &out
}

// candidatesOf reads a public list: a public table, VALUES, generate_series or unnest of constants, or a projection of
// one. Nil: it is none of them. From is nil where the list may not read private rows.
func (b *Binder) candidatesOf(from *Rows, n *pg.Node, scope *Scope) (*Candidates, *refuse.Refusal) {
	var list *Candidates
	var refusal *refuse.Refusal
	var alias *pg.Alias
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		if t, _ := b.publicTable(n, scope); t != nil {
			list, refusal = b.tableCandidates(t, int(v.RangeVar.Location))
		} else if list, refusal = b.namedCandidates(v.RangeVar, scope); list != nil {
			list.alias = v.RangeVar.Relname
		}
		alias = v.RangeVar.Alias
	case *pg.Node_RangeSubselect:
		if !v.RangeSubselect.Lateral {
			from = nil
		}
		list, refusal = b.selectCandidates(from, v.RangeSubselect.Subquery.GetSelectStmt(), scope)
		alias = v.RangeSubselect.Alias
	case *pg.Node_RangeFunction:
		f := v.RangeFunction
		if len(f.Functions) != 1 || f.Ordinality || len(f.Coldeflist) > 0 {
			return nil, nil
		}
		alias = f.Alias
		list, refusal = b.seriesCandidates(f.Functions[0].GetList().GetItems()[0].GetFuncCall(), alias.GetAliasname())
	}
	if list == nil || refusal != nil {
		return nil, refusal
	}
	if alias != nil {
		list.alias = alias.Aliasname
		if len(alias.Colnames) > len(list.names) {
			return nil, ColumnCount.At(ast.Location(n), list.alias, len(list.names), len(alias.Colnames))
		}
		copy(list.names, ast.Strings(alias.Colnames))
	}
	if len(list.rows) > maxListRows {
		return nil, ManyCandidates.At(ast.Location(n), len(list.rows), maxListRows)
	}
	return list, nil
}

// Series are the columns of a function in FROM, generate_series or unnest of constants, and its name there; nil means
// it is another, or has more rows than a list may have.
func (b *Binder) Series(n *pg.Node) (alias string, columns []plans.OutColumn) {
	list, refusal := b.candidatesOf(nil, n, nil)
	if list == nil || refusal != nil {
		return "", nil
	}
	for i, name := range list.names {
		columns = append(columns, plans.OutColumn{Name: name, Type: list.types[i], Typmod: list.typmod[i]})
	}
	return list.alias, columns
}

// namedCandidates are those of a WITH query.
func (b *Binder) namedCandidates(v *pg.RangeVar, scope *Scope) (*Candidates, *refuse.Refusal) {
	c := scope.Find(v.Relname)
	if v.Schemaname != "" || c == nil || c.Rows != nil || c.query == nil || c.recursive {
		return nil, nil
	}
	query := c.query.GetCommonTableExpr()
	list, refusal := b.selectCandidates(nil, query.Ctequery.GetSelectStmt(), c.next)
	if columns := ast.Strings(query.Aliascolnames); list != nil && len(columns) <= len(list.names) {
		copy(list.names, columns)
	}
	return list, refusal
}

// tableCandidates are the rows of a public table, as it was copied last.
func (b *Binder) tableCandidates(t *policy.Table, pos int) (*Candidates, *refuse.Refusal) {
	data, refusal := lookup.Rows(b.Context.Public, t, pos)
	if refusal != nil {
		return nil, refusal
	}
	list := &Candidates{alias: t.Name}
	for _, c := range t.Columns {
		typ, typmod := c.DescribedType()
		list.names, list.types, list.typmod = append(list.names, c.Name), append(list.types, typ), append(list.typmod, typmod)
	}
	for _, row := range data {
		exprs := make([]*semantics.Expr, len(row))
		for i, v := range row {
			exprs[i] = semantics.ValueExpr(v, list.types[i], list.typmod[i], pos)
		}
		list.rows = append(list.rows, exprs)
	}
	return list, nil
}

// selectCandidates are those of VALUES, or of a SELECT that filters and projects a list; nil for others.
func (b *Binder) selectCandidates(from *Rows, sel *pg.SelectStmt, scope *Scope) (*Candidates, *refuse.Refusal) {
	if !takesRows(sel) {
		return nil, nil
	}
	if len(sel.ValuesLists) > 0 {
		return b.valuesCandidates(from, sel)
	}
	if len(sel.FromClause) == 0 && len(sel.TargetList) == 1 && sel.WhereClause == nil {
		return b.castSeries(sel.TargetList[0].GetResTarget())
	}
	if len(sel.FromClause) != 1 {
		return nil, nil
	}
	of, refusal := b.candidatesOf(nil, sel.FromClause[0], scope)
	if of == nil || refusal != nil {
		return nil, refusal
	}
	return b.projectCandidates(of, sel)
}

// projectCandidates filters and projects a list of constants; nil for what is no such projection.
func (b *Binder) projectCandidates(of *Candidates, sel *pg.SelectStmt) (*Candidates, *refuse.Refusal) {
	out, seen := &Candidates{alias: of.alias}, map[string]bool{}
	for i := range of.rows {
		in := &Rows{names: of.names, exprs: of.rows[i], parts: []relation{{of.alias, nil, 0, len(of.names), 0, 0, nil, nil}}}
		t := &semantics.Translator{Env: b.Env, Params: b.Params, Columns: in.listColumn, Place: "SELECT"}
		if kept, refusal := satisfied(sel.WhereClause, t); refusal != nil {
			return nil, refusal
		} else if !kept {
			continue
		}
		row, refusal := in.projected(sel.TargetList, t)
		if row == nil || refusal != nil {
			return nil, refusal
		}
		if out.names == nil {
			out.names = row.names
			for _, e := range row.exprs {
				typ, typmod := e.Type(), e.Typmod()
				if typ != policy.Bpchar { // a computed value's modifier is none's
					typmod = -1
				}
				out.types, out.typmod = append(out.types, typ), append(out.typmod, typmod)
			}
		}
		if text := semantics.KeyText(row.values); !seen[text] || !IsDistinct(sel) {
			seen[text] = true
			out.rows = append(out.rows, row.exprs)
		}
	}
	if out.names == nil {
		return nil, ManyCandidates.At(-1, 0, MaxCandidates)
	}
	return out, nil
}

// satisfied reports whether a condition on constants holds; nil does.
func satisfied(where *pg.Node, t *semantics.Translator) (bool, *refuse.Refusal) {
	if where == nil {
		return true, nil
	}
	e, refusal := t.Condition(where, "WHERE")
	if refusal != nil {
		return false, refusal
	}
	v, refusal := e.Value(nil)
	return v == true, refusal
}

// constantRow is a row of constants, with their values.
type constantRow struct {
	names  []string
	exprs  []*semantics.Expr
	values []policy.Value
}

// projected is what a SELECT shows of one row of a list; nil means it shows what is no function of that.
func (r *Rows) projected(targets []*pg.Node, t *semantics.Translator) (*constantRow, *refuse.Refusal) {
	out := &constantRow{}
	for _, n := range targets {
		target := n.GetResTarget()
		if ast.HasAggregate(target.Val) || ast.HasWindow(target.Val) {
			return nil, nil
		}
		if target.Val.GetColumnRef() != nil && ast.IsStar(target.Val) {
			if words := ast.Strings(target.Val.GetColumnRef().Fields); len(words) > 0 && words[len(words)-1] != r.parts[0].alias {
				return nil, nil
			}
			for k, e := range r.exprs {
				v, refusal := e.Value(nil)
				if refusal != nil {
					return nil, refusal
				}
				out.names, out.exprs, out.values = append(out.names, r.names[k]), append(out.exprs, e), append(out.values, v)
			}
			continue
		}
		e, refusal := constantOutput(target.Val, t)
		if refusal != nil {
			return nil, refusal
		}
		out.names, out.exprs, out.values = append(out.names, ast.Label(target)), append(out.exprs, e), append(out.values, semantics.MustConstant(e))
	}
	return out, nil
}

// constantOutput is an output that reads constants alone.
func constantOutput(n *pg.Node, t *semantics.Translator) (*semantics.Expr, *refuse.Refusal) {
	e, refusal := t.Output(n)
	if refusal != nil {
		return nil, refusal
	}
	v, refusal := e.Value(nil)
	return e.Worth(v, e.Pos), refusal
}

// listColumn resolves a column of a list of constants.
func (r *Rows) listColumn(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	name, words := fields[len(fields)-1], fields[:len(fields)-1]
	at := slices.Index(r.names, name)
	if at < 0 || len(words) > 1 || len(words) == 1 && words[0] != r.parts[0].alias {
		return nil, semantics.UnknownColumn.At(pos, name)
	}
	return r.exprs[at], nil
}

// valuesCandidates are the rows of VALUES, each column of one type.
func (b *Binder) valuesCandidates(from *Rows, sel *pg.SelectStmt) (*Candidates, *refuse.Refusal) {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "VALUES"}
	if from != nil {
		t = b.OverKeys(from, "VALUES")
	}
	list := &Candidates{alias: "*VALUES*"}
	for _, n := range sel.ValuesLists {
		row, _, refusal := t.All(n.GetList().GetItems())
		if refusal != nil {
			return nil, refusal
		}
		if len(list.rows) > 0 && len(row) != len(list.rows[0]) {
			return nil, refuse.Syntax.At(ast.Location(n), "VALUES lists must all be the same length")
		}
		list.rows = append(list.rows, row)
	}
	for c := range list.rows[0] {
		list.names = append(list.names, "column"+predicate.Text(int64(c+1)))
	}
	if refusal := b.typed(list); refusal != nil {
		return nil, refusal
	}
	return list, nil
}

// typed gives the rows of a list one type a column.
func (b *Binder) typed(list *Candidates) *refuse.Refusal {
	for c := range list.names {
		typ, refusal := commonType(list.rows, c)
		if refusal != nil {
			return refusal
		}
		for _, row := range list.rows {
			if row[c], refusal = b.asType(row[c], typ); refusal != nil {
				return refusal
			}
		}
		list.types, list.typmod = append(list.types, typ), append(list.typmod, int32(-1))
	}
	return nil
}

// numberOrder are the types of numbers, each of which takes the ones before it.
var numberOrder = []policy.Type{policy.Int2, policy.Int4, policy.Int8, policy.NumericType, policy.Float4, policy.Float8}

// commonType is the type of a column of VALUES: that of its expressions, or the widest of their numbers.
func commonType(rows [][]*semantics.Expr, c int) (policy.Type, *refuse.Refusal) {
	typ := policy.Unknown
	for _, row := range rows {
		own := row[c].Type()
		before, after := slices.Index(numberOrder, typ), slices.Index(numberOrder, own)
		switch {
		case own == typ || own == policy.Unknown:
		case typ == policy.Unknown || before >= 0 && after > before:
			typ = own
		case own.Textual() && typ.Textual(): // each becomes the other by itself: the first stays
		case before < 0 || after < 0:
			return 0, mixedValues.At(row[c].Pos, typ.Name(), own.Name())
		}
	}
	if typ == policy.Unknown {
		typ = policy.Text
	}
	return typ, nil
}

// asType is an expression of VALUES in the type of its column.
func (b *Binder) asType(e *semantics.Expr, typ policy.Type) (*semantics.Expr, *refuse.Refusal) {
	if e.Type() == typ {
		return e, nil
	}
	cast := b.Env.Coerce
	if e.Type() != policy.Unknown {
		cast = func(s scalar.Expr, t policy.Type) (scalar.Expr, error) { return b.Env.Cast(s, t, -1) }
	}
	s, err := cast(e.Expr, typ)
	if err != nil {
		return nil, semantics.ScalarRefusal(err, e.Pos)
	}
	if e.IsConstant() {
		v, err := s.Eval(nil)
		if err != nil {
			return nil, semantics.ScalarRefusal(err, e.Pos)
		}
		return semantics.ConstantExpr(v, typ, e.Pos), nil
	}
	return semantics.Node(semantics.FormOther, "cast:"+typ.Name(), s, e.Pos, e), nil
}
