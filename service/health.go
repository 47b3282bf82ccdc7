package service

import (
	"context"
	"errors"
	"time"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// health asks each thing that a question needs, side by side: the private database, as before each charge, or the snapshot
// in force; the ledger, whether it can be charged; the sandbox, for SELECT 1.
func (s *Service) health(ctx context.Context) []proxy.Part {
	p := s.current.Load()
	asks := []struct {
		name string
		ask  func() error
	}{
		{"database", func() error { return s.Backend.Ready(ctx) }},
		{"ledger", func() error { return s.ledgerAnswers(ctx) }},
		{"sandbox", func() error { return s.sandboxAnswers(ctx, p) }},
	}
	parts := make([]proxy.Part, len(asks))
	answers := make([]chan error, len(asks))
	for i, a := range asks {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- a.ask() }()
	}
	for i, a := range asks {
		parts[i].Name = a.name
		select {
		case parts[i].Err = <-answers[i]:
		case <-ctx.Done():
			parts[i].Err = errors.New("does not answer in time")
		}
	}
	if at := s.Backend.AsOf(p); at != 0 {
		parts[0].AsOf = time.Unix(0, at)
	}
	return parts
}

var errLedger = errors.New("nothing can be charged")

func (s *Service) ledgerAnswers(ctx context.Context) error {
	if err := s.Ledger.Sound(ctx); err != nil {
		s.log.Debug("health: ledger", "error", err)
		return errLedger
	}
	return nil
}

var errSandbox = errors.New("the sandbox does not answer")

func (s *Service) sandboxAnswers(ctx context.Context, p *policy.Policy) error {
	one := outer.Query{SQL: "SELECT 1 AS one", Columns: []outer.Column{{Name: "one", Type: policy.Int4, Typmod: -1}}}
	if _, err := s.Engine.Query(ctx, sandbox.Session{Database: p.Datasets[0].ID}, one, nil); err != nil {
		s.log.Debug("health: sandbox", "error", err)
		return errSandbox
	}
	return nil
}
