package proxy

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/internal/processor"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Workers admits what takes processor time and memory for a statement without being paid for: parsing, planning, rendering,
// reading and post-processing (privacy rule 26; docs/adr/0053). A user has so many of its places at a time, all users share
// the rest fairly, and a statement that has taken its processor time is ended. Nothing here waits for the private database:
// a statement gives its place back before it waits for one of that.
//
// Whom a wait is behind shows in time alone. A statement is refused for what her own messages asked for, or because the
// process is short of memory, which is as loud as a process that was killed, and rarer.
type Workers struct {
	whole    *turns // of planning and post-processing
	brief    *turns // of what takes milliseconds: parsing a long text, encoding a part of a long answer
	children *turns // of the sandbox: each runs one query at a time
	kept     kept
	memory   memory
}

// NewWorkers makes the places for one process, whose sandbox runs so many queries at a time, 0: any number.
func NewWorkers(children int) *Workers {
	processors := runtime.GOMAXPROCS(0)
	return &Workers{whole: fairTurns(4 * processors), brief: fairTurns(2 * processors), children: fairTurns(children),
		kept: kept{users: map[string]int64{}}, memory: memory{running: map[*work]bool{}}}
}

// meter adds up the processor time of one statement. Its parts come one after the other.
type meter struct {
	mu   sync.Mutex
	used time.Duration
}

type meterKey struct{}

// metered is a context of one statement, which has its limit of processor time to itself.
func metered(ctx context.Context) context.Context {
	return context.WithValue(ctx, meterKey{}, &meter{})
}

func (m *meter) add(took time.Duration) {
	m.mu.Lock()
	m.used += took
	m.mu.Unlock()
}

// left is what a statement still has of a limit; never nothing, so that what has begun is seen to be over by its end.
func (m *meter) left(limit time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(limit-m.used, time.Millisecond)
}

// exceeds says that a statement took more processor time than the policy grants.
func exceeds(limit time.Duration) *Failure {
	return failure("57014", fmt.Sprintf("canceling statement: it needs more than %s of processor time (server.limits.statement_cpu)", limit)).
		withHint("Ask for less at once: fewer groups, ranges, columns or joins. What was paid for stays free.")
}

// run does a part of a statement's work in one of its user's places, in the processor time that is left to the statement. A
// context without a meter has no limit: the commands of the operator.
func (w *Workers) run(ctx context.Context, user string, l policy.Limits, do func(context.Context) error) error {
	done, err := w.whole.wait(ctx, user, w.whole.share(l.UserWorked()))
	if err != nil {
		return err
	}
	defer done()
	if err := w.memory.wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	part := &work{user: user, begun: time.Now(), end: cancel}
	w.memory.begin(part)
	defer w.memory.over(part)
	if m, _ := ctx.Value(meterKey{}).(*meter); m != nil && l.StatementCPU > 0 {
		limited, stop := processor.Limit(ctx, m.left(l.StatementCPU), exceeds(l.StatementCPU))
		ctx = limited
		defer func() { m.add(stop()) }()
	}
	err = do(ctx)
	if f, ok := context.Cause(ctx).(*Failure); ok { // whatever the work made of it
		return f
	}
	return err
}

// ask has the sandbox work on a statement, in one of the places that its user may have there. What is left of the statement's
// processor time the sandbox keeps to.
func (w *Workers) ask(ctx context.Context, s *Session, do func(sandbox.Session) error) error {
	done, err := w.children.wait(ctx, s.User, w.children.share(0))
	if err != nil {
		return err
	}
	defer done()
	session := sandboxSession(s)
	m, _ := ctx.Value(meterKey{}).(*meter)
	if limit := s.Policy.Server.Limits.StatementCPU; m != nil && limit > 0 {
		session.Time, session.OfTime = m.left(limit), limit
		session.Took = m.add
	}
	return do(session)
}

// briefly does a piece of work that is bounded by the size of a message.
func (w *Workers) briefly(ctx context.Context, user string, do func()) error {
	done, err := w.brief.wait(ctx, user, w.brief.share(max(runtime.GOMAXPROCS(0)/2, 1)))
	if err != nil {
		return err
	}
	defer done()
	do()
	return nil
}

// worked plans or post-processes for a statement; what it may not take is a refusal like the planner's own.
func (a *Answerer) worked(ctx context.Context, s *Session, do func(context.Context) *planner.Refusal) *planner.Refusal {
	var refusal *planner.Refusal
	err := a.workers.run(ctx, s.User, s.Policy.Server.Limits, func(ctx context.Context) error {
		refusal = do(ctx)
		return nil
	})
	if err != nil {
		f := describe(err)
		return planner.RefuseInvalid(f.SQLState, f.Message, f.Hint)
	}
	return refusal
}

// kept counts the bytes that each user's sessions keep between statements, or until a client has read them: rows of cursors
// and portals, prepared statements, parameters.
type kept struct {
	mu    sync.Mutex
	users map[string]int64
}

// add counts what a session is about to keep, and tells whether it may. most 0: any amount.
func (k *kept) add(user string, bytes, most int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if most > 0 && bytes > 0 && k.users[user]+bytes > most {
		return failure("53200", fmt.Sprintf("your sessions keep more than %s (server.limits.user_memory)", policy.SizeText(most))).
			withHint("CLOSE cursors, DEALLOCATE prepared statements, and read the answers of your other sessions. What was paid for stays free.")
	}
	if k.users[user] += bytes; k.users[user] <= 0 {
		delete(k.users, user)
	}
	return nil
}
