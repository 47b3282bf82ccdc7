package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// Who has logged in is kept in memory alone: a restart logs everybody out. What the browser holds is a number that
// nobody can guess, made anew at each log-in; what is kept of it is its hash.

const (
	maxSessions     = 1000 // in all
	maxSessionsEach = 20   // of one user: her oldest goes
	maxAtOnce       = 4    // pages of one session that are made at a time; more are refused with 429
	maxAtOnceEach   = 8    // of one user
	idleFor         = 30 * time.Minute
	lastsFor        = 12 * time.Hour
)

// session is one log-in.
type session struct {
	who     *proxy.Proved
	token   string // of its forms
	opened  time.Time
	served  context.Context // ends with the session: so do its pages' waits
	end     context.CancelFunc
	mu      sync.Mutex
	used    time.Time
	running int
}

type sessionKey [sha256.Size]byte

// sessions are all log-ins.
type sessions struct {
	mu      sync.Mutex
	kept    map[sessionKey]*session
	running map[string]int  // pages by user, of sessions that have ended too
	base    context.Context // ends with the console
	now     func() time.Time
}

func newSessions(base context.Context) *sessions {
	return &sessions{kept: map[sessionKey]*session{}, running: map[string]int{}, base: base, now: time.Now}
}

// secret is 256 random bits, as a cookie or a form holds them.
func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// open begins a session for whoever has proved her name, and returns what her browser is to hold.
func (s *sessions) open(who *proxy.Proved) (id string, opened *session) {
	id = secret()
	now := s.now()
	opened = &session{who: who, token: secret(), opened: now, used: now}
	opened.served, opened.end = context.WithCancel(s.base)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	if s.count(who.User()) >= maxSessionsEach {
		s.drop(func(other *session) bool { return other.who.User() == who.User() })
	}
	if len(s.kept) >= maxSessions {
		s.drop(func(*session) bool { return true })
	}
	s.kept[sha256.Sum256([]byte(id))] = opened
	return id, opened
}

func (s *sessions) count(user string) (n int) {
	for _, other := range s.kept {
		if other.who.User() == user {
			n++
		}
	}
	return n
}

// drop ends the session that has been idle longest of some.
func (s *sessions) drop(of func(*session) bool) {
	var oldest sessionKey
	var since time.Time
	for key, other := range s.kept {
		if used := other.lastUsed(); of(other) && (since.IsZero() || used.Before(since)) {
			oldest, since = key, used
		}
	}
	s.forget(oldest)
}

func (s *sessions) forget(key sessionKey) {
	if gone := s.kept[key]; gone != nil {
		gone.end()
		delete(s.kept, key)
	}
}

// sweep ends what is over.
func (s *sessions) sweep(now time.Time) {
	for key, other := range s.kept {
		if other.over(now) {
			s.forget(key)
		}
	}
}

// find is the session of a cookie, or nil. What proves its user no more ends it.
func (s *sessions) find(id string) *session {
	if id == "" {
		return nil
	}
	key := sha256.Sum256([]byte(id)) // the map is searched by the hash: its time tells nothing of the numbers that are kept
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.kept[key]
	if found == nil {
		return nil
	}
	if now := s.now(); found.over(now) || !found.who.Holds() {
		s.forget(key)
		return nil
	}
	return found
}

// close ends a session.
func (s *sessions) close(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(sha256.Sum256([]byte(id)))
}

// keepSwept ends idle sessions until the console ends.
func (s *sessions) keepSwept() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			s.sweep(s.now())
			s.mu.Unlock()
		case <-s.base.Done():
			return
		}
	}
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// over reports whether a session has been idle, or there, for too long. One that has a page under way is not idle.
func (s *session) over(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.opened) > lastsFor || s.running == 0 && now.Sub(s.used) > idleFor
}

// enter counts a page, and false where too many of the session, or of its user, are being made.
func (s *sessions) enter(of *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.mu.Lock()
	defer of.mu.Unlock()
	user := of.who.User()
	if of.running >= maxAtOnce || s.running[user] >= maxAtOnceEach {
		return false
	}
	of.running++
	s.running[user]++
	of.used = s.now()
	return true
}

