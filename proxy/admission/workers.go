package admission

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/internal/processor"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Workers admits what takes processor time and memory for a statement without being paid for: parsing, planning,
// rendering, reading and post-processing (privacy rule 26; docs/adr/0053). A user has so many of its slots at a time,
// all users share the rest fairly, and a statement that has taken its processor time is ended. Nothing here waits for
// the private database: a statement gives its slot back before it waits for one of that.
//
// Whom a wait is behind shows in time alone. A statement is refused for what her own messages asked for, or because the
// process is short of memory, which is as loud as a process that was killed, and rarer.
type Workers struct {
	planning  *Slots // planning and post-processing
	short     *Slots // what takes milliseconds: parsing a long text, encoding a part of a long answer
	draws     *Slots // noise that is paid for
	database  *Slots // statements that have the private database run queries
	timetable *Slots // the same on a grid, where more are admitted than run at a time
	sandbox   *Slots // queries of the sandbox
	kept      kept
	memory    memory
}

// processors is how many the process may use at a time.
var processors = runtime.GOMAXPROCS(0)

// SpareThreads lets Go run twice as many threads as there are processors: more than one user's slots of all kinds.
// Where long work has the processors (planning, a draw, the collector) the system then decides between it and what is
// short, anew within some milliseconds. Go's own scheduler lets long work run for ten, and whoever waits in its queue
// comes after all before her, at each step of an answer's way. An operator's GOMAXPROCS stays as it is.
func SpareThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * processors)
	}
}

// NewWorkers makes the slots for one process, whose sandbox runs so many queries at a time, and its private database so
// many, 0 means any number.
func NewWorkers(children, queries int) *Workers {
	return &Workers{planning: sharedSlots(4 * processors), short: sharedSlots(2 * processors), sandbox: sharedSlots(children),
		draws: sharedSlots(4 * processors), database: sharedSlots(queries), timetable: sharedSlots(backend.AdmittedPerSlot * queries),
		kept: kept{users: map[string]int64{}}, memory: memory{running: map[*work]bool{}}}
}

// meter adds up the processor time of one statement. Its parts come one after the other.
type meter struct {
	mu   sync.Mutex
	used time.Duration
}

type meterKey struct{}

