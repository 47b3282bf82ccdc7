package outerquery

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Made-up rows are what a synthetic release holds, and what the hypothesis of an online release amounts to. Whoever has paid
// sees them in the place of private rows that a SELECT without aggregates asks for, and in a table dp.name, over which
// anything may be asked: it is post-processing. The first aggregate over dp.name buys a synthetic release; a preview, which
// has none, never buys (docs/adr/0031).

// SyntheticTable is a table of made-up rows that a statement reads.
type SyntheticTable struct {
	Release *policy.Release
	Measure *plans.Measure
	Cells   *linear.Query
	Columns []*policy.Column
	Name    string // of its leaf
}

// syntheticOf finds the rows of a release that she holds; nil: she does not.
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

// previewed finds the release whose made-up rows stand for a table's in a SELECT without aggregates: of those that she holds
// the one with the most columns, a synthetic one before an online one. The columns that the statement computes with, or
// compares, must be among them.
func (b *Query) previewed(from *bind.Rows, out *bind.Rows) (*SyntheticTable, *refuse.Refusal) {
	table := from.Table
	if table.Derived != nil || b.Context.Dataset == nil {
		return nil, rawRows.At(from.Pos(), table.Name)
	}
	if table.Opened {
		table = b.Context.Dataset.Table(table.Schema, table.Name)
	}
	var best *SyntheticTable
	var unpaid *policy.Release
	for _, r := range append(table.Synthetics[:len(table.Synthetics):len(table.Synthetics)], table.Sessions...) {
		m, cells, err := b.syntheticOf(r)
		if err != nil || m == nil {
			continue
		}
		if !m.Held {
			if unpaid == nil && r.Kind == policy.SyntheticRelease {
				unpaid = r
			}
			continue
		}
		if best == nil || len(r.Columns) > len(best.Release.Columns) {
			best = &SyntheticTable{Release: r, Measure: m, Cells: cells, Columns: table.Described()}
		}
	}
	switch {
	case best == nil && unpaid != nil:
		return nil, UnpaidRows.At(from.Pos(), table.Name, unpaid.Name, unpaid.Epsilon.String())
	case best == nil:
		return nil, rawRows.At(from.Pos(), table.Name)
	}
	computed := slices.Clone(out.Where())
	for _, e := range out.Exprs() {
		if e.Form != semantics.FormColumn {
			computed = append(computed, e)
		}
	}
	for _, e := range append(computed, out.Exprs()...) {
		if slices.ContainsFunc(e.Cols, func(at int) bool { return at >= len(table.Columns) }) { // what the unit has elsewhere (EXISTS), which no made-up row says
			return nil, rawRows.At(from.Pos(), table.Name)
		}
	}
	for _, e := range computed {
		for _, at := range e.Cols {
			if c := table.Columns[at]; !slices.Contains(best.Release.Columns, c) {
				return nil, notSynthetic.At(e.Pos, c.Name, best.Release.Name, plans.ColumnNames(best.Release.Columns))
			}
		}
	}
	var missing []*policy.Column
	for _, e := range out.Exprs() {
		if e.Form == semantics.FormColumn && !slices.Contains(best.Release.Columns, table.Columns[e.Cols[0]]) && !slices.Contains(missing, table.Columns[e.Cols[0]]) {
			missing = append(missing, table.Columns[e.Cols[0]])
		}
	}
	var numbered []*policy.Column
	out.Shows(func(int) {}, func(k *linear.Key) {
		list := &missing
		if k.Column.Numbered() {
			list = &numbered
		}
		if !slices.Contains(*list, k.Column) {
			*list = append(*list, k.Column)
		}
	})
	if len(numbered) > 0 {
		b.Notes.Add(plans.ColumnNames(numbered) + ": a number for each made-up row, and nobody's key")
	}
	if len(missing) > 0 {
		b.Notes.Add(plans.ColumnNames(missing) + ": not in release " + best.Release.Name + ", shown as NULL")
	}
	return best, nil
}

// isPreview tells a SELECT without aggregates over one private table, or over such a SELECT.
func (b *Query) isPreview(sel *pg.SelectStmt, scope *bind.Scope) bool {
	if sel == nil || sel.Larg != nil || bind.IsGrouped(sel) || len(sel.FromClause) != 1 || sel.WithClause != nil {
		return false
	}
	if s := sel.FromClause[0].GetRangeSubselect(); s != nil {
		return !s.Lateral && b.isPreview(s.Subquery.GetSelectStmt(), scope)
	}
	v := sel.FromClause[0].GetRangeVar()
	if v == nil || v.Schemaname == "" && scope.Find(v.Relname) != nil {
		return false
	}
	t, _, refusal := b.Resolve(v)
	return refusal == nil && t != nil
}

// syntheticRows rebuilds a preview over made-up rows in the place of the private table's.
func (t *tree) syntheticRows(sel *pg.SelectStmt, from *bind.Rows, out *pg.SelectStmt) *refuse.Refusal {
	shown, refusal := t.b.Project(sel, from, false)
	if refusal != nil {
		return refusal
	}
	u, refusal := t.b.previewed(from, shown)
	if refusal != nil {
		return refusal
	}
	var key *pg.Node
	if ast.Holds(sel.WhereClause, func(n *pg.Node) bool { key = n; return from.IsKeyOnly(n) }) { // person_id IS NOT NULL
		name := ast.Strings(key.GetColumnRef().Fields)
		return notSynthetic.At(ast.Location(key), name[len(name)-1], u.Release.Name, plans.ColumnNames(u.Release.Columns))
	}
	t.preview = &preview{u.Release.Table, t.b.addSynthetic(u)}
	return t.plain(sel, out)
}

// preview is the table whose rows are made up, and the leaf that has them.
type preview struct {
	table *policy.Table
	leaf  string
}
