// Package proxy speaks the PostgreSQL wire protocol with clients. A Server accepts connections, starts them up
// (TLS, SCRAM), and runs one session each: simple and extended queries, settings, transactions as far as they
// have a meaning for noisy answers, cancellation. What a SELECT answers comes from a Pipeline; the session only
// encodes what was released. Nothing here logs a value, and no error text but the catalogue's reaches a client.
package proxy

import (
	"context"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// Pipeline answers single statements. Its methods are called by many sessions at once. A session waits for Answer until
// its context ends, and then tells the client 57014 at once, whatever Answer does afterwards: what was paid goes on.
type Pipeline interface {
	// Describe infers the types of parameters (given ones win; 0 means infer) and columns of a Select, Explain or Show.
	// It is free and buys nothing.
	Describe(ctx context.Context, s *pipeline.Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal)
	// Answer runs a Select, an Explain, or a Show of a dp.* name that is not a setting. Its error is a *refuse.Refusal
	// or a *Failure; any other error is shown as one constant text. The notices of a Result are sent with an error too.
	Answer(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, error)
	// AtOnce is what Answer would say without waiting, within microseconds; false means it may take longer, or fail.
	AtOnce(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, bool)
}
