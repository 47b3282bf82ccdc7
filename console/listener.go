package console

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/proxy/login"
)

// Connections are bounded before anything is read of them, in all and by where they come from. Browsers keep some open
// that they do not use, and whoever is not logged in may send half a form, so where there are too many the one that has
// been there longest with no page being made, and no name being proved, goes: a page that is asked for is never behind
// them.

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

// opened is what is known of a connection: where it comes from, whether it is kept, and since when it is as it is.
type opened struct {
	origin string
	kept   bool
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

// CloseWrite lets http.Server say a last word to a client whose form it has not read: closing over unread bytes would
// discard it.
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
	b.open[conn] = &opened{origin: origin, since: time.Now()}
	return true
}

// evict closes the connection of some that has been there longest without being kept.
func (b *bounded) evict(of func(*opened) bool) bool {
	var oldest net.Conn
	var since time.Time
	for conn, o := range b.open {
		if !o.kept && of(o) && (oldest == nil || o.since.Before(since)) {
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

// connection is the key of a request's connection in its context.
type connection struct{}

// named has the requests of a connection know it.
func named(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connection{}, conn)
}

// kept has a request's connection stay, whoever needs room, until over is called.
func kept(in *http.Request) (over func()) {
	conn, ok := in.Context().Value(connection{}).(*counted)
	if !ok {
		return func() {}
	}
	conn.keep(true)
	return func() { conn.keep(false) }
}

func (c *counted) keep(kept bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if o := c.of.open[c]; o != nil {
		o.kept, o.since = kept, time.Now()
	}
}
