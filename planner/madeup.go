package planner

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Made-up rows are what a synthetic release holds, and what the hypothesis of an online release amounts to. Whoever has paid
// sees them in the place of private rows that a SELECT without aggregates asks for, and in a table dp.name, over which
// anything may be asked: it is post-processing. The first aggregate over dp.name buys a synthetic release; a preview, which
// has none, never buys (docs/adr/0031).

// MadeUp is how the rows of a leaf are made of the cells that a release names.
type MadeUp struct {
	Measure int // index into Plan.Measures
	sizes   []int
	of      []int   // by column of the leaf: which dimension; −1: the release does not have it, and it is NULL
	from    [][]int // by dimension and its cell: the column's first cell in it
	columns []*policy.Column
}

// Values are those of a row, of which the cell is known. Of a cell that holds several values an even spread is shown: which,
// the number of the row decides.
func (m *MadeUp) Values(row int, cell int32) []policy.Value {
	at, rest := make([]int, len(m.sizes)), int(cell)
	for i := len(m.sizes) - 1; i >= 0; i-- {
		at[i], rest = rest%m.sizes[i], rest/m.sizes[i]
	}
	out := make([]policy.Value, len(m.columns))
	for i, c := range m.columns {
		if m.of[i] < 0 {
			continue
		}
		from := m.from[m.of[i]]
		first, end := from[at[m.of[i]]], c.Domain.Size()
		if at[m.of[i]]+1 < len(from) {
			end = from[at[m.of[i]]+1]
		}
		spread := (uint64(row)*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9) >> 33
		out[i] = c.Domain.Low(first + int(spread%uint64(end-first)))
	}
	return out
}

// syntheticRelease is a synthetic release as the planner looks at it, a function of the policy alone.
type syntheticRelease struct {
	cells   *solved
	measure *Measure
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
	s := &syntheticRelease{cells: cellsOf(r)}
	y := mechanisms.Synthetic{Rule: mechanisms.MWEM, Contribution: r.Table.ContributionTo(s.cells.cells), Total: r.Table.ExpectedRows, Drawn: r.Rows, Cost: r.Cost}
	if r.Mechanism == "small-database" {
		y.Rule = mechanisms.SmallDatabase
	}
	for _, p := range s.cells.parts {
		y.Sizes = append(y.Sizes, p.classes)
	}
	spec, err := mechanisms.NewSynthetic(y)
	if err == nil {
		err = y.CanRelease(spec.Cells)
	}
	if err != nil {
		return nil, err
	}
	m := s.cells.measure(r.Kind.String(), r.Name)
	m.Declared, m.Shared, m.Spec, m.Cost = r, true, spec, r.Cost
	m.described = predicate.EncodeText(append(m.described, "synthetic"...), r.Name)
	m.Digest = sha256.Sum256(m.described)
	s.measure = m
	return s, nil
}

// instanceOf is the measure of a synthetic release, or of an online one that is drawn as a histogram.
func instanceOf(r *policy.Release) (*Measure, error) {
	if r.Kind == policy.SyntheticRelease {
		s, err := syntheticOf(r)
		if err != nil {
			return nil, err
		}
		m := *s.measure
		return &m, nil
	}
	o, err := onlineOf(r)
	if err != nil {
		return nil, err
	}
	if !o.drawn {
		return nil, errors.New("an online release is opened by its first question")
	}
	m := *o.measure
	return &m, nil
}

// madeUp is a table of made-up rows that a statement reads.
type madeUp struct {
	release *policy.Release
	measure *Measure
	cells   *solved
	columns []*policy.Column
	name    string // of its leaf
}

// madeUpOf finds the rows of a release that she holds; nil: she does not.
func (b *binder) madeUpOf(r *policy.Release) (m *Measure, cells *solved, err error) {
	if r.Kind == policy.OnlineRelease {
		o, err := onlineOf(r)
		if err != nil || o.drawn {
			return nil, nil, err
		}
		m, cells = o.measure, o.cells
	} else {
		s, err := syntheticOf(r)
		if err != nil {
			return nil, nil, err
		}
		m, cells = s.measure, s.cells
	}
	var held *Holding
	if b.c.Holdings != nil {
		for _, h := range b.c.Holdings.Held(m.Digest) {
			if held == nil || h.At.After(held.At) {
				held = &h
			}
		}
	}
	same := *m
	if held != nil {
		w := &way{measure: &same}
		w.hold(*held, "you have paid for its made-up rows")
	}
	return &same, cells, nil
}

// addMadeUp adds a table of made-up rows once, and returns its leaf's name.
func (b *binder) addMadeUp(u *madeUp) string {
	for _, have := range b.madeUps {
		if have.release == u.release && len(have.columns) == len(u.columns) {
			return have.name
		}
	}
	u.name = "leaf_0" + strconv.Itoa(len(b.madeUps)+1) // no question's leaf has a name with a zero in front
	b.madeUps = append(b.madeUps, u)
	return u.name
}

// releaseNamed finds a release that is a table of schema dp.
func (b *binder) releaseNamed(name string) *policy.Release {
	if b.c.Dataset == nil {
		return nil
	}
	for _, t := range b.c.Dataset.Tables {
		for _, r := range append(t.Synthetics[:len(t.Synthetics):len(t.Synthetics)], t.Sessions...) {
			if r.Name == name {
				return r
			}
		}
	}
	return nil
}

