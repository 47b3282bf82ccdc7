// Package backend is the private database as the rest of dpproxy sees it: it runs the SQL of paid measures and seals
// what comes back. What implements it is in a package for each engine, which backend/engines alone opens: only they
// see private rows.
package backend

import (
	"context"
	"errors"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Backend is a private database.
type Backend interface {
	// Dialect is the SQL that the backend speaks.
	Dialect() dialect.Dialect
	// Ready reports whether queries can be dispatched now, and whether the database would plan these ones, none of
	// which it runs; its error is shown before any charge, without the database's text.
	Ready(ctx context.Context, queries ...rewrite.Query) error
	// Admit waits, before anything is charged, until the statement is one of at most three for each query that the
	// database runs at a time, or until ctx ends, whose error it then returns. Who is admitted runs her queries one
	// after the other (and is admitted once for each that is to run beside another), each of which has its turn within
	// three steps, and then calls leave with the moment at which the last one returned, the zero time if she ran none.
	// With a step of at most the deadline there is no timetable, and no wait. asOf is the moment of the rows that
	// queries of hers read, planned under a policy (rewrite.Query.Of names it to them), in nanoseconds since 1970; 0:
	// they are read live.
	Admit(ctx context.Context, step time.Duration, of *policy.Policy) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error)
	// AsOf is the moment of the rows that are read by whoever is admitted now under a policy, as asOf is.
	AsOf(of *policy.Policy) int64
	// Slots is how many paid queries run at a time, and OnTimetable reports whether they run on a timetable with such a
	// step.
	Slots() int
	OnTimetable(step time.Duration) bool
	// Execute spends the receipts and runs the query to the owner's deadline, whatever becomes of the client. Each
	// receipt pays for the measure of its place among the query's Leaves, whose groups are returned there; what is
	// counted for one without a receipt, which somebody else has had drawn meanwhile, is dropped, and at least one has
	// a receipt. On any fault after that the answer of all of them is the public default, no groups (privacy rule 5),
	// and it is reported to the operator. With a step other than 0 it returns at a multiple of step, and with one above
	// the deadline at the first, where what has not come by then is a fault. The error is only that of an invalid query
	// or receipt; nothing was run then. Of the context only the number of its statement is used, in the log: its end
	// ends nothing.
	Execute(ctx context.Context, query rewrite.Query, receipts []*ledger.Receipt, step time.Duration) ([]privacy.Sensitive[[]privacy.Group], error)
	// Faults is how many paid queries of a dataset failed since the start, of which the operator must hear (rule 5).
	Faults(dataset string) int64
	// ReadPublic copies a table that the policy declares public: rows of values in the order of its columns.
	ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error)
	// Inspect compares a dataset of the policy with the database's schema, never with its rows, and returns findings in
	// plain words: of the database's settings, too. For a policy that is not in force nothing depends on it.
	Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]Finding, error)
	// Adopt says that a policy comes into force of which each dataset was inspected: Ready refuses from then on when
	// what Inspect saw of these changes, and no longer when something else does.
	Adopt(p *policy.Policy)
	Close() error
}

// Copies is a Backend over copies of its private tables, which are made at public times (package snapshot).
type Copies interface {
	Backend
	// Prepare has a copy of a policy's tables before the policy is in force.
	Prepare(ctx context.Context, p *policy.Policy) (Prepared, error)
	// Keep makes a copy at each time that the policy in force names, until ctx ends.
	Keep(ctx context.Context, current func() *policy.Policy)
	// Next returns an error if the copy that was due last was not made, or the next one may not be written.
	Next() error
	// Missed is how many were not made.
	Missed() int64
}

// Prepared is a copy of a policy's tables that waits for the policy: the ledger may yet refuse that.
type Prepared interface {
	PutInForce()
	GiveUp() // is called instead where the policy does not come into force
}

// AdmittedPerSlot is how many statements are admitted to the timetable for each slot of the private database.
const AdmittedPerSlot = 3

// Finding is one thing that `dpproxy check` says about the database's schema.
type Finding struct {
	Fatal    bool // serve refuses to start
	Note     bool // nothing that the owner need change
	Text     string
	Numbered string // the table of which each live query numbers all rows, which takes long where there are many
}

// The errors of Ready and Open. They never hold the database's own text.
var (
	ErrUnavailable = errors.New("the private database does not answer")
	ErrDrift       = errors.New("the private database's tables are no longer those that the policy was checked against")
	ErrSettings    = errors.New("the private database's settings are not those that queries need")
	ErrUnplanned   = errors.New("the private database does not accept the query")
)
