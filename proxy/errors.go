package proxy

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// fatal is an error after which the session ends.
type fatal struct{ *Failure }

func failure(state, message string) *Failure { return &Failure{SQLState: state, Message: message} }

func (f *Failure) withHint(hint string) *Failure { f.Hint = hint; return f }

func (f *Failure) fatal() *fatal { return &fatal{f} }

// errSilent ends a connection without a word.
var errSilent = errors.New("connection closed without a reply")

// textInternal is all that a client learns of a fault of ours.
const textInternal = "internal error"

// describe turns any error into what the client may see of it. What is neither a refusal nor a failure becomes one
// constant text, so that no library's error can carry a value to a client.
func describe(err error) *Failure {
	var refusal *refuse.Refusal
	var shown *Failure
	var end *fatal
	var computed *scalar.Error
	switch {
	case errors.As(err, &end):
		return end.Failure
	case errors.As(err, &shown):
		return shown
	case errors.As(err, &refusal):
		return &Failure{
			SQLState: refusal.SQLState, Message: refusal.Message, Detail: refusal.Detail,
			Hint: refusal.Hint, Position: refusal.Position,
		}
	}
	if errors.As(err, &computed) { // of the outer query, on released values alone
		if computed.SQLState == "0A000" { // pools kill connections on it
			return failure("DP002", computed.Message)
		}
		f := failure(computed.SQLState, computed.Message)
		if computed.SQLState == "22012" {
			f.Hint = "A released count may be 0: divide by NULLIF(count(*), 0). What was paid for stays free."
		}
		return f
	}
	return failure("XX000", textInternal)
}

// isFatal tells whether the session ends with err.
func isFatal(err error) bool {
	var end *fatal
	return errors.As(err, &end) || errors.Is(err, errSilent)
}

func errorResponse(f *Failure, severity string) *pgproto3.ErrorResponse {
	state := f.SQLState
	if len(state) != 5 {
		state = "XX000"
	}
	return &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: state,
		Message: wire(f.Message), Detail: wire(f.Detail), Hint: wire(f.Hint), Position: int32(f.Position), Routine: f.routine,
	}
}

// staleStatement says that a prepared statement no longer fits what the client was told of it. Drivers know this error by
// the routine of PostgreSQL that raises it (asyncpg, pgjdbc), and prepare again by themselves.
func staleStatement(what string) *Failure {
	f := failure("0A000", "cached plan must not change "+what).withHint("Prepare the statement again.")
	f.routine = "RevalidateCachedQuery"
	return f
}

func noticeResponse(n Notice) *pgproto3.NoticeResponse {
	severity, state := n.Severity, n.SQLState
	if severity == "" {
		severity = "NOTICE"
	}
	if len(state) != 5 {
		state = "00000"
	}
	return &pgproto3.NoticeResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: state,
		Message: wire(n.Message), Detail: wire(n.Detail), Hint: wire(n.Hint),
	}
}

// wire makes s fit for a zero-terminated UTF-8 string.
func wire(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func warning(state, message string) Notice {
	return Notice{Severity: "WARNING", SQLState: state, Message: message}
}

// loudness orders severities as client_min_messages does.
func loudness(severity string) int {
	switch strings.ToLower(severity) {
	case "debug5", "debug4", "debug3", "debug2", "debug1", "debug":
		return 1
	case "log":
		return 2
	case "notice", "":
		return 3
	case "warning":
		return 4
	case "error":
		return 5
	}
	return 6 // INFO is always sent
}
