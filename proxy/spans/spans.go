// Package spans tells a collector of OpenTelemetry's how long each stage of a statement took.
//
// Claim. What leaves by a span is: the name of a stage, of the list below; when it began and ended; the number of its
// statement (package request), its dataset, the kind and table of a measure, the SQLSTATE of how it ended. No word of a
// statement, no parameter, no name of a user, no answer, no number of rows: there is no function here that takes one.
//
// Limits. When a leaf ended depends on rows, so spans are no release: who reads them knows as much as root of the
// proxy's host, who may look at its clock (README's assumptions). They are off unless the policy says `server.spans:
// true`, and no client is sent anything by them (ADR 142).
//
// An example: SELECT count(*) FROM people leaves the span "statement" {dpproxy.request=9f86d081884c7d65-12,
// dpproxy.dataset=census}, and below it "parse", "plan", "wait", "charge", "execute" {dpproxy.table=people,
// dpproxy.kind=count}, "noise", "save" and "outer".
package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/dpproxy/dpproxy/internal/request"
)

// Stage is what a statement passes.
type Stage struct{ name string }

// The stages, in their order. All of them are directly below their statement.
var (
	statement = Stage{"statement"}
	parse     = Stage{"parse"}
	Plan      = Stage{"plan"}    // and rendering
	Wait      = Stage{"wait"}    // for a turn and for a place of the private database
	Charge    = Stage{"charge"}  // durable
	Execute   = Stage{"execute"} // in the private database, or in a snapshot of it
	Noise     = Stage{"noise"}   // drawing
	Save      = Stage{"save"}    // durable
	Outer     = Stage{"outer"}   // reading what is released, and the query above it
)

// Attribute is a public thing that a span says.
type Attribute struct{ key, value string }

// Table is a table of the policy.
func Table(name string) Attribute { return Attribute{"dpproxy.table", name} }

// Kind is the kind of a measure.
func Kind(kind string) Attribute { return Attribute{"dpproxy.kind", kind} }

// Recorder sends spans. A nil Recorder sends none.
type Recorder struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

const scope = "dpproxy"

// newRecorder is one with an exporter; what is waiting is sent together, off the statements' way.
func newRecorder(options ...sdk.TracerProviderOption) *Recorder {
	p := sdk.NewTracerProvider(options...)
	return &Recorder{p, p.Tracer(scope)}
}

// Close sends what waits, until ctx ends.
func (r *Recorder) Close(ctx context.Context) {
	if r != nil {
		_ = r.provider.Shutdown(ctx) // what is not sent by then is lost, as spans may be
	}
}

// Parsed is when a text was parsed; zero: spans are off, or it was before the statement before.
type Parsed struct{ begun, ended time.Time }

// Clock begins to take the time of parsing; done ends it.
func (r *Recorder) Clock() (done func() Parsed) {
	if r == nil {
		return noClock
	}
	begun := time.Now()
	return func() Parsed { return Parsed{begun, time.Now()} }
}

func noClock() Parsed { return Parsed{} }

// Statement begins the span of a statement. The context is what its stages are begun in; done ends it, with an SQLSTATE
// or none.
func (r *Recorder) Statement(ctx context.Context, p Parsed, dataset string) (of context.Context, done func(state string)) {
	if r == nil {
		return ctx, noStatement
	}
	attributes := []attribute.KeyValue{attribute.String("dpproxy.dataset", dataset)}
	if id, ok := request.Of(ctx); ok {
		attributes = append(attributes, attribute.String("dpproxy.request", id.String()))
	}
	options := []trace.SpanStartOption{trace.WithAttributes(attributes...), trace.WithSpanKind(trace.SpanKindServer)}
	if !p.begun.IsZero() {
		options = append(options, trace.WithTimestamp(p.begun))
	}
	ctx, span := r.tracer.Start(ctx, statement.name, options...)
	if !p.begun.IsZero() {
		_, below := r.tracer.Start(ctx, parse.name, trace.WithTimestamp(p.begun))
		below.End(trace.WithTimestamp(p.ended))
	}
	return ctx, func(state string) {
		if state != "" {
			span.SetAttributes(attribute.String("db.response.status_code", state))
		}
		span.End()
	}
}

func noStatement(string) {}

// Begin begins a stage of the statement that a context belongs to, and returns what ends it.
func Begin(ctx context.Context, s Stage, says ...Attribute) (done func()) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() && !above.SpanContext().IsSampled() {
		return nothing
	}
	_, span := above.TracerProvider().Tracer(scope).Start(ctx, s.name)
	for _, a := range says {
		span.SetAttributes(attribute.String(a.key, a.value))
	}
	return func() { span.End() }
}

func nothing() {}
