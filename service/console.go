package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/dpproxy/dpproxy/console"
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
func (s *Service) serveConsole(ctx context.Context, l net.Listener, server *proxy.Server) (stop func()) {
	if l == nil {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	s.log.Info("console", "address", l.Addr().String())
	go func() {
		defer close(ended)
		err := console.Serve(ctx, l, console.Config{Proxy: server, Policy: s.Policy, Books: s.Ledger, Health: s.health, Log: s.log})
		if err != nil {
			s.log.Error("console", "error", err)
		}
	}()
	return func() {
		end()
		<-ended
	}
}
