package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// A client within this process, such as the console, is one more client. It proves its user's name by the exchange that
// drivers speak, before the same gate and the same brake, and then speaks the protocol over connections that do not
// leave the process: what it may ask, what that costs, what waits and what is refused are those of a session of the
// wire, because it is one (docs/adr/0133).
//
//	who, err := server.Prove(ctx, "alice", password, request address, true)
//	conn := who.Dial()      // a start-up packet, and then what any client sends

// provings are the proofs that are being worked out here. A client of the wire hashes her password herself; here this
// process does, thousands of times over, so that an address has one such proof at a time, and all of them together as
// many as there are for others to do without.
type provings struct {
	slots chan struct{}
	mu    sync.Mutex
	by    map[string]chan struct{} // by where they come from: held by whoever is at it
	waits map[string]int
}

// maxProvings are at work at a time.
const maxProvings = 2

func newProvings() *provings {
	return &provings{slots: make(chan struct{}, maxProvings), by: map[string]chan struct{}{}, waits: map[string]int{}}
}

// enter waits for the origin's slot, and then for one of all.
func (p *provings) enter(ctx context.Context, origin string) (leave func(), err error) {
	p.mu.Lock()
	own := p.by[origin]
	if own == nil {
		own = make(chan struct{}, 1)
		p.by[origin] = own
	}
	p.waits[origin]++
	p.mu.Unlock()
	gone := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waits[origin]--; p.waits[origin] == 0 {
			delete(p.by, origin)
			delete(p.waits, origin)
		}
	}
	select {
	case own <- struct{}{}:
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		<-own
		gone()
		return nil, ctx.Err()
	}
	return func() {
		<-p.slots
		<-own
		gone()
	}, nil
}

// Proved is a user who has proved her name to this server. Only Prove makes one, and nothing makes another name of it.
type Proved struct {
	server *Server
	user   string
	from   net.Addr
	as     policy.User // what the policy said of her then
}

// Prove has a user prove her name with a password, from an address: secure reports whether it came to this process
// through TLS. The error is what a client of the wire would be sent.
func (s *Server) Prove(ctx context.Context, user, password string, from net.Addr, secure bool) (*Proved, error) {
	near, far := connected(from)
	if !s.track(near) {
		return nil, pgerror.New("57P01", errShutdown.Error()).Fatal()
	}
	defer s.work.Done()
	defer s.untrack(near)
	waiting := s.gate.enter(near)
	defer s.gate.leave(waiting)
	address := addressOf(near)
	if !secure && !isLoopback(address) {
		return nil, pgerror.New("28000", "connections from other machines must be encrypted").Fatal()
	}
	ended := time.Now().Add(s.config.Limits.LoginTime)
	if err := near.SetDeadline(ended); err != nil {
		return nil, login.ErrSilent
	}
	ctx, enough := context.WithDeadline(ctx, ended.Add(-s.config.Limits.LoginTime/10))
	defer enough()
	defer context.AfterFunc(waiting.evicted, enough)()
	defer context.AfterFunc(s.base, enough)()
	done, err := s.proving.enter(ctx, login.Origin(address))
	if err != nil {
		return nil, login.ErrSilent
	}
	defer done()
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		defer far.Close()
		_ = login.Claim(pgproto3.NewFrontend(far, far), password) // what came of it, the other side says
	}()
	defer func() {
		_ = near.Close() // what the claim still waits for
		<-claimed
	}()
	as := s.config.Policy().User(user)
	back := pgproto3.NewBackend(near, near)
	back.SetMaxBodyLen(bodyBeforeLogin)
	log := s.config.Log.With("client", from.String())
	if err := s.authenticate(ctx, back, login.Claimant{User: user, Origin: login.Origin(address), Opening: &login.Opening{Conn: near}}, log); err != nil {
		return nil, err
	}
	if as == nil { // the policy that let her in came this moment
		return nil, pgerror.New("28000", "this user is no longer known").Fatal()
	}
	return &Proved{server: s, user: user, from: from, as: *as}, nil
}

// User is her name.
func (p *Proved) User() string { return p.user }

// Holds reports whether what she proved still proves it: a changed password, login or identity, and a disabled user,
// end it.
func (p *Proved) Holds() bool {
	u := p.server.config.Policy().User(p.user)
	return u != nil && !u.Disabled && u.Login == p.as.Login && u.Verifier == p.as.Verifier && u.Identity == p.as.Identity
}

// Dial opens a connection on which her session is led, from the start-up packet on; it asks for no password. It counts
// among her connections. Closing it ends the session's waits as a lost client does.
func (p *Proved) Dial() net.Conn {
	near, far := connected(p.from)
	s := p.server
	if !s.track(near) { // closes it
		return far
	}
	go func() {
		defer s.work.Done()
		defer s.untrack(near)
		log := s.config.Log.With("client", p.from.String())
		defer func() {
			if r := recover(); r != nil {
				s.logPanic(context.Background(), r, "session")
			}
		}()
		opened := time.Now()
		if near.SetDeadline(opened.Add(s.config.Limits.LoginTime)) != nil || s.draining.Load() {
			return
		}
		o := login.Opening{Conn: near}
		packet, err := o.Next()
		if err != nil || packet.Cancels() {
			return
		}
		patience, enough := context.WithDeadline(s.base, opened.Add(s.config.Limits.LoginTime*9/10))
		defer enough()
		s.lead(patience, &o, packet, &session{log: log, proved: p}, func() {})
	}()
	return far
}

// Certificate is what TLS begins with now; nil without TLS.
func (s *Server) Certificate() *tls.Config { return s.tls.Load() }

// inner is one side of a connection within the process.
type inner struct {
	net.Conn
	from net.Addr
	left *atomic.Bool // the other side has closed, or this one: one for both
}

// connected are the two sides of a connection; near believes that it comes from an address.
func connected(from net.Addr) (near, far *inner) {
	a, b := net.Pipe()
	left := &atomic.Bool{}
	return &inner{a, from, left}, &inner{b, from, left}
}

func (c *inner) RemoteAddr() net.Addr { return c.from }

func (c *inner) Close() error {
	c.left.Store(true)
	return c.Conn.Close()
}
