package hive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/beltran/gohive/hiveserver"
)

// standIn is a server that speaks the protocol and answers statements by their words. What it does not override it does
// not know.
type standIn struct {
	hiveserver.TCLIService
	mu       sync.Mutex
	settings map[string]string
	forget   string // a setting that it does not keep
	timeouts []int64
	heard    []string // what became of operations, by id
}

func (s *standIn) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, text)
}

func (s *standIn) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, ", ")
}

func fine() *hiveserver.TStatus { return &hiveserver.TStatus{} }

// wrong is an error such as Spark's, which quotes a row.
func wrong() *hiveserver.TStatus {
	state, text := "22018", "[CAST_INVALID_INPUT] The value 'Zyxomma-4711' cannot be cast. SQLSTATE: 22018"
	return &hiveserver.TStatus{StatusCode: hiveserver.TStatusCode_ERROR_STATUS, SqlState: &state, ErrorMessage: &text}
}

func (s *standIn) OpenSession(_ context.Context, r *hiveserver.TOpenSessionReq) (*hiveserver.TOpenSessionResp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = r.Configuration
	return &hiveserver.TOpenSessionResp{Status: fine(), SessionHandle: &hiveserver.TSessionHandle{SessionId: &hiveserver.THandleIdentifier{GUID: []byte("session"), Secret: []byte("s")}}}, nil
}

func (s *standIn) CloseSession(context.Context, *hiveserver.TCloseSessionReq) (*hiveserver.TCloseSessionResp, error) {
	return &hiveserver.TCloseSessionResp{Status: fine()}, nil
}

func (s *standIn) ExecuteStatement(_ context.Context, r *hiveserver.TExecuteStatementReq) (*hiveserver.TExecuteStatementResp, error) {
	s.mu.Lock()
	s.timeouts = append(s.timeouts, r.QueryTimeout)
	s.mu.Unlock()
	if r.Statement == "refused" {
		return &hiveserver.TExecuteStatementResp{Status: wrong()}, nil
	}
	return &hiveserver.TExecuteStatementResp{Status: fine(), OperationHandle: &hiveserver.TOperationHandle{HasResultSet: true,
		OperationId: &hiveserver.THandleIdentifier{GUID: []byte(r.Statement), Secret: []byte("s")}}}, nil
}

func (s *standIn) GetOperationStatus(_ context.Context, r *hiveserver.TGetOperationStatusReq) (*hiveserver.TGetOperationStatusResp, error) {
	state := hiveserver.TOperationState_FINISHED_STATE
	answer := &hiveserver.TGetOperationStatusResp{Status: fine(), OperationState: &state}
	switch string(r.OperationHandle.OperationId.GUID) {
	case "slow":
		state = hiveserver.TOperationState_RUNNING_STATE
	case "silent": // it says nothing until the client has left
		time.Sleep(time.Second)
	case "fails":
		state = hiveserver.TOperationState_ERROR_STATE
		answer.SqlState, answer.ErrorMessage = wrong().SqlState, wrong().ErrorMessage
	case "timed out":
		state = hiveserver.TOperationState_TIMEDOUT_STATE
	}
	return answer, nil
}

func (s *standIn) FetchResults(_ context.Context, r *hiveserver.TFetchResultsReq) (*hiveserver.TFetchResultsResp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, values := &hiveserver.TStringColumn{}, &hiveserver.TStringColumn{}
	for name, value := range s.settings {
		if name, ok := strings.CutPrefix(name, "set:hiveconf:"); ok && name != s.forget {
			names.Values, values.Values = append(names.Values, name), append(values.Values, value)
		}
	}
	return &hiveserver.TFetchResultsResp{Status: fine(), Results: &hiveserver.TRowSet{Columns: []*hiveserver.TColumn{{StringVal: names}, {StringVal: values}}}}, nil
}

func (s *standIn) CancelOperation(_ context.Context, r *hiveserver.TCancelOperationReq) (*hiveserver.TCancelOperationResp, error) {
	s.say("cancelled " + string(r.OperationHandle.OperationId.GUID))
	return &hiveserver.TCancelOperationResp{Status: fine()}, nil
}

func (s *standIn) CloseOperation(_ context.Context, r *hiveserver.TCloseOperationReq) (*hiveserver.TCloseOperationResp, error) {
	s.say("closed " + string(r.OperationHandle.OperationId.GUID))
	return &hiveserver.TCloseOperationResp{Status: fine()}, nil
}

// stand starts a substitute and returns how to reach it.
func stand(t *testing.T, s *standIn) Config {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	processor := hiveserver.NewTCLIServiceProcessor(s)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				protocol := thrift.NewTBinaryProtocolConf(thrift.NewTBufferedTransport(thrift.NewTSocketFromConnConf(conn, nil), 4096), nil)
				for {
					if more, err := processor.Process(context.Background(), protocol, protocol); !more || err != nil {
						return
					}
				}
			}()
		}
	}()
	return Config{Address: l.Addr().String(), User: "me", Bare: true}
}

func ignored(Row) error { return nil }

// TestSettingsAreHeldAgainst: a server that does not keep to a setting gets no statement, and which one it was is said.
func TestSettingsAreHeldAgainst(t *testing.T) {
	s := &standIn{}
	config := stand(t, s)
	session, err := Settled(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
	s.forget = "spark.sql.ansi.enabled"
	if _, err := Settled(t.Context(), config); !errors.Is(err, ErrSettings) || !strings.HasSuffix(err.Error(), ": spark.sql.ansi.enabled") {
		t.Errorf("a server without ANSI mode: %v", err)
	}
}

// TestStatementsEnd: a statement is closed when its rows are there, cancelled by its id where its time is over, whether
// the server was asked for its state or keeps silent, and the server has been sent that time; its errors are SQLSTATEs.
func TestStatementsEnd(t *testing.T) {
	for _, c := range []struct{ statement, err, heard string }{
		{"rows", "", "closed rows"},
		{"slow", context.DeadlineExceeded.Error(), "cancelled slow, closed slow"},
		{"silent", context.DeadlineExceeded.Error(), "cancelled silent, closed silent"},
		{"timed out", context.DeadlineExceeded.Error(), "closed timed out"},
		{"fails", Fault{"22018"}.Error(), "closed fails"},
		{"refused", Fault{"22018"}.Error(), ""},
	} {
		s := &standIn{}
		session, err := Open(t.Context(), stand(t, s))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err = session.Query(ctx, c.statement, ignored)
		cancel()
		if got := fmt.Sprint(err); got != c.err && !(c.err == "" && err == nil) || strings.Contains(got, "4711") {
			t.Errorf("%s: %v", c.statement, err)
		}
		if heard := s.said(); heard != c.heard {
			t.Errorf("%s: the server heard %q, want %q", c.statement, heard, c.heard)
		}
		if len(s.timeouts) != 1 || s.timeouts[0] != 1 {
			t.Errorf("%s: the server was told %v seconds", c.statement, s.timeouts)
		}
		session.Close()
	}
}
