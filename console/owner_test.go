package console

import (
	"bytes"
	"fmt"
	"math"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ownerPaths are the owners' pages.
var ownerPaths = []string{"/owner", "/owner/charges", "/owner/releases", "/owner/alarms", "/owner/policy"}

// TestOwnersAlone: whoever is not an owner sees nothing of what others do, an admin neither; an owner that the policy
// no longer names sees it no more.
func TestOwnersAlone(t *testing.T) {
	text := strings.Replace(policyText(t, ""), `{name: "bob"`, `{admin: true, name: "bob"`, 1)
	b := start(t, text)
	dba := b.loggedIn("dba")
	for _, name := range []string{"alice", "bob", "stranger"} {
		w := b.loggedIn(name)
		for _, path := range ownerPaths {
			if p := w.get(path); p.status != http.StatusForbidden || strings.Contains(p.body, "people_age") || strings.Contains(p.body, "/owner/") {
				t.Errorf("%s sees %s: %d", name, path, p.status)
			}
		}
		for _, path := range []string{"/owner/revoke", "/owner/policy"} {
			if p := w.form(path, url.Values{"token": {w.get("/nowhere").token()}, "id": {"7"}, "confirmed": {"yes"}, "text": {text}}); p.status != http.StatusForbidden {
				t.Errorf("%s posts to %s: %d", name, path, p.status)
			}
		}
	}
	for _, path := range ownerPaths {
		p := dba.get(path)
		if p.status != http.StatusOK || strings.Contains(p.body, "<script") {
			t.Errorf("the owner's %s: %d %s", path, p.status, p.body)
		}
	}
	b.policy.Store(parsed(t, strings.Replace(text, "owners: [dba]", "owners: [bob]", 1)))
	for _, path := range ownerPaths {
		if p := dba.get(path); p.status != http.StatusForbidden {
			t.Errorf("who is an owner no more sees %s: %d", path, p.status)
		}
	}
	if n := b.books.revoked.Load(); n != 0 {
		t.Errorf("%d releases were withdrawn", n)
	}
	threats.Reached(t, "T77", "3 users who are no owners, an admin among them, at %d pages and 2 forms: 0 shown, 0 done", len(ownerPaths))
}

// TestSpending: what is left, the pace, and the day on which nothing is.
func TestSpending(t *testing.T) {
	b := start(t, policyText(t, ""))
	p := b.loggedIn("dba").get("/owner")
	// alice has paid 1 in nine days, of 10: 9 are left, at a ninth a day, for 81 days; the cap has 99 left for 891.
	for _, word := range []string{"ε 0.111 a day", day(b.books.now.Add(81 * 24 * time.Hour)), day(b.books.now.Add(891 * 24 * time.Hour)), "<svg", "bob", "nothing spent in four weeks"} {
		if !strings.Contains(p.body, word) {
			t.Errorf("the page does not tell %q: %s", word, p.body)
		}
	}
	p = b.loggedIn("dba").get("/owner/charges")
	if n := strings.Count(p.body, "ε 0.1"); n != 20 {
		t.Errorf("%d costs of 10 charges: %s", n, p.body)
	}
}

// TestPaces: an account that is spent, one that is granted anew, one whose first hour was busy, one that lasts.
func TestPaces(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration, amount float64) spend { return spend{now.Add(-d), amount} }
	u := unitOf(epsilon(1))
	const aDay = 24 * time.Hour
	for _, c := range []struct {
		name  string
		a     account
		until string
		soon  bool
	}{
		{"spent", account{limit: 1, left: 0, spends: []spend{ago(aDay, 1)}}, "spent", true},
		{"idle", account{limit: 1, left: 0.5, spends: []spend{ago(40*aDay, 0.5)}}, "nothing spent in four weeks", false},
		{"a busy first hour is a day's", account{limit: 10, left: 9, spends: []spend{ago(time.Hour, 1)}}, "2026-12-05", true},
		{"four weeks", account{limit: 30, left: 2, spends: []spend{ago(28*aDay, 28)}}, "2026-11-28", true},
		{"before the window ends", account{limit: 10, left: 9, ends: now.Add(20 * aDay), spends: []spend{ago(time.Hour, 1)}}, "2026-12-05", true},
		{"not before it does", account{limit: 10, left: 9, ends: now.Add(5 * aDay), spends: []spend{ago(time.Hour, 1)}}, "not before it is granted anew on 2026-12-01", false},
		{"for ever", account{limit: 1e6, left: 1e6 - 1, spends: []spend{ago(aDay, 0.001)}}, "not in a hundred years", false},
	} {
		c.a.now = now
		if o := c.a.look(u); o.Until != c.until || o.Soon != c.soon {
			t.Errorf("%s: %q %v, not %q %v", c.name, o.Until, o.Soon, c.until, c.soon)
		}
	}
}

