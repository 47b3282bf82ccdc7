package proxy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/settings"
)

// What a client is sent: answers and errors in her charset, the variables that she follows, and that the next query may
// come.

// replies is the connection as replies are written to it: the client's settings, what was sent last, and what is used
// again for the next reply.
type replies struct {
	back      *pgproto3.Backend
	settings  *settings.Settings
	tx        transaction
	peer      peer
	pace      *pace // nil while the client has the word
	manner    manner
	reported  map[string]string // values of reported variables that the client knows
	seen      uint64            // settings epoch of reported
	described description
	completed pgproto3.CommandComplete
	buffer    []byte
}

// manner is what the settings in force say of how a client waits and is sent things. A message asks for it a dozen
// times.
type manner struct {
	epoch       uint64 // of the settings; 0 means none yet
	charset     *encoding.Charset
	idle        time.Duration // idle_session_timeout
	idleInBlock time.Duration
	statement   time.Duration // statement_timeout
	loud        int           // client_min_messages
	whole       bool          // dp.hints = message
	style       encoding.Style
}

func (c *replies) mannered() *manner {
	if epoch := c.settings.Epoch(); c.manner.epoch != epoch {
		set := encoding.CharsetOf(c.settings.Value("client_encoding"))
		c.manner = manner{epoch: epoch, charset: set, whole: c.settings.Value("dp.hints") == "message",
			idle:        c.settings.Milliseconds("idle_session_timeout"),
			idleInBlock: c.settings.Milliseconds("idle_in_transaction_session_timeout"),
			statement:   c.settings.Milliseconds("statement_timeout"), loud: loudness(c.settings.Value("client_min_messages")),
			style: encoding.Style{Zone: c.settings.Typed().Zone, Form: c.settings.Typed().Form, Charset: set}}
	}
	return &c.manner
}

// fail sends an error and aborts the transaction. It returns the errors that end the session.
func (c *session) fail(err error) error {
	if isFatal(err) {
		return err
	}
	f := pgerror.Describe(err)
	c.server.metrics.failed(err, f)
	f = c.asked(f)
	if c.mannered().whole {
		f = f.InMessage()
	}
	c.send(errorResponse(f, "ERROR"))
	c.abort()
	return nil
}

// asked adds to a failure the number of what the pipeline was asked for its message, if it was asked anything.
func (c *session) asked(f *pgerror.Failure) *pgerror.Failure {
	if !c.numbered {
		return f
	}
	return f.Asked(c.request.String())
}

// charset is the session's own.
func (c *replies) charset() *encoding.Charset {
	if c.settings == nil {
		return nil // not logged in
	}
	return c.mannered().charset
}

// send sends a message that has text.
func (c *replies) send(msg pgproto3.BackendMessage) { c.back.Send(c.charset().Said(msg)) }

func (c *replies) flush() error {
	c.pace.hold()
	if c.back.Flush() != nil {
		return login.ErrSilent
	}
	return nil
}

// flushPart sends a part of a long answer, unless a cancel request ended the wait for it.
func (c *replies) flushPart(ctx context.Context) error {
	if err := c.flush(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return nil
}

// ready tells the client that the next query may come.
func (c *replies) ready() error {
	c.report()
	c.back.Send(&pgproto3.ReadyForQuery{TxStatus: c.tx.status()})
	c.pace.hold()
	c.peer.active.Store(false)
	err := c.flush()
	c.pace = nil
	return err
}

// report sends the variables that clients follow, where they changed.
func (c *replies) report() {
	if c.reported != nil && c.seen == c.settings.Epoch() {
		return
	}
	if c.reported == nil {
		c.reported = map[string]string{}
	}
	c.seen = c.settings.Epoch()
	application := c.settings.Value("application_name")
	c.peer.application.Store(&application)
	for name, value := range c.settings.Reported() {
		if old, ok := c.reported[name]; !ok || old != value {
			c.reported[name] = value
			c.send(&pgproto3.ParameterStatus{Name: name, Value: encoding.CString(value)})
		}
	}
}

// notify sends a notice, unless the client wants to hear less.
func (c *replies) notify(n pipeline.Notice) {
	if loudness(n.Severity) < c.mannered().loud {
		return
	}
	c.send(noticeResponse(n))
}

// isFatal reports whether the session ends with err.
func isFatal(err error) bool {
	var end *pgerror.Fatal
	return errors.As(err, &end) || errors.Is(err, login.ErrSilent)
}

func errorResponse(f *pgerror.Failure, severity string) *pgproto3.ErrorResponse {
	state := f.SQLState
	if len(state) != 5 {
		state = "XX000"
	}
	return &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: state,
		Message: encoding.CString(f.Message), Detail: encoding.CString(f.Detail), Hint: encoding.CString(f.Hint), Position: int32(f.Position), Routine: f.Routine,
	}
}

// staleStatement says that a prepared statement no longer fits what the client was sent of it. Drivers know this error
// by the routine of PostgreSQL that raises it (asyncpg, pgjdbc), and prepare again by themselves.
func staleStatement(what string) *pgerror.Failure {
	f := pgerror.New("0A000", "cached plan must not change "+what).WithHint("Prepare the statement again.")
	f.Routine = "RevalidateCachedQuery"
	return f
}

func noticeResponse(n pipeline.Notice) *pgproto3.NoticeResponse {
	severity, state := n.Severity, n.SQLState
	if severity == "" {
		severity = "NOTICE"
	}
	if len(state) != 5 {
		state = "00000"
	}
	return &pgproto3.NoticeResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: state,
		Message: encoding.CString(n.Message), Detail: encoding.CString(n.Detail), Hint: encoding.CString(n.Hint),
	}
}

func warning(state, message string) pipeline.Notice {
	return pipeline.Notice{Severity: "WARNING", SQLState: state, Message: message}
}

// loudness orders severities as client_min_messages does.
func loudness(severity string) int {
	switch strings.ToLower(severity) {
	case "debug5", "debug4", "debug3", "debug2", "debug1", "debug":
		return 1
	case "log":
		return 2
	case "notice", "":
		return 3
	case "warning":
		return 4
	case "error":
		return 5
	}
	return 6 // INFO is always sent
}
