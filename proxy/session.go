package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/request"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/settings"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/sandbox"
)

// session is one logged-in client.
type session struct {
	server *Server
	conn   net.Conn
	back   *pgproto3.Backend
	log    *slog.Logger

	user, database string
	proved         *Proved // nil: her name is proved by the exchange of this connection
	pid            uint32
	counted        bool // among the user's connections

	policy   *policy.Policy
	dataset  *policy.Dataset
	settings *settings.Settings
	view     *pipeline.Session // of the current policy and settings
	viewed   uint64
	last     atomic.Pointer[pipeline.Last] // what dp.last shows

	tx         transaction
	statements map[string]*prepared
	list       []*sandbox.Prepared // what pg_prepared_statements shows
	listed     bool                // list is up to date
	portals    map[string]*portal
	opened     uint64 // portals so far
	held       int64  // bytes that the session keeps, of its user's

	wait waitPoint
	peer peer
	pace *pace // nil: the client has the word

	handling
	parsing
	telling
}

// handling is about the message that is handled.
type handling struct {
	source   string        // as written
	request  request.ID    // the number of the last statement
	numbered bool          // what the message asks of the pipeline has that number
	several  bool          // it is a simple query of several statements
	skipping bool          // one of the extended protocol failed: everything is ignored until Sync
	waited   bool          // it has begun what ends with it
	spare    interruptible // of a message that was answered at once, for the next
}

// parsing keeps the last short texts that were parsed (shortText).
type parsing struct {
	parsed [shortTexts]parsed
	texts  uint         // that were parsed
	parse  spans.Parsed // when the last text was, until a statement of it is asked
}

// telling is what the client was told last, and what is used again for telling her more.
type telling struct {
	manner    manner
	reported  map[string]string // values of reported variables that the client knows
	seen      uint64            // settings epoch of reported
	described description
	completed pgproto3.CommandComplete
	buffer    []byte
}

// manner is what the settings in force say of how a client waits and is told things. A message asks for it a dozen times.
type manner struct {
	epoch       uint64 // of the settings; 0: none yet
	charset     *encoding.Charset
	idle        time.Duration // idle_session_timeout
	idleInBlock time.Duration
	statement   time.Duration // statement_timeout
	loud        int           // client_min_messages
	style       encoding.Style
}

func (c *session) mannered() *manner {
	if epoch := c.settings.Epoch(); c.manner.epoch != epoch {
		set := encoding.CharsetOf(c.settings.Value("client_encoding"))
		c.manner = manner{epoch: epoch, charset: set, idle: c.settings.Milliseconds("idle_session_timeout"), idleInBlock: c.settings.Milliseconds("idle_in_transaction_session_timeout"),
			statement: c.settings.Milliseconds("statement_timeout"), loud: loudness(c.settings.Value("client_min_messages")),
			style: encoding.Style{Zone: c.settings.Typed().Zone, Form: c.settings.Typed().Form, Charset: set}}
	}
	return &c.manner
}

// run reads and handles messages until the session ends. Its error is the reason, login.ErrSilent where the client left.
func (c *session) run() (err error) {
	defer c.endSpare()
	defer func() {
		if r := recover(); r != nil {
			ctx := context.Background()
			if c.numbered {
				ctx = request.With(ctx, c.request)
			}
			c.server.logPanic(ctx, r, "session")
			err = pgerror.New("XX000", pgerror.TextInternal).Fatal()
		}
	}()
	for {
		msg, err := c.receive()
		if err != nil {
			return err
		}
		c.numbered = false
		if err := c.handle(msg); err != nil {
			return err
		}
	}
}

