package proxy

import (
	"container/list"
	"context"
	"net"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

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
