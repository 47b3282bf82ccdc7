package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/dpproxy/dpproxy/test/kit"
)

// shots is where pictures of the pages are written to, for who looks at them; empty means nowhere.
var shots = os.Getenv("DPPROXY_SHOTS")

var consoleLine = regexp.MustCompile(`msg=console address=(\S+)`)

// serve starts dpproxy over the fixture, with a console; dba is an owner.
func serve(t *testing.T, more ...string) (p *kit.Program, pages string) {
	t.Helper()
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "100"}, 0)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `server: {listen: "127.0.0.1:0"}`, `server: {listen: "127.0.0.1:0", console: "127.0.0.1:0"}`+"\nowners: [dba]", 1)
	for i := 0; i+1 < len(more); i += 2 {
		changed = strings.Replace(changed, more[i], more[i+1], 1)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	p = kit.Serve(t, path)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if m := consoleLine.FindStringSubmatch(p.LogText()); m != nil {
			return p, m[1]
		}
		if time.Now().After(end) {
			t.Fatalf("there is no console: %s", p.LogText())
		}
	}
}

// chromium starts a browser of its own, with an empty profile.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: apt install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, done := chromedp.NewContext(allocator)
	t.Cleanup(done)
	ctx, late := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(late)
	return ctx
}

// reader is somebody before a screen.
type reader struct {
	t     *testing.T
	ctx   context.Context
	at    string
	mu    sync.Mutex
	wrong []string // what the browser's console wrote
}