// TestLinesAreThin: however many charges there are, a line has a bounded number of points, begins at what was there,
// ends at what is left, and never rises.
func TestLinesAreThin(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	u := unitOf(epsilon(1))
	most := 0
	for _, n := range []int{1, 2, 199, 200, 201, 100_000} {
		a := account{limit: 100, left: 40, now: now}
		for i := range n {
			a.spends = append(a.spends, spend{now.Add(-time.Duration(n-i) * time.Minute), 60 / float64(n)})
		}
		c := a.look(u).Chart
		points := strings.Fields(c.Line)
		if most = max(most, len(points)); len(points) > 2*maxSteps+4 {
			t.Errorf("%d charges have %d points", n, len(points))
		}
		var before float64
		for i, p := range points {
			var x, y float64
			if _, err := fmt.Sscanf(p, "%f,%f", &x, &y); err != nil || y < before-0.11 || x < 0 || x > 1000 || y < -0.1 || y > 1000.1 {
				t.Fatalf("%d charges: point %d is %s", n, i, p)
			}
			before = y
		}
		if !strings.HasPrefix(c.Line, "0.0,0.0 ") || math.Abs(before-600) > 0.2 {
			t.Errorf("%d charges: the line goes from %s to %s", n, points[0], points[len(points)-1])
		}
		if len(c.Grid) > 8 || len(c.Dots) > maxDots {
			t.Errorf("%d lines, %d dots", len(c.Grid), len(c.Dots))
		}
	}
	points := make([]point, maxRows)
	xs := make([]float64, maxRows)
	for i := range points {
		xs[i] = float64(i)
	}
	if c := lineOf("n", xs, points); len(strings.Fields(c.Line)) > maxRows || len(c.Dots) != 0 {
		t.Errorf("an answer of %d rows has %d points and %d dots", maxRows, len(strings.Fields(c.Line)), len(c.Dots))
	}
	t.Logf("at most %d points", most)
}

// TestUnits: under zcdp and either a cost in ε counts as the ρ that it implies.
func TestUnits(t *testing.T) {
	u := unitOf(privacy.Cost{Rho: privacy.PicoRho(1)})
	if got := u.of(epsilon(200_000)); got != 0.02 || u.name != "ρ" {
		t.Errorf("ε 0.2 is %s %v", u.name, got)
	}
}

// TestRevoke: a release is withdrawn once that is confirmed, and not before.
func TestRevoke(t *testing.T) {
	b := start(t, policyText(t, ""))
	w := b.loggedIn("dba")
	token := w.get("/owner/releases").token()
	for _, id := range []string{"8", "x", "", "-7"} {
		if p := w.form("/owner/revoke", url.Values{"token": {token}, "id": {id}, "confirmed": {"yes"}}); p.status != http.StatusNotFound {
			t.Errorf("release %q: %d", id, p.status)
		}
	}
	if p := w.form("/owner/revoke", url.Values{"token": {token}, "id": {"7"}}); p.status != http.StatusOK || !strings.Contains(p.body, "Withdraw release 7?") || b.books.revoked.Load() != 0 {
		t.Errorf("before it is confirmed: %d %s", p.status, p.body)
	}
	if p := w.form("/owner/revoke", url.Values{"token": {token}, "id": {"7"}, "confirmed": {"yes"}}); p.status != http.StatusOK || !strings.Contains(p.body, "is withdrawn") || b.books.revoked.Load() != 1 {
		t.Errorf("once it is: %d %s", p.status, p.body)
	}
	if !strings.Contains(b.log.String(), "release withdrawn") {
		t.Error("the log does not tell")
	}
}

