package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

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

const wrongPassword = "The name or the password is wrong, or this name logs in by a certificate or a provider: then use psql."

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