// receive waits for the next message, as long as the settings let a client be idle, and not beyond the end of the server.
func (c *session) receive() (pgproto3.FrontendMessage, error) {
	c.pace.rest()
	idle := c.idleLimit()
	if idle > 0 {
		if err := c.conn.SetReadDeadline(time.Now().Add(idle)); err != nil {
			return nil, login.ErrSilent
		}
	}
	if c.server.draining.Load() || c.peer.ended.Load() {
		return nil, pgerror.New("57P01", errShutdown.Error()).Fatal()
	}
	msg, err := c.back.Receive()
	if err == nil {
		c.answering(msg)
		if idle > 0 && c.conn.SetReadDeadline(time.Time{}) != nil {
			return nil, login.ErrSilent
		}
		return msg, nil
	}
	var tooLong *pgproto3.ExceededMaxBodyLenErr
	switch {
	case (c.server.draining.Load() || c.peer.ended.Load()) && errors.Is(err, os.ErrDeadlineExceeded):
		return nil, pgerror.New("57P01", errShutdown.Error()).Fatal()
	case errors.Is(err, os.ErrDeadlineExceeded) && c.tx.block:
		return nil, pgerror.New("25P03", "terminating connection due to idle-in-transaction timeout").Fatal()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, pgerror.New("57P05", "terminating connection due to idle-session timeout").Fatal()
	case errors.As(err, &tooLong):
		return nil, pgerror.New("54000", "message is longer than "+strconv.Itoa(bodyAfterLogin)+" bytes").Fatal()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return nil, login.ErrSilent
	}
	var network net.Error
	if errors.As(err, &network) {
		return nil, login.ErrSilent
	}
	return nil, pgerror.New("08P01", "malformed message").Fatal()
}

// answering begins the grid of what a message brings, with the first message after ReadyForQuery. Sync and Flush bring
// nothing of their own: what they send has waited already where rows were read for it.
func (c *session) answering(msg pgproto3.FrontendMessage) {
	if c.pace != nil {
		switch msg.(type) {
		case *pgproto3.Sync, *pgproto3.Flush:
			return
		}
	} else {
		c.pace = newPace(c.policy.Server.Timing, c.server.base.Done())
		c.peer.active.Store(true)
	}
	c.pace.owed = true
}

func (c *session) idleLimit() time.Duration {
	if c.tx.block {
		return c.mannered().idleInBlock
	}
	return c.mannered().idle
}

// handle answers one message. Its error ends the session.
func (c *session) handle(msg pgproto3.FrontendMessage) error {
	switch msg.(type) {
	case *pgproto3.Terminate:
		c.pace = nil // nothing is owed
		return login.ErrSilent
	case *pgproto3.Sync:
		c.skipping = false
		c.endImplicit()
		return c.ready()
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return nil // left over from a copy that failed: ignored, as the protocol asks
	}
	if c.skipping {
		return nil
	}
	if refusal := c.charset().Heard(msg); refusal != nil {
		if _, simple := msg.(*pgproto3.Query); !simple {
			return c.extended(refusal)
		}
		if err := c.fail(refusal); err != nil {
			return err
		}
		c.endImplicit()
		return c.ready()
	}
	switch m := msg.(type) {
	case *pgproto3.Query:
		return c.query(m.String)
	case *pgproto3.Parse:
		return c.extended(c.cancelable(func(ctx context.Context) error { return c.prepare(ctx, m) }))
	case *pgproto3.Bind:
		return c.extended(c.bind(m))
	case *pgproto3.Describe:
		return c.extended(c.describe(m))
	case *pgproto3.Execute:
		err := c.cancelable(func(ctx context.Context) error { return c.execute(ctx, m) })
		c.tx.piped = c.tx.piped || err == nil && c.tx.implicit && !c.tx.block
		return c.extended(err)
	case *pgproto3.Close:
		return c.extended(c.closeObject(m))
	case *pgproto3.Flush:
		return c.flush()
	case *pgproto3.FunctionCall:
		if err := c.fail(pgerror.New("0A000", "function calls by message are not available")); err != nil {
			return err
		}
		c.endImplicit()
		return c.ready()
	}
	return pgerror.New("08P01", "unexpected message").Fatal()
}

