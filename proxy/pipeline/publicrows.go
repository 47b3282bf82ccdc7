package pipeline

import (
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// PublicRows holds the public tables' rows as they were copied last, for plans that join them to private rows.
type PublicRows struct {
	mu     sync.RWMutex
	tables map[publicName][][]policy.Value
	copies int64
}

type publicName struct{ dataset, schema, table string }

// Rows returns a table's rows; see reuse.PublicRows.
func (p *PublicRows) Rows(t *policy.Table) ([][]policy.Value, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	rows, ok := p.tables[publicName{t.Dataset.ID, t.Schema, t.Name}]
	return rows, ok
}

// version changes with each copy: what was made from an earlier one is out of date.
func (p *PublicRows) version() int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.copies
}

// Set takes a new copy of a public table.
func (p *PublicRows) Set(t *policy.Table, rows privacy.Released[[][]policy.Value]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tables == nil {
		p.tables = map[publicName][][]policy.Value{}
	}
	p.tables[publicName{t.Dataset.ID, t.Schema, t.Name}] = rows.Value()
	p.copies++
}

// UsePublic gives the pipeline the public tables' rows. It must be called before the first statement.
func (a *Answerer) UsePublic(p *PublicRows) { a.public = p }
