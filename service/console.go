package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"syscall"

	"github.com/dpproxy/dpproxy/console"
	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
)

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
	return p, planner.CheckViews(p)
}
