package proxy

import (
	"context"
	"errors"
	"slices"
	"time"

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
