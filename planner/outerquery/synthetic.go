package outerquery

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Made-up rows are what a synthetic release holds, and what the hypothesis of an online release amounts to. They are a
// table of schema dp, by the name of the private table (dp.people_made_up) or of the release, over which whoever has
// paid may ask anything: it is post-processing. The first aggregate over it buys a synthetic release. In the private
// table's place they stand where a session that has dp.probes = made_up looks at it, and nowhere else (docs/adr/0190).

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
