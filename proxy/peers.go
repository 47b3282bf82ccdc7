package proxy

import (
	"cmp"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// peer is what the other sessions of the same user may see of a session, and how they end it.
type peer struct {
	user, database string
	started        time.Time
	conn           net.Conn
	application    atomic.Pointer[string]
	active         atomic.Bool // until its answer has left: the end of the work would be seen off the grid
	ended          atomic.Bool // pg_terminate_backend was called
}

// end has the session end as soon as it runs no statement. The flag comes first: receive reads it after it has set a
// deadline of its own.
func (p *peer) end() {
	p.ended.Store(true)
	_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no waking
}

// signal ends the wait of a user's own session, or the session, and reports whether she has one of that pid.
func (c *cancelKeys) signal(user string, pid int64, terminate bool) bool {
	c.mu.Lock()
	entry := c.sessions[uint32(pid)]
	c.mu.Unlock()
	if entry == nil || pid < 0 || pid != int64(uint32(pid)) || entry.seen.user != user {
		return false
	}
	if !terminate {
		entry.wait.interrupt(errCanceled)
		return true
	}
	entry.seen.end()
	entry.wait.interrupt(errShutdown)
	return true
}

// of lists the sessions of a user for pg_stat_activity, oldest first.
func (c *cancelKeys) of(user string) []sandbox.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []sandbox.Client
	for pid, entry := range c.sessions {
		if entry.seen.user != user {
			continue
		}
		client := sandbox.Client{PID: pid, Database: entry.seen.database, Started: policy.Timestamptz(entry.seen.started.UnixMicro()), Active: entry.seen.active.Load()}
		if name := entry.seen.application.Load(); name != nil {
			client.Application = *name
		}
		list = append(list, client)
	}
	slices.SortFunc(list, func(a, b sandbox.Client) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.PID, b.PID))
	})
	return list
}