func (s *sessions) leave(of *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.mu.Lock()
	defer of.mu.Unlock()
	of.running--
	of.used = s.now()
	if user := of.who.User(); s.running[user] > 1 {
		s.running[user]--
	} else {
		delete(s.running, user)
	}
}

// Logging in. The form has a token that belongs to a cookie of its own, so that nobody is logged in by another site's
// form as somebody else; the session's number is made once the name is proved, whatever the browser held before.

// loginView is the log-in page.
type loginView struct{ Name, Wrong, Hint string }

func (c *Console) cookie(in *http.Request, name string) string {
	held, err := in.Cookie(name)
	if err != nil {
		return ""
	}
	return held.Value
}

func (c *Console) setCookie(out http.ResponseWriter, name, value string) {
	age := 0 // until the browser ends
	if value == "" {
		age = -1
	}
	http.SetCookie(out, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteStrictMode})
}

// formCookie holds what the token of a log-in form is made of.
func (c *Console) formCookie() string { return c.name + "_form" }

func (c *Console) formToken(held string) string {
	m := hmac.New(sha256.New, c.forms[:])
	m.Write([]byte(held))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// same compares secrets.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (c *Console) loginPage(out http.ResponseWriter, in *http.Request) {
	if c.sessions.find(c.cookie(in, c.name)) != nil {
		http.Redirect(out, in, "/", http.StatusSeeOther)
		return
	}
	c.showLogin(out, in, http.StatusOK, loginView{})
}

func (c *Console) showLogin(out http.ResponseWriter, in *http.Request, status int, v loginView) {
	held := c.cookie(in, c.formCookie())
	if len(held) != len(secret()) {
		held = secret()
		c.setCookie(out, c.formCookie(), held)
	}
	c.send(out, status, "login", view{Title: "Log in", Token: c.formToken(held), Body: v})
}

func (c *Console) login(out http.ResponseWriter, in *http.Request) {
	held := c.cookie(in, c.formCookie())
	if held == "" {
		refuse(out, http.StatusForbidden, "this form is not of this browser: open the log-in page again, with cookies allowed")
		return
	}
	if !readForm(out, in, loginBytes) {
		return
	}
	if !same(in.PostFormValue("token"), c.formToken(held)) {
		refuse(out, http.StatusForbidden, "this form is not of this browser: open the log-in page again")
		return
	}
	name := in.PostFormValue("name")
	if !speakable(name) {
		c.showLogin(out, in, http.StatusForbidden, loginView{Wrong: wrongPassword})
		return
	}
	from, err := net.ResolveTCPAddr("tcp", in.RemoteAddr)
	if err != nil {
		refuse(out, http.StatusForbidden, "no address")
		return
	}
	defer kept(in)()
	who, err := c.Proxy.Prove(in.Context(), name, in.PostFormValue("password"), from, in.TLS != nil)
	if err != nil {
		c.showLogin(out, in, http.StatusForbidden, refusedLogin(name, err))
		return
	}
	c.sessions.close(c.cookie(in, c.name)) // whoever was logged in here before
	id, _ := c.sessions.open(who)
	c.setCookie(out, c.formCookie(), "")
	c.setCookie(out, c.name, id)
	c.Log.Info("console: logged in", "client", in.RemoteAddr, "user", name)
	http.Redirect(out, in, "/", http.StatusSeeOther)
}

const wrongPassword = "The name or the password is wrong, or this name logs in by a certificate: then use psql. " +
	"A provider's token is given as the password."

// refusedLogin says what of a failed log-in may be said: the same of every name that did not prove itself, whatever it
// is asked for.
func refusedLogin(name string, err error) loginView {
	var told *pgerror.Fatal
	if errors.As(err, &told) && (told.SQLState == "53300" || told.SQLState == "57P03" || told.SQLState == "57P01") {
		return loginView{Name: name, Wrong: told.Message + ".", Hint: told.Hint}
	}
	return loginView{Name: name, Wrong: wrongPassword}
}

// speakable tells a name that a policy could hold.
func speakable(name string) bool {
	return name != "" && len(name) <= 63 && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

func (c *Console) logout(r *request) {
	c.sessions.close(c.cookie(r.Request, c.name))
	c.setCookie(r.out, c.name, "")
	http.Redirect(r.out, r.Request, "/login", http.StatusSeeOther)
}
