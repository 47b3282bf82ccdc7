// Package hive is a client of HiveServer2's protocol, as Spark's Thrift server speaks it, and Kyuubi: one connection,
// one session, one statement at a time. The messages are those that github.com/beltran/gohive/hiveserver has generated
// from Hive's own description.
//
//	OpenSession → ExecuteStatement (asynchronous) → GetOperationStatus … → FetchResults … → CloseOperation → CloseSession
//
// A statement ends with its context: the connection, which may be waiting for the server, is cut, and on another one
// the operation is cancelled by its id. What a server says of an error quotes statements and values; of it no more than
// the SQLSTATE comes out of here.
package hive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/beltran/gohive/hiveserver"
)

const (
	// farewell bounds what is said to a server after a statement has ended.
	farewell = 5 * time.Second
	// batch is how many rows are asked for at a time.
	batch = 4096
	// maxMessage bounds a text and the length of a list that a server may announce.
	maxMessage = 16 << 20
	// A statement's state is asked for at first after so long, and then twice as long each time.
	firstPoll, lastPoll = 2 * time.Millisecond, 100 * time.Millisecond
)

// ErrProtocol says that a server does not keep to the protocol.
var ErrProtocol = errors.New("hive: not an answer of this protocol")

// Fault is an error of the server: its SQLSTATE, which is empty where it has none.
type Fault struct{ State string }

func (f Fault) Error() string { return "hive: the server reports an error, SQLSTATE " + f.State }

// SQLState is the state, as other databases' errors have it.
func (f Fault) SQLState() string { return f.State }

// Config is where a server is and who connects.
type Config struct {
	Address  string
	User     string
	Password string
	Bare     bool        // without SASL, which a server with authentication NOSASL wants
	TLS      *tls.Config // nil: the way is not encrypted
	Settings map[string]string
}

// Session is one connection, for one goroutine.
type Session struct {
	config Config
	conn   net.Conn
	client *hiveserver.TCLIServiceClient
	handle *hiveserver.TSessionHandle
}

// Open connects and opens a session with the settings.
func Open(ctx context.Context, config Config) (s *Session, err error) {
	s = &Session{config: config}
	if err := safely(func() error { return s.connect(ctx) }); err != nil {
		return nil, s.ended(ctx, err)
	}
	err = s.until(ctx, func() error {
		request := hiveserver.NewTOpenSessionReq()
		request.ClientProtocol = hiveserver.TProtocolVersion_HIVE_CLI_SERVICE_PROTOCOL_V8
		request.Username, request.Password, request.Configuration = &config.User, &config.Password, config.Settings
		answer, err := s.client.OpenSession(ctx, request)
		if err != nil {
			return err
		}
		if err := statusOf(answer.Status); err != nil {
			return err
		}
		if s.handle = answer.SessionHandle; s.handle == nil {
			return ErrProtocol
		}
		return nil
	})
	if err != nil {
		s.conn.Close()
		return nil, err
	}
	return s, nil
}

// connect makes the connection, encrypted and authenticated.
func (s *Session) connect(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.config.Address)
	if err != nil {
		return err
	}
	if s.conn = conn; s.config.TLS != nil {
		encrypted := tls.Client(conn, s.config.TLS)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			conn.Close()
			return err
		}
		s.conn = encrypted
	}
	limits := &thrift.TConfiguration{MaxMessageSize: maxMessage, MaxFrameSize: maxMessage}
	transport := thrift.TTransport(thrift.NewTBufferedTransport(thrift.NewTSocketFromConnConf(s.conn, limits), 4096))
	if !s.config.Bare {
		err := s.until(ctx, func() error { return plain(s.conn, s.config.User, s.config.Password) })
		if err != nil {
			s.conn.Close()
			return err
		}
		transport = &framed{conn: s.conn}
	}
	s.client = hiveserver.NewTCLIServiceClientFactory(transport, thrift.NewTBinaryProtocolFactoryConf(limits))
	return nil
}

// until runs what talks to the server, which ends with ctx at the latest: the connection is of no use then.
func (s *Session) until(ctx context.Context, talk func() error) error {
	release := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer release()
	return s.ended(ctx, safely(talk))
}