// upload posts a policy as a file.
func (w *browser) upload(text string) page {
	w.b.t.Helper()
	body := &bytes.Buffer{}
	form := multipart.NewWriter(body)
	if err := form.WriteField("token", w.get("/owner/policy").token()); err != nil {
		w.b.t.Fatal(err)
	}
	part, err := form.CreateFormFile("file", "policy.yaml")
	if err != nil {
		w.b.t.Fatal(err)
	}
	if _, err := part.Write([]byte(text)); err != nil {
		w.b.t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		w.b.t.Fatal(err)
	}
	return w.do("POST", "/owner/policy", body, http.Header{"Content-Type": {form.FormDataContentType()}})
}

// TestProposedPolicy: a proposed policy is compared, and nothing of it is put in force; what is wrong with one is
// shown, one of ten megabytes is refused by a page that says so, and one that would unfold without end is not unfolded.
func TestProposedPolicy(t *testing.T) {
	text := policyText(t, "")
	b := start(t, text)
	w := b.loggedIn("dba")
	before := b.policy.Load()
	p := w.upload(strings.Replace(strings.Replace(text, "alice: {epsilon: 10,", "alice: {epsilon: 0.5,", 1), "max: 119", "max: 129", 1))
	for _, word := range []string{"budgets changed", "alice of lab", "nothing: more is spent", "columns changed", "0 to 129 in 130 steps"} {
		if !strings.Contains(p.body, word) {
			t.Errorf("the page does not tell %q: %s", word, p.body)
		}
	}
	if p := w.form("/owner/policy", url.Values{"token": {w.get("/owner/policy").token()}, "text": {text}}); !strings.Contains(p.body, "byte for byte") {
		t.Errorf("the same policy: %s", p.body)
	}
	if p := w.upload("# a comment\n" + text); !strings.Contains(p.body, "changes nothing that is compared") {
		t.Errorf("a comment: %s", p.body)
	}
	if p := w.upload(strings.Replace(text, "accountant: pure", "acountant: pure", 1)); !strings.Contains(p.body, "acountant") || !strings.Contains(p.body, "would not be taken in") {
		t.Errorf("a fault: %s", p.body)
	}
	for _, bad := range []string{"", "\x00\x01", script, strings.Repeat("[", 100_000), "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nversion: *g\ndatasets: *g\n"} {
		began := time.Now()
		if p := w.upload(bad); p.status >= 500 || !strings.Contains(p.body, "would not be taken in") || strings.Contains(p.body, "<script") {
			t.Errorf("%.40q: %d %.2000s", bad, p.status, p.body)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%.40q takes %v", bad, took)
		}
	}
	for _, size := range []int{maxPolicy + 1, 10 << 20} {
		if p := w.upload(text + "#" + strings.Repeat("x", size)); p.status != http.StatusRequestEntityTooLarge && p.status != http.StatusBadRequest || !strings.Contains(p.body, "KiB") {
			t.Errorf("%d bytes: %d %.300s", size, p.status, p.body)
		}
	}
	if p := w.get("/owner/policy"); b.policy.Load() != before || p.status != http.StatusOK || !strings.Contains(p.body, "0 to 119") || strings.Contains(p.body, "SCRAM") || strings.Contains(p.body, "lab.duckdb") {
		t.Errorf("afterwards: %d %s", p.status, p.body)
	}
	threats.Reached(t, "T77", "proposed policies of 10 MB, of nonsense, and that unfold without end: each an error within 5 s, 0 put in force")
}

// TestAccountsOfGroups: a group's account is found by its mark, and a member's own charges are the group's.
func TestAccountsOfGroups(t *testing.T) {
	u := unitOf(epsilon(1))
	charges := []ledger.Charge{{Account: ledger.GroupAccount("team"), User: "alice", Cost: epsilon(100_000)}, {Account: "alice", User: "alice", Cost: epsilon(200_000), Pool: epsilon(300_000)}}
	if l := spendsOf(charges, ledger.GroupAccount("team"), u, time.Time{}); len(l) != 1 || l[0].amount != 0.1 {
		t.Errorf("the group's: %v", l)
	}
	if l := spendsOf(charges, "", u, time.Time{}); len(l) != 1 || l[0].amount != 0.3 {
		t.Errorf("the cap's: %v", l)
	}
}
