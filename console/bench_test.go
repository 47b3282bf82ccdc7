package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	refusals "github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is what must never be in a page as it is.
const script = `<script>alert(1)</script>`

// pipe answers in the pipeline's place, behind a proxy that is the real one.
type pipe struct {
	mu       sync.Mutex
	price    string // of every SELECT but those of dp.*
	asked    []string
	most     []string // dp.max_cost of what was asked
	slow     chan struct{}
	waiting  atomic.Int64
	ended    atomic.Int64 // waits that ended with their context
	columns  []sandbox.Column
	rows     [][]policy.Value
	refusing *pgerror.Failure
}

func text(name string) sandbox.Column {
	return sandbox.Column{Name: name, Type: policy.Text, Typmod: -1}
}

// shape is what a statement is answered with.
func (p *pipe) shape(stmt parse.Statement) (columns []sandbox.Column, rows [][]policy.Value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch sql := stmt.Text; {
	case stmt.Kind == parse.KindExplain:
		cost, amount := "ε "+p.price, p.price
		if p.price == "0" {
			cost = "nothing"
		}
		plan := fmt.Sprintf(`[{"Plan": {"Cost": %q, "Total Cost": %s, "Balance After": "9.9 of 10", "Confidence": 0.95, "Columns": [{"Name": "n", "Type": "bigint", "Expected Error": "±37 a value"}],
"Plans": [{"Table": "public.people", "Kind": "count", "Answered From": "a fresh count", "Mechanism": "geometric %s", "Cost": "ε 0.1", "Expected Error": ["n: ±37"], "Query": "SELECT 1"}],
"Alternatives": [{"Leaf": "l", "Kind": "range", "Measure": "people_age", "Cost": "ε 0.5", "Expected Error": "±8", "Taken": false, "Why": "dearer"}], "Notes": ["a note %s"]}}]`, cost, amount, script, script)
		return []sandbox.Column{text("QUERY PLAN")}, [][]policy.Value{{plan}}
	case strings.Contains(sql, "FROM dp.tables"):
		return []sandbox.Column{text("a"), text("b"), text("c"), text("d"), text("e"), text("f")}, [][]policy.Value{{"public", "people", "f", "person", "1000", "1"}, {"public", script, "t", nil, nil, nil}}
	case strings.Contains(sql, "FROM dp.columns"):
		return []sandbox.Column{text("a"), text("b"), text("c"), text("d"), text("e"), text("f"), text("g")}, [][]policy.Value{{"public", "people", "age", "integer", "0 to 119", "cell", "clamp"}, {"public", script, script, "text", "one of " + script, "cell", "other"}}
	case strings.Contains(sql, "FROM dp.budget"):
		return []sandbox.Column{text("user_name"), text("dataset"), text("accountant"), text("spent"), text("budget"), text("remaining")}, [][]policy.Value{{"alice", "lab", "pure", "2.5", "10", "7.5"}}
	case strings.Contains(sql, "FROM dp."):
		return []sandbox.Column{text("a"), text("b"), text("c")}, [][]policy.Value{{script, script, script}}
	}
	return p.columns, p.rows
}

func (p *pipe) AtOnce(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, bool) {
	return pipeline.Result{}, false
}

func (p *pipe) Describe(_ context.Context, _ *pipeline.Session, stmt parse.Statement, _ []policy.Type) (plans.Description, *refusals.Refusal) {
	columns, _ := p.shape(stmt)
	d := plans.Description{Columns: []plans.OutColumn{}}
	for _, c := range columns {
		d.Columns = append(d.Columns, plans.OutColumn{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
	}
	return d, nil
}

func (p *pipe) Answer(ctx context.Context, s *pipeline.Session, stmt parse.Statement, _ []policy.Value) (pipeline.Result, error) {
	columns, rows := p.shape(stmt)
	p.mu.Lock()
	p.asked = append(p.asked, stmt.Text)
	most := ""
	if s.Settings.MaxCost != nil {
		most = s.Settings.MaxCost.String()
	}
	p.most = append(p.most, most)
	slow, refusing := p.slow, p.refusing
	p.mu.Unlock()
	if stmt.Kind == parse.KindSelect && strings.Contains(stmt.Text, "slow") {
		p.waiting.Add(1)
		select {
		case <-slow:
		case <-ctx.Done():
			p.ended.Add(1)
			return pipeline.Result{}, ctx.Err()
		}
	}
	if refusing != nil && stmt.Kind == parse.KindSelect && !strings.Contains(stmt.Text, "dp.") {
		return pipeline.Result{}, refusing
	}
	return pipeline.Result{Columns: columns, Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: rows}), Tag: "SELECT", Notices: []pipeline.Notice{{Message: "a notice " + script}}}, nil
}

// selects are the statements that were answered beside those of dp.* and EXPLAIN.
func (p *pipe) selects() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sql := range p.asked {
		if !strings.Contains(sql, "dp.") && !strings.HasPrefix(strings.TrimSpace(strings.ToUpper(sql)), "EXPLAIN") {
			n++
		}
	}
	return n
}

// bench is a console before a real proxy.
type bench struct {
	t       *testing.T
	pipe    *pipe
	books   *books
	proxy   *proxy.Server
	policy  atomic.Pointer[policy.Policy]
	address string // of the console
	wire    string
	log     *logged
	scheme  string
}

type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var verifiers sync.Map // by password: making one takes milliseconds

func verifierOf(t *testing.T, password string) string {
	t.Helper()
	if v, ok := verifiers.Load(password); ok {
		return v.(string)
	}
	v, err := policy.Verifier(password, strings.NewReader(strings.Repeat(password+"-salt", 20)))
	if err != nil {
		t.Fatal(err)
	}
	verifiers.Store(password, v)
	return v
}

