package proxy

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// lostTick is how often a statement that runs looks whether its client is still there.
const lostTick = 250 * time.Millisecond

// untilLost calls gone once the client has closed its connection or lost it, while the session works and reads nothing from
// it. What the client sent before it went is left unread. stop ends the watch.
func (c *session) untilLost(gone func()) (stop func()) {
	conn := c.conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	open, ok := conn.(syscall.Conn)
	if !ok {
		return func() {}
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return func() {}
	}
	var mu sync.Mutex
	var next *time.Timer
	over := false
	look := func() {
		lost := false
		if raw.Control(func(fd uintptr) { lost = hungUp(int(fd)) }) != nil || lost {
			gone()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !over {
			next.Reset(lostTick)
		}
	}
	mu.Lock()
	next = time.AfterFunc(lostTick, look)
	mu.Unlock()
	return func() {
		mu.Lock()
		over = true
		next.Stop()
		mu.Unlock()
	}
}
