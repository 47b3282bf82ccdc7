// Package execute runs paid queries as every engine does: a receipt is spent, a slot and a turn are had, what comes is
// collected cell by cell and sealed, and a fault is named in words of dpproxy's own.
package execute

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// DefaultDeadline is that of a policy without one. Without a timetable a paid query waits for a slot for at most
// queueing deadlines.
const (
	DefaultDeadline = time.Minute
	queueing        = 10
)

// Counting is what backends do differently when they execute: what a query's scan counts, by its measures. It is a
// function and no method, so that nobody else has what is not sealed. Its errors stay below package backend.
type Counting func(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error)

// Fault is an error in words of dpproxy's own, which an operator may read.
type Fault string

func (f Fault) Error() string { return "backend: " + string(f) }

var (
	// ErrResult says that a database returned something else than cells and counts.
	ErrResult error = Fault("unexpected result")
	errNoSlot error = Fault("too many queries before it")
	// ErrUnproven says that a constraint is gone on which the units of a table depend.
	ErrUnproven error = Fault("a unique constraint that the units' path needs is gone")
)

// Executor runs paid queries, so many at a time. It is the part that all backends share.
type Executor struct {
	words     func() dialect.Dialect
	count     Counting
	deadline  time.Duration // the owner's, of one query
	log       *slog.Logger
	slots     chan struct{} // one element for each running query
	timetable *timetable
	faults    *faults
}

// faults are how many paid queries of each dataset failed.
type faults struct {
	mu sync.Mutex
	of map[string]int64
}

func (f *faults) add(dataset string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[dataset]++
}

// Faults: see Backend.
func (x Executor) Faults(dataset string) int64 {
	x.faults.mu.Lock()
	defer x.faults.mu.Unlock()
	return x.faults.of[dataset]
}

// NewExecutor runs queries that are written in words by count, so many at a time.
func NewExecutor(words func() dialect.Dialect, count Counting, deadline time.Duration, log *slog.Logger, slots int) Executor {
	if deadline <= 0 {
		deadline = DefaultDeadline
	}
	slots = max(slots, 1)
	return Executor{words, count, deadline, log, make(chan struct{}, slots), newTimetable(slots), &faults{of: map[string]int64{}}}
}

// Slots: see Backend, as of OnTimetable, Admit and Execute.
func (x Executor) Slots() int { return cap(x.slots) }

// AsOf: see Backend.
func (x Executor) AsOf(*policy.Policy) int64 { return 0 }

// OnTimetable: see Backend.
func (x Executor) OnTimetable(step time.Duration) bool { return step > x.deadline }

func (x Executor) Admit(ctx context.Context, step time.Duration, _ *policy.Policy) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error) {
	if !x.OnTimetable(step) {
		return live, func(time.Time) {}, nil
	}
	leave, err = x.timetable.admit(ctx, step)
	return live, leave, err
}

// live is the moment of rows that are read as they are.
func live(...rewrite.Query) int64 { return 0 }

// Execute: see Backend.
func (x Executor) Execute(caller context.Context, query rewrite.Query, receipts []*ledger.Receipt, step time.Duration) ([]privacy.Sensitive[[]privacy.Group], error) {
	if !query.Valid() || query.Dialect() != x.words() {
		return nil, errors.New("backend: not a query for this database")
	}
	measures, paid := query.Measures(), false
	if len(receipts) != len(measures) {
		return nil, errors.New("backend: receipts of other measures than the query's")
	}
	for i, receipt := range receipts {
		if receipt == nil {
			continue
		}
		if err := receipt.Spend(measures[i].Digest()); err != nil {
			return nil, err
		}
		paid = true
	}
	if !paid {
		return nil, errors.New("backend: a query that nobody has paid for")
	}
	counted, sealed := x.runDetached(caller, query, step), make([]privacy.Sensitive[[]privacy.Group], len(measures))
	for i, receipt := range receipts {
		if receipt != nil {
			sealed[i] = privacy.Seal(counted[i])
		}
	}
	return sealed, nil
}

