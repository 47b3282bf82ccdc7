package truth

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	seeded "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	backends "github.com/dpproxy/dpproxy/backend/engines"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/twin"
	"github.com/dpproxy/dpproxy/service"
)

// house is a proxy within this process, so that a fault that is planted in any package is in it. Its ledger is made
// anew as often as its budget is spent; everything else stays.
type house struct {
	t       testing.TB
	dir     string
	policy  *policy.Policy
	backend backend.Backend
	engine  sandbox.Engine
	public  pipeline.PublicRows
	server  *proxy.Server
	now     atomic.Pointer[pipeline.Answerer]
	ledger  ledger.Ledger
	ledgers int
	calm    calm
	log     *slog.Logger
}

// Describe, Kept and Answer make a house the Pipeline of its own server: they lead to the Answerer of the ledger in
// use.
func (h *house) Describe(ctx context.Context, s *pipeline.Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal) {
	return h.now.Load().Describe(ctx, s, stmt, given)
}

func (h *house) AtOnce(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, bool) {
	return h.now.Load().AtOnce(ctx, s, stmt, params)
}

func (h *house) Answer(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, error) {
	return h.now.Load().Answer(ctx, s, stmt, params)
}

// database loads a schema into a database of a server and returns the role that a proxy reads it by, and the database.
func (s *schema) database(t testing.TB, server *pgtest.Server) (role, database string) {
	t.Helper()
	role, database = server.Role(t, ""), server.Database(t)
	server.Exec(t, database, s.create()...)
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, table := range s.stored() {
		if _, err := conn.CopyFrom(ctx, strings.NewReader(table.csv()), "COPY public."+table.name+" FROM STDIN (FORMAT csv, HEADER)"); err != nil {
			t.Fatalf("%s: %v", table.name, err)
		}
	}
	server.Exec(t, database, s.plain()...)
	server.Exec(t, database, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	t.Cleanup(func() { server.Exec(t, database, `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM `+role) })
	return role, database
}

// files writes a schema as CSV files, and returns the policy's words for them.
func (s *schema) files(t testing.TB, dir string) string {
	t.Helper()
	var list []string
	for _, table := range s.stored() {
		path := filepath.Join(dir, table.name+".csv")
		if err := os.WriteFile(path, []byte(table.csv()), 0o600); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s: %q", table.name, path))
	}
	return fmt.Sprintf(`{url: "duckdb:", files: {%s}}`, strings.Join(list, ", "))
}

// duckdb writes a schema as a DuckDB database with its keys, and returns the policy's words for it.
func (s *schema) duckdb(t testing.TB, dir string) string {
	t.Helper()
	if files := s.files(t, dir); s.csv {
		return files
	}
	db, err := sql.Open("duckdb", filepath.Join(dir, s.name+".duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(text string) {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	for _, text := range s.before {
		run(text)
	}
	for _, table := range s.stored() {
		var parts []string
		for _, c := range table.columns {
			stored, _, _ := strings.Cut(c.stored, " REFERENCES")
			parts = append(parts, c.name+" "+stored)
		}
		for _, k := range table.keys {
			if !strings.HasPrefix(k, "FOREIGN") {
				parts = append(parts, k)
			}
		}
		run("CREATE TABLE " + table.name + " (" + strings.Join(parts, ", ") + ")")
		run(fmt.Sprintf("COPY %s FROM '%s' (FORMAT csv, HEADER, NULLSTR '', QUOTE '\"', ESCAPE '\"', ALLOW_QUOTED_NULLS false)", table.name, filepath.Join(dir, table.name+".csv")))
	}
	return fmt.Sprintf(`{url: "duckdb:%s.duckdb"}`, s.name)
}

// open starts a proxy over a schema's database; backendText is the policy's backend.
func open(t testing.TB, s *schema, backendText func(dir string) string, sandboxURL string) *house {
	t.Helper()
	verifier, err := policy.Verifier("alice", strings.NewReader(strings.Repeat("alice-salt", 20)))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: memory.Dir(t), log: slog.New(slog.DiscardHandler)}
	text := s.policy(backendText(h.dir), verifier)
	text = strings.Replace(text, "ledger:", fmt.Sprintf("sandbox: {url: %q}\nledger:", sandboxURL), 1)
	path := filepath.Join(h.dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if h.policy, err = policy.Read(path); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	ctx := context.Background()
	if h.backend, err = backends.Open(ctx, h.policy, h.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.backend.Close() })
	if h.policy, err = service.ReadLists(ctx, service.NewCopies(h.backend), h.policy); err != nil {
		t.Fatal(err)
	}
	h.inspect(ctx)
	if b, ok := h.backend.(backend.Copies); ok {
		copies, err := b.Prepare(ctx, h.policy)
		if err != nil {
			t.Fatal(err)
		}
		copies.PutInForce()
	}
	if h.engine, err = twin.Open(sandboxURL, sandbox.Options{Log: h.log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.engine.Close() })
	h.furnish(ctx)
	h.renew()
	h.serve()
	return h
}

// inspect fails the test where the policy does not fit the database.
func (h *house) inspect(ctx context.Context) {
	h.t.Helper()
	findings, err := h.backend.Inspect(ctx, h.policy, h.policy.Datasets[0])
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range findings {
		if f.Fatal {
			h.t.Fatal(f.Text)
		}
	}
	h.backend.Adopt(h.policy)
}

// furnish gives the sandbox the catalogs and the public tables.
func (h *house) furnish(ctx context.Context) {
	h.t.Helper()
	if err := h.engine.Catalog(ctx, h.policy); err != nil {
		h.t.Fatal(err)
	}
	d := h.policy.Datasets[0]
	for _, table := range d.Tables {
		if !table.Public {
			continue
		}
		rows, err := h.backend.ReadPublic(ctx, table)
		if err != nil {
			h.t.Fatal(err)
		}
		h.public.Set(table, rows)
		columns := make([]sandbox.Column, len(table.Columns))
		for i, c := range table.Columns {
			columns[i] = sandbox.Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod}
		}
		copied := sandbox.Table{Schema: table.Schema, Name: table.Name, Rows: privacy.PostProcess(rows, func(data [][]policy.Value) sandbox.Rows {
			return sandbox.Rows{Columns: columns, Data: data}
		})}
		if err := h.engine.Load(ctx, d.ID, copied); err != nil {
			h.t.Fatal(err)
		}
	}
}

