// Package console is pages for a browser: the tables of a dataset, a box for statements that shows their price before
// anything is bought, answers as tables and plots, and the user's balance; for the policy's owners, who spends what,
// and how fast.
//
// It is one more client of the proxy. Who she is, proxy.Server.Prove says, with the wire's own exchange, brake and
// gate; what an analyst's page shows comes over a session of the wire's protocol (talk.go) and through its pipeline, so
// that no page says what psql would not (docs/adr/0133). Owners' pages read the ledger and the policy, and no row.
//
// An example: a form posts "SELECT count(*) FROM people" to /data/demo/ask. post (this file) holds its token against
// the session's and bounds its bytes; ask (analyst.go) has EXPLAIN (ALTERNATIVES, FORMAT JSON) of it answered over a
// session of its own; priceOf (policypage.go) reads cost, error and alternatives; the page has a button that posts
// the statement and the price to /data/demo/buy, which asks under SET dp.max_cost and refuses any other price.
package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/login"
)

// Config is what a Console needs.
type Config struct {
	Proxy  *proxy.Server
	Policy func() *policy.Policy
	Books  Books
	Health proxy.Health                              // nil: nothing is known of the parts
	Alarms func() []Alarm                            // what the log warned of lately; nil means nothing is kept
	Check  func(text []byte) (*policy.Policy, error) // reads a proposed policy
	Log    *slog.Logger

	Statement func(ledger.Digest) string // the text of a charged statement, where it was kept; nil means none is
}

// Console serves the pages.
type Console struct {
	Config
	sessions   *sessions
	assistants *assistants
	forms      [sha256.Size]byte // key of the tokens of forms that nobody has logged in for
	checking   sync.Mutex        // one proposed policy is read at a time
	name       string            // of the cookie
	secure     bool              // pages go through TLS
	anyHost    bool
}

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 20 * time.Second // of a form
	sendTimeout   = 30 * time.Second // of a page that is made
	formBytes     = 256 << 10        // of a form, but for those below
	loginBytes    = 8 << 10
	maxDrained    = 64 << 20 // of a form that is too long, read and thrown away so that its sender reads why
)

// pageTime is how long a page may take to be made: an answer may wait for the owner's deadline, for others', and for
// the grid.
func pageTime(p *policy.Policy) time.Duration {
	return time.Minute + p.Backend.Deadline + 2*p.Server.Timing.Fresh
}

// Serve serves the pages on a listener until the context ends, and returns when all have been sent.
func Serve(ctx context.Context, listener net.Listener, c Config) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	console := newConsole(base, c, listener.Addr())
	conns := newBounded(listener)
	server := &http.Server{
		Handler: console.handler(), ConnContext: named, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout + bodyTimeout, WriteTimeout: headerTimeout + bodyTimeout + sendTimeout, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(quiet{c.Log.Handler()}, slog.LevelDebug), // of handshakes that fail and clients that go
	}
	served := net.Listener(conns)
	if console.secure {
		served = tls.NewListener(conns, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: console.certificate})
	}
	go console.sessions.keepSwept()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(served) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if server.Shutdown(grace) != nil {
		end() // ends what pages wait for
		_ = server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// quiet is a handler whose records are for who looks for faults.
type quiet struct{ slog.Handler }

func newConsole(base context.Context, c Config, at net.Addr) *Console {
	console := &Console{Config: c, sessions: newSessions(base), secure: c.Proxy.Certificate() != nil}
	copy(console.forms[:], secret())
	_, port, _ := net.SplitHostPort(at.String())
	console.name = "dpproxy_" + port // browsers send a host's cookies to all of its ports
	if console.secure {
		console.name = "__Host-" + console.name
	}
	console.anyHost = !login.LocalName(at.String())
	console.assistants = console.newAssistants()
	return console
}

// certificate is the proxy's own, as it is now. Browsers are asked for none.
func (c *Console) certificate(*tls.ClientHelloInfo) (*tls.Config, error) {
	config := c.Proxy.Certificate()
	if config == nil {
		return nil, errors.New("no certificate")
	}
	config = config.Clone()
	config.ClientAuth, config.ClientCAs, config.NextProtos = tls.NoClientCert, nil, []string{"http/1.1"}
	return config, nil
}

//go:embed pages
var pageFiles embed.FS

// pages are the templates by name, each with the layout around it, read when the first page is made: a sandbox, which
// is the same program, begins without them.
var pages = sync.OnceValue(func() map[string]*template.Template {
	all := map[string]*template.Template{}
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{"segment": escaped, "words": func(kind string) string { return strings.ReplaceAll(kind, "_", " ") }}).ParseFS(pageFiles, "pages/layout.html", "pages/chart.html"))
	names, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		if short := strings.TrimSuffix(strings.TrimPrefix(name, "pages/"), ".html"); short != "layout" && short != "chart" {
			all[short] = template.Must(template.Must(layout.Clone()).ParseFS(pageFiles, name))
		}
	}
	return all
})