// runDetached runs a paid query on its own, detached from any client, and returns at a multiple of step. With a step
// above the deadline that is the first since its turn came, and turns come at public times: what would come later is
// not waited for, whatever held it up. Then the time at which it returns, and with it the time of all that follows,
// does not depend on the rows. A fault gives no groups to any of its measures.
func (x Executor) runDetached(caller context.Context, query rewrite.Query, step time.Duration) [][]privacy.Group {
	begun := time.Now()
	if step <= x.deadline {
		o := x.runInSlot(context.Background(), query)
		if o.fault != nil {
			x.report(caller, query, o.fault)
		}
		if step > 0 {
			moment.Until(moment.Next(begun, step), nil)
		}
		return o.ofEach(query)
	}
	turn := x.timetable.turn(begun, step)
	if turn != begun {
		moment.Until(turn, nil)
	}
	o := outcome{fault: context.DeadlineExceeded}
	done := make(chan outcome, 1)
	ctx, cancel := context.WithDeadline(context.Background(), turn.Add(step))
	go func() {
		defer cancel()
		done <- x.runInSlot(ctx, query)
	}()
	moment.Until(turn.Add(step), nil)
	select {
	case o = <-done:
	default:
	}
	if o.fault != nil {
		go x.report(caller, query, o.fault) // which takes a time that is not to be seen
	}
	return o.ofEach(query)
}

// report tells the operator of a fault.
func (x Executor) report(caller context.Context, query rewrite.Query, fault error) {
	var measures []string
	for _, q := range query.Measures() {
		digest := q.Digest()
		measures = append(measures, hex.EncodeToString(digest[:8]))
	}
	x.faults.add(query.Table().Dataset.ID)
	x.log.ErrorContext(caller, "a paid query failed; its counts are taken as zero and the noisy answer is saved (privacy rule 5)",
		"dataset", query.Table().Dataset.ID, "table", query.Table().Name, "measure", strings.Join(measures, " "), "cause", Cause(fault))
}

// awaitSlot waits for a slot. It fails when every slot is held by a query that its database does not let go.
func (x Executor) awaitSlot(ctx context.Context) error {
	select {
	case x.slots <- struct{}{}: // a free slot is taken, however short the wait may be
		return nil
	default:
	}
	patience := time.NewTimer(queueing * x.deadline)
	defer patience.Stop()
	select {
	case x.slots <- struct{}{}:
		return nil
	case <-patience.C:
	case <-ctx.Done():
	}
	return errNoSlot
}

// runInSlot runs a query in a slot, until the owner's deadline, which counts from when it has it, or the end of ctx.
// The slot is free again when the database has let go of the query, which is not waited for.
func (x Executor) runInSlot(ctx context.Context, query rewrite.Query) outcome {
	if err := x.awaitSlot(ctx); err != nil {
		return outcome{fault: err}
	}
	ctx, cancel := context.WithTimeout(ctx, x.deadline)
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-x.slots }()
		defer cancel()
		done <- run(ctx, x.count, query)
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	select { // run cancels too, when it ends
	case o := <-done:
		return o
	default:
		return outcome{fault: context.DeadlineExceeded}
	}
}

// outcome is what a query came to.
type outcome struct {
	groups [][]privacy.Group // by the query's measures; none after a fault
	fault  error
}

// ofEach are the groups of each of the query's measures.
func (o outcome) ofEach(query rewrite.Query) [][]privacy.Group {
	if o.fault != nil || len(o.groups) != len(query.Measures()) {
		return make([][]privacy.Group, len(query.Measures()))
	}
	return o.groups
}

// run turns a panic of a driver into a fault: the receipt is spent, so there must be an answer.
func run(ctx context.Context, count Counting, query rewrite.Query) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			o = outcome{fault: fmt.Errorf("backend: panic of type %T", r)}
		}
	}()
	groups, err := count(ctx, query)
	if err != nil {
		return outcome{fault: err}
	}
	return outcome{groups: groups}
}

// Cause names a fault without a byte of the database's text.
func Cause(err error) string {
	var own Fault
	var server interface{ SQLState() string }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.As(err, &server) && len(server.SQLState()) == 5:
		return "SQLSTATE class " + Class(server.SQLState()) + classes[Class(server.SQLState())]
	case errors.As(err, &own):
		return string(own)
	case errors.Is(err, backend.ErrDrift):
		return "the private database's schema changed while it was asked"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	}
	return "connection or engine fault"
}

// classes says what the commonest classes mean to an operator.
var classes = map[string]string{"28": " (login refused)", "40": " (ended for the sake of others: a deadlock, or the replay of a standby)", "3D": " (no such database)", "42": " (no such table, or no right to it)", "53": " (out of resources)"}

// Class is the first two characters of an SQLSTATE, as far as they are what the standard allows.
func Class(code string) string {
	for _, c := range code[:2] {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return "??"
		}
	}
	return code[:2]
}

// ReadyTimeout bounds the look at the database before a charge.
const ReadyTimeout = 5 * time.Second