// extended ends the handling of a message of the extended protocol: after an error everything up to Sync is ignored.
func (c *session) extended(err error) error {
	if err == nil {
		return nil
	}
	c.skipping = true
	if err := c.fail(err); err != nil {
		return err
	}
	return c.flush() // an error is sent at once: some clients wait for it before they send Sync
}

// interruptible is a context that a cancel request, or the end of the connection, ends.
type interruptible struct {
	ctx    context.Context // nil: none
	cancel context.CancelCauseFunc
}

// cancelable runs f so that a cancel request, or the end of the connection, ends its waits. What f has begun ends with it; where all of it was answered at once
// there is nothing to end, and the next message has the same context: it takes as long to make one as to find an answer that is kept.
func (c *session) cancelable(f func(context.Context) error) error {
	if c.spare.ctx == nil || c.spare.ctx.Err() != nil {
		c.spare.ctx, c.spare.cancel = context.WithCancelCause(c.server.base)
	}
	c.waited = false
	c.wait.set(c.spare.cancel)
	defer func() {
		if c.wait.set(nil); c.waited {
			c.endSpare()
		}
	}()
	return f(c.spare.ctx)
}

// endSpare ends what hangs on the context of the last message.
func (c *session) endSpare() {
	if c.spare.ctx != nil {
		c.spare.cancel(nil)
		c.spare = interruptible{}
	}
}

// fail sends an error and aborts the transaction. It returns the errors that end the session.
func (c *session) fail(err error) error {
	if isFatal(err) {
		return err
	}
	f := pgerror.Describe(err)
	c.server.metrics.failed(err, f)
	c.send(errorResponse(c.asked(f), "ERROR"))
	c.abort()
	return nil
}

// number gives what the pipeline is asked next a number, which the message's errors tell from then on.
func (c *session) number(ctx context.Context) context.Context {
	c.request, c.numbered = c.request.Next(), true
	return request.With(ctx, c.request)
}

// asked adds to a failure the number of what the pipeline was asked for its message, if it was asked anything.
func (c *session) asked(f *pgerror.Failure) *pgerror.Failure {
	if !c.numbered {
		return f
	}
	return f.Asked(c.request.String())
}

// charset is the session's own.
func (c *session) charset() *encoding.Charset {
	if c.settings == nil {
		return nil // not logged in
	}
	return c.mannered().charset
}

// send sends a message that has text.
func (c *session) send(msg pgproto3.BackendMessage) { c.back.Send(c.charset().Said(msg)) }

func (c *session) flush() error {
	c.pace.hold()
	if c.back.Flush() != nil {
		return login.ErrSilent
	}
	return nil
}

