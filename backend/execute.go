package backend

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// defaultDeadline is that of a policy without one.
const defaultDeadline = time.Minute

// engine is what the two backends do differently when they execute. Its errors stay in this package.
type engine interface {
	Dialect() rewrite.Dialect
	groups(ctx context.Context, query rewrite.Query) ([]privacy.Group, error)
}

// errResult says that a database returned something else than cells and counts.
var errResult = errors.New("backend: not a result of cells and counts")

// execute is Backend.Execute.
func execute(e engine, deadline time.Duration, log *slog.Logger, query rewrite.Query, receipt *ledger.Receipt) (privacy.Sensitive[[]privacy.Group], error) {
	if !query.Valid() || query.Dialect() != e.Dialect() {
		return privacy.Sensitive[[]privacy.Group]{}, errors.New("backend: not a query for this database")
	}
	if err := receipt.Spend(query.Digest()); err != nil {
		return privacy.Sensitive[[]privacy.Group]{}, err
	}
	return privacy.Seal(settle(e, deadline, log, query)), nil
}

// settle runs a paid query on its own, detached from any client, until the owner's deadline. A fault, and a database that
// does not let go of the query at the deadline, give no groups.
func settle(e engine, deadline time.Duration, log *slog.Logger, query rewrite.Query) []privacy.Group {
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	done := make(chan outcome, 1)
	go func() { done <- run(ctx, e, query) }()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		o.fault = ctx.Err()
	}
	if o.fault == nil {
		return o.groups
	}
	digest := query.Digest()
	log.Error("a paid query failed; its counts are taken as zero and the noisy answer is saved (privacy rule 5)",
		"dataset", query.Table().Dataset.ID, "table", query.Table().Name, "measure", hex.EncodeToString(digest[:8]), "cause", cause(o.fault))
	return nil
}

// outcome is what a query came to.
type outcome struct {
	groups []privacy.Group
	fault  error
}

// run turns a panic of a driver into a fault: the receipt is spent, so there must be an answer.
func run(ctx context.Context, e engine, query rewrite.Query) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			o = outcome{fault: fmt.Errorf("backend: panic of type %T", r)}
		}
	}()
	groups, err := e.groups(ctx, query)
	return outcome{groups, err}
}

// cause names a fault without a byte of the database's text.
func cause(err error) string {
	var server *pgconn.PgError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.As(err, &server) && len(server.Code) == 5:
		return "SQLSTATE class " + class(server.Code)
	case errors.Is(err, errResult):
		return "unexpected result"
	}
	return "connection or engine fault"
}

// class is the first two characters of an SQLSTATE, as far as they are what the standard allows.
func class(code string) string {
	for _, c := range code[:2] {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return "??"
		}
	}
	return code[:2]
}
