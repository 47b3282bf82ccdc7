// Package bind finds which private rows a SELECT is about: what FROM, JOIN, WHERE, WITH and sub-queries make of the
// tables of a policy. Each construct of SQL has a file. Of
//
//	WITH w AS (SELECT ward, count(*) AS n FROM visits v JOIN people p USING (person_id) GROUP BY ward)
//	SELECT ward FROM w ORDER BY n DESC LIMIT 3
//
// the FROM in WITH is rows of a derived table, one for each visit of a person (join.go), under the names that the
// statement has for them (relation.go). What is asked of them, here a count by ward, is package aggregate's.
package bind

import (
	"slices"
	"sync/atomic"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Binder binds the rows that the SELECTs of one statement read.
type Binder struct {
	Context reuse.Context
	Text    string         // the statement
	Top     *pg.SelectStmt // its tree
	Inside  bool           // its answer is in a condition on private rows: no rows are made up for it, nor left out (privacy rule 15)
	Env     scalar.Env
	Params  *semantics.Parameters
	Given   []string // as in plans.Outer
	noting
	Open      *discovery.Keys // nil: nothing is known of open columns
	viewing   []*policy.Table // the sources that are being bound
	Inner     Answering       // what a sub-query came to that is answered first; nil means none is
	exploring int             // above 0: what is translated is perhaps not below the boundary
	AsWritten bool            // sums and conditions of columns stay expressions over them, which the twin of the tests evaluates
}

// noting is what is noted of conditions below a join.
type noting struct{ Notes semantics.Notes }

// Answering returns what a sub-query came to, or its placeholder until it is answered. Of one that is only explored it
// returns what is known: nil, nil.
type Answering func(sel *pg.SelectStmt, use Use) (*plans.Answer, *refuse.Refusal)

// Use is what a statement does with what a sub-query came to.
type Use uint8

// The uses.
const (
	Explored Use = iota // perhaps none
	LookedUp            // one value is read, of one row or for each row that of its own group
	Listed              // all rows decide: also those of groups that nobody is in
)

// use is one of them, or that nothing is used yet.
func (b *Binder) use(u Use) Use {
	if b.exploring > 0 {
		return Explored
	}
	return u
}

// Scope is one WITH query in sight: private rows, or, with rows nil, a released table.
type Scope struct {
	name      string
	Rows      *Rows
	next      *Scope
	query     *pg.Node // the WITH query, nil of one that reads itself
	recursive bool
}

// Released puts a WITH query that is a released table in sight.
func (s *Scope) Released(name string) *Scope { return &Scope{name: name, next: s} }

// Find is the WITH query of a name; nil means there is none in sight.
func (s *Scope) Find(name string) *Scope {
	for ; s != nil; s = s.next {
		if s.name == name {
			return s
		}
	}
	return nil
}

// With adds the WITH queries of a SELECT to those in sight.
func (b *Binder) With(sel *pg.SelectStmt, scope *Scope) (*Scope, *refuse.Refusal) {
	w := sel.WithClause
	if w == nil {
		return scope, nil
	}
	if w.Recursive {
		for _, n := range w.Ctes {
			scope = scope.Released(n.GetCommonTableExpr().Ctename)
		}
	}
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		query := c.Ctequery.GetSelectStmt()
		if plans.IsLeafName(c.Ctename) {
			return nil, refuse.Construct.At(int(c.Location), "a WITH query of the name "+c.Ctename)
		}
		if query == nil {
			return nil, refuse.Writes.At(int(c.Location), "a statement in WITH that changes data")
		}
		r, refusal := b.selectRows(query, scope)
		if refusal != nil {
			return nil, refusal
		}
		if r != nil {
			if r, refusal = b.named(r, &pg.Alias{Aliasname: c.Ctename, Colnames: c.Aliascolnames}); refusal != nil {
				return nil, refusal
			}
		}
		scope = &Scope{c.Ctename, r, scope, n, w.Recursive}
	}
	return scope, nil
}

// ownRows are FromRows in sight of the SELECT's own WITH queries too.
func (b *Binder) ownRows(sel *pg.SelectStmt, scope *Scope) (*Rows, *refuse.Refusal) {
	scope, refusal := b.With(sel, scope)
	if refusal != nil {
		return nil, refusal
	}
	return b.FromRows(sel, scope)
}

