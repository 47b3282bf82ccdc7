package main

import (
	"context"
	"log/slog"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/engines"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
)

// publicCopies are the rows of public tables, each copied when a price first depends on it. The database is opened for
// the first of them.
type publicCopies struct {
	pipeline.PublicRows
	ctx    context.Context
	of     *policy.Policy
	log    *slog.Logger
	from   backend.Backend
	copies *service.Copies // of from
	tried  map[string]bool // by dataset and name: which were copied, or cannot be
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
	if err := p.open(); err != nil {
		return err
	}
	rows, err := p.copies.Read(p.ctx, t)
	if err == nil {
		p.Set(t, rows)
	}
	return err
}

// lists is the policy with the keys of public tables that are domains; as it was where they cannot be read.
func (p *publicCopies) lists() *policy.Policy {
	if len(p.of.Lists()) == 0 {
		return p.of
	}
	err := p.open()
	if err == nil {
		var read *policy.Policy
		if read, err = service.ReadLists(p.ctx, p.copies, p.of); err == nil {
			p.of = read
		}
	}
	if err != nil {
		p.log.Warn("keys of public tables are not read: what asks for a column of such a domain is not priced", "reason", err)
	}
	return p.of
}

// open opens the database, once.
func (p *publicCopies) open() (err error) {
	if p.from == nil {
		if p.from, err = engines.Open(p.ctx, p.of, p.log); err == nil {
			p.copies = service.NewCopies(p.from)
		}
	}
	return err
}

// Close lets go of the database, if it was opened.
func (p *publicCopies) Close() {
	if p.from != nil {
		p.from.Close()
	}
}
