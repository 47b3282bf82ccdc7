package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// TestLogIn: a log-in is a new number in a cookie that scripts and other sites do not get; what the browser held before
// is worth nothing afterwards, and neither is the number after the log-out.
func TestLogIn(t *testing.T) {
	b := start(t, policyText(t, ""))
	w := b.browser()
	_, port, _ := net.SplitHostPort(b.address)
	at := &url.URL{Scheme: "http", Host: b.address, Path: "/"}
	planted := secret()
	w.Jar.SetCookies(at, []*http.Cookie{{Name: "dpproxy_" + port, Value: planted, Path: "/"}})
	if p := w.get("/data/lab/tables"); p.status != http.StatusSeeOther || p.head.Get("Location") != "/login" {
		t.Errorf("a number that nobody gave out: %d", p.status)
	}
	for _, c := range [][2]string{{"alice", "wrong"}, {"nobody", "alice"}, {"stranger", ""}, {"ali\x07ce", "alice"}, {strings.Repeat("x", 64), "x"}} {
		if p := w.logIn(c[0], c[1]); p.status != http.StatusForbidden || !strings.Contains(p.body, "name or the password is wrong") || p.head.Get("Set-Cookie") != "" {
			t.Errorf("%q with %q: %d %s", c[0], c[1], p.status, p.head)
		}
	}
	p := w.logIn("alice", "alice")
	if p.status != http.StatusSeeOther {
		t.Fatal(p.status, p.body)
	}
	first := w.held()
	if first == planted || len(first) != len(planted) {
		t.Error("the number that was planted is the session's")
	}
	for _, line := range p.head.Values("Set-Cookie") {
		if !strings.Contains(line, "HttpOnly") || !strings.Contains(line, "SameSite=Strict") || !strings.Contains(line, "Path=/") || strings.Contains(line, "Domain") {
			t.Errorf("cookie %s", line)
		}
	}
	if p := w.get("/"); p.head.Get("Location") != "/data/lab/tables" {
		t.Errorf("home leads to %q", p.head.Get("Location"))
	}
	if p := w.get("/data/lab/tables"); p.status != http.StatusOK || !strings.Contains(p.body, "0 to 119") {
		t.Errorf("tables: %d", p.status)
	}
	token := w.get("/data/lab/tables").token()
	if p := w.get("/login"); p.status != http.StatusSeeOther {
		t.Errorf("the log-in page of somebody who is in: %d", p.status)
	}
	if p := w.form("/logout", url.Values{"token": {token}}); p.status != http.StatusSeeOther || w.held() != "" {
		t.Errorf("log-out: %d, the browser holds %q", p.status, w.held())
	}
	w.Jar.SetCookies(at, []*http.Cookie{{Name: "dpproxy_" + port, Value: first, Path: "/"}})
	if p := w.get("/data/lab/tables"); p.status != http.StatusSeeOther {
		t.Errorf("the number of a session that was logged out: %d", p.status)
	}
	threats.Reached(t, "T73", "a planted session number: 0 let in; a number after log-out: 0 let in")
}

// TestWhoMayLogIn: a user of no dataset sees that; an owner without one sees the owner's pages; a changed password and
// a disabled user end their sessions with the next page.
func TestWhoMayLogIn(t *testing.T) {
	text := policyText(t, "")
	b := start(t, text)
	if p := b.loggedIn("stranger").get("/"); p.status != http.StatusForbidden || !strings.Contains(p.body, "No dataset is open") {
		t.Errorf("a stranger: %d", p.status)
	}
	if p := b.loggedIn("stranger").get("/data/lab/tables"); p.status != http.StatusNotFound || !strings.Contains(p.body, "does not exist") {
		t.Errorf("a stranger's tables: %d %s", p.status, p.body)
	}
	if p := b.loggedIn("dba").get("/"); p.head.Get("Location") != "/owner" {
		t.Errorf("an owner's home is %q", p.head.Get("Location"))
	}
	alice, bob := b.loggedIn("alice"), b.loggedIn("bob")
	b.policy.Store(parsed(t, strings.Replace(strings.Replace(text, verifierOf(t, "alice"), verifierOf(t, "other"), 1), `{name: "bob"`, `{disabled: true, name: "bob"`, 1)))
	for name, w := range map[string]*browser{"alice": alice, "bob": bob} {
		if p := w.get("/data/lab/tables"); p.status != http.StatusSeeOther {
			t.Errorf("%s is in after the policy took that back: %d", name, p.status)
		}
	}
	if p := b.browser().logIn("alice", "other"); p.status != http.StatusSeeOther {
		t.Errorf("with the new password: %d", p.status)
	}
}

