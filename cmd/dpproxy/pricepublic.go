package main

import (
	"context"
	"log/slog"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/engines"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// publicCopies are the rows of public tables, each copied when a price first depends on it. The database is opened for
// the first of them.
type publicCopies struct {
	pipeline.PublicRows
	ctx   context.Context
	of    *policy.Policy
	log   *slog.Logger
	from  backend.Backend
	tried map[string]bool // by dataset and name: which were copied, or cannot be
}

// Rows returns a table's rows; see reuse.PublicRows.
func (p *publicCopies) Rows(t *policy.Table) ([][]policy.Value, bool) {
	name := t.Dataset.ID + "/" + t.Schema + "." + t.Name
	if !p.tried[name] {
		if p.tried == nil {
			p.tried = map[string]bool{}
		}
		p.tried[name] = true
		if err := p.copy(t); err != nil {
			p.log.Warn("a public table is not copied: what depends on its rows is not priced", "table", t.Name, "reason", err)
		}
	}
	return p.PublicRows.Rows(t)
}

func (p *publicCopies) copy(t *policy.Table) (err error) {
	if p.from == nil {
		if p.from, err = engines.Open(p.ctx, p.of, p.log); err != nil {
			return err
		}
	}
	rows, err := p.from.ReadPublic(p.ctx, t)
	if err == nil {
		p.Set(t, rows)
	}
	return err
}

// Close lets go of the database, if it was opened.
func (p *publicCopies) Close() {
	if p.from != nil {
		p.from.Close()
	}
}
