package reuse

import (
	"context"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// Work is what planning one statement may take, and the context that ends it: see scalar.Work. Each call of Build takes
// one of its own.
type Work = scalar.Work

// Limits of Work.
type Limits = scalar.Limits

// DefaultLimits are those of a plan whose Context brings none.
var DefaultLimits = scalar.DefaultLimits

// NewWork returns what a plan may take until ctx is done.
func NewWork(ctx context.Context, l Limits) *Work { return scalar.NewWork(ctx, l) }

// Limited is the context with the default limits where it has none, and with all of its own for each plan that is made
// in it.
func (c Context) Limited() Context {
	if c.Work == nil {
		c.Work = NewWork(context.Background(), DefaultLimits)
	}
	c.Work = c.Work.Renewed()
	return c
}

// RefuseEnded is the refusal of a statement whose planning was ended.
func RefuseEnded(cause error) *refuse.Refusal { return planningEnded.At(-1, cause) }

// Stopped turns the end of planning by its limits or its context into a refusal. It is deferred.
func (c Context) Stopped(refusal **refuse.Refusal) {
	c.Work.Close()
	switch r := recover().(type) {
	case nil:
	case *scalar.Stop:
		switch {
		case r.Cause != nil:
			*refusal = planningEnded.At(-1, r.Cause)
		case r.Bytes:
			*refusal = planningMemory.At(-1, r.Limit>>20)
		default:
			*refusal = planningSteps.At(-1, r.Limit)
		}
	default:
		panic(r)
	}
}