// TestForms: whoever is not logged in, has no token, or comes from another site is refused, without the form being
// read: most of it is never sent.
func TestForms(t *testing.T) {
	b := start(t, policyText(t, ""))
	alice, bob := b.loggedIn("alice"), b.loggedIn("bob")
	token := alice.get("/data/lab/ask").token()
	bobs := bob.get("/data/lab/ask").token()
	urlencoded := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	refused := 0
	check := func(what string, p page, want int) {
		t.Helper()
		if p.status != want {
			t.Errorf("%s: %d, not %d: %s", what, p.status, want, p.body)
		}
		refused++
	}
	buying := url.Values{"sql": {"SELECT count(*) FROM people"}, "cost": {"ε 0.1"}, "amount": {"0.1"}}
	with := func(token string) url.Values {
		v := url.Values{"token": {token}}
		for name, values := range buying {
			v[name] = values
		}
		return v
	}
	for _, path := range []string{"/data/lab/ask", "/data/lab/buy", "/logout", "/owner/revoke", "/owner/policy"} {
		check("nobody posts to "+path, b.browser().form(path, buying), http.StatusForbidden)
	}
	check("no token", alice.form("/data/lab/buy", buying), http.StatusForbidden)
	check("another's token", alice.form("/data/lab/buy", with(bobs)), http.StatusForbidden)
	for _, h := range []http.Header{{"Origin": {"https://evil.example"}}, {"Origin": {"null"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}} {
		h["Content-Type"] = urlencoded["Content-Type"]
		check(fmt.Sprint("from elsewhere ", h), alice.do(http.MethodPost, "/data/lab/buy", strings.NewReader(with(token).Encode()), h), http.StatusForbidden)
	}
	check("the log-in by another site", b.browser().form("/login", url.Values{"name": {"alice"}, "password": {"alice"}}), http.StatusForbidden)
	other := b.browser()
	foreign := other.get("/login").token()
	mixed := b.browser()
	mixed.get("/login")
	check("the log-in with another browser's token", mixed.form("/login", url.Values{"token": {foreign}, "name": {"alice"}, "password": {"alice"}}), http.StatusForbidden)
	check("a log-in form of a megabyte", other.form("/login", url.Values{"token": {foreign}, "name": {"alice"}, "password": {strings.Repeat("x", 1<<20)}}), http.StatusRequestEntityTooLarge)
	check("a statement of a megabyte", alice.form("/data/lab/ask", url.Values{"token": {token}, "sql": {strings.Repeat("x", 1<<20)}}), http.StatusRequestEntityTooLarge)
	check("another name of this machine", alice.do("GET", "/data/lab/tables", nil, http.Header{"Host": {"evil.example"}}), http.StatusMisdirectedRequest)
	check("a method that nobody has", alice.do("PUT", "/data/lab/tables", nil, nil), http.StatusMethodNotAllowed)
	for _, path := range []string{"/data/lab/buy?token=" + token, "/logout?token=" + token} {
		if p := alice.get(path); p.status < 400 {
			t.Errorf("GET %s: %d", path, p.status)
		}
	}
	if p := alice.get("/data/lab/tables"); p.status != http.StatusOK {
		t.Errorf("alice was logged out: %d", p.status)
	}
	if n := b.pipe.selects(); n != 0 {
		t.Errorf("%d statements were answered", n)
	}
	for _, path := range []string{"/login", "/data/lab/buy"} {
		if sent := sentOf(t, b, path, 64<<20); sent > 4<<20 {
			t.Errorf("%s: %d bytes of a stranger's form were taken", path, sent)
		}
	}
	threats.Reached(t, "T73", "%d forms of strangers, of other sites, without a token or too long: 0 accepted, 0 statements", refused)
}

// sentOf is how many bytes of a long form the console takes from a stranger before it has answered and closed.
func sentOf(t *testing.T, b *bench, path string, length int) (sent int) {
	t.Helper()
	conn, err := net.Dial("tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", path, length)
	status, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(status, " 403 ") {
		t.Errorf("%s: %q %v before anything of the form was sent", path, status, err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for chunk := make([]byte, 64<<10); sent < length; {
		n, err := conn.Write(chunk)
		if sent += n; err != nil {
			break
		}
	}
	return sent
}

// TestNothingIsRun: what is in texts and names is text in every page, and no page may be framed, or load anything.
func TestNothingIsRun(t *testing.T) {
	b := start(t, policyText(t, "", script))
	text := strings.Replace(policyText(t, "", script), "budgets: {", fmt.Sprintf("budgets: {%q: {epsilon: 1, delta: 0}, ", script), 1)
	b.policy.Store(parsed(t, text))
	w := b.loggedIn(script)
	all := []page{w.get("/data/lab/tables"), w.get("/data/lab/ask"), w.get("/data/lab/balance"), w.get("/nowhere"), w.get("/data/" + url.PathEscape(script) + "/tables"),
		w.ask("ask", script, nil), w.ask("ask", "SELECT count(*) FROM people WHERE note = '"+script+"'", nil), b.browser().get("/login"), b.browser().logIn(script, "x"),
		w.ask("buy", "SELECT sex, count(*) AS n FROM people GROUP BY 1 -- "+script, url.Values{"cost": {"ε 0.1"}, "amount": {"0.1"}}),
		w.ask("buy", "SELECT 1", url.Values{"cost": {script}, "amount": {"0.1"}})}
	b.pipe.refusing = &pgerror.Failure{SQLState: "42703", Message: "no column " + script, Detail: script, Hint: script}
	all = append(all, w.ask("buy", "SELECT nothing", url.Values{"cost": {"ε 0.1"}, "amount": {"0.1"}}))
	for i, p := range all {
		if strings.Contains(p.body, "<script") {
			t.Errorf("page %d has a script: %s", i, p.body)
		}
		csp := p.head.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "form-action 'self'") || strings.Contains(csp, "unsafe") ||
			p.head.Get("X-Frame-Options") != "DENY" || p.head.Get("X-Content-Type-Options") != "nosniff" || p.head.Get("Cache-Control") != "no-store" {
			t.Errorf("page %d has the head %v", i, p.head)
		}
	}
	if !strings.Contains(all[9].body, "&lt;script&gt;") || !strings.Contains(all[9].body, "<svg") {
		t.Errorf("the answer does not show the group's name as text, and a plot: %s", all[9].body)
	}
	threats.Reached(t, "T74", "%d pages with a script in every name and text: 0 with a script in it, 0 without a policy that runs none and lets nobody frame them", len(all))
}

// TestGetsChangeNothing: no page that is only looked at has anything answered but tables of schema dp.
func TestGetsChangeNothing(t *testing.T) {
	b := start(t, policyText(t, ""))
	for _, name := range []string{"alice", "dba"} {
		w := b.loggedIn(name)
		for _, path := range []string{"/", "/login", "/data/lab/tables", "/data/lab/ask", "/data/lab/ask?sql=SELECT+count(*)+FROM+people", "/data/lab/balance", "/data/lab/buy", "/logout", "/style.css", "/owner", "/owner/charges",
			"/owner/releases", "/owner/alarms", "/owner/policy", "/owner/revoke?id=1"} {
			w.get(path)
		}
		if w.held() == "" || w.get("/data/lab/ask").status != http.StatusOK && name == "alice" {
			t.Errorf("%s is logged out", name)
		}
	}
	if n := b.pipe.selects(); n != 0 || b.books.revoked.Load() != 0 {
		t.Errorf("%d statements were answered, %d releases revoked", n, b.books.revoked.Load())
	}
}

// TestPrice: nothing is answered before its price is confirmed, and what is paid is the price that was shown: where it
// has changed, or changes in between, the new one is asked for.
func TestPrice(t *testing.T) {
	b := start(t, policyText(t, ""))
	w := b.loggedIn("alice")
	const sql = "SELECT sex, count(*) AS n FROM people GROUP BY 1"
	p := w.ask("ask", sql, url.Values{"epsilon": {"0.1"}})
	for _, word := range []string{"ε 0.1", "±37 a value", "people_age", "Buy the answer for ε 0.1", "9.9 of 10", "a fresh count"} {
		if !strings.Contains(p.body, word) {
			t.Errorf("the price does not tell %q: %s", word, p.body)
		}
	}
	for _, several := range []string{"SELECT 1; SELECT count(*) FROM people", "SELECT 1; COMMIT; SELECT 2", "COPY people TO STDOUT", "SET dp.epsilon = 1", ""} {
		if p := w.ask("ask", several, nil); !strings.Contains(p.body, `class="card bad"`) {
			t.Errorf("%q has a price: %s", several, p.body)
		}
		if p := w.ask("buy", several, url.Values{"cost": {"ε 0.1"}, "amount": {"0.1"}}); !strings.Contains(p.body, `class="card bad"`) {
			t.Errorf("%q is bought: %s", several, p.body)
		}
	}
	if n := b.pipe.selects(); n != 0 {
		t.Fatalf("%d statements were answered before any price was confirmed", n)
	}
	seen := url.Values{"cost": {"ε 0.1"}, "amount": {"0.1"}}
	b.pipe.setPrice("0.2")
	if p := w.ask("buy", sql, seen); p.status != http.StatusConflict || !strings.Contains(p.body, "has changed") || !strings.Contains(p.body, "Buy the answer for ε 0.2") {
		t.Errorf("a price that rose: %d %s", p.status, p.body)
	}
	for _, none := range []url.Values{nil, {"cost": {"ε 0.1"}}, {"amount": {"0.1"}}} {
		if p := w.ask("buy", sql, none); p.status != http.StatusBadRequest {
			t.Errorf("no price confirmed: %d", p.status)
		}
	}
	b.pipe.setPrice("0.1")
	b.pipe.refuse(&pgerror.Failure{SQLState: "53400", Message: "this costs ε 0.2, and dp.max_cost is 0.1; nothing was charged"})
	if p := w.ask("buy", sql, seen); p.status != http.StatusConflict || !strings.Contains(p.body, "has changed") {
		t.Errorf("a price that rose in between: %d %s", p.status, p.body)
	}
	b.pipe.refuse(nil)
	before := b.pipe.selects()
	p = w.ask("buy", sql, seen)
	if p.status != http.StatusOK || !strings.Contains(p.body, "510 ± 30") || !strings.Contains(p.body, "480 to 540") || !strings.Contains(p.body, "a notice") {
		t.Errorf("the answer: %d %s", p.status, p.body)
	}
	b.pipe.mu.Lock()
	last := b.pipe.most[len(b.pipe.most)-1]
	b.pipe.mu.Unlock()
	if last != "0.1" || b.pipe.selects() != before+1 {
		t.Errorf("it was answered under dp.max_cost = %q, %d times", last, b.pipe.selects()-before)
	}
	b.pipe.setPrice("0")
	if p := w.ask("ask", sql, nil); !strings.Contains(p.body, "Show the answer") {
		t.Errorf("a free answer: %s", p.body)
	}
	threats.Reached(t, "T75", "a price that rises between preview and purchase, or while it is bought: 0 bought at another price; several statements in one box: 0 run")
}

func (p *pipe) setPrice(price string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.price = price
}

func (p *pipe) refuse(f *pgerror.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = f
}

// slowly starts pages that wait for their answers.
func slowly(b *bench, w *browser, n int) (done chan page) {
	b.t.Helper()
	b.pipe.waiting.Store(0)
	return slowlyMore(b, w, n)
}

func slowlyMore(b *bench, w *browser, n int) (done chan page) {
	b.t.Helper()
	before := b.pipe.waiting.Load()
	done = make(chan page, n)
	token := w.get("/data/lab/ask").token()
	for range n {
		go func() {
			values := url.Values{"token": {token}, "sql": {"SELECT slow"}, "cost": {"ε 0.1"}, "amount": {"0.1"}}
			p, err := w.try(http.MethodPost, "/data/lab/buy", strings.NewReader(values.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
			if err != nil {
				p.body = err.Error()
			}
			done <- p
		}()
	}
	for end := time.Now().Add(10 * time.Second); b.pipe.waiting.Load() < before+int64(n); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%d of %d statements run", b.pipe.waiting.Load(), n)
		}
	}
	return done
}

// TestPagesAtOnce: one session has four pages under way, and a fifth is refused; other sessions go on.
func TestPagesAtOnce(t *testing.T) {
	b := start(t, policyText(t, ""))
	alice, bob := b.loggedIn("alice"), b.loggedIn("bob")
	done := slowly(b, alice, maxAtOnce)
	if p := alice.get("/data/lab/tables"); p.status != http.StatusTooManyRequests {
		t.Errorf("a fifth page: %d", p.status)
	}
	if p := bob.get("/data/lab/tables"); p.status != http.StatusOK {
		t.Errorf("bob's page: %d", p.status)
	}
	second := slowlyMore(b, b.loggedIn("alice"), maxAtOnceEach-maxAtOnce)
	if p := b.loggedIn("alice").get("/data/lab/tables"); p.status != http.StatusTooManyRequests {
		t.Errorf("a ninth page of one user: %d", p.status)
	}
	close(b.pipe.slow)
	for range maxAtOnceEach - maxAtOnce {
		<-second
	}
	threats.Reached(t, "T76", "a fifth page of a session: 429, another session's: answered")
	for range maxAtOnce {
		if p := <-done; p.status != http.StatusOK {
			t.Errorf("a page that was under way: %d %s", p.status, p.body)
		}
	}
	if p := alice.get("/data/lab/tables"); p.status != http.StatusOK {
		t.Errorf("afterwards: %d", p.status)
	}
}

// TestLogOutWhileItRuns: a log-out, a browser that goes away and an idle session end what their pages wait for, as a
// lost client does, and nothing else. Under -race.
func TestLogOutWhileItRuns(t *testing.T) {
	b := start(t, policyText(t, ""))
	ended := func(want int64) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); b.pipe.ended.Load() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d of %d waits ended", b.pipe.ended.Load(), want)
			}
		}
	}
	alice := b.loggedIn("alice")
	done := slowly(b, alice, 3)
	token := alice.get("/data/lab/ask").token()
	began := time.Now()
	if p := alice.form("/logout", url.Values{"token": {token}}); p.status != http.StatusSeeOther {
		t.Fatalf("log-out: %d", p.status)
	}
	for range 3 {
		if p := <-done; p.status == http.StatusOK {
			t.Errorf("a page of a session that was logged out: %d", p.status)
		}
	}
	if took := time.Since(began); took > 15*time.Second { // its browser gives up after twenty
		t.Errorf("pages end %v after the log-out", took)
	}
	ended(3)
	alice = b.loggedIn("alice")
	ctx, leave := context.WithCancel(t.Context())
	values := url.Values{"token": {alice.get("/data/lab/ask").token()}, "sql": {"SELECT slow"}, "cost": {"ε 0.1"}, "amount": {"0.1"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.address+"/data/lab/buy", strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if out, err := alice.Do(r); err == nil {
			out.Body.Close()
		}
	}()
	for b.pipe.waiting.Load() < 4 { // three have ended
		time.Sleep(time.Millisecond)
	}
	leave()
	<-gone
	ended(4)
	var all sync.WaitGroup
	for range 8 { // log-outs that race with pages
		all.Go(func() {
			w := b.loggedIn("bob")
			token := w.get("/data/lab/ask").token()
			var two sync.WaitGroup
			two.Go(func() { _, _ = w.try("GET", "/data/lab/balance", nil, nil) })
			two.Go(func() {
				_, _ = w.try("POST", "/logout", strings.NewReader(url.Values{"token": {token}}.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
			})
			two.Wait()
		})
	}
	all.Wait()
	threats.Reached(t, "T76", "4 statements whose session or browser went away: 4 waits ended, and 8 log-outs that raced with pages: the proxy goes on")
	if p := b.loggedIn("alice").get("/data/lab/tables"); p.status != http.StatusOK {
		t.Errorf("the console afterwards: %d", p.status)
	}
	conn, err := pgconn.Connect(t.Context(), "postgres://alice:alice@"+b.wire+"/lab?sslmode=disable")
	if err != nil {
		t.Fatalf("the wire afterwards: %v", err)
	}
	conn.Close(t.Context())
}

// TestOneBrake: guesses in the form and guesses on the wire are slowed together.
func TestOneBrake(t *testing.T) {
	b := start(t, policyText(t, ""))
	w := b.browser()
	began := time.Now()
	for range 4 {
		w.logIn("alice", "wrong")
	}
	free := time.Since(began)
	began = time.Now()
	w.logIn("alice", "wrong")
	if d := time.Since(began); d < 90*time.Millisecond {
		t.Errorf("a fifth guess takes %v", d)
	}
	began = time.Now()
	if _, err := pgconn.Connect(t.Context(), "postgres://alice:wrong@"+b.wire+"/lab?sslmode=disable"); err == nil {
		t.Error("a wrong password")
	}
	if d := time.Since(began); d < 180*time.Millisecond {
		t.Errorf("the sixth guess, on the wire, takes %v; the first four took %v", d, free)
	}
	fastest := time.Hour
	for range 5 {
		began = time.Now()
		if p := b.browser().logIn("bob", "bob"); p.status != http.StatusSeeOther {
			t.Errorf("bob: %d", p.status)
		}
		fastest = min(fastest, time.Since(began))
	}
	if fastest > 300*time.Millisecond {
		t.Errorf("bob waits %v", fastest)
	}
	threats.Reached(t, "T73", "the fifth guess in the form and the sixth on the wire wait for each other's")
}

// TestManyLogIns: log-ins that are tried at once do not keep another name out.
func TestManyLogIns(t *testing.T) {
	b := start(t, policyText(t, ""))
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 40 {
		w := b.browser()
		token := w.get("/login").token()
		all.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.address+"/login", strings.NewReader(url.Values{"token": {token}, "name": {"alice"}, "password": {"wrong"}}.Encode()))
				if err != nil {
					return
				}
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				if out, err := w.Do(r); err == nil {
					out.Body.Close()
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	p := b.browser().logIn("bob", "bob")
	for range 20 {
		if p.status == http.StatusSeeOther {
			break
		}
		p = b.browser().logIn("bob", "bob")
	}
	took := time.Since(began)
	end()
	all.Wait()
	if p.status != http.StatusSeeOther || took > 20*time.Second {
		t.Errorf("bob is in after %v: %d", took, p.status)
	}
}

// TestSessionsAreBounded: of one user, in all, and in time.
func TestSessionsAreBounded(t *testing.T) {
	b := start(t, policyText(t, ""))
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	alice, err := b.proxy.Prove(t.Context(), "alice", "alice", from, false)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s := newSessions(t.Context())
	s.now = func() time.Time { return now }
	first, opened := s.open(alice)
	for range maxSessionsEach {
		now = now.Add(time.Second)
		s.open(alice)
	}
	if s.find(first) != nil || opened.served.Err() == nil || len(s.kept) != maxSessionsEach {
		t.Errorf("%d sessions of one user, the oldest among them", len(s.kept))
	}
	busy, running := s.open(alice)
	if !s.enter(running) {
		t.Fatal("no page")
	}
	idle, _ := s.open(alice)
	now = now.Add(idleFor + time.Second)
	if s.find(idle) != nil || s.find(busy) == nil {
		t.Error("an idle session is there, or one with a page under way is not")
	}
	s.leave(running)
	now = now.Add(idleFor - time.Minute)
	if s.find(busy) == nil {
		t.Error("a session that was used is not there")
	}
	for now.Before(running.opened.Add(lastsFor)) {
		if s.find(busy); s.enter(running) {
			s.leave(running)
		}
		now = now.Add(idleFor / 2)
	}
	now = now.Add(time.Second)
	if s.find(busy) != nil {
		t.Error("a session lasts for ever")
	}
	s.sweep(now)
	if len(s.kept) != 0 {
		t.Errorf("%d sessions are kept that are over", len(s.kept))
	}
}

// TestConnectionsAreBounded: of one address, in all; one that asks nothing goes for one that does.
func TestConnectionsAreBounded(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := newBounded(raw)
	conns.each, conns.most = 3, 5
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	server := &http.Server{ConnContext: named, Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil { // as a form is read before a name is proved
			return
		}
		if r.URL.Path == "/wait" {
			defer kept(r)()
			entered <- struct{}{}
			<-leave
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(conns) }()
	defer func() {
		_ = server.Close()
		<-ended
	}()
	dial := func(path string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if path != "" {
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		}
		return conn
	}
	closed := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := conn.Read(make([]byte, 1))
		return err == io.EOF || strings.Contains(fmt.Sprint(err), "reset")
	}
	silent := []net.Conn{dial(""), dial(""), dial("")}
	fmt.Fprint(silent[1], "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nname=")
	fmt.Fprint(silent[2], "POST /login HTTP/1.1\r\nHo")
	for range 3 { // each takes the place of one that says nothing, or half of something
		dial("/wait")
		select {
		case <-entered:
		case <-time.After(5 * time.Second):
			t.Fatal("a page waits for connections that say nothing")
		}
	}
	for i, conn := range silent {
		if !closed(conn) {
			t.Errorf("silent connection %d is open", i)
		}
	}
	if !closed(dial("/")) {
		t.Error("a fourth connection is served while three are busy")
	}
	close(leave)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		out, err := http.Get("http://" + raw.Addr().String() + "/")
		if err == nil {
			out.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
