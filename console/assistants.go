package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/assistant"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/login"
)

// Assistants speak the Model Context Protocol at /mcp/dataset, where the policy has server.mcp: each request brings a
// user's name and password, as those of a browser without a cookie do, or her provider's token, which are proved before
// the same gate and the same brake; once they are they are not hashed again for a while, a token until it expires. What
// an assistant asks is a session of hers. A client learns here which provider that is (RFC 9728).

// assistants are the names that assistants have proved, by what proved them, and the users that these are.
type assistants struct {
	handler http.Handler
	mu      sync.Mutex
	known   map[[sha256.Size]byte]*assisted
	users   map[string]*assistedUser
}

// assisted is a name that was proved, until when (zero means as long as the policy has it so), and whose it is.
type assisted struct {
	who   *proxy.Proved
	until time.Time
	user  *assistedUser
}

// assistedUser is a user of assistants, whatever she proves her name with: what names her sessions of the transport,
// which nobody else knows, and when she opened some.
type assistedUser struct {
	secret [sha256.Size]byte
	opened []time.Time
}

const (
	maxAssisted = 1024             // names that are known at a time
	maxOpened   = 32               // sessions that are opened by one user
	openedIn    = 30 * time.Minute // in so long, after which a session that is not used ends
)

func (c *Console) newAssistants() *assistants {
	a := &assistants{known: map[[sha256.Size]byte]*assisted{}, users: map[string]*assistedUser{}}
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
	name, password, until := c.claimed(in)
	if !speakable(name) {
		c.challenge(out, in)
		refuse(out, http.StatusUnauthorized, "an assistant brings a user's name and password, or a token")
		return
	}
	dataset := in.PathValue("dataset")
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q", name, password))
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
			c.challenge(out, in)
			refuse(out, http.StatusUnauthorized, refusedLogin(name, err).Wrong)
			return
		}
		found = c.assistants.keep(key, name, &assisted{who: who, until: until})
		c.Log.Info("console: assistant logged in", "client", in.RemoteAddr, "user", name)
	}
	if in.Method == http.MethodPost && in.Header.Get("Mcp-Session-Id") == "" && !c.assistants.opens(found.user) {
		refuse(out, http.StatusTooManyRequests, "too many sessions were opened: go on with one of them")
		return
	}
	waitFor(out, pageTime(c.Policy()))
	out.Header().Del("Content-Security-Policy")
	session := sha256.Sum256(fmt.Appendf(found.user.secret[:], "%q", dataset))
	c.assistants.handler.ServeHTTP(out, assistant.With(in, &assistant.Proved{User: name, Dataset: dataset,
		Key: hex.EncodeToString(session[:]), Dial: found.who.Dial}))
}

// claimed is the user whom a request says that it is of, by a name or by a provider's token, with what proves it, and
// when that expires.
func (c *Console) claimed(in *http.Request) (name, secret string, until time.Time) {
	p := c.Policy()
	name, secret, named := in.BasicAuth()
	if !named {
		scheme, token, _ := strings.Cut(in.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || p.Server.OIDC == nil {
			return "", "", until
		}
		name, _ = login.Saying(token, p.Server.OIDC.Claim)
		at := slices.IndexFunc(p.Users, func(u policy.User) bool { return u.Login == policy.ByOIDC && u.Identity == name })
		if at >= 0 { // else it is nobody's, and no password either
			name, secret = p.Users[at].Name, token
		}
	}
	if u := p.User(name); u != nil && u.Login == policy.ByOIDC && p.Server.OIDC != nil {
		if _, until = login.Saying(secret, p.Server.OIDC.Claim); until.IsZero() {
			until = time.Now() // proved anew each time
		}
	}
	return name, secret, until
}

// challenge says how an assistant may prove who it is of.
func (c *Console) challenge(out http.ResponseWriter, in *http.Request) {
	out.Header().Add("WWW-Authenticate", `Basic realm="dpproxy", charset="UTF-8"`)
	if c.Policy().Server.OIDC != nil {
		at := "/.well-known/oauth-protected-resource" + in.URL.EscapedPath()
		out.Header().Add("WWW-Authenticate", `Bearer resource_metadata="`+addressed(in)+at+`"`)
	}
}

// addressed is the address of this server as a request has it.
func addressed(in *http.Request) string {
	scheme := "http://"
	if in.TLS != nil {
		scheme = "https://"
	}
	return scheme + in.Host
}

// resource says which provider's tokens assistants may bring (RFC 9728).
func (c *Console) resource(out http.ResponseWriter, in *http.Request) {
	p := c.Policy()
	if p.Server.MCP == nil || p.Server.OIDC == nil {
		refuse(out, http.StatusNotFound, "the policy has no server.mcp, or no provider")
		return
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(map[string]any{ // to a client that may be gone
		"resource":                 addressed(in) + "/mcp/" + url.PathEscape(in.PathValue("dataset")),
		"authorization_servers":    []string{p.Server.OIDC.Issuer},
		"scopes_supported":         strings.Fields(p.Server.OIDC.Scope),
		"bearer_methods_supported": []string{"header"},
	})
}

// find returns a name that was proved and still is; nil if there is none.
func (a *assistants) find(key [sha256.Size]byte) *assisted {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.known[key]
	if found != nil && (!found.who.Holds() || !found.until.IsZero() && time.Now().After(found.until)) {
		delete(a.known, key)
		return nil
	}
	return found
}

// keep keeps a name that was proved. Where there are too many all are proved anew.
func (a *assistants) keep(key [sha256.Size]byte, name string, found *assisted) *assisted {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found.user = a.users[name]; found.user == nil {
		found.user = &assistedUser{}
		_, _ = rand.Read(found.user.secret[:]) // it never fails (crypto/rand)
		a.users[name] = found.user
	}
	if len(a.known) >= maxAssisted {
		clear(a.known)
	}
	a.known[key] = found
	return found
}

// opens reports whether a user may open one more session of the transport.
func (a *assistants) opens(of *assistedUser) bool {
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