// FromRows returns the private rows that a FROM clause is, or nil when it reads released tables alone.
func (b *Binder) FromRows(sel *pg.SelectStmt, scope *Scope) (*Rows, *refuse.Refusal) {
	var found *Rows
	var others []*pg.Node
	for _, n := range sel.FromClause {
		r, refusal := b.itemRows(n, scope)
		switch {
		case refusal != nil:
			return nil, refusal
		case r == nil:
			others = append(others, n)
		case found == nil:
			found = r
		default:
			if found, refusal = b.pair(found, r, joining{quals: ast.Joining(sel.WhereClause), fromWhere: true, pos: r.pos}); refusal != nil {
				return nil, refusal
			}
		}
	}
	if found == nil {
		return nil, nil
	}
	for _, n := range others {
		var refusal *refuse.Refusal
		if found, refusal = b.lookUp(found, n, scope, joining{quals: ast.Conjuncts(sel.WhereClause), also: ast.Alike(sel.WhereClause), fromWhere: true, pos: found.pos}); refusal != nil {
			return nil, refusal
		}
	}
	b.Env.Work.Step(found.Table.Places * perPlace)
	out := *found
	out.scope = scope
	return &out, nil
}

// perPlace is what the places of a table's inputs take of Work, each: they are gone through to bound, name and write its
// rows. A WITH query that is named twice is in two, and thirty of them, one in the other, in 2^30.
const perPlace = 1 << 9

func (b *Binder) itemRows(n *pg.Node, scope *Scope) (*Rows, *refuse.Refusal) {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		return b.namedRows(v.RangeVar, scope)
	case *pg.Node_RangeSubselect:
		query := v.RangeSubselect.Subquery.GetSelectStmt()
		if query == nil {
			return nil, refuse.Construct.At(-1, "this sub-query")
		}
		r, refusal := b.selectRows(query, scope)
		if r == nil || refusal != nil {
			return nil, refusal
		}
		return b.named(r, v.RangeSubselect.Alias)
	case *pg.Node_JoinExpr:
		return b.joinRows(v.JoinExpr, scope)
	case *pg.Node_RangeTableSample:
		r, refusal := b.itemRows(v.RangeTableSample.Relation, scope)
		if r != nil && refusal == nil {
			refusal = limitedRows.At(r.pos, "TABLESAMPLE")
		}
		return nil, refusal
	}
	return nil, nil
}

func (b *Binder) namedRows(v *pg.RangeVar, scope *Scope) (*Rows, *refuse.Refusal) {
	if v.Schemaname == "" {
		if c := scope.Find(v.Relname); c != nil {
			if c.Rows == nil {
				return nil, nil
			}
			r := *c.Rows
			r.pos = int(v.Location)
			return r.aliased(v.Alias)
		}
	}
	t, _, refusal := b.Resolve(v)
	if t == nil || refusal != nil {
		return nil, refusal
	}
	if t.Analysed() {
		r, refusal := b.viewRows(t, int(v.Location))
		if refusal != nil {
			return nil, refusal
		}
		return r.aliased(v.Alias)
	}
	return tableRows(t, int(v.Location)).aliased(v.Alias)
}

// selectRows returns the private rows that a SELECT without aggregation passes on, nil when it does not pass on any.
func (b *Binder) selectRows(sel *pg.SelectStmt, scope *Scope) (*Rows, *refuse.Refusal) {
	b.Env.Work.Step(1)
	scope, refusal := b.With(sel, scope)
	if refusal != nil {
		return nil, refusal
	}
	if sel.Larg != nil {
		return b.setRows(sel, scope)
	}
	from, refusal := b.FromRows(sel, scope)
	switch {
	case from == nil || refusal != nil:
		return nil, refusal
	case IsGrouped(sel):
		return b.perUnit(sel, from, true)
	}
	return b.Project(sel, from, true)
}

// IsGrouped tells a SELECT whose rows are groups.
func IsGrouped(sel *pg.SelectStmt) bool {
	return len(sel.GroupClause) > 0 || sel.HavingClause != nil || IsDistinct(sel) ||
		slices.ContainsFunc(sel.TargetList, ast.HasAggregate) || slices.ContainsFunc(sel.SortClause, ast.HasAggregate)
}

// IsDistinct tells SELECT DISTINCT, IsDistinctOn SELECT DISTINCT ON.
func IsDistinct(sel *pg.SelectStmt) bool {
	return len(sel.DistinctClause) > 0 && !IsDistinctOn(sel)
}

func IsDistinctOn(sel *pg.SelectStmt) bool {
	return len(sel.DistinctClause) > 0 && sel.DistinctClause[0].GetNode() != nil
}