// Metered is a context of one statement, which has its limit of processor time to itself.
func Metered(ctx context.Context) context.Context {
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

// Renew gives a statement its whole limit of processor time again: once it has paid, for what is left to do. That it
// pays only so often bounds how much it may take in all.
func Renew(ctx context.Context) {
	if m, _ := ctx.Value(meterKey{}).(*meter); m != nil {
		m.mu.Lock()
		m.used = 0
		m.mu.Unlock()
	}
}

// exceeds says that a statement took more processor time than the policy grants.
func exceeds(limit time.Duration) *pgerror.Failure {
	return pgerror.New("57014", fmt.Sprintf("canceling statement: it needs more than %s of processor time (server.limits.statement_cpu)", limit)).
		WithHint("Ask for less at once: fewer groups, ranges, columns or joins. What was paid for stays free.")
}

// Run does a part of a statement's work in one of its user's slots, in the processor time that is left to the
// statement. A context without a meter has no limit: the commands of the operator.
func (w *Workers) Run(ctx context.Context, user string, l policy.Limits, do func(context.Context) error) error {
	done, err := w.planning.Wait(ctx, user, w.planning.share(ofOne(l)))
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
	if f, ok := context.Cause(ctx).(*pgerror.Failure); ok { // whatever the work made of it
		return f
	}
	return err
}

// ofOne is how many slots one user has: as many as her memory is enough for, and a processor fewer than there are, so
// that another's statement finds one that is free.
func ofOne(l policy.Limits) int {
	processors := max(processors-1, 1)
	if n := l.UserWorked(); n > 0 {
		return min(n, processors)
	}
	return processors
}

// Ask has the sandbox work on a statement, in one of the slots that its user may have there. What is left of the
// statement's processor time the sandbox keeps to.
func (w *Workers) Ask(ctx context.Context, l policy.Limits, session sandbox.Session, do func(sandbox.Session) error) error {
	done, err := w.sandbox.Wait(ctx, session.User, w.sandbox.share(0))
	if err != nil {
		return err
	}
	defer done()
	m, _ := ctx.Value(meterKey{}).(*meter)
	if limit := l.StatementCPU; m != nil && limit > 0 {
		session.Time, session.OfTime = m.left(limit), limit
		session.Took = m.add
	}
	return do(session)
}

// Briefly does a piece of work that is bounded by the size of a message.
func (w *Workers) Briefly(ctx context.Context, user string, do func()) error {
	done, err := w.short.Wait(ctx, user, w.short.share(max(processors/2, 1)))
	if err != nil {
		return err
	}
	defer done()
	do()
	return nil
}

// Draw draws what a user has paid for, in a slot that waits behind her own draws alone: it is not refused and not
// ended, whatever it takes, since after the charge there is always an answer (privacy rule 5). Its slot is no other
// work's, so that what begins when it ends has read rows itself, and shows its time on the grid (ADR 45).
func (w *Workers) Draw(user string, do func()) {
	done, err := w.draws.Wait(context.Background(), user, w.draws.share(max(processors-1, 1)))
	if err == nil {
		defer done()
	}
	do()
}

// Query has a statement wait for one of the private database's slots, of which its user has all but one. On a grid a
// slot that read rows is free again on it.
func (w *Workers) Query(ctx context.Context, user string, step time.Duration, timetabled bool) (leave func(last time.Time), err error) {
	slots := w.databaseSlots(timetabled)
	done, err := slots.Wait(ctx, user, slots.share(0))
	if err != nil {
		return nil, err
	}
	return OnGrid(step, done), nil
}

// Spare is one more of these slots for a statement that has one, for a query beside its first, where nobody waits for
// it.
func (w *Workers) Spare(user string, step time.Duration, timetabled bool) (leave func(last time.Time), had bool) {
	slots := w.databaseSlots(timetabled)
	done, had := slots.Spare(user, slots.share(0))
	return OnGrid(step, done), had
}

func (w *Workers) databaseSlots(timetabled bool) *Slots {
	if timetabled {
		return w.timetable
	}
	return w.database
}

// OnGrid gives something back to others: at once, or, where rows were read with a step, at a multiple of it since the
// last query returned. What was done after that is not to show in when others go on (ADR 48).
func OnGrid(step time.Duration, done func()) func(last time.Time) {
	return func(last time.Time) {
		if last.IsZero() || step == 0 {
			done()
			return
		}
		time.AfterFunc(time.Until(moment.Next(last, step)), done)
	}
}

// Keep counts what a user's sessions keep between statements, or until a client has read it, and refuses what is more
// than most bytes together; 0 means any number. What is given up is counted by as many bytes below nothing.
func (w *Workers) Keep(user string, bytes, most int64) error { return w.kept.add(user, bytes, most) }

// Reserve takes memory for results of the private database, before anything is charged for them.
func (w *Workers) Reserve(ctx context.Context, bytes int64) (giveBack func(), err error) {
	return w.memory.reserve(ctx, bytes)
}

// ReserveSpare takes such memory where there is some at once, for results that wait beside a statement's first.
func (w *Workers) ReserveSpare(bytes int64) (giveBack func(), had bool) { return w.memory.spare(bytes) }

// kept counts the bytes that each user's sessions keep between statements, or until a client has read them: rows of
// cursors and portals, prepared statements, parameters.
type kept struct {
	mu    sync.Mutex
	users map[string]int64
}

// add counts what a session is about to keep, and reports whether it may. most 0: any amount.
func (k *kept) add(user string, bytes, most int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if most > 0 && bytes > 0 && k.users[user]+bytes > most {
		return pgerror.New("53200", fmt.Sprintf("your sessions keep more than %s (server.limits.user_memory)", policy.SizeText(most))).
			WithHint("CLOSE cursors, DEALLOCATE prepared statements, and read the answers of your other sessions. What was paid for stays free.")
	}
	if k.users[user] += bytes; k.users[user] <= 0 {
		delete(k.users, user)
	}
	return nil
}
