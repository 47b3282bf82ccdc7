// Package outerquery cuts a statement at the privacy boundary and binds what is above it: a projection that Go
// evaluates, where that is enough, or a tree for the sandbox, in which there is nothing that is not on the list. The
// SELECTs below the boundary are package bind's. Of
//
//	SELECT ward, n * 2 FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t ORDER BY n DESC LIMIT 3
//
// the sub-query becomes a question (bind), and the SELECT around it a projection of leaf_1 (direct.go), with two
// columns, an order and a limit. Had it a window function, tree.go would write it for an engine.
package outerquery

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Query binds what is above the questions of one statement, over what the Binder makes of the SELECTs below.
type Query struct {
	*aggregate.Binder
	relations []plans.Relation
	synthetic []*SyntheticTable
	probed    []*policy.Table
}

// Bound is what a statement is bound to above its questions.
type Bound struct {
	plans.Outer
	Columns   []plans.OutColumn
	Shown     *Shown // nil: no column is a count as it is, or none that can be known here
	Direct    *direct
	Synthetic []*SyntheticTable
	Probed    []*policy.Table // whose rows were asked for: none are shown
}

// Bind plans the outer query of the binder's statement, which collects its questions.
func Bind(b *aggregate.Binder) (*Bound, *refuse.Refusal) {
	q := &Query{Binder: b}
	out, refusal := q.outer(b.Top)
	if refusal != nil {
		return nil, q.around(refusal)
	}
	out.Synthetic, out.Probed = q.synthetic, q.probed
	return out, nil
}

func (b *Query) outer(sel *pg.SelectStmt) (*Bound, *refuse.Refusal) {
	if refusal := b.RowPickers(sel, false); refusal != nil {
		return nil, refusal
	}
	sel = topOfUnion(b.Binder, sel)
	d, columns, refusal := b.simple(sel)
	if refusal != nil {
		return nil, refusal
	}
	if d != nil && !d.beyond() {
		return &Bound{Outer: plans.Outer{Direct: &d.Direct}, Columns: columns, Shown: &Shown{d.Leaf, d.counts, d.linear}, Direct: d}, nil
	}
	tree, refusal := (&tree{b: b}).query(sel)
	if refusal != nil {
		return nil, refusal
	}
	columns, shown := b.columns(sel)
	return &Bound{Outer: plans.Outer{Tree: ast.Select(tree), Relations: b.relations}, Columns: columns, Shown: shown}, nil
}

// SeeInTree counts the parameters of a statement that a sandbox will type.
func SeeInTree(b *aggregate.Binder) {
	ast.Each(b.Top.ProtoReflect(), func(m protoreflect.Message) {
		if p, ok := m.Interface().(*pg.ParamRef); ok {
			b.Params.Seen = max(b.Params.Seen, int(p.Number))
		}
	})
}

// simple tries the forms that need no engine: an aggregation over private rows, an empty preview of them, and a SELECT
// without FROM. A nil Direct sends the statement to the engine.
func (b *Query) simple(sel *pg.SelectStmt) (*direct, []plans.OutColumn, *refuse.Refusal) {
	if sel.Larg != nil || len(sel.ValuesLists) > 0 {
		return nil, nil, nil
	}
	scope, refusal := b.With(sel, nil)
	if refusal != nil {
		return nil, nil, refusal
	}
	from, refusal := b.FromRows(sel, scope)
	switch {
	case refusal != nil:
		return nil, nil, refusal
	case from != nil && !bind.IsGrouped(sel):
		return b.preview(sel, from)
	case from != nil:
		g, refusal := b.Group(sel, from)
		if refusal != nil {
			return nil, nil, refusal
		}
		return b.direct(sel, g)
	case semantics.IsBareSelect(sel):
		return b.direct(sel, nil)
	case len(sel.FromClause) == 1 && scope == nil:
		return b.wrapper(sel)
	}
	return nil, nil, nil
}

