package scalar

import "context"

// Work is what planning one statement may take: steps, each about one evaluation of one node of an expression or one
// look at a cell, and bytes of what is sized by cells. Both are counted and not measured, so that which statement is
// refused is a function of public things and not of the machine's load (privacy rules 23 and 26). Beside them it sees a
// context, so that a cancel, a deadline or a lost client ends planning at its next look.
//
// What takes too much ends by a panic with *Stop, which the planner's exported functions turn into a refusal: the loops
// that take work are deep, and none of them holds anything that a panic would leave half done. A nil *Work counts
// nothing. It is of one goroutine.
type Work struct {
	ctx    context.Context
	limits Limits
	taken  Limits
	look   int64 // steps until the context is looked at
	over   bool
	half   bool // the steps are those of half a statement
	kept   map[string]any
}

// Limits are what one planning may take.
type Limits struct {
	Steps int64
	Bytes int64
}

// DefaultLimits are those of a statement of which nothing else is said: a few seconds of one core, and the memory for
// every array that 2^20 cells need, several times over.
var DefaultLimits = Limits{Steps: 100_000_000, Bytes: 512 << 20}

// Stop is why planning ends early.
type Stop struct {
	Cause error // the context's; nil means the limits
	Bytes bool  // it is the bytes
	Limit int64
}

// lookEvery is how many steps go by between two looks at the context.
const lookEvery = 1 << 10

// NewWork returns what planning may take until ctx is done.
func NewWork(ctx context.Context, l Limits) *Work { return &Work{ctx: ctx, limits: l} }

// Step takes n steps.
func (w *Work) Step(n int) {
	if w == nil || w.over {
		return
	}
	w.taken.Steps += int64(n)
	if w.look -= int64(n); w.look <= 0 {
		w.look = lookEvery
		w.stop()
	}
}

// Take takes memory for n things of so many bytes each.
func (w *Work) Take(n, each int) {
	if w == nil || w.over {
		return
	}
	w.taken.Bytes += int64(n) * int64(each)
	w.stop()
}

func (w *Work) stop() {
	switch {
	case w.ctx.Err() != nil:
		panic(&Stop{Cause: context.Cause(w.ctx)})
	case w.taken.Steps > w.limits.Steps:
		panic(&Stop{Limit: w.limits.Steps})
	case w.taken.Bytes > w.limits.Bytes:
		panic(&Stop{Bytes: true, Limit: w.limits.Bytes})
	}
}

// Spare leaves one half of the steps: a statement that is planned before answers within it are known is planned once
// more when they are paid for, and is not refused then for taking somewhat more.
func (w *Work) Spare() {
	if w == nil || w.half {
		return
	}
	w.half = true
	w.limits.Steps /= 2
	w.stop()
}

// Kept is what this planning has made under a name, nil means nothing. A statement that joins a public table nine
// times, or is planned again for other parts of its cost, reads it once.
func (w *Work) Kept(name string) any {
	if w == nil {
		return nil
	}
	return w.kept[name]
}

// Keep keeps what was made under a name, for as long as the planning takes.
func (w *Work) Keep(name string, made any) {
	if w == nil || w.over {
		return
	}
	if w.kept == nil {
		w.kept = map[string]any{}
	}
	w.kept[name] = made
}

// Taken is what has been taken so far.
func (w *Work) Taken() Limits {
	if w == nil {
		return Limits{}
	}
	return w.taken
}

// Renewed is w, or one with the same limits and nothing taken where w has been closed.
func (w *Work) Renewed() *Work {
	if w != nil && w.over {
		l := w.limits
		if w.half {
			l.Steps *= 2
		}
		return NewWork(w.ctx, l)
	}
	return w
}

// Close ends the count: what is left of a plan is used after it.
func (w *Work) Close() {
	if w != nil {
		w.over = true
	}
}
