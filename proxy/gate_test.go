package proxy

import (
	"net"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestPoolsBeginAtOnce: as many connections wait for their login from one address as one user may have sessions, and as
// the policy says at the time; beyond them the oldest goes.
func TestPoolsBeginAtOnce(t *testing.T) {
	p := &policy.Policy{}
	gate := newGate(boundEarly(func() *policy.Policy { return p }))
	var waiting []*early
	open := func() (n int) {
		for _, e := range waiting {
			if e.evicted.Err() == nil {
				n++
			}
		}
		return n
	}
	for _, c := range []struct{ sessions, want int }{{0, 100}, {200, 200}, {300, 300}, {100_000, 500}} {
		p.Server.Limits.UserConnections = c.sessions
		for range 700 {
			conn, other := net.Pipe()
			t.Cleanup(func() { other.Close() })
			waiting = append(waiting, gate.enter(conn))
		}
		if got := open(); got != c.want {
			t.Errorf("with %d sessions of a user %d connections wait", c.sessions, got)
		}
		for _, e := range waiting {
			gate.leave(e)
		}
		waiting = nil
	}
}
