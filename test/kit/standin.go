package kit

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
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
