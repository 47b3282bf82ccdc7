package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/assistant"
	"github.com/dpproxy/dpproxy/proxy"
)

// Assistants speak the Model Context Protocol at /mcp/dataset, where the policy has server.mcp: each request brings a
// user's name and password, as those of a browser without a cookie do, which are proved before the same gate and the
// same brake; once they are they are not hashed again for a while. What an assistant asks is a session of hers.

// assistants are the names that assistants have proved.
type assistants struct {
	handler http.Handler
	mu      sync.Mutex
	known   map[[sha256.Size]byte]*assisted
}

// assisted is a name that was proved, and when sessions of the transport were opened by it.
type assisted struct {
	who    *proxy.Proved
	opened []time.Time
}

const (
	maxAssisted = 1024             // names that are known at a time
	maxOpened   = 32               // sessions that are opened by one of them
	openedIn    = 30 * time.Minute // in so long, after which a session that is not used ends
)

func (c *Console) newAssistants() *assistants {
	a := &assistants{known: map[[sha256.Size]byte]*assisted{}}
	a.handler = assistant.Handler(func() *assistant.Assistant {
		own := &assistant.Assistant{}
		if m := c.Policy().Server.MCP; m != nil {
			own.Limit = m.MaxCost
		}
		return own
	})
	return a
}

// assist answers one request of an assistant.
func (c *Console) assist(out http.ResponseWriter, in *http.Request) {
	if c.Policy().Server.MCP == nil {
		refuse(out, http.StatusNotFound, "the policy has no server.mcp")
		return
	}
	name, password, given := in.BasicAuth()
	if !given || !speakable(name) {
		out.Header().Set("WWW-Authenticate", `Basic realm="dpproxy", charset="UTF-8"`)
		refuse(out, http.StatusUnauthorized, "an assistant brings a user's name and password")
		return
	}
	dataset := in.PathValue("dataset")
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", name, password, dataset))
	defer kept(in)()
	found := c.assistants.find(key)
	if found == nil {
		from, err := net.ResolveTCPAddr("tcp", in.RemoteAddr)
		if err != nil {
			refuse(out, http.StatusForbidden, "no address")
			return
		}
		who, err := c.Proxy.Prove(in.Context(), name, password, from, in.TLS != nil)
		if err != nil {
			out.Header().Set("WWW-Authenticate", `Basic realm="dpproxy", charset="UTF-8"`)
			refuse(out, http.StatusUnauthorized, refusedLogin(name, err).Wrong)
			return
		}
		found = c.assistants.keep(key, who)
		c.Log.Info("console: assistant logged in", "client", in.RemoteAddr, "user", name)
	}
	if in.Method == http.MethodPost && in.Header.Get("Mcp-Session-Id") == "" && !c.assistants.opens(found) {
		refuse(out, http.StatusTooManyRequests, "too many sessions were opened: go on with one of them")
		return
	}
	waitFor(out, pageTime(c.Policy()))
	out.Header().Del("Content-Security-Policy")
	c.assistants.handler.ServeHTTP(out, assistant.With(in, &assistant.Proved{User: name, Dataset: dataset,
		Key: hex.EncodeToString(key[:]), Dial: found.who.Dial}))
}

// find returns a name that was proved and still is; nil if there is none.
func (a *assistants) find(key [sha256.Size]byte) *assisted {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.known[key]
	if found != nil && !found.who.Holds() {
		delete(a.known, key)
		return nil
	}
	return found
}

// keep keeps a name that was proved. Where there are too many all are proved anew.
func (a *assistants) keep(key [sha256.Size]byte, who *proxy.Proved) *assisted {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAssisted {
		clear(a.known)
	}
	found := &assisted{who: who}
	a.known[key] = found
	return found
}

// opens reports whether a name may open one more session of the transport.
func (a *assistants) opens(of *assisted) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(of.opened) > 0 && time.Since(of.opened[0]) > openedIn {
		of.opened = of.opened[1:]
	}
	if len(of.opened) >= maxOpened {
		return false
	}
	of.opened = append(of.opened, time.Now())
	return true
}