// madeUpTable is the table dp.name of a release. A SELECT with an aggregate buys it.
func (t *tree) madeUpTable(r *policy.Release, pos int) (string, *refuse.Refusal) {
	m, cells, err := t.b.madeUpOf(r)
	switch {
	case err != nil:
		return "", noMechanism.At(pos, err.Error())
	case m == nil || !m.Held && r.Kind == policy.OnlineRelease:
		return "", unopenedRows.At(pos, r.Name, columnNames(r.Columns))
	case !m.Held && (!t.aggregates || !r.Cost.Fits((&chooser{c: t.b.c}).share(1))):
		return "", unpaidRows.At(pos, r.Table.Name, r.Name, r.Epsilon.String())
	}
	if !m.Held {
		m.Why = "release " + r.Name + " is within dp.epsilon, and whatever is asked of its rows is free after it"
	}
	return t.b.addMadeUp(&madeUp{release: r, measure: m, cells: cells, columns: r.Columns}), nil
}

// previewed finds the release whose made-up rows stand for a table's in a SELECT without aggregates: of those that she holds
// the one with the most columns, a synthetic one before an online one. The columns that the statement computes with, or
// compares, must be among them.
func (b *binder) previewed(from *rows, out *rows) (*madeUp, *refuse.Refusal) {
	table := from.table
	if table.Derived != nil || b.c.Dataset == nil {
		return nil, rawRows.At(from.pos, table.Name)
	}
	if table.Opened {
		table = b.c.Dataset.Table(table.Schema, table.Name)
	}
	var best *madeUp
	var unpaid *policy.Release
	for _, r := range append(table.Synthetics[:len(table.Synthetics):len(table.Synthetics)], table.Sessions...) {
		m, cells, err := b.madeUpOf(r)
		if err != nil || m == nil {
			continue
		}
		if !m.Held {
			if unpaid == nil && r.Kind == policy.SyntheticRelease {
				unpaid = r
			}
			continue
		}
		if best == nil || len(r.Columns) > len(best.release.Columns) {
			best = &madeUp{release: r, measure: m, cells: cells, columns: table.Columns}
		}
	}
	switch {
	case best == nil && unpaid != nil:
		return nil, unpaidRows.At(from.pos, table.Name, unpaid.Name, unpaid.Epsilon.String())
	case best == nil:
		return nil, rawRows.At(from.pos, table.Name)
	}
	computed := slices.Clone(out.where)
	for _, e := range out.exprs {
		if e.form != formColumn {
			computed = append(computed, e)
		}
	}
	for _, e := range computed {
		for _, at := range e.cols {
			if c := table.Columns[at]; !slices.Contains(best.release.Columns, c) {
				return nil, notMadeUp.At(e.pos, c.Name, best.release.Name, columnNames(best.release.Columns))
			}
		}
	}
	var missing []*policy.Column
	for _, e := range out.exprs {
		if e.form == formColumn && !slices.Contains(best.release.Columns, table.Columns[e.cols[0]]) && !slices.Contains(missing, table.Columns[e.cols[0]]) {
			missing = append(missing, table.Columns[e.cols[0]])
		}
	}
	if len(missing) > 0 {
		b.said.add(columnNames(missing) + ": not in release " + best.release.Name + ", shown as NULL")
	}
	return best, nil
}

// isPreview tells a SELECT without aggregates over one private table, or over such a SELECT.
func (b *binder) isPreview(sel *pg.SelectStmt, scope *cte) bool {
	if sel == nil || sel.Larg != nil || isGrouped(sel) || len(sel.FromClause) != 1 || sel.WithClause != nil {
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

// madeUpRows rebuilds a preview over made-up rows in the place of the private table's.
func (t *tree) madeUpRows(sel *pg.SelectStmt, from *rows, out *pg.SelectStmt) *refuse.Refusal {
	shown, refusal := t.b.project(sel, from, false)
	if refusal != nil {
		return refusal
	}
	u, refusal := t.b.previewed(from, shown)
	if refusal != nil {
		return refusal
	}
	t.preview = &preview{u.release.Table, t.b.addMadeUp(u)}
	return t.plain(sel, out)
}

// preview is the table whose rows are made up, and the leaf that has them.
type preview struct {
	table *policy.Table
	leaf  string
}

// addMadeUps puts made-up rows into the plan.
func (p *Plan) addMadeUps(b *binder) *refuse.Refusal {
	for _, u := range b.madeUps {
		m := &MadeUp{Measure: p.measure(u.measure), columns: u.columns}
		for _, part := range u.cells.parts {
			m.sizes = append(m.sizes, part.classes)
			i := slices.Index(u.release.Columns, u.release.Table.Columns[part.columns[0]])
			m.from = append(m.from, u.release.Cells(i))
		}
		leaf := &Leaf{Name: u.name, MadeUp: m, Rows: u.release.Rows, SQL: "made-up rows of " + u.release.Name}
		for _, c := range u.columns {
			of := -1
			for i, part := range u.cells.parts {
				if u.release.Table.Columns[part.columns[0]] == c {
					of = i
				}
			}
			m.of = append(m.of, of)
			leaf.Keys = append(leaf.Keys, KeyColumn{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
		}
		p.Leaves = append(p.Leaves, leaf)
		p.Notes = append(p.Notes, fmt.Sprintf("the rows of %s are synthetic: made up by %s, none is that of a %s", u.release.Name, madeBy(u.measure.Spec), u.release.Table.Dataset.Unit.Name))
		if !u.measure.Held && !p.Cost.Fits((&chooser{c: b.c}).share(1)) {
			return unpaidRows.At(-1, u.release.Table.Name, u.release.Name, p.Cost.String())
		}
	}
	return nil
}

func madeBy(s mechanisms.Spec) string {
	if o, ok := s.Kind.(*mechanisms.Online); ok {
		return "the hypothesis of its " + o.Rule.String()
	}
	return s.Kind.(*mechanisms.Synthetic).Rule.String()
}
