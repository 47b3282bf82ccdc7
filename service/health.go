package service

import (
	"context"
	"errors"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// asideFor is how long what is aside may take: a directory that hangs is not to hold up what is told of the rest.
const asideFor = 2 * time.Second

// health asks each thing that a question needs, side by side: the private database, as before each charge, or the snapshot
// in force; the ledger, whether it can be charged; the sandbox, for SELECT 1. And what none waits for: the place of the next snapshot; the
// directory and the provider that judge log-ins.
func (s *Service) health(ctx context.Context) []proxy.Part {
	p := s.current.Load()
	type ask struct {
		name  string
		aside bool
		ask   func() error
	}
	asks := []ask{
		{"database", false, func() error { return s.Backend.Ready(ctx) }},
		{"ledger", false, func() error { return s.ledgerAnswers(ctx) }},
		{"sandbox", false, func() error { return s.sandboxAnswers(ctx, p) }},
	}
	if b, ok := s.Backend.(*backend.Snapshots); ok {
		asks = append(asks, ask{"next snapshot", true, func() error { return s.oneLook(b.Next) }})
	}
	short, cancel := context.WithTimeout(ctx, asideFor)
	defer cancel()
	if l := p.Server.LDAP; l != nil {
		asks = append(asks, ask{"directory", true, func() error { return login.DirectoryAnswers(short, l) }})
	}
	if o := p.Server.OIDC; o != nil {
		asks = append(asks, ask{"provider", true, func() error { return login.ProviderAnswers(short, o) }})
	}
	parts := make([]proxy.Part, len(asks))
	answers := make([]chan error, len(asks))
	for i, a := range asks {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- a.ask() }()
	}
	for i, a := range asks {
		parts[i].Name, parts[i].Aside = a.name, a.aside
		enough := ctx.Done()
		if a.aside {
			enough = short.Done()
		}
		select {
		case parts[i].Err = <-answers[i]:
		case <-enough:
			parts[i].Err = errSlow
		}
		parts[i].Aside = parts[i].Aside || errors.Is(parts[i].Err, backend.ErrDrift) // other tables are asked, here as at another proxy
	}
	if at := s.Backend.AsOf(p); at != 0 {
		parts[0].AsOf = time.Unix(0, at)
	}
	return parts
}

// observed looks at what Prometheus is told beside the parts: functions of the policy, the clock and the ledger, and the faults of rule 5.
func (s *Service) observed() proxy.Observed {
	p := s.current.Load()
	o := proxy.Observed{PaidFaults: map[string]int64{}, PolicySince: time.Unix(0, s.since.Load()), Ledger: s.Ledger.Now(), Memory: map[string]int64{"proxy": s.own.Load()}}
	for _, d := range p.Datasets {
		o.PaidFaults[d.ID] = s.Backend.Faults(d.ID)
	}
	if p.Sandbox.URL == "" {
		o.Memory["sandbox session"] = sessionAtRest + p.Server.Limits.StatementMemory
	}
	if b, ok := s.Backend.(*backend.Snapshots); ok {
		o.Copies, o.Missed = true, b.Missed()
	}
	return o
}

var (
	errLedger = errors.New("nothing can be charged")
	errSlow   = errors.New("does not answer in time")
)

// oneLook looks at a directory, which may hang and cannot be told to stop: while one look has not come back there is no other.
func (s *Service) oneLook(look func() error) error {
	if !s.looking.CompareAndSwap(false, true) {
		return errSlow
	}
	defer s.looking.Store(false)
	return look()
}

func (s *Service) ledgerAnswers(ctx context.Context) error {
	if err := s.Ledger.Sound(ctx); err != nil {
		s.log.Debug("health: ledger", "error", err)
		return errLedger
	}
	return nil
}

var errSandbox = errors.New("the sandbox does not answer")

func (s *Service) sandboxAnswers(ctx context.Context, p *policy.Policy) error {
	one := outer.Query{SQL: "SELECT 1 AS one"}
	if _, err := s.Engine.Query(ctx, sandbox.Session{Database: p.Datasets[0].ID}, one, nil); err != nil {
		s.log.Debug("health: sandbox", "error", err)
		return errSandbox
	}
	return nil
}