// preview answers what clients send to learn the columns of a table (WHERE 1 <> 1, LIMIT 0), and by dp.probes what
// looks at its rows. Other rows are refused. A nil Direct without a refusal shows made-up rows.
func (b *Query) preview(sel *pg.SelectStmt, from *bind.Rows) (*direct, []plans.OutColumn, *refuse.Refusal) {
	none := ast.IsZero(sel.LimitCount) || b.Top != nil && ast.IsZero(b.Top.LimitCount) // then nothing is shown, whatever is below
	out, refusal := b.Project(sel, from, false)
	if refusal != nil {
		return nil, nil, refusal
	}
	conditions := 0
	for _, e := range linear.Conjuncts(out.Where()) {
		if conditions++; e.IsConstant() && e.Parameter == 0 {
			v, refusal := e.Value(nil)
			if refusal != nil {
				return nil, nil, refusal
			}
			none = none || v != true
			conditions--
		}
	}
	switch probes := b.Context.Settings.Probes; {
	case none:
	case probes == plans.ProbesMadeUp && !b.Inside && looksAt(sel) && sel == b.Top:
		n, refusal := b.Whole(sel.LimitCount, "LIMIT", -1)
		if refusal == nil && n < 0 && !b.Params.Describing { // LIMIT NULL is none
			refusal = b.rows(from)
		}
		return nil, nil, refusal
	case probes == plans.ProbesEmpty && !b.Inside && conditions == 0 && shows(out) && (sel == b.Top || b.wraps(b.Top, sel)):
		for _, at := range []*pg.SelectStmt{sel, b.Top} { // LIMIT $1 has a parameter all the same
			if _, refusal := b.Whole(at.LimitCount, "LIMIT", -1); refusal != nil {
				return nil, nil, refusal
			}
			if _, refusal := b.Whole(at.LimitOffset, "OFFSET", 0); refusal != nil {
				return nil, nil, refusal
			}
		}
		if !slices.Contains(b.probed, from.Table) {
			b.probed = append(b.probed, from.Table)
		}
	default:
		return nil, nil, b.rows(from)
	}
	d := &direct{Direct: plans.Direct{Leaf: -1, Limit: -1, Having: scalar.Constant(false, policy.Bool)}}
	var columns []plans.OutColumn
	show := func(name string, t policy.Type, typmod int32) {
		if t == policy.Unknown {
			t = policy.Text
		}
		d.add(b, semantics.ValueExpr(nil, t, typmod, -1), scalar.Constant(nil, t))
		columns = append(columns, plans.OutColumn{Name: name, Type: t, Typmod: typmod})
	}
	out.Shows(func(at int) {
		t, typmod := out.Exprs()[at].Type(), out.Exprs()[at].Typmod()
		show(out.Names()[at], t, typmod)
	}, func(k *linear.Key) {
		t, typmod := out.KeyColumn(k).DescribedType()
		show(k.Name, t, typmod)
	})
	return d, columns, nil
}

// looksAt reports whether a SELECT is what tools send to look at a table, SELECT columns FROM table LIMIT n, and
// nothing else.
func looksAt(sel *pg.SelectStmt) bool {
	bare := &pg.SelectStmt{TargetList: sel.TargetList, FromClause: sel.FromClause, LimitCount: sel.LimitCount, LimitOption: pg.LimitOption_LIMIT_OPTION_COUNT, Op: pg.SetOperation_SETOP_NONE}
	return sel.LimitCount != nil && proto.Equal(sel, bare) && len(sel.FromClause) == 1 && sel.FromClause[0].GetRangeVar() != nil &&
		!slices.ContainsFunc(sel.TargetList, func(n *pg.Node) bool { return n.GetResTarget().GetVal().GetColumnRef() == nil })
}

// shows reports whether rows show a column: SELECT 1 FROM people LIMIT 1 asks whether there are any.
func shows(out *bind.Rows) bool {
	some := false
	out.Shows(func(at int) { some = some || len(out.Exprs()[at].Cols) > 0 }, func(*linear.Key) { some = true })
	return some
}

// wraps reports whether a SELECT without aggregates is one, or such a SELECT of it: SELECT * FROM (SELECT * FROM
// people) AS t LIMIT 1000.
func (b *Query) wraps(top, sel *pg.SelectStmt) bool {
	if top == nil || top.Larg != nil || bind.IsGrouped(top) || len(top.FromClause) != 1 || top.WithClause != nil || top.WhereClause != nil {
		return top == sel
	}
	s := top.FromClause[0].GetRangeSubselect()
	return top == sel || s != nil && !s.Lateral && b.wraps(s.Subquery.GetSelectStmt(), sel)
}

// rows refuses rows as they are, and names the table of those that are made up.
func (b *Query) rows(from *bind.Rows) *refuse.Refusal {
	refusal := rawRows.At(from.Pos(), from.Table.Name)
	if t := b.declared(from.Table); t != nil && t.MadeUp() != nil {
		refusal.Hint += " Rows that are made up are in a table of their own: SELECT * FROM dp." + t.MadeUpName() + "."
	}
	return refusal
}