// Project narrows and renames rows as a SELECT without aggregation does. What would pick rows by order, number or
// chance has no place below a leaf (privacy rule 15).
func (b *Binder) Project(sel *pg.SelectStmt, from *Rows, below bool) (*Rows, *refuse.Refusal) {
	if refusal := b.RowPickers(sel, below); refusal != nil {
		return nil, refusal
	}
	from, refusal := from.rowByRow("passed on ungrouped")
	if refusal != nil {
		return nil, refusal
	}
	source := *from
	out := &Rows{pos: from.pos}
	var outputs []int // columns and keys
	t := b.OverRows(&source, "WHERE")
	where := from.where
	if sel.WhereClause != nil {
		e, refusal := t.Condition(sel.WhereClause, "WHERE")
		if refusal != nil {
			return nil, refusal
		}
		where = append(append([]*semantics.Expr{}, where...), e)
	}
	if ast.IsZero(sel.LimitCount) {
		where = append(append([]*semantics.Expr{}, where...), semantics.ConstantExpr(false, policy.Bool, -1))
	}
	t.Place = "SELECT"
	if calls := windowCalls(sel); below && (len(calls) > 0 || IsDistinctOn(sel)) {
		values, left, refusal := b.ranked(&source, sel, where, calls)
		if refusal != nil {
			return nil, refusal
		}
		t, where = called(t, values), left
	}
	for _, n := range sel.TargetList {
		target := n.GetResTarget()
		parts, refusal := source.star(target)
		if refusal != nil {
			return nil, refusal
		}
		if parts != nil { // * of *, twice on each level: what it shows is compared by name
			n := len(out.names) + len(source.names) + len(source.keys)
			b.Env.Work.Step(n * n)
		}
		at := map[int]int{} // of the source's outputs among these
		for _, i := range source.starred(target, parts) {
			at[i] = len(out.names)
			out.names, out.exprs = append(out.names, source.names[i]), append(out.exprs, source.exprs[i])
		}
		for _, p := range parts {
			for i := p.fromKey; i < p.toKey; i++ {
				if len(target.Val.GetColumnRef().Fields) == 1 && slices.Contains(source.hiddenKeys, i) { // of * alone
					continue
				}
				at[-1-i] = -1 - len(out.keys)
				out.keys = append(out.keys, source.keys[i])
			}
		}
		if parts != nil {
			out.lost = source.lost
			for _, i := range source.starredWithKeys(target, parts) {
				outputs = append(outputs, at[i])
			}
		}
		out.shape += source.shapeOf(target, parts)
		if parts != nil {
			continue
		}
		if !below && ast.HasWindow(target.Val) {
			return nil, WindowOnRows.At(ast.Location(target.Val))
		}
		k, refusal := source.KeyNode(target.Val)
		if refusal != nil {
			return nil, refusal
		}
		if k != nil {
			out.keys = append(out.keys, linear.Key{Name: ast.Label(target), At: k.At, Present: k.Present})
		}
		order := -len(out.keys)
		e, refusal := t.Expr(target.Val)
		if refusal != nil && (k == nil || refusal.ID != keyOnly.ID) {
			return nil, refusal
		}
		if refusal == nil {
			order = len(out.names)
			out.names, out.exprs = append(out.names, ast.Label(target)), append(out.exprs, e)
		}
		outputs = append(outputs, order)
	}
	out.Table, out.where, out.equal, out.preserved = source.Table, where, source.equal, source.preserved
	out.parts = []relation{{from.Alias(), nil, 0, len(out.names), 0, len(out.keys), outputs, always}}
	out.First(where, b.Env.Work)
	return out, nil
}

// OverRows translates over private rows. A condition may ask whether the unit has rows elsewhere: then the rows get a
// further column.
func (b *Binder) OverRows(r *Rows, place string) *semantics.Translator {
	t := b.Settles(b.OverKeys(r, place), r)
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if s := n.GetSubLink(); s != nil {
			if r.MeetsList() {
				return nil, CandidateRows.At(int(s.Location), "asked for what their unit has elsewhere")
			}
			if e, refusal := b.listed(r, s); e != nil || refusal != nil {
				return e, refusal
			}
			if e, refusal := b.existsCompared(r, s, t); e != nil || refusal != nil {
				return e, refusal
			}
			if e, refusal := b.elsewhere(r, s, slices.Contains(t.Holding, n)); e != nil || refusal != nil {
				return e, refusal
			}
			if e, refusal := b.ofUnit(r, s); e != nil || refusal != nil {
				return e, refusal
			}
			if e, refusal := b.eachFirst(r, s, t); e != nil || refusal != nil {
				return e, refusal
			}
			return b.answeredFirst(s, t, r)
		}
		return b.aboutKeys(r, n, !r.MeetsList())
	}
	return t
}

