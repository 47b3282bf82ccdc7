package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// witnessing is a database that notes which policies it was told of.
type witnessing struct {
	backend.Backend
	findings []backend.Finding
	adopted  []*policy.Policy
	current  func() *policy.Policy
	early    bool // a session could see a policy before the database was told of it
}

func (b *witnessing) Inspect(context.Context, *policy.Policy, *policy.Dataset) ([]backend.Finding, error) {
	return b.findings, nil
}

func (b *witnessing) Adopt(p *policy.Policy) {
	b.early = b.early || b.current() == p
	b.adopted = append(b.adopted, p)
}

// consenting is a ledger that refuses a policy, or does not.
type consenting struct {
	ledger.Ledger
	err error
}

func (l *consenting) Adopt(context.Context, ledger.Terms) error { return l.err }

// furnished is a sandbox that takes catalogs, or does not.
type furnished struct {
	sandbox.Engine
	err error
}

func (e *furnished) Catalog(context.Context, *policy.Policy) error { return e.err }

// TestRefusedReloadIsNotAdopted: the database holds its schema against a policy that comes into force and against none that anything refuses.
func TestRefusedReloadIsNotAdopted(t *testing.T) {
	old := &policy.Policy{}
	database, l, engine := &witnessing{}, &consenting{}, &furnished{}
	s := &Service{Backend: database, Ledger: l, Engine: engine, log: slog.New(slog.DiscardHandler)}
	s.putInForce(old)
	database.current = s.Policy
	next := func(n byte) *policy.Policy {
		p := &policy.Policy{Datasets: []*policy.Dataset{{ID: "clinic"}}}
		p.Digest[0] = n
		return p
	}
	refused := errors.New("no")
	for name, refuse := range map[string]func(){
		"by the database": func() { database.findings = []backend.Finding{{Fatal: true, Text: "no"}} },
		"by the ledger":   func() { l.err = refused },
		"by the sandbox":  func() { engine.err = refused },
	} {
		database.findings, l.err, engine.err = nil, nil, nil
		refuse()
		if err := s.adopt(t.Context(), t.Context(), next(1)); err == nil || len(database.adopted) != 0 || s.Policy() != old {
			t.Errorf("refused %s: %v, and the database was told of %d", name, err, len(database.adopted))
		}
	}
	database.findings, l.err, engine.err = nil, nil, nil
	p := next(2)
	if err := s.adopt(t.Context(), t.Context(), p); err != nil || !slices.Equal(database.adopted, []*policy.Policy{p}) || s.Policy() != p || database.early {
		t.Errorf("%v: the database was told of %d", err, len(database.adopted))
	}
}