// ended names the end of ctx where that is why something failed.
func (s *Session) ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// safely keeps a server that is not what it says from ending the process.
func safely(do func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrProtocol
		}
	}()
	return do()
}

// statusOf is the error that a status says.
func statusOf(status *hiveserver.TStatus) error {
	switch {
	case status == nil:
		return ErrProtocol
	case status.StatusCode == hiveserver.TStatusCode_SUCCESS_STATUS || status.StatusCode == hiveserver.TStatusCode_SUCCESS_WITH_INFO_STATUS:
		return nil
	}
	return faultOf(status.GetSqlState())
}

// faultOf keeps of a state what the standard lets one be: five digits and capitals.
func faultOf(state string) Fault {
	if len(state) != 5 || strings.ContainsFunc(state, func(c rune) bool { return (c < '0' || c > '9') && (c < 'A' || c > 'Z') }) {
		return Fault{}
	}
	return Fault{state}
}

// Close closes the session and its connection.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = s.until(ctx, func() error { // without the connection the server closes the session itself
		request := hiveserver.NewTCloseSessionReq()
		request.SessionHandle = s.handle
		_, err := s.client.CloseSession(ctx, request)
		return err
	})
	return s.conn.Close()
}

// Query runs a statement and hands out its rows. After an error but a Fault the session is of no use.
func (s *Session) Query(ctx context.Context, text string, take func(Row) error) error {
	var operation *hiveserver.TOperationHandle
	err := s.until(ctx, func() (err error) {
		if operation, err = s.start(ctx, text); err != nil {
			return err
		}
		if err = s.finished(ctx, operation); err != nil || !operation.HasResultSet {
			return err
		}
		return s.rows(ctx, operation, take)
	})
	switch {
	case operation == nil:
	case ctx.Err() != nil:
		s.abandon(operation)
	default:
		closing, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		_ = s.until(closing, func() error { return closeOperation(closing, s.client, operation) }) // the rows are there
	}
	return err
}