// view is what every page is made from; Body is the page's own.
type view struct {
	Title, Section string
	User, Token    string
	Dataset        string
	Datasets       []string // that she may enter
	Owner          bool
	Body           any
}

// request is one page for one user who has logged in.
type request struct {
	*http.Request
	out     http.ResponseWriter
	session *session
	console *Console
	policy  *policy.Policy // in force when it came; what she may see of it is For(user)
	ctx     context.Context
}

func (r *request) user() string { return r.session.who.User() }

// datasets are those that she may connect to, as psql's hint names them.
func (r *request) datasets() (open []string) {
	for _, d := range r.policy.For(r.user()).Datasets {
		if _, ok := d.Budget(r.user()); ok {
			open = append(open, d.ID)
		}
	}
	return open
}

func (r *request) owner() bool { return r.policy.Owner(r.user()) }

// handler is all pages.
func (c *Console) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /style.css", style)
	mux.HandleFunc("GET /login", c.loginPage)
	mux.HandleFunc("POST /login", c.login)
	mux.HandleFunc("POST /logout", c.post(formBytes, c.logout))
	mux.HandleFunc("GET /{$}", c.get((*request).home))
	mux.HandleFunc("GET /data/{dataset}/tables", c.get((*request).tables))
	mux.HandleFunc("GET /data/{dataset}/ask", c.get((*request).askPage))
	mux.HandleFunc("POST /data/{dataset}/ask", c.post(formBytes, (*request).ask))
	mux.HandleFunc("POST /data/{dataset}/buy", c.post(formBytes, (*request).buy))
	mux.HandleFunc("GET /data/{dataset}/balance", c.get((*request).balance))
	for _, method := range []string{"GET", "POST", "DELETE"} {
		mux.HandleFunc(method+" /mcp/{dataset}", c.assist)
	}
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp/{dataset}", c.resource)
	c.ownersPages(mux)
	mux.HandleFunc("GET /", c.get(func(r *request) { r.fail(http.StatusNotFound, "There is no such page.") }))
	return c.guarded(mux)
}

// policyOfContent lets nothing in but our own style: no script, no frame, no image from elsewhere.
const policyOfContent = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded is what holds for every request, before anything of it is read beyond its head.
func (c *Console) guarded(next http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		h := out.Header()
		h.Set("Content-Security-Policy", policyOfContent)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if c.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		defer func() {
			if p := recover(); p != nil {
				c.Log.Error("panic", "where", "console", "type", fmt.Sprintf("%T", p)) // its value may hold what no log may
				refuse(out, http.StatusInternalServerError, "internal error")
			}
		}()
		if !c.anyHost && !login.LocalName(r.Host) {
			refuse(out, http.StatusMisdirectedRequest, "this console is asked for by another name than this machine's own")
			return
		}
		if err := foreign.Check(r); err != nil {
			refuse(out, http.StatusForbidden, "this form was sent by another site")
			return
		}
		if !strings.Contains(" GET HEAD POST DELETE ", " "+r.Method+" ") {
			refuse(out, http.StatusMethodNotAllowed, "method not allowed")
			return
		}
		next.ServeHTTP(out, r)
	})
}

// refuse answers without a page, and without reading what else was sent.
func refuse(out http.ResponseWriter, status int, why string) {
	out.Header().Set("Connection", "close")
	http.Error(out, why, status)
}

// get serves a page that changes nothing to whoever has logged in; others are sent to the log-in.
func (c *Console) get(page func(*request)) http.HandlerFunc {
	return func(out http.ResponseWriter, in *http.Request) {
		s := c.sessions.find(c.cookie(in, c.name))
		if s == nil {
			http.Redirect(out, in, "/login", http.StatusSeeOther)
			return
		}
		c.serve(out, in, s, page)
	}
}

