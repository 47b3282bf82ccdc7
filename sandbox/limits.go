package sandbox

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Options set the limits of an engine. Zero values take the defaults.
type Options struct {
	Log      *slog.Logger
	Deadline time.Duration // of one query; default 10 s
	Memory   uint64        // bytes that one query may take beside what the engine holds anyway; default 512 MiB
	MaxRows  int           // rows of an answer; default 1,000,000
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Deadline <= 0 {
		o.Deadline = 10 * time.Second
	}
	if o.Memory == 0 {
		o.Memory = 512 << 20
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 1_000_000
	}
	return o
}

// Limits are what one query may take: the policy's, where it has any, else those of the engine's options.
type Limits struct {
	Time   time.Duration // of the processor
	Memory uint64
}

// Limits are those of queries under a policy; nil before there is one.
func (o Options) Limits(p *policy.Policy) Limits {
	l := Limits{o.Deadline, o.Memory}
	if p != nil && p.Server.Limits.StatementCPU > 0 {
		l.Time = p.Server.Limits.StatementCPU
	}
	if p != nil && p.Server.Limits.StatementMemory > 0 {
		l.Memory = uint64(p.Server.Limits.StatementMemory)
	}
	return l
}

// Late is the error of a query that took more processor time than there was for it.
func (l Limits) Late(s Session) error {
	whole := l.Time
	if s.OfTime > 0 {
		whole = s.OfTime
	}
	return &scalar.Error{SQLState: "57014", Message: fmt.Sprintf("canceling statement: the query over released answers took more than its %s of processor time (server.limits.statement_cpu)", whole)}
}

// Large is the error of a query that needed more memory than it may take.
func (l Limits) Large() error {
	return &scalar.Error{SQLState: ErrResources.SQLState, Message: fmt.Sprintf("%s: %s (server.limits.statement_memory)", ErrResources.Message, policy.SizeText(int64(l.Memory)))}
}

// The errors of a query that had to be ended. The engine's own text is never relayed.
var (
	ErrResources = &scalar.Error{SQLState: "54000", Message: "the query over released answers needs more memory than it may use"}
	ErrTooMany   = &scalar.Error{SQLState: "54000", Message: "the answer has more rows than the sandbox returns; add a LIMIT"}
	ErrBroken    = &scalar.Error{SQLState: "XX000", Message: "the query over released answers could not be run"}
	ErrClosed    = &scalar.Error{SQLState: "57P01", Message: "the sandbox is shut down"}
)
