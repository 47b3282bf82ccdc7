package proxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/spans"
)

// Limits bound what clients may take before they log in and within a session; the policy's limits bound the rest. A
// zero field takes its default.
type Limits struct {
	LoginTime  time.Duration // from the first byte to the login: 10 s
	WriteTime  time.Duration // for a client to take one write, or an eighth less: 30 s
	Statements int           // prepared statements of a session: 2000
	Portals    int           // open portals of a session: 500
}

const (
	bodyBeforeLogin = 10 << 10
	bodyAfterLogin  = 1 << 20
)

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field    *int
		standard int
	}{{&l.Statements, 2000}, {&l.Portals, 500}} {
		if *f.field <= 0 {
			*f.field = f.standard
		}
	}
	if l.LoginTime <= 0 {
		l.LoginTime = 10 * time.Second
	}
	if l.WriteTime <= 0 {
		l.WriteTime = 30 * time.Second
	}
	return l
}

// Config is what a Server needs.
type Config struct {
	Listen   string      // host:port; empty means the policy's
	Admin    string      // host:port of /metrics, /livez and /readyz; empty means the policy's
	TLS      *tls.Config // nil: the policy's files
	Policy   func() *policy.Policy
	Pipeline Pipeline
	Log      *slog.Logger
	Limits   Limits
	Workers  *admission.Workers // the pipeline's; nil means some of the server's own
	Metrics  *Metrics           // nil: a new set
	Spans    *spans.Recorder    // nil: none
	Health   Health             // what /readyz says; nil means nothing but that the process serves
	// Secret fixes the salts that unknown users are shown; with an empty one they change at each start.
	Secret []byte
}

// Server accepts clients.
type Server struct {
	config     Config
	tls        atomic.Pointer[tls.Config] // nil: no TLS
	metrics    *Metrics
	auth       *login.Passwords
	keys       *cancelKeys
	gate       *gate
	brake      *login.Brake
	proving    *provings
	users      *userLimits
	statements *admission.Slots // each user's
	workers    *admission.Workers
	parse      func(text string) ([]command, *refuse.Refusal)
	listener   net.Listener
	started    chan struct{}

	draining atomic.Bool
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	work     sync.WaitGroup // connections, and answers that nobody waits for any more
	base     context.Context
	abort    context.CancelCauseFunc
}

// New checks a configuration. Nothing listens yet.
func New(c Config) (*Server, error) {
	if c.Policy == nil || c.Policy() == nil || c.Pipeline == nil {
		return nil, errors.New("proxy: a server needs a policy and a pipeline")
	}
	p := c.Policy()
	if c.Listen == "" {
		c.Listen = p.Server.Listen
	}
	if c.Admin == "" {
		c.Admin = p.Server.Admin
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	if c.Workers == nil {
		c.Workers = admission.NewWorkers(0, 0)
	}
	if len(c.Secret) == 0 {
		c.Secret = make([]byte, 32)
		if _, err := rand.Read(c.Secret); err != nil {
			return nil, err
		}
	}
	c.Limits = c.Limits.withDefaults()
	s := &Server{config: c, metrics: c.Metrics, keys: newCancelKeys(), brake: login.NewBrake(), proving: newProvings(), users: newUserLimits(),
		statements: admission.NewSlots(time.Second), workers: c.Workers,
		gate: newGate(boundEarly(c.Policy)), started: make(chan struct{}), conns: map[net.Conn]struct{}{},
		auth: &login.Passwords{Secret: c.Secret, Policy: c.Policy}, parse: parseCommands}
	s.base, s.abort = context.WithCancelCause(context.Background())
	if err := s.Renew(); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address: %w", err)
	}
	if !isLoopback(host) && s.tls.Load() == nil {
		return nil, fmt.Errorf("listen address %s is not a loopback address, so server.tls with a certificate is required", c.Listen)
	}
	return s, nil
}

// Listening is closed once clients can connect; Addr is where.
func (s *Server) Listening() <-chan struct{} { return s.started }

// Addr is valid after Listening is closed.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts clients until Shutdown is called or ctx ends, and returns when the last session is over.
func (s *Server) Serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return err
	}
	return s.ServeOn(ctx, listener)
}

// ServeOn is Serve on a listener that is open already; it closes it.
func (s *Server) ServeOn(ctx context.Context, listener net.Listener) error {
	s.listener = listener
	if s.config.Admin != "" {
		stop, err := s.serveAdmin()
		if err != nil {
			_ = listener.Close() // nothing was accepted
			return err
		}
		defer stop()
	}
	close(s.started)
	stop := context.AfterFunc(ctx, s.drain)
	defer stop()
	over := make(chan struct{})
	defer close(over)
	go s.endLost(over)
	err := s.accept()
	s.work.Wait()
	return err
}

func (s *Server) serveAdmin() (stop func(), err error) {
	l, err := net.Listen("tcp", s.config.Admin)
	if err != nil {
		return nil, err
	}
	a := newAdmin(s.metrics, s.config.Health, s.draining.Load, !login.LocalName(l.Addr().String()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := a.serve(l); err != nil {
			s.config.Log.Error("admin listener", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		a.stop(ctx)
		<-ended
	}, nil
}

func (s *Server) accept() error {
	for {
		conn, err := s.listener.Accept()
		switch {
		case s.draining.Load():
			if err == nil {
				_ = conn.Close() // came too late
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			s.config.Log.Warn("accept", "error", err)
			time.Sleep(50 * time.Millisecond) // out of descriptors: others will end
			continue
		}
		if !s.track(conn) {
			continue
		}
		waiting := s.gate.enter(conn) // here, so that who came first is the oldest, whichever goroutine runs first
		go func() {
			defer s.work.Done()
			defer s.untrack(conn)
			s.serve(conn, waiting)
		}()
	}
}

func (s *Server) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		_ = conn.Close() // came too late
		return false
	}
	s.conns[conn] = struct{}{}
	s.work.Add(1)
	return true
}

func (s *Server) untrack(conn net.Conn) {
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
	_ = conn.Close() // for most it is closed already
}

// drain stops accepting and wakes every session that waits for its client; those that run a statement end after it.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Swap(true) {
		return
	}
	if s.listener != nil {
		_ = s.listener.Close() // accept returns
	}
	for conn := range s.conns {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no waking
	}
}

// Shutdown ends idle sessions with 57P01 and waits until the running statements of the others end. When ctx ends first,
// their waits end too, and their connections are closed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	s.abort(errShutdown)
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.SetDeadline(time.Now().Add(time.Second)) // for the last message
	}
	s.mu.Unlock()
	return ctx.Err()
}
