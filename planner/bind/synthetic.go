package bind

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Made-up rows are what a synthetic release holds, and what the hypothesis of an online release amounts to. Whoever has paid
// sees them in the place of private rows that a SELECT without aggregates asks for, and in a table dp.name, over which
// anything may be asked: it is post-processing. The first aggregate over dp.name buys a synthetic release; a preview, which
// has none, never buys (docs/adr/0031).

// syntheticRelease is a synthetic release as the planner looks at it, a function of the policy alone.
type syntheticRelease struct {
	cells   *linear.Query
	measure *plans.Measure
}

var syntheticReleases sync.Map // *policy.Release → *syntheticRelease or error

func syntheticOf(r *policy.Release) (*syntheticRelease, error) {
	if known, ok := syntheticReleases.Load(r); ok {
		if err, failed := known.(error); failed {
			return nil, err
		}
		return known.(*syntheticRelease), nil
	}
	s, err := readSynthetic(r)
	if err != nil {
		syntheticReleases.Store(r, err)
		return nil, err
	}
	syntheticReleases.Store(r, s)
	return s, nil
}

func readSynthetic(r *policy.Release) (*syntheticRelease, error) {
	s := &syntheticRelease{cells: reuse.CellsOf(r)}
	y := mechanisms.Synthetic{Rule: mechanisms.MWEM, Contribution: r.Table.ContributionTo(s.cells.Cells), Total: r.Table.ExpectedRows, Drawn: r.Rows, Cost: r.Cost}
	switch r.Mechanism {
	case "small-database":
		y.Rule = mechanisms.SmallDatabase
	case "dawa":
		y.Rule = mechanisms.DAWA
	}
	for _, p := range s.cells.Factors {
		y.Sizes = append(y.Sizes, p.Classes)
	}
	spec, err := mechanisms.NewSynthetic(y)
	if err == nil {
		err = y.CanRelease(spec.Cells)
	}
	if err != nil {
		return nil, err
	}
	m := s.cells.Measure(r.Kind.String(), r.Name)
	m.Declared, m.Shared, m.Spec, m.Cost = r, true, spec, r.Cost
	m.Described = predicate.EncodeText(append(m.Described, "synthetic"...), r.Name)
	m.Digest = sha256.Sum256(m.Described)
	s.measure = m
	return s, nil
}

// InstanceOf is the measure of a synthetic release, or of an online one that is drawn as a histogram.
func InstanceOf(r *policy.Release) (*plans.Measure, error) {
	if r.Kind == policy.SyntheticRelease {
		s, err := syntheticOf(r)
		if err != nil {
			return nil, err
		}
		m := *s.measure
		return &m, nil
	}
	o, err := reuse.OnlineOf(r)
	if err != nil {
		return nil, err
	}
	if !o.Drawn {
		return nil, errors.New("an online release is opened by its first question")
	}
	m := *o.Measure
	return &m, nil
}

// SyntheticTable is a table of made-up rows that a statement reads.
type SyntheticTable struct {
	Release *policy.Release
	Measure *plans.Measure
	Cells   *linear.Query
	Columns []*policy.Column
	Name    string // of its leaf
}

// syntheticOf finds the rows of a release that she holds; nil: she does not.
func (b *Binder) syntheticOf(r *policy.Release) (m *plans.Measure, cells *linear.Query, err error) {
	if r.Kind == policy.OnlineRelease {
		o, err := reuse.OnlineOf(r)
		if err != nil || o.Drawn {
			return nil, nil, err
		}
		m, cells = o.Measure, o.Cells
	} else {
		s, err := syntheticOf(r)
		if err != nil {
			return nil, nil, err
		}
		m, cells = s.measure, s.cells
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
func (b *Binder) addSynthetic(u *SyntheticTable) string {
	for _, have := range b.Synthetic {
		if have.Release == u.Release && len(have.Columns) == len(u.Columns) {
			return have.Name
		}
	}
	u.Name = "leaf_0" + strconv.Itoa(len(b.Synthetic)+1) // no question's leaf has a name with a zero in front
	b.Synthetic = append(b.Synthetic, u)
	return u.Name
}

// releaseNamed finds a release that is a table of schema dp.
func (b *Binder) releaseNamed(name string) *policy.Release {
	if b.Context.Dataset == nil {
		return nil
	}
	for _, t := range b.Context.Dataset.Tables {
		for _, r := range append(t.Synthetics[:len(t.Synthetics):len(t.Synthetics)], t.Sessions...) {
			if r.Name == name {
				return r
			}
		}
	}
	return nil
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
func (b *Binder) previewed(from *Rows, out *Rows) (*SyntheticTable, *refuse.Refusal) {
	table := from.Table
	if table.Derived != nil || b.Context.Dataset == nil {
		return nil, rawRows.At(from.pos, table.Name)
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
			best = &SyntheticTable{Release: r, Measure: m, Cells: cells, Columns: table.Columns}
		}
	}
	switch {
	case best == nil && unpaid != nil:
		return nil, UnpaidRows.At(from.pos, table.Name, unpaid.Name, unpaid.Epsilon.String())
	case best == nil:
		return nil, rawRows.At(from.pos, table.Name)
	}
	computed := slices.Clone(out.where)
	for _, e := range out.exprs {
		if e.Form != semantics.FormColumn {
			computed = append(computed, e)
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
	for _, e := range out.exprs {
		if e.Form == semantics.FormColumn && !slices.Contains(best.Release.Columns, table.Columns[e.Cols[0]]) && !slices.Contains(missing, table.Columns[e.Cols[0]]) {
			missing = append(missing, table.Columns[e.Cols[0]])
		}
	}
	if len(missing) > 0 {
		b.Notes.Add(plans.ColumnNames(missing) + ": not in release " + best.Release.Name + ", shown as NULL")
	}
	return best, nil
}

// isPreview tells a SELECT without aggregates over one private table, or over such a SELECT.
func (b *Binder) isPreview(sel *pg.SelectStmt, scope *cte) bool {
	if sel == nil || sel.Larg != nil || IsGrouped(sel) || len(sel.FromClause) != 1 || sel.WithClause != nil {
		return false
	}
	if s := sel.FromClause[0].GetRangeSubselect(); s != nil {
		return !s.Lateral && b.isPreview(s.Subquery.GetSelectStmt(), scope)
	}
	v := sel.FromClause[0].GetRangeVar()
	if v == nil || v.Schemaname == "" && scope.find(v.Relname) != nil {
		return false
	}
	t, _, refusal := b.resolve(v)
	return refusal == nil && t != nil
}

// syntheticRows rebuilds a preview over made-up rows in the place of the private table's.
func (t *tree) syntheticRows(sel *pg.SelectStmt, from *Rows, out *pg.SelectStmt) *refuse.Refusal {
	shown, refusal := t.b.project(sel, from, false)
	if refusal != nil {
		return refusal
	}
	u, refusal := t.b.previewed(from, shown)
	if refusal != nil {
		return refusal
	}
	t.preview = &preview{u.Release.Table, t.b.addSynthetic(u)}
	return t.plain(sel, out)
}

// preview is the table whose rows are made up, and the leaf that has them.
type preview struct {
	table *policy.Table
	leaf  string
}

func MadeBy(s mechanisms.Spec) string {
	if o, ok := s.Kind.(*mechanisms.Online); ok {
		return "the hypothesis of its " + o.Rule.String()
	}
	return s.Kind.(*mechanisms.Synthetic).Rule.String()
}
