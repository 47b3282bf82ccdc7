package proxy

import (
	"net"
	"syscall"
	"time"
)

// lostTick is how often the server looks whether the clients of statements that run are still there.
const lostTick = 250 * time.Millisecond

// endLost ends, until stop is closed, the waits of sessions whose client has closed its connection or lost it: a
// session that works reads nothing from it. What the client sent before it went is left unread. One goroutine looks for
// all of them, so that a statement that takes microseconds costs no timer.
func (s *Server) endLost(stop <-chan struct{}) {
	tick := time.NewTicker(lostTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.keys.endLost()
		case <-stop:
			return
		}
	}
}

// endLost looks at the sessions that wait for what they waited for at the last look.
func (c *cancelKeys) endLost() {
	var waiting []*cancelEntry
	c.mu.Lock()
	for _, entry := range c.sessions {
		if entry.wait.goesOn() {
			waiting = append(waiting, entry)
		}
	}
	c.mu.Unlock()
	for _, entry := range waiting {
		if isLost(entry.seen.conn) {
			entry.wait.interrupt(errLost)
		}
	}
}

// isLost reports whether the other side has closed a connection, as far as that can be known.
func isLost(conn net.Conn) bool {
	if within, ok := conn.(*inner); ok {
		return within.left.Load()
	}
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	open, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return false
	}
	lost := false
	return raw.Control(func(fd uintptr) { lost = hungUp(int(fd)) }) != nil || lost
}
