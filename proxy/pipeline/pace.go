package pipeline

import "context"

// Pace is what a statement tells the grid on which its answer leaves (ADRs 36 and 45). A context without one keeps to none.
type Pace struct {
	ReadsRows func() // private rows are read
	AwaitGrid func() // a clock may be asked, whose time is in the answer: waits for the grid if rows were read
}

type paceKey struct{}

// WithPace is a context of one statement, which keeps to its session's pace.
func WithPace(ctx context.Context, p Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, p)
}

// ReadsRows says that private rows are read for what this context belongs to. Whoever calls it decides by public things.
func ReadsRows(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(Pace); ok {
		p.ReadsRows()
	}
}

// awaitGrid is called before a clock may be asked.
func awaitGrid(ctx context.Context) {
	if p, ok := ctx.Value(paceKey{}).(Pace); ok {
		p.AwaitGrid()
	}
}