// flushPart sends a part of a long answer, unless a cancel request ended the wait for it.
func (c *session) flushPart(ctx context.Context) error {
	if err := c.flush(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return nil
}

// ready tells the client that the next query may come.
func (c *session) ready() error {
	c.report()
	c.back.Send(&pgproto3.ReadyForQuery{TxStatus: c.tx.status()})
	c.pace.hold()
	c.peer.active.Store(false)
	err := c.flush()
	c.pace = nil
	return err
}

// report sends the variables that clients follow, where they changed.
func (c *session) report() {
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
func (c *session) notify(n pipeline.Notice) {
	if loudness(n.Severity) < c.mannered().loud {
		return
	}
	c.send(noticeResponse(n))
}

// current is what a Pipeline may know of the session now.
func (c *session) current() *pipeline.Session {
	view := c.standing()
	if cursors := c.cursorList(); len(cursors) > 0 {
		own := *view
		own.Cursors, view = cursors, &own
	}
	return view
}

// standing is current but for the cursors, each message's portal among them, which nothing that is answered at once is of.
func (c *session) standing() *pipeline.Session {
	statements := c.preparedList()
	if c.view == nil || c.viewed != c.settings.Epoch() || !slices.Equal(c.view.Prepared, statements) {
		c.viewed = c.settings.Epoch()
		c.view = &pipeline.Session{User: c.user, Database: c.database, PID: c.pid, Policy: c.policy, Dataset: c.dataset, Settings: inForce(c.settings),
			Prepared: statements, Clients: func() []sandbox.Client { return c.server.keys.of(c.user) }, Last: c.last.Load}
	}
	return c.view
}

// inForce are the settings as a Pipeline knows them.
func inForce(s *settings.Settings) pipeline.Settings {
	typed := pipeline.Settings{Settings: s.Typed(), Variables: s.Variables()}
	if most, bound := s.MaxCost(); bound {
		typed.MaxCost = &most
	}
	return typed
}

// timed bounds a wait by statement_timeout.
func (c *session) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit := c.mannered().statement; limit > 0 {
		return context.WithTimeoutCause(ctx, limit, errTimeout)
	}
	return ctx, func() {}
}

// atOnce is an answer that the pipeline keeps, or reads from what is held in microseconds: it is given without a place, a turn, or anybody beside who would have to be waited
// for, which takes longer than finding it. On a grid all answers go one way.
func (c *session) atOnce(ctx context.Context, stmt parse.Statement, params []policy.Value) (pipeline.Result, bool) {
	if c.pace.grid > 0 || ctx.Err() != nil {
		return pipeline.Result{}, false
	}
	result, ok := c.server.config.Pipeline.AtOnce(ctx, c.standing(), stmt, params)
	if ok && result.Last != nil {
		c.last.Store(result.Last)
	}
	return result, ok
}

// ask has the pipeline answer one statement and waits for it, until the client or the time limit ends the wait. The work
// itself goes on: what is paid is finished and saved.
func (c *session) ask(ctx context.Context, stmt parse.Statement, params []policy.Value) (pipeline.Result, error) {
	c.pace.owed = true
	ctx, spanned := c.server.config.Spans.Statement(c.number(ctx), c.parse, c.database)
	c.parse = spans.Parsed{}
	limits := c.policy.Server.Limits
	if !c.server.turns.Ticket(c.user, limits.StatementsPerSecond, time.Now()) {
		spanned("53400")
		return pipeline.Result{}, pgerror.New("53400", "too many statements a second").WithHint("Ask again a second later.")
	}
	if result, ok := c.atOnce(ctx, stmt, params); ok {
		spanned("")
		return result, nil
	}
	c.waited = true
	ctx, stop := c.timed(ctx)
	defer stop()
	ctx, release := c.pace.onGrid(admission.Metered(ctx))
	defer release()
	over, err := c.server.turns.Wait(ctx, c.user, limits.UserStatements)
	if err != nil {
		spanned("57014")
		return pipeline.Result{}, c.cutShort(ctx)
	}
	type outcome struct {
		result pipeline.Result
		err    error
	}
	view, pace, done := c.current(), c.pace, make(chan outcome, 1)
	c.server.work.Add(1)
	go func() {
		defer c.server.work.Done()
		defer over()
		defer pace.over()
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				c.server.logPanic(ctx, r, "answer")
				o = outcome{err: pgerror.New("XX000", pgerror.TextInternal).Fatal()}
			}
			spanned(stateOf(o.err))
			done <- o
		}()
		o.result, o.err = c.server.config.Pipeline.Answer(ctx, view, stmt, params)
	}()
	select {
	case o := <-done:
		if o.err != nil && ctx.Err() != nil {
			return pipeline.Result{}, c.cutShort(ctx)
		}
		if o.result.Last != nil {
			c.last.Store(o.result.Last)
		}
		return o.result, o.err
	case <-ctx.Done():
		return pipeline.Result{}, c.cutShort(ctx)
	}
}

// stateOf is the SQLSTATE of an error; empty: none.
func stateOf(err error) string {
	if err == nil {
		return ""
	}
	return pgerror.Describe(err).SQLState
}

// cutShort is the error of a wait that has just ended on the grid: it leaves at once. Only here is that known: a limit that
// comes as late as the answer ends nothing, and must not let the next answer go.
func (c *session) cutShort(ctx context.Context) error {
	c.pace.cut = true
	return interrupted(ctx)
}
