// Package kit is what the tests of the whole program share: dpproxy itself, built once and run as a process;
// connections to it of which every frame is seen; the fixture, a thousand people with a policy over them, and its
// neighbour without number 7; the lab, a pair of proxies over both; substitutes, which have one defence switched off
// and in which a test must find what is wrong. Only tests import it.
package kit

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/service"
)

// ReadThenWrite reads the balance, and writes it when the answer is made.
type ReadThenWrite struct {
	Undescribed
	mu   sync.Mutex
	Left int64 // micro-ε
}

// Answer answers at 0.1 a statement.
func (r *ReadThenWrite) Answer(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, error) {
	const cost = 100_000
	r.mu.Lock()
	left := r.Left
	r.mu.Unlock()
	if left < cost {
		return pipeline.Result{}, &pgerror.Failure{SQLState: "DP001", Message: "your privacy budget does not hold this query"}
	}
	time.Sleep(time.Millisecond) // the database is asked
	r.mu.Lock()
	r.Left = left - cost
	r.mu.Unlock()
	return TextResult([]string{"1000"}), nil
}

// ServePipeline puts a pipeline behind the real protocol.
func ServePipeline(ctx context.Context, path string, pipeline proxy.Pipeline, limits proxy.Limits, listening func(net.Addr)) error {
	p, err := policy.Read(path)
	if err != nil {
		return err
	}
	server, err := proxy.New(proxy.Config{Policy: func() *policy.Policy { return p }, Pipeline: pipeline, Limits: limits, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	go func() {
		<-server.Listening()
		listening(server.Addr())
	}()
	return server.Serve(ctx)
}

// InProcess serves a pipeline in this process until the test ends.
func InProcess(t *testing.T, path string, pipeline proxy.Pipeline, limits proxy.Limits) *Program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, address := make(chan error, 1), make(chan net.Addr, 1)
	go func() { ended <- ServePipeline(ctx, path, pipeline, limits, func(a net.Addr) { address <- a }) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case a := <-address:
		return &Program{T: t, Policy: path, Address: a.String()}
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return nil
	}
}

// Undescribed is what of a Pipeline the simple protocol does not need. It keeps no answers.
type Undescribed struct{}

// Kept has none.
func (Undescribed) AtOnce(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, bool) {
	return pipeline.Result{}, false
}

// Describe refuses.
func (Undescribed) Describe(context.Context, *pipeline.Session, parse.Statement, []policy.Type) (plans.Description, *refuse.Refusal) {
	return plans.Description{}, &refuse.Refusal{ID: "stand-in", SQLState: "0A000", Message: "a stand-in describes nothing"}
}

// TextResult is an answer whose cells are all text.
func TextResult(rows ...[]string) pipeline.Result {
	var columns []sandbox.Column
	var data [][]policy.Value
	for _, row := range rows {
		values := make([]policy.Value, len(row))
		for i, v := range row {
			values[i] = v
			if len(columns) <= i {
				columns = append(columns, sandbox.Column{Name: fmt.Sprintf("c%d", i), Type: policy.Text, Typmod: -1})
			}
		}
		data = append(data, values)
	}
	return pipeline.Result{Columns: columns, Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: data}), Tag: "SELECT"}
}

// asStandIn makes the test binary behave as a substitute, so that tests start, kill and restart a real process.
const asStandIn = "DPPROXY_TEST_AS"

// StandIn serves something in dpproxy's place until ctx ends: the name it was started by, the path of a policy, or "".
type StandIn func(ctx context.Context, name, path string, listening func(net.Addr)) error

// Main runs the tests of a package, or what this process was started as. A substitute is found by its name up to a
// colon.
func Main(m *testing.M, standIns map[string]StandIn) int {
	return run(m, standIns, func(dir string) { _ = os.Setenv("TMPDIR", dir) })
}

// OnDisk is Main for tests of what a disk holds: t.TempDir lies on it, and sandboxes of processes alone in memory.
func OnDisk(m *testing.M, standIns map[string]StandIn) int {
	return run(m, standIns, func(dir string) { temporary = []string{"TMPDIR=" + dir} })
}

// temporary is what processes get beside the environment.
var temporary []string

func run(m *testing.M, standIns map[string]StandIn, temporary func(dir string)) int {
	service.ChildMain() // what serves within a test begins with a self-test
	if name := os.Getenv(asStandIn); name != "" {
		return stand(name, standIns)
	}
	// Tests that run at the same time wait for their processes more than they compute; the flag -parallel says
	// otherwise.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	dir, remove := memory.Temporary()
	if dir != "" {
		temporary(dir)
	}
	code := pgtest.Main(m)
	if err := remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if built.remove != "" {
		_ = os.RemoveAll(built.remove) // the system's own directory for what may be lost
	}
	return code
}

func stand(name string, standIns map[string]StandIn) int {
	kind, _, _ := strings.Cut(name, ":")
	serve, path := standIns[kind], ""
	if serve == nil {
		fmt.Fprintf(os.Stderr, "no stand-in is called %q\n", name)
		return 1
	}
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	err := serve(context.Background(), name, path, func(a net.Addr) { fmt.Fprintf(os.Stderr, "msg=listening address=%s\n", a) })
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// Unwired asks without the wire and returns the whole numbers of the answer's last column.
func Unwired(ctx context.Context, h *service.Service, answers *pipeline.Answerer, user, statement string, epsilon int64) ([]int64, error) {
	r, err := UnwiredResult(ctx, h, answers, user, statement, epsilon)
	if err != nil {
		return nil, err
	}
	var counts []int64
	for _, row := range r.Rows.Value().Data {
		counts = append(counts, row[len(row)-1].(int64))
	}
	return counts, nil
}

// UnwiredResult is the whole of such an answer, its notices too.
func UnwiredResult(ctx context.Context, h *service.Service, answers *pipeline.Answerer, user, statement string, epsilon int64) (pipeline.Result, error) {
	p := h.Policy()
	data := p.Datasets[0]
	s := &pipeline.Session{User: user, Database: data.ID, Policy: p, Dataset: data}
	s.Settings.Settings = plans.Settings{Epsilon: privacy.MicroEpsilon(epsilon * 1e6), Confidence: data.Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC}
	statements, refusal := parse.Parse(statement)
	if refusal != nil {
		return pipeline.Result{}, refusal
	}
	return answers.Answer(ctx, s, statements[0], nil)
}