// renew begins a ledger in which nothing is spent and nothing is held.
func (h *house) renew() {
	h.t.Helper()
	ctx := context.Background()
	if h.ledger != nil {
		h.now.Load().Drain()
		if err := h.ledger.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	dir := filepath.Join(h.dir, fmt.Sprint("ledger", h.ledgers))
	_ = os.RemoveAll(dir) // it may not be there
	h.ledgers++
	dir = filepath.Join(h.dir, fmt.Sprint("ledger", h.ledgers))
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	l, err := ledger.Open(ctx, "sqlite:"+filepath.Join(dir, "l.db"), ledger.Options{Log: h.log})
	if err == nil {
		err = l.Adopt(ctx, terms(h.policy))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.ledger = l
	answers := pipeline.NewAnswerer(h.backend, l, h.engine, h.randomness(), h.log, proxy.NewMetrics())
	answers.UsePublic(&h.public)
	h.now.Store(answers)
}

// terms are the ledger's terms of a policy of one dataset.
func terms(p *policy.Policy) ledger.Terms {
	d := p.Datasets[0]
	var relations []string
	for _, t := range d.Tables {
		if !t.Public {
			relations = append(relations, t.Source.Schema+"."+t.Source.Name)
		}
	}
	return ledger.Terms{PolicyDigest: p.Digest, Datasets: []ledger.DatasetTerms{{ID: d.ID, Accountant: d.Accountant, Neighbors: d.Neighbors,
		Unit: d.Unit.Name + " " + d.Unit.Table + "." + d.Unit.Column, Relations: relations, Cap: d.Cap.Cost,
		Budgets: map[string]ledger.BudgetTerms{"*": {Limit: d.Budgets["*"].Cost}}}}}
}

// serve listens until the test ends.
func (h *house) serve() {
	h.t.Helper()
	server, err := proxy.New(proxy.Config{Policy: func() *policy.Policy { return h.policy }, Pipeline: h, Log: h.log, Secret: make([]byte, 32)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.server = server
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	select {
	case err := <-served:
		h.t.Fatal(err)
	case <-server.Listening():
	}
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // says how it was asked to end
		<-served
		h.now.Load().Drain()
		_ = h.ledger.Close() // the test is over
	})
}

// client is a session of psql's kind: simple queries, texts back.
type client struct {
	t     testing.TB
	conn  *pgconn.PgConn
	url   string
	first string   // what each connection begins with
	said  []string // notices since the last question
}

// answer is what one statement brought.
type answer struct {
	columns []pgconn.FieldDescription
	rows    [][]string // NULL is null
	err     *pgconn.PgError
	said    []string
}

func dial(t testing.TB, url, first string) *client {
	t.Helper()
	c := &client{t: t, url: url, first: first}
	c.open()
	return c
}

// open connects.
func (c *client) open() {
	c.t.Helper()
	config, err := pgconn.ParseConfig(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		c.said = append(c.said, strings.TrimSpace(n.Message+"\n"+n.Detail))
	}
	conn, err := pgconn.ConnectConfig(context.Background(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.conn = conn
	c.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if a := c.ask(c.first); a.err != nil {
		c.t.Fatal(a.err)
	}
}

// connect logs in at a house and asks for so much ε that noise vanishes.
func (h *house) connect() *client {
	return dial(h.t, fmt.Sprintf("postgres://alice:alice@%s/%s?sslmode=disable", h.server.Addr(), h.policy.Datasets[0].ID), fmt.Sprint("SET dp.epsilon = ", spent / *held))
}

// patience is how long one statement may take.
const patience = 2 * time.Minute

// ask sends one simple query. What is no answer and no error of the protocol is an error 08006.
func (c *client) ask(sql string) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.said = nil
	a := answer{}
	reader := c.conn.Exec(ctx, sql)
	for reader.NextResult() {
		result := reader.ResultReader()
		a.columns, a.rows = slices.Clone(result.FieldDescriptions()), nil
		for result.NextRow() {
			var row []string
			for _, v := range result.Values() {
				if v == nil {
					row = append(row, null)
				} else {
					row = append(row, string(v))
				}
			}
			a.rows = append(a.rows, row)
		}
		_, _ = result.Close() // Close of the reader says it too
	}
	err := reader.Close()
	a.said = c.said
	if err != nil {
		var ok bool
		if a.err, ok = asPgError(err); !ok { // the connection is gone: another goes on
			a.err = &pgconn.PgError{Code: "08006", Message: err.Error()}
			c.open()
		}
	}
	return a
}

// calm is a source of randomness from which every draw of noise is 0, however wide: what differs from the truth is then
// a fault of what is counted, never of luck, and a statement that fails once fails again. Its words are so small that
// no width makes them 1, even (a sign that is not minus), and neither 0 nor all the same, as samplers that reject a
// word ask for another. Noise in steps is not 0 of such words, but the suite's ε is too large for steps.
//
// What refines a level tries cases until one is kept, and of such words takes the same case again and again. So where
// one statement has read more than any draw of its answer can take, the last 16 bits of some words take one of the other
// cases: no number of 64 bits is larger for it.
type calm struct{ read atomic.Int64 }

// most is more bytes than the draws of one answer take: averages of different values in 900 groups take 100 MB of
// them, a sum in all groups of keys that are found and of 500 numbers more than 512 MB.
const most = 1 << 30

// cases are bytes that, twice, are in the second to the last fifth, or quarter, of 16 bits.
var cases = [...]byte{0x40, 0x80, 0xb0, 0xff}

func (c *calm) Read(p []byte) (int, error) {
	end := c.read.Add(int64(len(p)))
	for i := range p {
		// words by their place in all that was read, in no order that a sampler could keep step with
		word := uint64(end+int64(i)) / 8 * 0x9e3779b97f4a7c15 >> 40
		switch p[i] = 0; {
		case end > most && i%8 < 2 && word%3 == 1:
			p[i] = cases[word/3%uint64(len(cases))]
		case i%8 == 0:
			p[i] = byte(2 + i/4%14)
		}
	}
	return len(p), nil
}

// drawnFrom is chance by a seed.
type drawnFrom struct {
	mu   sync.Mutex
	from *seeded.ChaCha8
}

func (d *drawnFrom) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.from.Read(p)
}

// randomness is calm, but where a flag asks for chance.
func (h *house) randomness() io.Reader {
	if noisy {
		return &drawnFrom{from: seeded.NewChaCha8([32]byte{byte(*seed), byte(*seed >> 8)})}
	}
	if *random {
		return rand.Reader
	}
	return &h.calm
}
