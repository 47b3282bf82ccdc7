package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xdg-go/scram"
	"go.uber.org/goleak"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the fixed answer of a fakePipeline to one text.
type fixture struct {
	params  []policy.Type
	columns []sandbox.Column
	rows    [][]policy.Value
	answer  func(ctx context.Context, s *pipeline.Session, params []policy.Value) ([][]policy.Value, error)
	notices []pipeline.Notice
	refusal *refuse.Refusal
	kept    bool // it is answered from memory
	bounds  bool // each column x has an x_low beside it where dp.error_columns is on
}

func (x *fixture) shown(s *pipeline.Session) (columns []sandbox.Column) {
	for _, c := range x.columns {
		if columns = append(columns, c); x.bounds && s.Settings.ErrorColumns {
			columns = append(columns, sandbox.Column{Name: c.Name + "_low", Type: c.Type, Typmod: -1})
		}
	}
	return columns
}

// fakePipeline answers statements by their text, spaces and case aside.
type fakePipeline struct {
	fixtures   map[string]fixture
	answers    atomic.Int64
	remembered atomic.Int64 // answers that were kept
	mu         sync.Mutex
	last       *pipeline.Session
	types      []policy.Type // of the last statement's parameters
}

// answering waits until the first statement is being answered.
func (b *bench) answering() {
	for b.pipeline.answers.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
}

func (f *fakePipeline) find(stmt parse.Statement) (fixture, *refuse.Refusal) {
	x, ok := f.fixtures[normal(stmt.Text)]
	if !ok {
		return fixture{}, &refuse.Refusal{ID: "unknown-column", SQLState: "42703", Message: `column "nope" does not exist`, Position: 8}
	}
	return x, x.refusal
}

func (f *fakePipeline) AtOnce(_ context.Context, _ *pipeline.Session, stmt parse.Statement, _ []policy.Value) (pipeline.Result, bool) {
	x, ok := f.fixtures[normal(stmt.Text)]
	if !ok || !x.kept {
		return pipeline.Result{}, false
	}
	f.remembered.Add(1)
	return pipeline.Result{Columns: x.columns, Rows: privacy.Published(sandbox.Rows{Columns: x.columns, Data: x.rows}), Tag: "SELECT", Notices: x.notices}, true
}

func (f *fakePipeline) Describe(_ context.Context, s *pipeline.Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal) {
	x, refusal := f.find(stmt)
	if refusal != nil {
		return plans.Description{}, refusal
	}
	d := plans.Description{Columns: []plans.OutColumn{}}
	for i, t := range x.params {
		if i < len(given) && given[i] != 0 {
			t = given[i]
		}
		d.Params = append(d.Params, t)
	}
	for _, c := range x.shown(s) {
		d.Columns = append(d.Columns, plans.OutColumn{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
	}
	return d, nil
}

func (f *fakePipeline) Answer(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, error) {
	f.answers.Add(1)
	f.mu.Lock()
	if f.last, f.types = s, stmt.ParamTypes; stmt.Explain != nil {
		f.types = stmt.Explain.Statement.ParamTypes
	}
	f.mu.Unlock()
	x, refusal := f.find(stmt)
	if refusal != nil {
		return pipeline.Result{}, refusal
	}
	rows := x.rows
	if x.answer != nil {
		var err error
		if rows, err = x.answer(ctx, s, params); err != nil {
			return pipeline.Result{}, err
		}
	}
	tag := "SELECT"
	if stmt.Kind == parse.KindShow {
		tag = "SHOW"
	}
	columns := x.shown(s)
	return pipeline.Result{Columns: columns, Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: rows}), Tag: tag, Notices: x.notices}, nil
}

func normal(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(strings.TrimRight(text, "; \n\t")), " "))
}

func column(name string, t policy.Type) sandbox.Column {
	return sandbox.Column{Name: name, Type: t, Typmod: -1}
}

func numbers(n int) [][]policy.Value {
	var rows [][]policy.Value
	for i := range n {
		rows = append(rows, []policy.Value{int64(i)})
	}
	return rows
}

