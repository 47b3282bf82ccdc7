package main

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Stand-ins for dpproxy, each with one defence switched off: the procedures of the kit must find what is wrong with them.
const (
	standInLateCharge = "late-charge" // answers first, charges a moment later
	standInBareParser = "bare-parser" // the grammar and the codec without any limit
	standInDeaf       = "deaf"        // the real program around a pipeline that never ends
)

// standIn runs a stand-in that must be a process of its own, because it is to be killed or to die.
func standIn(name string, args []string) int {
	ctx := context.Background()
	listening := func(a net.Addr) { fmt.Fprintf(os.Stderr, "msg=listening address=%s\n", a) }
	var err error
	if strings.HasPrefix(name, "dies:") {
		err = serveUntil(ctx, name, args[0], listening)
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch name {
	case standInLateCharge:
		var l *lateCharge
		if l, err = newLateCharge(filepath.Join(filepath.Dir(args[0]), "charges")); err == nil {
			err = standInServer(ctx, args[0], l, proxy.Limits{}, listening)
		}
	case standInDeaf:
		err = untilSignal(func(ctx context.Context) error {
			return standInServer(ctx, args[0], deaf{}, proxy.Limits{}, listening)
		}, syscall.SIGTERM)
	case standInBareParser:
		err = bareParser(listening)
	default:
		err = fmt.Errorf("no stand-in is called %q", name)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// standInServer puts a pipeline behind the real protocol.
func standInServer(ctx context.Context, path string, pipeline proxy.Pipeline, limits proxy.Limits, listening func(net.Addr)) error {
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

// inProcess serves a pipeline in this process until the test ends.
func inProcess(t *testing.T, path string, pipeline proxy.Pipeline, limits proxy.Limits) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, address := make(chan error, 1), make(chan net.Addr, 1)
	go func() { ended <- standInServer(ctx, path, pipeline, limits, func(a net.Addr) { address <- a }) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case a := <-address:
		return &program{t: t, policy: path, address: a.String()}
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return nil
	}
}

// undescribed is the half of a Pipeline that the simple protocol does not need.
type undescribed struct{}

func (undescribed) Describe(context.Context, *pipeline.Session, parse.Statement, []policy.Type) (planner.Description, *refuse.Refusal) {
	return planner.Description{}, &refuse.Refusal{ID: "stand-in", SQLState: "0A000", Message: "a stand-in describes nothing"}
}

// textResult is an answer whose cells are all text.
func textResult(rows ...[]string) pipeline.Result {
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

// readThenWrite reads the balance, and writes it when the answer is made.
type readThenWrite struct {
	undescribed
	mu   sync.Mutex
	left int64 // micro-ε
}

func (r *readThenWrite) Answer(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, error) {
	const cost = 100_000
	r.mu.Lock()
	left := r.left
	r.mu.Unlock()
	if left < cost {
		return pipeline.Result{}, &pgerror.Failure{SQLState: "DP001", Message: "your privacy budget does not hold this query"}
	}
	time.Sleep(time.Millisecond) // the database is asked
	r.mu.Lock()
	r.left = left - cost
	r.mu.Unlock()
	return textResult([]string{"1000"}), nil
}

// lateCharge writes its charges a moment after the answers.
type lateCharge struct {
	undescribed
	mu      sync.Mutex
	file    *os.File
	charged map[string]bool
}

func newLateCharge(path string) (*lateCharge, error) {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l := &lateCharge{charged: map[string]bool{}}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		l.charged[line] = line != ""
	}
	delete(l.charged, "")
	l.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return l, err
}

func (l *lateCharge) Answer(_ context.Context, _ *pipeline.Session, s parse.Statement, _ []policy.Value) (pipeline.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(s.Text, "dp.charges") {
		return textResult([]string{fmt.Sprint(len(l.charged)), fmt.Sprint(len(l.charged))}), nil
	}
	if !l.charged[s.Text] {
		time.AfterFunc(15*time.Millisecond, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.charged[s.Text] = true
			fmt.Fprintln(l.file, s.Text)
			_ = l.file.Sync()
		})
	}
	h := fnv.New32()
	h.Write([]byte(s.Text))
	return textResult([]string{fmt.Sprint(h.Sum32() % 1000)}), nil // its noise is saved: that is not its fault
}

// forwarding hands the client's text to the database, and the database's text to the client.
type forwarding struct {
	undescribed
	db *sql.DB
}

// forwarder serves a fixture so.
func forwarder(t *testing.T, path string) *program {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return inProcess(t, path, &forwarding{db: db}, proxy.Limits{})
}

func (f *forwarding) Answer(ctx context.Context, _ *pipeline.Session, s parse.Statement, _ []policy.Value) (pipeline.Result, error) {
	rows, err := f.db.QueryContext(ctx, s.Text)
	if err != nil {
		return pipeline.Result{}, &pgerror.Failure{SQLState: "58000", Message: err.Error()}
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return pipeline.Result{}, err
	}
	var all [][]string
	for rows.Next() {
		cells, row := make([]any, len(names)), make([]string, len(names))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			return pipeline.Result{}, err
		}
		for i := range cells {
			row[i] = fmt.Sprint(*cells[i].(*any))
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		return pipeline.Result{}, &pgerror.Failure{SQLState: "58000", Message: err.Error()}
	}
	return textResult(all...), nil
}

// bareParser serves the codec as it comes and the grammar as it comes.
func bareParser(listening func(net.Addr)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	listening(l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			back := pgproto3.NewBackend(conn, conn)
			if _, err := back.ReceiveStartupMessage(); err != nil {
				return
			}
			back.Send(&pgproto3.AuthenticationOk{})
			back.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			for back.Flush() == nil {
				m, err := back.Receive()
				q, ok := m.(*pgproto3.Query)
				if err != nil || !ok {
					return
				}
				if _, err := pg.Parse(q.String); err != nil {
					back.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "54001", Message: "refused"})
				} else {
					back.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")})
				}
				back.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			}
		}()
	}
}
