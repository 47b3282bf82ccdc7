package execute

import (
	"context"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// What is declared here is for tests below package backend: functions and no methods, so that whoever has an engine has
// no way to a count that is not sealed.

// ExecutorOf is the executor that a backend embeds.
func ExecutorOf(b any) *Executor { return b.(interface{ own() *Executor }).own() }

func (x *Executor) own() *Executor { return x }

// CountingOf is what runs its queries.
func CountingOf(x *Executor) Counting { return x.count }

// Detached runs a query as Execute does, and returns what it counts without the seal.
func Detached(ctx context.Context, x *Executor, query rewrite.Query, step time.Duration) [][]privacy.Group {
	return x.runDetached(ctx, query, step)
}

// SetDeadline changes the owner's deadline; no query runs meanwhile.
func SetDeadline(x *Executor, d time.Duration) { x.deadline = d }

// Occupy waits for all slots and takes them; free gives them back.
func Occupy(x *Executor) (free func()) {
	for range cap(x.slots) {
		x.slots <- struct{}{}
	}
	return func() {
		for range cap(x.slots) {
			<-x.slots
		}
	}
}
