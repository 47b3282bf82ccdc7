package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/internal/request"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/settings"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/sandbox"
)

// How a message asks the pipeline, and what ends the wait for its answer: SELECT count(*) FROM visits is answered at
// once where its answer is kept, and else by a goroutine of its own, which goes on when the client has gone.

// interruptible is a context that a cancel request, or the end of the connection, ends.
type interruptible struct {
	ctx    context.Context // nil: none
	cancel context.CancelCauseFunc
}

// cancelable runs f so that a cancel request, or the end of the connection, ends its waits. What f has begun ends with
// it; where all of it was answered at once there is nothing to end, and the next message has the same context: it takes
// as long to make one as to find an answer that is kept.
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

// endSpare ends what depends on the context of the last message.
func (c *session) endSpare() {
	if c.spare.ctx != nil {
		c.spare.cancel(nil)
		c.spare = interruptible{}
	}
}

// number gives what the pipeline is asked next a number, which the message's errors tell from then on.
func (c *session) number(ctx context.Context) context.Context {
	c.request, c.numbered = c.request.Next(), true
	return request.With(ctx, c.request)
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

// standing is current but for the cursors, each message's portal among them, which nothing that is answered at once is
// of.
func (c *session) standing() *pipeline.Session {
	statements := c.preparedList()
	if c.view == nil || c.viewed != c.settings.Epoch() || !slices.Equal(c.view.Prepared, statements) {
		c.viewed = c.settings.Epoch()
		c.view = &pipeline.Session{User: c.user, Database: c.database, PID: c.pid, Policy: c.policy, Dataset: c.dataset, Settings: inForce(c.settings),
			Prepared: statements, Listed: c.settings.Listed, Clients: func() []sandbox.Client { return c.server.keys.of(c.user) }, Last: c.last.Load}
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
func (c *replies) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit := c.mannered().statement; limit > 0 {
		return context.WithTimeoutCause(ctx, limit, errTimeout)
	}
	return ctx, func() {}
}

// atOnce is an answer that the pipeline keeps, or reads from what is held in microseconds: it is given without a slot,
// or anybody beside who would have to be waited for, which takes longer than finding it. On a grid all answers go one
// way.
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

// ask has the pipeline answer one statement and waits for it, until the client or the time limit ends the wait. The
// work itself goes on: what is paid is finished and saved.
func (c *session) ask(ctx context.Context, stmt parse.Statement, params []policy.Value) (pipeline.Result, error) {
	c.pace.owed = true
	ctx, spanned := c.server.config.Spans.Statement(c.number(ctx), c.parse, c.database)
	c.parse = spans.Parsed{}
	limits := c.policy.Server.Limits
	if !c.server.statements.TakeToken(c.user, limits.StatementsPerSecond, time.Now()) {
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
	over, err := c.server.statements.Wait(ctx, c.user, limits.UserStatements)
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

// How long a statement that was refused because the ledger has another policy waits for that to come into force here,
// and how often it looks.
const (
	policyWithin = 5 * time.Second
	policyLook   = 20 * time.Millisecond
)

// overtaken reports whether a statement was refused because the policy has changed, nothing charged, and is to be asked
// again under the one that is in force now.
func (c *objects) overtaken(ctx context.Context, err error) bool {
	if !errors.Is(err, pipeline.ErrPolicy) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, policyWithin)
	defer cancel()
	look := time.NewTicker(policyLook)
	defer look.Stop()
	for c.server.config.Policy().For(c.user) == c.policy {
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// stateOf is the SQLSTATE of an error; empty means none.
func stateOf(err error) string {
	if err == nil {
		return ""
	}
	return pgerror.Describe(err).SQLState
}

// cutShort is the error of a wait that has just ended on the grid: it leaves at once. Only here is that known: a limit
// that comes as late as the answer ends nothing, and must not let the next answer go.
func (c *replies) cutShort(ctx context.Context) error {
	c.pace.cut = true
	return interrupted(ctx)
}

// The replies to a message (rows, refusals, errors, the ends of waits) leave on a public grid: a multiple of the
// policy's step since the message came. Two answers whose work ends in the same step cannot be distinguished by their
// time; what still shows is in which step it ended. So each query's result is taken at a public moment too, before
// anything is drawn from it (backend.Backend.Execute): with a step above the owner's deadline, all that follows,
// however long it takes, begins at a time in which the rows have no part (ADRs 36 and 45).
//
// The client's own limits fall on the grid as well. A cancel request or a statement_timeout would else ask at any
// moment whether the work has ended, and so read the time that the grid hides.

// pace is the grid of one message and what came with it, up to the next ReadyForQuery.
type pace struct {
	begun time.Time
	stop  <-chan struct{} // the server's end, which waits for nothing
	grid  time.Duration   // 0: none
	reads atomic.Bool     // private rows were read since the last wait
	cut   bool            // the client's own limit has just ended a wait, on the grid
	owed  bool            // work was done since the last bytes left
}

func newPace(t policy.Timing, stop <-chan struct{}) *pace {
	p := &pace{stop: stop, grid: t.Grid}
	if p.grid > 0 {
		p.begun = time.Now()
	}
	return p
}

// wait returns at the next point of the grid.
func (p *pace) wait() {
	if p.grid > 0 {
		moment.Until(moment.Next(p.begun, p.grid), p.stop)
	}
}

// hold keeps what is about to leave to the grid. Later bytes of the same answer go at once: they are functions of what
// is released.
func (p *pace) hold() {
	if p == nil || !p.owed {
		return
	}
	cut := p.cut
	if p.owed, p.cut = false, false; cut {
		return
	}
	p.wait()
	p.reads.Store(false)
}

// rest waits as hold does, before the next message of a pipeline is read, if rows were read for the last one. That a
// server goes on reading is seen too: by the room in the client's send buffer, or by the end of a connection after
// Terminate.
func (p *pace) rest() {
	if p != nil && p.reads.Load() {
		p.hold()
	}
}

// awaitGrid waits, if rows were read, before anything begins that may ask a clock: whatever moment an answer leaves at,
// what that clock says is in it, to a microsecond.
func (p *pace) awaitGrid() {
	if p != nil && p.reads.Load() {
		p.wait()
		p.reads.Store(false)
	}
}

// over waits as awaitGrid does before a slot is given to another statement, which may ask a clock too.
func (p *pace) over() {
	if p.reads.Load() {
		p.wait()
	}
}

// told is what a statement tells the grid.
func (p *pace) told() pipeline.Pace {
	return pipeline.Pace{ReadsRows: func() { p.reads.Store(true) }, AwaitGrid: p.awaitGrid}
}

// onGrid is a context that ends as its parent does, on the next point of the grid. On one it tells no deadline: how much
// time is left when rows have been read is for nobody to decide by.
func (p *pace) onGrid(parent context.Context) (context.Context, func()) {
	ctx := pipeline.WithPace(parent, p.told())
	if p.grid == 0 {
		return ctx, func() {}
	}
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(parent, func() {
		p.wait()
		cancel(context.Cause(parent))
	})
	return late, func() {
		stop()
		cancel(nil)
	}
}

// The reasons for which a wait for an answer ends.
var (
	errCanceled = errors.New("canceling statement due to user request")
	errTimeout  = errors.New("canceling statement due to statement timeout")
	errLost     = errors.New("canceling statement because its client has gone")
	errShutdown = errors.New("terminating connection due to administrator command")
)

// cancelKeys finds the session that a cancel request means. A key is random, dies with its session, and is compared in
// constant time; a request that means no session looks like one that does.
type cancelKeys struct {
	mu       sync.Mutex
	sessions map[uint32]*cancelEntry
}

type cancelEntry struct {
	key  []byte
	wait *waitPoint
	seen *peer
}

// waitPoint is where a session can be interrupted.
type waitPoint struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil: nothing runs
	number uint64                  // of what has run
	looked uint64                  // which of it goesOn saw last
}

func (w *waitPoint) set(cancel context.CancelCauseFunc) {
	w.mu.Lock()
	w.cancel = cancel
	w.number++
	w.mu.Unlock()
}

// goesOn reports whether what runs did so when it was asked last.
func (w *waitPoint) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.looked
	w.looked = w.number
	return w.cancel != nil && before == w.number
}

func (w *waitPoint) interrupt(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel(cause)
	}
}

func newCancelKeys() *cancelKeys { return &cancelKeys{sessions: map[uint32]*cancelEntry{}} }

// register names a session: a process id that no other session has, and a key of that many bytes.
func (c *cancelKeys) register(wait *waitPoint, seen *peer, size int) (pid uint32, key []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key = make([]byte, size)
	if _, err := rand.Read(key); err != nil {
		return 0, nil, err
	}
	for pid == 0 || c.sessions[pid] != nil {
		var b [4]byte
		if _, err := rand.Read(b[:]); err != nil {
			return 0, nil, err
		}
		pid = binary.BigEndian.Uint32(b[:]) >> 1 // clients read it as a signed number
	}
	c.sessions[pid] = &cancelEntry{key, wait, seen}
	return pid, key, nil
}

func (c *cancelKeys) remove(pid uint32) {
	c.mu.Lock()
	delete(c.sessions, pid)
	c.mu.Unlock()
}

// cancel ends the wait of the session that pid and key name, if there is one.
func (c *cancelKeys) cancel(pid uint32, key []byte) {
	c.mu.Lock()
	entry := c.sessions[pid]
	c.mu.Unlock()
	known := 1
	if entry == nil {
		entry, known = &cancelEntry{key: make([]byte, len(key)), wait: &waitPoint{}}, 0
	}
	if subtle.ConstantTimeCompare(entry.key, key)&known == 1 {
		entry.wait.interrupt(errCanceled)
	}
}
