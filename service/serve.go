package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/spans"
)

// shutdownGrace is how long running statements may take to end by themselves after a signal; then their waits end. What
// does not end for that, such as a query on the private database, has until exitWithin of cmd/dpproxy.
const shutdownGrace = 3 * time.Second

// spansGrace is how long the last spans may take to be sent.
const spansGrace = time.Second

// Run serves a policy until ctx ends; listening is told the address once clients can connect.
func Run(ctx context.Context, path string, trust ledger.Options, log *slog.Logger, listening func(address string)) error {
	if err := parserSelfTest(ctx); err != nil {
		return err
	}
	s, err := Open(ctx, path, trust, log)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Serve(ctx, listening)
}

// Serve serves what has been opened until ctx ends.
func (s *Service) Serve(ctx context.Context, listening func(address string)) error {
	log, path := s.log, s.current.Load().Path
	secret, err := s.mockSecret()
	if err != nil {
		return err
	}
	metrics := proxy.NewMetrics()
	metrics.Observe(s.observed)
	answers := pipeline.NewAnswerer(s.Backend, s.Ledger, s.Engine, rand.Reader, log, metrics)
	answers.UsePublic(&s.Public)
	kept, err := openStatements(s.Policy().Ledger.Statements, log)
	if err != nil {
		return fmt.Errorf("statements: %w", err)
	}
	if kept != nil {
		defer kept.close()
		answers.KeepStatements(kept)
	}
	workers := answers.Workers()
	var sent *spans.Recorder
	if s.current.Load().Server.Spans {
		if sent, err = spans.New(ctx, log); err != nil {
			return err
		}
		defer func() {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), spansGrace)
			defer cancel()
			sent.Close(within)
		}()
	}
	server, err := proxy.New(proxy.Config{Spans: sent, Policy: s.Policy, Pipeline: answers, Workers: workers, Log: log, Metrics: metrics, Health: s.health, Secret: secret})
	if err != nil {
		return err
	}
	pages, err := s.openConsole()
	if err != nil {
		return err
	}
	if pages != nil {
		defer pages.Close()
	}
	s.bound(s.current.Load(), workers)
	admission.SpareThreads()
	go workers.Watch(ctx)
	go s.watch(ctx, path, workers, metrics)
	go s.renew(ctx, server)
	go s.refresh(ctx)
	if b, ok := s.Backend.(backend.Copies); ok {
		go b.Keep(ctx, s.Policy)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ctx) }()
	select {
	case err := <-failed:
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is taken by another program: stop it, or change listen in %s", s.current.Load().Server.Listen, path)
		}
		return err
	case <-server.Listening():
		listening(server.Addr().String())
	}
	stop := s.serveConsole(ctx, pages, server, kept)
	select {
	case err = <-failed:
		stop()
	case <-ctx.Done():
		log.Info("shutting down")
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		err = server.Shutdown(grace)
		<-failed
		stop() // which began to end with ctx
	}
	answers.Drain()
	return err
}

// mockSecret reads, or makes on first use, the secret behind the salts that unknown users are shown. It lies beside the
// ledger and stays the same across restarts, so that they cannot be told from the salts of real users. Proxies that
// share a ledger have one secret, of the ledger's own.
func (s *Service) mockSecret() ([]byte, error) {
	p := s.current.Load()
	if !strings.HasPrefix(p.Ledger.URL, "sqlite:") {
		secret := s.Ledger.Secret("salts of unknown users")
		return secret[:], nil
	}
	path := strings.TrimPrefix(p.Ledger.URL, "sqlite:") + "-secret"
	if secret, err := os.ReadFile(path); err == nil && len(secret) == 32 {
		return secret, nil
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	return secret, os.WriteFile(path, secret, 0o600)
}
