package pipeline

import (
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// PublicRows holds the public tables' rows as they were copied last, for plans that join them to private rows.
type PublicRows struct {
	mu     sync.RWMutex
	tables map[publicName]publicCopy
	copies int64
}

// publicCopy is one copy of a public table, with what plans have made of it.
type publicCopy struct {
	columns []*policy.Column // of its rows
	rows    [][]policy.Value
	shown   sandbox.Table // the same, as the sandbox has it
	made    map[string]any
}

// holds reports whether the rows have just a table's columns, in its order: a session may still ask under a policy in
// which a table of this name has others.
func (c publicCopy) holds(t *policy.Table) bool {
	return slices.EqualFunc(c.columns, t.Columns, func(a, b *policy.Column) bool {
		return a.Name == b.Name && a.Source == b.Source && a.Type == b.Type && a.Typmod == b.Typmod && a.Blanks == b.Blanks
	})
}

// maxMade bounds what is kept of one copy: some ten megabytes each for a table of 100,000 rows.
const maxMade = 8

type publicName struct{ dataset, schema, table string }

// Rows returns a table's rows; see reuse.PublicRows.
func (p *PublicRows) Rows(t *policy.Table) ([][]policy.Value, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	have, ok := p.tables[nameOf(t)]
	if !ok || !have.holds(t) {
		return nil, false
	}
	return have.rows, true
}

func nameOf(t *policy.Table) publicName { return publicName{t.Dataset.ID, t.Schema, t.Name} }

// Cached returns what was made of a copy; see reuse.PublicRows.
func (p *PublicRows) Cached(t *policy.Table, rows [][]policy.Value, name string) any {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if have := p.tables[nameOf(t)]; sameList(have.rows, rows) {
		return have.made[name]
	}
	return nil
}

// Cache keeps what was made of a copy; see reuse.PublicRows.
func (p *PublicRows) Cache(t *policy.Table, rows [][]policy.Value, name string, made any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.tables[nameOf(t)]
	if !sameList(have.rows, rows) || have.made == nil {
		return
	}
	if len(have.made) >= maxMade {
		clear(have.made)
	}
	have.made[name] = made
}

// version changes with each copy: what was made from an earlier one is out of date.
func (p *PublicRows) version() int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.copies
}

// Set takes a new copy of a public table.
func (p *PublicRows) Set(t *policy.Table, rows privacy.Released[[][]policy.Value]) {
	shown := PublicTable(t, rows)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tables == nil {
		p.tables = map[publicName]publicCopy{}
	}
	p.tables[nameOf(t)] = publicCopy{t.Columns, rows.Value(), shown, map[string]any{}}
	p.copies++
}

// PublicTable gives the rows of a public table their columns.
func PublicTable(t *policy.Table, rows privacy.Released[[][]policy.Value]) sandbox.Table {
	return sandbox.Table{Schema: t.Schema, Name: t.Name, Rows: privacy.PostProcess(rows, func(data [][]policy.Value) sandbox.Rows {
		columns := make([]sandbox.Column, len(t.Columns))
		for i, c := range t.Columns {
			columns[i] = sandbox.Column{Name: c.Name}
			columns[i].Type, columns[i].Typmod = c.DescribedType()
		}
		return sandbox.Rows{Columns: columns, Data: data}
	})}
}

// copiesFor are the public tables that a plan's outer query reads, as they are now, before anything is charged: a
// policy that comes into force afterwards, or a fresh copy, changes nothing of the answer. The sandbox is given them
// with the query, and takes its own where these are the same.
func (p *PublicRows) copiesFor(plan *plans.Plan) (list []sandbox.Table) {
	for _, r := range plan.Outer.Relations {
		if r.Public == nil || slices.ContainsFunc(list, func(t sandbox.Table) bool { return t.Schema == r.Public.Schema && t.Name == r.Public.Name }) {
			continue
		}
		if have, ok := p.copyOf(r.Public); ok {
			list = append(list, have)
		}
	}
	return list
}

// copyOf is a table as it was copied last.
func (p *PublicRows) copyOf(t *policy.Table) (sandbox.Table, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	have, ok := p.tables[nameOf(t)]
	return have.shown, ok && have.holds(t)
}

// UsePublic gives the pipeline the public tables' rows. It must be called before the first statement.
func (a *Answerer) UsePublic(p *PublicRows) { a.public = p }
