package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/console"
	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
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

// Run serves a policy until ctx ends; listening is given the address once clients can connect.
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
// ledger and stays the same across restarts, so that they cannot be distinguished from the salts of real users. Proxies
// that share a ledger have one secret, of the ledger's own.
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

// openConsole listens where the policy has a console; without one there is nothing to serve.
func (s *Service) openConsole() (net.Listener, error) {
	address := s.Policy().Server.Console
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: stop it, or change console in %s", address, s.Policy().Path)
	}
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return l, nil
}

// serveConsole serves the pages beside the wire, until stopped.
func (s *Service) serveConsole(ctx context.Context, l net.Listener, server *proxy.Server, kept *statements) (stop func()) {
	if l == nil {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	s.log.Info("console", "address", l.Addr().String())
	go func() {
		defer close(ended)
		err := console.Serve(ctx, l, console.Config{Proxy: server, Policy: s.Policy, Books: s.Ledger, Health: s.health, Alarms: s.alarms.latest, Check: s.propose, Statement: kept.text, Log: s.log})
		if err != nil {
			s.log.Error("console", "error", err)
		}
	}()
	return func() {
		end()
		<-ended
	}
}

// variable is the use of an environment variable in a policy's text.
var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// propose reads a policy that somebody proposes in the console, as if it were the file. Of the environment it reads
// what the file itself reads: another variable would be one that its author wants to know.
func (s *Service) propose(text []byte) (*policy.Policy, error) {
	path := s.Policy().Path
	inForce, err := deadline.ReadFile(path)
	if err != nil {
		return nil, errors.New("the policy file cannot be read now")
	}
	known := variable.FindAllString(string(inForce), -1)
	for _, use := range variable.FindAllString(string(text), -1) {
		if !slices.Contains(known, use) {
			return nil, fmt.Errorf("%.60s is not in the policy in force, and no other variable of the environment is read here: use dpproxy check on the machine", use)
		}
	}
	p, err := policy.Parse(text, path)
	if err != nil {
		return nil, err
	}
	return p, planner.CheckSQL(p)
}

// parserArgument makes this program parse the deepest text that the limits admit and exit.
const parserArgument = "__parser-self-test"

// ChildMain is the child's side of the self-test. It returns at once in any other process.
func ChildMain() {
	if len(os.Args) != 2 || os.Args[1] != parserArgument {
		return
	}
	if _, refusal := parse.Parse(parse.DeepestAdmitted()); refusal != nil {
		fmt.Fprintln(os.Stderr, refusal.Message)
		os.Exit(1)
	}
	os.Exit(0)
}

// parserSelfTest parses the deepest admitted text in a child: the grammar's C code dies, unrecoverably, on long chains,
// so a machine whose thread stacks are too small for our limits must be found before the first client is.
func parserSelfTest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, parserArgument)
	child.Env = []string{}
	if out, err := child.CombinedOutput(); err != nil {
		return fmt.Errorf("self-test of the SQL parser: %w: %.200s", err, out)
	}
	return nil
}
