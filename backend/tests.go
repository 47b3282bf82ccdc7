package backend

import (
	"context"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// What stands here is for tests below package backend. They are functions and no methods: what embeds an executor has no way to a count that is not sealed.

// executorOf is the executor that a backend embeds.
func executorOf(b any) *executor { return b.(interface{ own() *executor }).own() }

func (x *executor) own() *executor { return x }

// countingOf is what runs its queries.
func countingOf(x *executor) counting { return x.count }

// detached runs a query as Execute does, and returns what it counts without the seal.
func detached(ctx context.Context, x *executor, query rewrite.Query, step time.Duration) [][]privacy.Group {
	return x.runDetached(ctx, query, step)
}

// setDeadline changes the owner's deadline; no query runs meanwhile.
func setDeadline(x *executor, d time.Duration) { x.deadline = d }

// occupy waits for all slots and takes them; free gives them back.
func occupy(x *executor) (free func()) {
	for range cap(x.slots) {
		x.slots <- struct{}{}
	}
	return func() {
		for range cap(x.slots) {
			<-x.slots
		}
	}
}