func newReader(t *testing.T, ctx context.Context, pages string) *reader {
	t.Helper()
	r := &reader{t: t, ctx: ctx, at: "http://" + pages}
	if err := chromedp.Do(ctx); err != nil { // starts it
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(event any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "status of 4") {
				r.wrong = append(r.wrong, e.Entry.Text+" "+e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			r.wrong = append(r.wrong, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// within bounds what a browser is asked to do.
func (r *reader) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, 40*time.Second)
}

func (r *reader) failed(err error) {
	r.t.Helper()
	if err != nil {
		ctx, done := context.WithTimeout(r.ctx, 5*time.Second)
		defer done()
		text, _ := chromedp.Run(ctx, chromedp.Text("body"))
		r.t.Fatalf("%v\nthe page: %.2000s", err, text)
	}
}

func (r *reader) do(actions ...chromedp.Action[chromedp.Void]) {
	r.t.Helper()
	ctx, done := r.within()
	defer done()
	r.failed(chromedp.Do(ctx, actions...))
}

// press presses a button, and waits for the page that it brings.
func (r *reader) press(button string) {
	r.t.Helper()
	ctx, done := r.within()
	defer done()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(button))
	r.failed(err)
}

func number(r *reader, script string) int {
	r.t.Helper()
	ctx, done := r.within()
	defer done()
	n, err := chromedp.Run(ctx, chromedp.Evaluate[int](script))
	r.failed(err)
	return n
}

func (r *reader) open(path string) {
	r.t.Helper()
	r.do(chromedp.Navigate(r.at+path), chromedp.WaitReady("main"))
}

func (r *reader) text() (text string) {
	r.t.Helper()
	ctx, done := r.within()
	defer done()
	text, err := chromedp.Run(ctx, chromedp.Text("body"))
	r.failed(err)
	return text
}

func (r *reader) logIn(user string) {
	r.t.Helper()
	r.open("/login")
	r.do(chromedp.SendKeys(`input[name=name]`, user), chromedp.SendKeys(`input[name=password]`, user))
	r.press(".login button")
	r.do(chromedp.WaitReady("header"))
}

func (r *reader) logOut() {
	r.t.Helper()
	r.press("header button")
	r.do(chromedp.WaitReady(".login"))
}

// looks are the screens that pages are looked at on.
var looks = []struct {
	name          string
	width, height int64
	scheme        string
}{{"desktop-light", 1280, 900, "light"}, {"desktop-dark", 1280, 900, "dark"}, {"phone-light", 375, 812, "light"}, {"phone-dark", 375, 812, "dark"}}

// look takes a picture of the page on each screen, and holds that nothing of it lies beside the screen.
func (r *reader) look(name string) {
	r.t.Helper()
	for _, l := range looks {
		options := []chromedp.EmulateViewportOption{chromedp.EmulatePortrait}
		if l.width < 500 {
			options = append(options, chromedp.EmulateMobile)
		}
		r.do(chromedp.EmulateViewport(l.width, l.height, options...), prefers(l.scheme))
		if wide, shown := number(r, "document.documentElement.scrollWidth"), number(r, "document.documentElement.clientWidth"); wide > shown {
			r.t.Errorf("%s on %s is %d wide, the screen %d", name, l.name, wide, shown)
		}
		if shots == "" {
			continue
		}
		ctx, done := r.within()
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		done()
		r.failed(err)
		if err := os.WriteFile(filepath.Join(shots, fmt.Sprintf("%s-%s.png", name, l.name)), picture, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.do(chromedp.ResetViewport())
}

// prefers sets what the reader's system prefers: light or dark.
func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

func (r *reader) ask(sql string) {
	r.t.Helper()
	r.open("/data/lab/ask")
	r.do(chromedp.SetValue(`textarea[name=sql]`, sql))
	r.press(`form[action$="/ask"] button`)
}

func (r *reader) buy() {
	r.t.Helper()
	r.press(`form[action$="/buy"] button`)
	r.do(chromedp.WaitVisible("section h2"))
}

func (r *reader) holds(words ...string) {
	r.t.Helper()
	text := r.text()
	for _, word := range words {
		if !strings.Contains(text, word) {
			r.t.Errorf("the page does not say %q: %s", word, text)
		}
	}
}

// TestOwnerInChromium: what an owner does; what she withdraws is paid for again.
func TestOwnerInChromium(t *testing.T) {
	ctx := chromium(t)
	p, pages := serve(t, `ledger: {url: "sqlite:ledger.db"}`, `ledger: {url: "sqlite:ledger.db", statements: statements.jsonl}`)
	w := p.Connect("alice", "lab")
	for i := range 12 {
		w.Ask(fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", 20+i))
	}
	p.Connect("bob", "lab").Ask("SET dp.epsilon = 0.5; SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30")
	r := newReader(t, ctx, pages)
	r.logIn("dba")
	r.open("/owner")
	r.holds("Everybody together", "alice", "bob", "a day")
	r.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('details').forEach(d => d.open = true)"))
	r.look("spending")
	r.open("/owner/charges")
	r.holds("histogram", "alice")
	r.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('details').forEach(d => d.open = true)"))
	r.holds("SELECT count(*) FROM people WHERE age > 31", "WHERE age BETWEEN 20 AND 30")
	r.look("charges")
	r.open("/owner/releases")
	r.holds("Withdraw")
	r.look("releases")
	r.press("td form button")
	r.holds("Withdraw release")
	r.look("revoke")
	r.press("button.danger")
	r.holds("is withdrawn")
	again := p.Connect("bob", "lab").Ask("SET dp.epsilon = 0.5; SET dp.max_cost = 0; SELECT count(*) FROM people WHERE age BETWEEN 20 AND 30")
	if again.Err == nil || again.Err.Code != "53400" {
		t.Errorf("bob is answered for free from what was withdrawn: %v", again)
	}
	r.open("/owner/alarms")
	r.holds("database", "answers", "release withdrawn")
	r.look("alarms")
	r.open("/owner/policy")
	r.holds("Compare a proposed policy", "age: integer")
	text, err := os.ReadFile(p.Policy)
	if err != nil {
		t.Fatal(err)
	}
	r.do(chromedp.SetValue(`textarea[name=text]`, strings.Replace(string(text), `{"*": {epsilon: 10,`, `{"*": {epsilon: 1,`, 1)))
	r.press(`form[action="/owner/policy"] button`)
	r.holds("budgets changed", "* of lab")
	r.look("compare")
	r.logOut()
	if len(r.wrong) > 0 {
		t.Errorf("the browser complains: %q", r.wrong)
	}
}

// TestAnalystInChromium: what an analyst does, in a browser without a script.
func TestAnalystInChromium(t *testing.T) {
	ctx := chromium(t)
	_, pages := serve(t)
	r := newReader(t, ctx, pages)
	r.open("/login")
	r.look("login")
	r.logIn("alice")
	r.holds("Tables of lab", "0 to 119")
	r.look("tables")
	r.ask("SELECT city, count(*) AS people FROM people GROUP BY city ORDER BY 2 DESC")
	r.holds("ε 0.1", "Alternatives", "Buy the answer")
	r.look("price")
	r.buy()
	r.holds("Answer", "cost ε 0.1")
	r.do(chromedp.WaitVisible("figure svg"))
	r.look("bars")
	r.ask("SELECT city, count(*) AS people FROM people GROUP BY city ORDER BY 2 DESC")
	r.holds("Free")
	r.ask("SELECT age, count(*) AS people FROM people GROUP BY age ORDER BY age")
	r.buy()
	r.look("line")
	r.ask("SELECT nothing FROM people")
	r.holds("nothing")
	r.look("wrong")
	r.open("/data/lab/balance")
	r.holds("left", "Charges")
	r.look("balance")
	r.logOut()
	if len(r.wrong) > 0 {
		t.Errorf("the browser complains: %q", r.wrong)
	}
}
