package proxy

import (
	"container/list"
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
	"github.com/dpproxy/dpproxy/proxy/pgerror"
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

// gate bounds the connections that have not logged in yet, in all and by address. Where there are too many, the oldest
// one goes: a client that logs in at once gets through a crowd of clients that never will.
type gate struct {
	mu    sync.Mutex
	all   *list.List // of *early, oldest first
	byIP  map[string]*list.List
	bound func() earlyBound
}

// earlyBound is how many there may be.
type earlyBound struct{ inAll, fromAddress int }

// boundEarly bounds connections that have not logged in by how many sessions the policy gives a user: a pool of hers
// opens them all at once, from one address.
func boundEarly(current func() *policy.Policy) func() earlyBound {
	return func() earlyBound {
		fromAddress := min(max(100, current().Server.Limits.UserConnections), 500)
		return earlyBound{fromAddress + 400, fromAddress}
	}
}

type early struct {
	conn    net.Conn
	ip      string          // or network
	evicted context.Context // ends when it must go
	evict   context.CancelFunc
	inAll   *list.Element
	inGroup *list.Element
}

func newGate(bound func() earlyBound) *gate {
	return &gate{all: list.New(), byIP: map[string]*list.List{}, bound: bound}
}

// enter lets a connection wait for its login, and closes an older one if it must.
func (g *gate) enter(conn net.Conn) *early {
	e := &early{conn: conn, ip: login.Origin(addressOf(conn))}
	e.evicted, e.evict = context.WithCancel(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	group := g.byIP[e.ip]
	if group == nil {
		group = list.New()
		g.byIP[e.ip] = group
	}
	e.inAll, e.inGroup = g.all.PushBack(e), group.PushBack(e)
	switch bound := g.bound(); {
	case group.Len() > bound.fromAddress:
		g.evict(group.Front())
	case g.all.Len() > bound.inAll:
		g.evict(g.all.Front())
	}
	return e
}

func (g *gate) evict(oldest *list.Element) {
	if e, ok := oldest.Value.(*early); ok {
		g.remove(e)
		e.evict()
		e.conn.Close()
	}
}

func (g *gate) remove(e *early) {
	if e.inAll == nil {
		return
	}
	g.all.Remove(e.inAll)
	group := g.byIP[e.ip]
	group.Remove(e.inGroup)
	if group.Len() == 0 {
		delete(g.byIP, e.ip)
	}
	e.inAll, e.inGroup = nil, nil
}

// leave ends the wait: the client logged in, or is gone.
func (g *gate) leave(e *early) {
	g.mu.Lock()
	g.remove(e)
	g.mu.Unlock()
	e.evict()
}

func addressOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// userLimits counts the sessions, in all and of each user.
type userLimits struct {
	mu      sync.Mutex
	users   map[string]int
	clients int
}

func newUserLimits() *userLimits { return &userLimits{users: map[string]int{}} }

// connect counts a session, or says why there may be no more.
func (u *userLimits) connect(name string, l policy.Limits) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.clients >= l.Connections {
		return pgerror.New("53300", "sorry, too many clients already").Fatal()
	}
	if u.users[name] >= l.UserConnections {
		return pgerror.New("53300", "too many connections for this user").Fatal()
	}
	u.users[name]++
	u.clients++
	return nil
}

func (u *userLimits) disconnect(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users[name]--; u.users[name] == 0 {
		delete(u.users, name)
	}
	u.clients--
}
