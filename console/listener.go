package console

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/proxy/login"
)

// Connections are bounded before anything is read of them, in all and by where they come from. Browsers keep some open that they do not
// use, so where there are too many the one that has waited longest for nothing goes: a page that is asked for is never behind them.

const (
	maxConnections     = 512
	maxConnectionsEach = 64
)

// bounded is a listener that lets so many connections in.
type bounded struct {
	net.Listener
	most, each int

	mu   sync.Mutex
	open map[net.Conn]*opened
}

// opened is what is known of a connection: where it comes from, and since when nothing is asked on it.
type opened struct {
	origin string
	idle   bool
	since  time.Time
}

func newBounded(l net.Listener) *bounded {
	return &bounded{Listener: l, most: maxConnections, each: maxConnectionsEach, open: map[net.Conn]*opened{}}
}

// counted is a connection that is counted until it is closed. http.Server's states name it, through TLS too.
type counted struct {
	net.Conn
	of *bounded
}

func (c *counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets http.Server say a last word to a client whose form it has not read: closing over unread bytes would discard it.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Accept returns the next connection for which there is room.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(raw.RemoteAddr().String())
		if err != nil {
			host = raw.RemoteAddr().String()
		}
		conn := &counted{raw, b}
		if b.admit(conn, login.Origin(host)) {
			return conn, nil
		}
		_ = raw.Close() // there is no room, and nobody to tell it over plain bytes
	}
}

// admit makes room where it must, and counts a connection.
func (b *bounded) admit(conn *counted, origin string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := 0
	for _, o := range b.open {
		if o.origin == origin {
			from++
		}
	}
	if from >= b.each && !b.evict(func(o *opened) bool { return o.origin == origin }) {
		return false
	}
	if len(b.open) >= b.most && !b.evict(func(*opened) bool { return true }) {
		return false
	}
	b.open[conn] = &opened{origin: origin, idle: true, since: time.Now()}
	return true
}

// evict closes the connection of some that has been idle longest.
func (b *bounded) evict(of func(*opened) bool) bool {
	var oldest net.Conn
	var since time.Time
	for conn, o := range b.open {
		if o.idle && of(o) && (oldest == nil || o.since.Before(since)) {
			oldest, since = conn, o.since
		}
	}
	if oldest == nil {
		return false
	}
	delete(b.open, oldest)
	_ = oldest.(*counted).Conn.Close() // its reader notices
	return true
}

// state follows http.Server: a connection is idle but while it is asked something.
func (b *bounded) state(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.open[conn]; o != nil {
		o.idle, o.since = state != http.StateActive, time.Now()
	}
}
