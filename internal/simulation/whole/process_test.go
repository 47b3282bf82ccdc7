package whole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/simulation"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

var background = context.Background()

const ledgerPath = "/disk/ledger.db"

// process is one life of a proxy.
type process struct {
	w        *world
	node     int
	m        *simulation.Mount
	ledger   ledger.Ledger
	server   *proxy.Server
	answers  *pipeline.Answerer
	listener *listener
	served   chan error
}

// start brings a proxy up on a node, unless one has the ledger.
func (w *world) start(node int, frail bool) {
	if w.live[node] != nil {
		return
	}
	w.boots++
	m := w.disk.Mount(rand.New(rand.NewPCG(w.seed, uint64(1000+w.boots))), fmt.Sprintf("whole-%d-%d", w.seed, w.boots), w.shm)
	if frail {
		m.KillAt(1+w.rng.IntN(40), w.rng.IntN(2) == 0)
	}
	taken, failed := w.disk.Locked(ledgerPath+"-lock"), w.disk.Failures()
	l, err := ledger.Open(background, "sqlite:"+ledgerPath, ledger.Options{Clock: w.clock(node), Disk: m})
	if err == nil {
		if err = l.Adopt(background, terms(w.policy)); err != nil {
			_ = l.Close() // it has failed already
		}
	}
	if err != nil {
		m.Unmount()
		untrue := errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrRollback)
		if !taken && !m.Dead() && (w.disk.Failures() == failed || untrue) {
			w.broke("the ledger does not open: %v", err)
		}
		w.note("node %d does not start", node)
		return
	}
	if taken {
		w.broke("two processes have the ledger open")
	}
	database := &database{w: w}
	noise := rand.NewChaCha8([32]byte{byte(w.seed), byte(w.seed >> 8), byte(w.seed >> 16), byte(w.boots)})
	p := &process{w: w, node: node, m: m, ledger: l, listener: newListener(), served: make(chan error, 1)}
	p.answers = pipeline.NewAnswerer(database, newPaced(l, w.seed), noEngine{}, noise, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	p.server, err = proxy.New(proxy.Config{Policy: func() *policy.Policy { return w.policy }, Pipeline: p.answers, Log: slog.New(slog.DiscardHandler), Secret: make([]byte, 32)})
	if err != nil {
		w.t.Fatal(err)
	}
	go func() { p.served <- p.server.ServeOn(background, p.listener) }()
	<-p.server.Listening()
	w.set(node, p)
	w.note("node %d is up", node)
}

func (w *world) set(node int, p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[node] = p
}

// bury ends what a dead process has in this one: its connections are gone at once, nothing it does reaches the disk.
func (w *world) bury(p *process) {
	w.set(p.node, nil)
	w.note("node %d died", p.node)
	p.listener.cut()
	w.zombies.Go(func() { p.end(false) })
}

// end stops a process, in good order or not.
func (p *process) end(orderly bool) {
	ctx, cancel := context.WithCancel(background)
	if !orderly {
		cancel()
	}
	_ = p.server.Shutdown(ctx) // says how it was asked to end
	<-p.served
	p.answers.Drain()
	_ = p.ledger.Close() // a dead process has no disk
	p.m.Unmount()
	cancel()
}

// listener hands out the server's ends of connections within this process.
type listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
	mu    sync.Mutex
	all   []net.Conn // the clients' ends
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6432} }

func (l *listener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- local{server}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, client)
	return client, nil
}

// local is a connection from the same machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// cut closes every connection.
func (l *listener) cut() {
	_ = l.Close() // it cannot fail
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.all {
		_ = c.Close() // it may be closed
	}
}

// database is a private database without rows: each answer is its noise. It takes its time, and its faults are the
// answer's default, as the real ones' are.
type database struct {
	w        *world
	admitted atomic.Int32 // statements
}

func (d *database) Dialect() dialect.Dialect { return dialect.PostgreSQL }

func (d *database) Ready(context.Context, ...rewrite.Query) error {
	if stream(d.w.seed, "ready", ledger.Digest{}).IntN(25) == 0 {
		return backend.ErrUnavailable
	}
	return nil
}

func (d *database) Slots() int { return 3 }

func (d *database) OnTimetable(time.Duration) bool { return false }

func (d *database) AsOf(*policy.Policy) int64 { return 0 }

func (d *database) Admit(context.Context, time.Duration, *policy.Policy) (asOf func(...rewrite.Query) int64, leave func(time.Time), err error) {
	d.admitted.Add(1)
	return func(...rewrite.Query) int64 { return 0 }, func(time.Time) { d.admitted.Add(-1) }, nil
}

func (d *database) Faults(string) int64 { return 0 }

func (d *database) Execute(ctx context.Context, query rewrite.Query, receipts []*ledger.Receipt, _ time.Duration) ([]privacy.Sensitive[[]privacy.Group], error) {
	if d.admitted.Load() < 1 {
		d.w.broke("a query of a statement that has not been admitted")
	}
	sealed, paid := make([]privacy.Sensitive[[]privacy.Group], len(receipts)), false
	for i, q := range query.Measures() {
		if receipts[i] == nil {
			continue
		}
		if err := receipts[i].Spend(q.Digest()); err != nil {
			d.w.broke("a query without its charge, or twice on one: %v", err)
			return nil, err
		}
		if receipts[i].Spend(q.Digest()) == nil {
			d.w.broke("a receipt is spent twice")
		}
		sealed[i], paid = privacy.Seal([]privacy.Group(nil)), true
	}
	if !paid {
		d.w.broke("a query that nobody has paid for")
	}
	rng := stream(d.w.seed, "execute", query.Digest())
	pause(rng, []time.Duration{2e5, 2e7, 5e8}[rng.IntN(3)])
	return sealed, nil
}

func (d *database) ReadPublic(context.Context, *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return privacy.Released[[][]policy.Value]{}, errors.New("there are no public tables")
}

func (d *database) Inspect(context.Context, *policy.Policy, *policy.Dataset) ([]backend.Finding, error) {
	return nil, nil
}
func (d *database) Adopt(*policy.Policy) {}
func (d *database) Close() error         { return nil }

// noEngine is a sandbox for questions that need none.
type noEngine struct{}

var errNoEngine = errors.New("no engine in the simulation")

func (noEngine) Numbers(string) pgcatalog.Numbers                     { return nil }
func (noEngine) Slots() int                                           { return 0 }
func (noEngine) Catalog(context.Context, *policy.Policy) error        { return nil }
func (noEngine) Load(context.Context, string, ...sandbox.Table) error { return errNoEngine }
func (noEngine) Close() error                                         { return nil }
func (noEngine) Query(context.Context, sandbox.Session, outer.Query, []sandbox.Table) (none privacy.Released[sandbox.Rows], _ error) {
	return none, errNoEngine
}

func (noEngine) Describe(context.Context, sandbox.Session, outer.Query, []sandbox.Table) (sandbox.Description, error) {
	return sandbox.Description{}, errNoEngine
}