func standardFixtures() map[string]fixture {
	count := []sandbox.Column{column("count", policy.Int8)}
	echo := func(_ context.Context, _ *pipeline.Session, params []policy.Value) ([][]policy.Value, error) {
		return [][]policy.Value{params}, nil
	}
	return map[string]fixture{
		"select count(*) from people": {columns: count, rows: [][]policy.Value{{int64(1234)}},
			notices: []pipeline.Notice{{Message: "cost: ε 0.1; left: ε 0.9; ±37 at 95 %"}}},
		"select 1":       {columns: []sandbox.Column{column("?column?", policy.Int4)}, rows: [][]policy.Value{{int64(1)}}},
		"select 2":       {columns: []sandbox.Column{column("?column?", policy.Int4)}, rows: [][]policy.Value{{int64(2)}}},
		"select 'x'":     {columns: []sandbox.Column{column("?column?", policy.Unknown)}, rows: [][]policy.Value{{"x"}}},
		"select $1::int": {params: []policy.Type{policy.Int4}, columns: []sandbox.Column{column("int4", policy.Int4)}, answer: echo},
		"select $1::int as a, $2::text": {params: []policy.Type{policy.Int4, policy.Text},
			columns: []sandbox.Column{column("a", policy.Int4), column("text", policy.Text)}, answer: echo},
		"select count(*) from people where sex = $1": {params: []policy.Type{policy.Text}, columns: count, rows: [][]policy.Value{{int64(600)}}},
		"select n from ten":                          {columns: []sandbox.Column{column("n", policy.Int8)}, rows: numbers(10)},
		"select n from many":                         {columns: []sandbox.Column{column("n", policy.Int8)}, rows: numbers(100_000)},
		"select slow": {columns: count, answer: func(ctx context.Context, _ *pipeline.Session, _ []policy.Value) ([][]policy.Value, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		"select panic": {columns: count, answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) { panic("secret 42") }},
		"select error": {columns: count, answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
			return nil, io.ErrNoProgress
		}},
		"show dp.budget": {columns: []sandbox.Column{column("dp.budget", policy.Text)}, rows: [][]policy.Value{{"ε 0.9 of 1 left"}}},
		"select too much": {columns: count, answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
			return nil, &pgerror.Failure{SQLState: "DP001", Message: "budget spent", Detail: "It costs more than is left.", Hint: "Ask what is free."}
		}},
	}
}

// verifier writes a SCRAM-SHA-256 verifier.
// mechanism is the password exchange's.
const mechanism = "SCRAM-SHA-256"

func verifier(t testing.TB, password string, iterations int) string {
	t.Helper()
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		t.Fatal(err)
	}
	salt := strings.Repeat("s", 16)
	c, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: salt, Iters: iterations})
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, b64([]byte(salt)), b64(c.StoredKey), b64(c.ServerKey))
}

func epsilon(t testing.TB, s string) privacy.Epsilon {
	t.Helper()
	e, err := privacy.ParseEpsilon(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testPolicy(t testing.TB) *policy.Policy {
	t.Helper()
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	census := &policy.Dataset{ID: "census", Budgets: map[string]policy.Budget{"alice": {}, "grafana": {}},
		Defaults: policy.Defaults{Epsilon: epsilon(t, "0.1"), MaxEpsilon: epsilon(t, "1"), Confidence: confidence}}
	secret := &policy.Dataset{ID: "secret", Budgets: map[string]policy.Budget{}, Defaults: census.Defaults}
	return &policy.Policy{
		Server: policy.Server{Listen: "127.0.0.1:0", Limits: policy.Limits{Connections: 1000, UserConnections: 200, UserStatements: 64}},
		Users: []policy.User{
			{Name: "alice", Verifier: verifier(t, "wonderland", 4096)},
			{Name: "grafana", Verifier: verifier(t, "panel", 4096), Settings: map[string]string{"epsilon": "0.05"}},
			{Name: "stranger", Verifier: verifier(t, "door", 4096)},
		},
		Datasets: []*policy.Dataset{census, secret},
	}
}

// bench is a running server with a fake pipeline.
type bench struct {
	*Server
	pipeline *fakePipeline
	policy   atomic.Pointer[policy.Policy]
	port     string
	log      *logBuffer
	level    slog.LevelVar
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{pipeline: &fakePipeline{fixtures: standardFixtures()}, log: &logBuffer{}}
	b.policy.Store(testPolicy(t))
	c := Config{Policy: b.policy.Load, Pipeline: b.pipeline, Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: &b.level})), Secret: []byte("test secret")}
	for _, f := range change {
		f(&c)
	}
	var err error
	if b.Server, err = New(c); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(context.Background()) }()
	select {
	case <-b.Listening():
	case err := <-ended:
		t.Fatal(err)
	}
	_, b.port, _ = net.SplitHostPort(b.Addr().String())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := b.Shutdown(ctx); err != nil && err != context.DeadlineExceeded {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

// quiet keeps warnings and errors alone from now on.
func (b *bench) quiet() {
	b.level.Set(slog.LevelWarn)
}

func (b *bench) url(user, password, database, more string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%s/%s?%s", user, password, b.port, database, more)
}

// pgx connects as alice.
func (b *bench) pgx(t testing.TB, more string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), b.url("alice", "wonderland", "census", "sslmode=disable&"+more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