// OverKeys translates over private rows and what may be said of their keys.
func (b *Binder) OverKeys(r *Rows, place string) *semantics.Translator {
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Columns: r.Column, Place: place, Texts: b.Open.Texts(r.Own)}
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if s := n.GetSubLink(); s != nil {
			return b.answeredFirst(s, t, r)
		}
		return b.aboutKeys(r, n, false)
	}
	t.Constants = func(n *pg.Node, each bool) []*semantics.Expr { return b.constants(n, each, r) }
	return t
}

// RowPickers refuses clauses that choose among private rows.
func (b *Binder) RowPickers(sel *pg.SelectStmt, below bool) *refuse.Refusal {
	switch {
	case sel.IntoClause != nil:
		return refuse.IntoTable.At(-1)
	case len(sel.LockingClause) > 0:
		return refuse.RowLocks.At(-1, ast.LockName(sel.LockingClause[0]))
	case !below:
		return nil
	case IsDistinctOn(sel) && IsGrouped(sel):
		return limitedRows.At(ast.Location(sel.DistinctClause[0]), "DISTINCT ON")
	case sel.LimitCount != nil && !ast.IsZero(sel.LimitCount) && !ast.IsNoLimit(sel.LimitCount):
		return limitedRows.At(ast.Location(sel.LimitCount), "LIMIT")
	}
	// OFFSET $1 with 0 leaves all rows, as Prisma asks for every count. When it is described, the number is not known
	// yet.
	if n, refusal := b.Whole(sel.LimitOffset, "OFFSET", 0); refusal != nil || n != 0 {
		return limitedRows.At(ast.Location(sel.LimitOffset), "OFFSET")
	}
	return nil
}

// star returns the relations that * and alias.* mean, or nil for any other target.
func (r *Rows) star(target *pg.ResTarget) ([]relation, *refuse.Refusal) {
	ref := target.Val.GetColumnRef()
	if ref == nil || len(ref.Fields) == 0 || ref.Fields[len(ref.Fields)-1].GetAStar() == nil {
		return nil, nil
	}
	words := ast.Strings(ref.Fields)
	parts := r.named(words)
	if len(parts) == 0 {
		return nil, UnknownAlias.At(int(ref.Location), words[len(words)-1])
	}
	return parts, nil
}

// Explore translates what is perhaps not below the boundary, so that no sub-query in it is answered for that.
func (b *Binder) Explore(t *semantics.Translator, n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
	b.exploring++
	defer func() { b.exploring-- }()
	return t.Expr(n)
}

func NewBinder(c reuse.Context, params *semantics.Parameters) Binder {
	set := &c.Settings
	return Binder{Context: c, Env: scalar.Env{Now: c.Now, Zone: set.Zone, Form: set.Form, Literals: set.Literals, Asked: new(atomic.Bool), Work: c.Work}, Params: params}
}

// Whole reads the number of LIMIT or OFFSET, which is a constant; none where there is no clause.
func (b *Binder) Whole(n *pg.Node, clause string, none int64) (int64, *refuse.Refusal) {
	if n == nil || ast.IsNoLimit(n) {
		return none, nil
	}
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: clause}
	e, refusal := t.Expr(n)
	if refusal != nil {
		return 0, limitConstant.At(ast.Location(n), clause)
	}
	b.Params.Note(e, policy.Int8)
	v, refusal := ConstantAs(b.Env, e, policy.Int8, ast.Location(n))
	if refusal != nil {
		return 0, refusal
	}
	i, ok := v.(int64)
	if !ok {
		return none, nil
	}
	if i < 0 {
		r := negativeLimit.At(ast.Location(n), clause)
		if clause == "OFFSET" {
			r.SQLState = "2201X"
		}
		return 0, r
	}
	return i, nil
}

// ConstantAs is a constant as a value of a type.
func ConstantAs(env scalar.Env, e *semantics.Expr, t policy.Type, pos int) (v policy.Value, refusal *refuse.Refusal) {
	s, err := env.Cast(e.Expr, t, -1)
	if err == nil {
		v, err = s.Eval(nil)
	}
	if err != nil {
		return nil, semantics.ScalarRefusal(err, pos)
	}
	return v, nil
}
