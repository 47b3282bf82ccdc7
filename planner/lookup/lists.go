package lookup

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// lists are the rows of a statement's own lists (docs/adr/0122), beside the public tables.
type lists struct {
	reuse.PublicRows
	rows    map[*policy.Table][][]policy.Value
	answers map[*policy.Table]*plans.Answer // that the rows are of (docs/adr/0117); nil means none
}

// Rows are those of a list of the statement's own, or of a public table. Nothing that is made of such a list is cached:
// it goes with its statement.
func (l lists) Rows(t *policy.Table) ([][]policy.Value, bool) {
	if rows, ok := l.rows[t]; ok {
		return rows, true
	}
	if l.PublicRows == nil {
		return nil, false
	}
	return l.PublicRows.Rows(t)
}

func (l lists) Cached(t *policy.Table, rows [][]policy.Value, name string) any {
	if _, own := l.rows[t]; own || l.PublicRows == nil {
		return nil
	}
	return l.PublicRows.Cached(t, rows, name)
}

func (l lists) Cache(t *policy.Table, rows [][]policy.Value, name string, made any) {
	if _, own := l.rows[t]; !own && l.PublicRows != nil {
		l.PublicRows.Cache(t, rows, name, made)
	}
}

// Beside are public rows with those of one more table, a statement's own.
func Beside(public reuse.PublicRows, t *policy.Table, rows [][]policy.Value, released *plans.Answer) reuse.PublicRows {
	own, ok := public.(lists)
	if !ok {
		own = lists{public, map[*policy.Table][][]policy.Value{}, map[*policy.Table]*plans.Answer{}}
	}
	own.rows[t], own.answers[t] = rows, released
	return own
}

// Extended gives each row of a statement's own list what an expression over it is, after its columns, and returns its
// place; false means the rows are others'.
func (l *Keyed) Extended(e *semantics.Expr) (int, bool) {
	own, ok := l.Public.(lists)
	if !ok || len(own.rows[l.Table]) == 0 {
		return 0, false
	}
	rows := slices.Clone(own.rows[l.Table])
	for i, row := range rows {
		l.Env.Work.Step(WorkOf(e))
		v, refusal := e.Value(row[:len(l.Table.Columns)])
		if refusal != nil {
			return 0, false
		}
		rows[i] = append(slices.Clone(row), v)
	}
	own.rows[l.Table] = rows
	return len(rows[0]) - 1, true
}