// Made-up rows are what a synthetic release holds, and what the hypothesis of an online release amounts to. They are a
// table of schema dp, by the name of the private table (dp.people_made_up) or of the release, over which whoever has
// paid may ask anything: it is post-processing. The first aggregate over it buys a synthetic release. In the private
// table's place they are where a session that has dp.probes = made_up looks at it, and nowhere else (docs/adr/0190).

// SyntheticTable is a table of made-up rows that a statement reads.
type SyntheticTable struct {
	Release *policy.Release
	Measure *plans.Measure
	Cells   *linear.Query
	Columns []*policy.Column
	Name    string // of its leaf
}

// syntheticOf finds the rows of a release that she holds; nil means she does not.
func (b *Query) syntheticOf(r *policy.Release) (m *plans.Measure, cells *linear.Query, err error) {
	if r.Kind == policy.OnlineRelease {
		o, err := reuse.OnlineOf(r)
		if err != nil || o.Drawn {
			return nil, nil, err
		}
		m, cells = o.Measure, o.Cells
	} else {
		s, err := reuse.SyntheticOf(r)
		if err != nil {
			return nil, nil, err
		}
		m, cells = s.Measure, s.Cells
	}
	var held *reuse.Holding
	if b.Context.Holdings != nil {
		for _, h := range b.Context.Holdings.Held(m.Digest) {
			if held == nil || h.At.After(held.At) {
				held = &h
			}
		}
	}
	same := *m
	if held != nil {
		reuse.Hold(&same, *held, "you have paid for its made-up rows")
	}
	return &same, cells, nil
}

// addSynthetic adds a table of made-up rows once, and returns its leaf's name.
func (b *Query) addSynthetic(u *SyntheticTable) string {
	for _, have := range b.synthetic {
		if have.Release == u.Release && len(have.Columns) == len(u.Columns) {
			return have.Name
		}
	}
	u.Name = "leaf_0" + strconv.Itoa(len(b.synthetic)+1) // no question's leaf has a name with a zero in front
	b.synthetic = append(b.synthetic, u)
	return u.Name
}

// syntheticTable is the table dp.name of a release. A SELECT with an aggregate buys it.
func (t *tree) syntheticTable(r *policy.Release, pos int) (string, *refuse.Refusal) {
	m, cells, err := t.b.syntheticOf(r)
	switch {
	case err != nil:
		return "", linear.NoMechanism.At(pos, err.Error())
	case m == nil || !m.Held && r.Kind == policy.OnlineRelease:
		return "", unopenedRows.At(pos, r.Name, plans.ColumnNames(r.Columns))
	case !m.Held && (!t.aggregates || !r.Cost.Fits(t.b.Context.Share(1))):
		return "", UnpaidRows.At(pos, r.Table.Name, r.Name, r.Epsilon.String())
	}
	if !m.Held {
		m.Why = "release " + r.Name + " is within dp.epsilon, and whatever is asked of its rows is free after it"
	}
	return t.b.addSynthetic(&SyntheticTable{Release: r, Measure: m, Cells: cells, Columns: r.Columns}), nil
}

// declared is the table of the policy that a table of a statement is; nil means it is none of the policy's.
func (b *Query) declared(t *policy.Table) *policy.Table {
	if t.Derived != nil || b.Context.Dataset == nil {
		return nil
	}
	return b.Context.Dataset.Table(t.Schema, t.Name)
}

// syntheticRows rebuilds a look at a table over made-up rows in the place of its own: those of a synthetic release that
// she holds, or else of an online one. What the release does not have is NULL.
func (t *tree) syntheticRows(sel *pg.SelectStmt, from *bind.Rows, out *pg.SelectStmt) *refuse.Refusal {
	table := t.b.declared(from.Table)
	if table == nil {
		return t.b.rows(from)
	}
	for _, r := range append(table.Synthetics[:len(table.Synthetics):len(table.Synthetics)], table.Sessions...) {
		m, cells, err := t.b.syntheticOf(r)
		if err != nil || m == nil || !m.Held {
			continue
		}
		var missing []*policy.Column
		for _, c := range table.Described() {
			if !c.Numbered() && !slices.Contains(r.Columns, c) {
				missing = append(missing, c)
			}
		}
		if len(missing) > 0 {
			t.b.Notes.Add("release " + r.Name + " does not have " + plans.ColumnNames(missing) + ", which would be NULL")
		}
		t.preview = &preview{table, t.b.addSynthetic(&SyntheticTable{Release: r, Measure: m, Cells: cells, Columns: table.Described()})}
		return t.plain(sel, out)
	}
	return t.b.rows(from)
}

// preview is the table whose rows are made up, and the leaf that has them.
type preview struct {
	table *policy.Table
	leaf  string
}