// start has the server begin. It is sent the deadline too, for a statement whose id does not reach us.
func (s *Session) start(ctx context.Context, text string) (*hiveserver.TOperationHandle, error) {
	request := hiveserver.NewTExecuteStatementReq()
	request.SessionHandle, request.Statement, request.RunAsync = s.handle, text, true
	if deadline, ok := ctx.Deadline(); ok {
		request.QueryTimeout = int64(math.Ceil(max(time.Until(deadline).Seconds(), 1)))
	}
	answer, err := s.client.ExecuteStatement(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := statusOf(answer.Status); err != nil {
		return nil, err
	}
	if answer.OperationHandle == nil {
		return nil, ErrProtocol
	}
	return answer.OperationHandle, nil
}

// finished waits for the end of an operation.
func (s *Session) finished(ctx context.Context, operation *hiveserver.TOperationHandle) error {
	request := hiveserver.NewTGetOperationStatusReq()
	request.OperationHandle = operation
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		answer, err := s.client.GetOperationStatus(ctx, request)
		if err != nil {
			return err
		}
		if err := statusOf(answer.Status); err != nil {
			return err
		}
		if answer.OperationState == nil {
			return ErrProtocol
		}
		switch *answer.OperationState {
		case hiveserver.TOperationState_FINISHED_STATE:
			return nil
		case hiveserver.TOperationState_INITIALIZED_STATE, hiveserver.TOperationState_RUNNING_STATE, hiveserver.TOperationState_PENDING_STATE:
		case hiveserver.TOperationState_TIMEDOUT_STATE:
			return context.DeadlineExceeded
		default:
			return faultOf(answer.GetSqlState())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rows fetches all rows: a batch that is not full is the last one.
func (s *Session) rows(ctx context.Context, operation *hiveserver.TOperationHandle, take func(Row) error) error {
	request := hiveserver.NewTFetchResultsReq()
	request.OperationHandle, request.Orientation, request.MaxRows = operation, hiveserver.TFetchOrientation_FETCH_NEXT, batch
	for {
		answer, err := s.client.FetchResults(ctx, request)
		if err != nil {
			return err
		}
		if err := statusOf(answer.Status); err != nil {
			return err
		}
		n, err := eachRow(answer.Results, take)
		if err != nil || n < batch {
			return err
		}
	}
}

// abandon cancels an operation by its id, on a connection of its own: the session's may be waiting for an answer.
func (s *Session) abandon(operation *hiveserver.TOperationHandle) {
	s.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	other := &Session{config: s.config}
	if safely(func() error { return other.connect(ctx) }) != nil {
		return
	}
	defer other.conn.Close()
	_ = other.until(ctx, func() error { // what is not cancelled so ends at the deadline that the server was sent
		request := hiveserver.NewTCancelOperationReq()
		request.OperationHandle = operation
		if _, err := other.client.CancelOperation(ctx, request); err != nil {
			return err
		}
		if err := closeOperation(ctx, other.client, operation); err != nil {
			return err
		}
		session := hiveserver.NewTCloseSessionReq()
		session.SessionHandle = s.handle
		_, err := other.client.CloseSession(ctx, session)
		return err
	})
}

func closeOperation(ctx context.Context, client *hiveserver.TCLIServiceClient, operation *hiveserver.TOperationHandle) error {
	request := hiveserver.NewTCloseOperationReq()
	request.OperationHandle = operation
	_, err := client.CloseOperation(ctx, request)
	return err
}

// Kind is what a value is.
type Kind int

// The kinds of values that dpproxy reads.
const (
	Other Kind = iota // of another type
	Int               // 32 bits
	Bigint
	Text
)

// Value is one value of a row.
type Value struct {
	Kind  Kind
	Null  bool
	Whole int64
	Text  string
}

// Row is one row. It is overwritten by the next one.
type Row []Value

// eachRow turns columns into rows and says how many there were.
func eachRow(set *hiveserver.TRowSet, take func(Row) error) (int, error) {
	if set == nil || len(set.Rows) > 0 {
		return 0, ErrProtocol
	}
	if len(set.Columns) == 0 { // of a statement that has no result
		return 0, nil
	}
	row, n := make(Row, len(set.Columns)), -1
	readers := make([]func(at int) Value, len(set.Columns))
	for i, c := range set.Columns {
		var length int
		if readers[i], length = readerOf(c); n >= 0 && length != n {
			return 0, fmt.Errorf("columns of different lengths: %w", ErrProtocol)
		}
		n = length
	}
	for at := range n {
		for i, read := range readers {
			row[i] = read(at)
		}
		if err := take(row); err != nil {
			return at, err
		}
	}
	return n, nil
}

// readerOf reads a column's values, of which there are so many.
func readerOf(c *hiveserver.TColumn) (read func(at int) Value, length int) {
	switch {
	case c.I32Val != nil:
		return func(at int) Value { return Value{Int, isNull(c.I32Val.Nulls, at), int64(c.I32Val.Values[at]), ""} }, len(c.I32Val.Values)
	case c.I64Val != nil:
		return func(at int) Value { return Value{Bigint, isNull(c.I64Val.Nulls, at), c.I64Val.Values[at], ""} }, len(c.I64Val.Values)
	case c.StringVal != nil:
		return func(at int) Value { return Value{Text, isNull(c.StringVal.Nulls, at), 0, c.StringVal.Values[at]} }, len(c.StringVal.Values)
	case c.BoolVal != nil:
		return otherKind, len(c.BoolVal.Values)
	case c.ByteVal != nil:
		return otherKind, len(c.ByteVal.Values)
	case c.I16Val != nil:
		return otherKind, len(c.I16Val.Values)
	case c.DoubleVal != nil:
		return otherKind, len(c.DoubleVal.Values)
	case c.BinaryVal != nil:
		return otherKind, len(c.BinaryVal.Values)
	}
	return otherKind, 0
}

func otherKind(int) Value { return Value{} }

// isNull reads a bit for each value; where there are none left, it is not NULL.
func isNull(nulls []byte, at int) bool { return at/8 < len(nulls) && nulls[at/8]&(1<<(at%8)) != 0 }
