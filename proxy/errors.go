package proxy

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// isFatal reports whether the session ends with err.
func isFatal(err error) bool {
	var end *pgerror.Fatal
	return errors.As(err, &end) || errors.Is(err, login.ErrSilent)
}

func errorResponse(f *pgerror.Failure, severity string) *pgproto3.ErrorResponse {
	state := f.SQLState
	if len(state) != 5 {
		state = "XX000"
	}
	return &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: state,
		Message: encoding.CString(f.Message), Detail: encoding.CString(f.Detail), Hint: encoding.CString(f.Hint), Position: int32(f.Position), Routine: f.Routine,
	}
}

// staleStatement says that a prepared statement no longer fits what the client was told of it. Drivers know this error
// by the routine of PostgreSQL that raises it (asyncpg, pgjdbc), and prepare again by themselves.
func staleStatement(what string) *pgerror.Failure {
	f := pgerror.New("0A000", "cached plan must not change "+what).WithHint("Prepare the statement again.")
	f.Routine = "RevalidateCachedQuery"
	return f
}

func noticeResponse(n pipeline.Notice) *pgproto3.NoticeResponse {
	severity, state := n.Severity, n.SQLState
	if severity == "" {
		severity = "NOTICE"
	}
	if len(state) != 5 {
		state = "00000"
	}
	return &pgproto3.NoticeResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: state,
		Message: encoding.CString(n.Message), Detail: encoding.CString(n.Detail), Hint: encoding.CString(n.Hint),
	}
}

func warning(state, message string) pipeline.Notice {
	return pipeline.Notice{Severity: "WARNING", SQLState: state, Message: message}
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