// policyText is the bench's policy. Every password is the user's name.
func policyText(t *testing.T, server string, more ...string) string {
	t.Helper()
	users := ""
	for _, name := range append([]string{"alice", "bob", "dba", "stranger"}, more...) {
		users += fmt.Sprintf("  - {name: %q, password: %q}\n", name, verifierOf(t, name))
	}
	return `version: 1
server: {listen: "127.0.0.1:0"` + server + `}
backend: {url: "duckdb:lab.duckdb"}
users:
` + users + `owners: [dba]
datasets:
  - id: lab
    unit: {name: person, key: people.uid}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 100, delta: 0}
    budgets: {alice: {epsilon: 10, delta: 0}, bob: {epsilon: 10, delta: 0}}
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: people
        source: main.people
        expected_rows: 1000
        max_rows_per_unit: 1
        columns:
          - {name: age, type: integer, domain: {min: 0, max: 119, step: 1}, outside: clamp}
        releases:
          - {kind: range, columns: [age], epsilon: 0.5}
`
}

func parsed(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text), t.TempDir()+"/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func start(t *testing.T, policyText string) *bench {
	t.Helper()
	b := &bench{t: t, log: &logged{}, scheme: "http", books: newBooks(), pipe: &pipe{price: "0.1", slow: make(chan struct{}),
		columns: []sandbox.Column{text("sex"), {Name: "n", Type: policy.Int8, Typmod: -1}, {Name: "n_low", Type: policy.Int8, Typmod: -1}, {Name: "n_high", Type: policy.Int8, Typmod: -1}},
		rows:    [][]policy.Value{{script, int64(510), int64(480), int64(540)}, {"Male", int64(490), int64(460), int64(520)}}}}
	b.policy.Store(parsed(t, policyText))
	log := slog.New(slog.NewTextHandler(b.log, nil))
	var err error
	if b.proxy, err = proxy.New(proxy.Config{Policy: b.policy.Load, Pipeline: b.pipe, Log: log, Secret: []byte("bench")}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- b.proxy.Serve(context.Background()) }()
	<-b.proxy.Listening()
	b.wire = b.proxy.Addr().String()
	pages, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = pages.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	if b.policy.Load().Server.TLS != nil {
		b.scheme = "https"
	}
	go func() {
		ended <- Serve(ctx, pages, Config{Statement: func(ledger.Digest) string { return "SELECT '" + script + "' " + strings.Repeat("é", 3000) }, Proxy: b.proxy, Policy: b.policy.Load, Books: b.books, Log: log,
			Check: func(text []byte) (*policy.Policy, error) { return policy.Parse(text, b.policy.Load().Path) }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		grace, done := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer done()
		_ = b.proxy.Shutdown(grace)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if l := b.log.String(); strings.Contains(l, "level=ERROR") || strings.Contains(l, "panic") {
			t.Errorf("the log: %s", l)
		}
	})
	return b
}

// browser is a client that keeps cookies and follows nothing.
type browser struct {
	*http.Client
	b *bench
}

func (b *bench) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	transport := &http.Transport{}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &browser{&http.Client{Jar: jar, Transport: transport, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, b}
}

// page is an answer, read.
type page struct {
	status int
	body   string
	head   http.Header
}

func (w *browser) do(method, path string, body io.Reader, header http.Header) page {
	w.b.t.Helper()
	p, err := w.try(method, path, body, header)
	if err != nil {
		w.b.t.Fatal(err)
	}
	return p
}

func (w *browser) try(method, path string, body io.Reader, header http.Header) (page, error) {
	r, err := http.NewRequest(method, w.b.scheme+"://"+w.b.address+path, body)
	if err != nil {
		return page{}, err
	}
	for name, values := range header {
		if r.Header[name] = values; name == "Host" {
			r.Host = values[0]
		}
	}
	out, err := w.Do(r)
	if err != nil {
		return page{}, err
	}
	defer out.Body.Close()
	read, err := io.ReadAll(out.Body)
	return page{out.StatusCode, string(read), out.Header}, err
}

func (w *browser) get(path string) page { w.b.t.Helper(); return w.do("GET", path, nil, nil) }

func (w *browser) form(path string, values url.Values) page {
	w.b.t.Helper()
	return w.do("POST", path, strings.NewReader(values.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

func (p page) token() string {
	if m := tokenField.FindStringSubmatch(p.body); m != nil {
		return m[1]
	}
	return ""
}

// logIn tries a password.
func (w *browser) logIn(user, password string) page {
	w.b.t.Helper()
	return w.form("/login", url.Values{"token": {w.get("/login").token()}, "name": {user}, "password": {password}})
}

// loggedIn is a browser in which a user has logged in.
func (b *bench) loggedIn(user string) *browser {
	b.t.Helper()
	w := b.browser()
	if p := w.logIn(user, user); p.status != http.StatusSeeOther {
		b.t.Fatalf("%s is not logged in: %d %s", user, p.status, p.body)
	}
	return w
}

// ask posts a statement to a page of lab.
func (w *browser) ask(to, sql string, more url.Values) page {
	w.b.t.Helper()
	values := url.Values{"token": {w.get("/data/lab/ask").token()}, "sql": {sql}, "bounds": {"on"}}
	for name, v := range more {
		values[name] = v
	}
	return w.form("/data/lab/"+to, values)
}

// held is the session's cookie.
func (w *browser) held() string {
	at := &url.URL{Scheme: w.b.scheme, Host: w.b.address, Path: "/"}
	_, port, _ := net.SplitHostPort(w.b.address)
	for _, c := range w.Jar.Cookies(at) {
		if strings.HasSuffix(c.Name, "dpproxy_"+port) {
			return c.Value
		}
	}
	return ""
}
