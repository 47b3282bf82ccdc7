package proxy

import (
	"context"
	"errors"

	"github.com/dpproxy/dpproxy/backend"
)

// admit looks whether the private database can run queries now, and waits for a place in its line: who is charged has an
// answer from rows, unless her own queries come to their deadline. It fails before any charge; kept is what an analyst is told
// of that. leave is called when the queries have returned.
func (a *Answerer) admit(ctx context.Context, s *Session, kept string) (leave func(), err error) {
	if err = a.backend.Ready(ctx); err == nil {
		leave, err = a.backend.Admit(ctx, s.Policy.Server.Timing.Fresh)
	}
	switch {
	case err == nil:
		return leave, nil
	case ctx.Err() != nil:
		return nil, ctx.Err() // the client no longer waits: that says nothing of the database
	case errors.Is(err, backend.ErrBusy):
		return nil, &Failure{SQLState: "53400", Message: "too many statements wait for the database; " + kept, Hint: "Ask again later. What you have paid for is answered meanwhile."}
	}
	a.log.Error("private database not ready", "error", err)
	return nil, &Failure{SQLState: "DP004", Message: "the database cannot be reached; " + kept}
}