// post takes a form from whoever has logged in. Who has not, or has no token, is refused before a form of any length is
// read; the token is looked for once the form is.
func (c *Console) post(most int64, page func(*request)) http.HandlerFunc {
	return func(out http.ResponseWriter, in *http.Request) {
		s := c.sessions.find(c.cookie(in, c.name))
		if s == nil {
			refuse(out, http.StatusForbidden, "nobody is logged in here any more: log in again, and send the form again")
			return
		}
		c.serve(out, in, s, func(r *request) {
			if in.ContentLength > most && in.ContentLength <= maxDrained {
				_, _ = io.Copy(io.Discard, in.Body) // of somebody who is logged in: browsers show no answer before they have sent all
			}
			if !readForm(out, in, most) {
				return
			}
			if !same(in.PostFormValue("token"), s.token) {
				refuse(out, http.StatusForbidden, "this form is not of this session: open its page again")
				return
			}
			page(r)
		})
	}
}

// serve makes one page, where the session has not too many under way. Its waits end with the browser's, with the
// session, and in time.
func (c *Console) serve(out http.ResponseWriter, in *http.Request, s *session, page func(*request)) {
	if !c.sessions.enter(s) {
		refuse(out, http.StatusTooManyRequests, "too many pages of this session are being made: wait for one of them")
		return
	}
	defer c.sessions.leave(s)
	defer kept(in)()
	p := c.Policy()
	limit := pageTime(p)
	waitFor(out, limit)
	ctx, done := context.WithTimeout(in.Context(), limit)
	defer done()
	defer context.AfterFunc(s.served, done)()
	page(&request{Request: in, out: out, session: s, console: c, policy: p, ctx: ctx})
}

// waitFor lets an answer be made for so long before it is sent. A connection that is gone needs no deadline.
func waitFor(out http.ResponseWriter, limit time.Duration) {
	_ = http.NewResponseController(out).SetWriteDeadline(time.Now().Add(limit + sendTimeout + bodyTimeout))
}

// readForm reads a form of at most so many bytes, and answers where it cannot be read.
func readForm(out http.ResponseWriter, in *http.Request, most int64) bool {
	tooLong := fmt.Sprintf("the form has more than %d KiB", most>>10)
	if in.ContentLength > most {
		refuse(out, http.StatusRequestEntityTooLarge, tooLong)
		return false
	}
	in.Body = http.MaxBytesReader(out, in.Body, most)
	var err error
	if strings.HasPrefix(in.Header.Get("Content-Type"), "multipart/form-data") {
		err = in.ParseMultipartForm(most) // as much as there may be: nothing of it goes to disk
	} else {
		err = in.ParseForm()
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(out, http.StatusRequestEntityTooLarge, tooLong)
	case err != nil:
		refuse(out, http.StatusBadRequest, "the form cannot be read")
	}
	return err == nil
}

// show sends a page.
func (r *request) show(status int, name, title, section string, body any) {
	v := view{Title: title, Section: section, User: r.user(), Token: r.session.token, Dataset: r.PathValue("dataset"), Datasets: r.datasets(), Owner: r.owner(), Body: body}
	if v.Dataset == "" && len(v.Datasets) > 0 {
		v.Dataset = v.Datasets[0]
	}
	r.console.send(r.out, status, name, v)
}

// fail sends a page that says what is wrong.
func (r *request) fail(status int, text string) {
	r.show(status, "message", "Not possible", "", message{Severity: "ERROR", Message: text})
}

// send makes all of a page before the first byte of it leaves: then a client that reads slowly holds nothing but its
// bytes.
func (c *Console) send(out http.ResponseWriter, status int, name string, v view) {
	var made bytes.Buffer
	if err := pages()[name].ExecuteTemplate(&made, "layout.html", v); err != nil {
		c.Log.Error("console: page not made", "page", name, "error", err)
		refuse(out, http.StatusInternalServerError, "internal error")
		return
	}
	_ = http.NewResponseController(out).SetWriteDeadline(time.Now().Add(sendTimeout)) // a connection that is gone needs none
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	out.WriteHeader(status)
	_, _ = out.Write(made.Bytes()) // as above
}

// style is the one thing that is no page. It says nothing of anybody, and may be kept.
func style(out http.ResponseWriter, _ *http.Request) {
	text, err := pageFiles.ReadFile("pages/style.css")
	if err != nil {
		refuse(out, http.StatusNotFound, "not found")
		return
	}
	out.Header().Set("Content-Type", "text/css; charset=utf-8")
	out.Header().Set("Cache-Control", "max-age=600")
	_, _ = out.Write(text) // a client that is gone needs none
}
