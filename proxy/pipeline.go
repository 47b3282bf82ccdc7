// Package proxy speaks the PostgreSQL wire protocol with clients. A Server accepts connections, starts them up
// (TLS, SCRAM), and runs one session each: simple and extended queries, settings, transactions as far as they
// have a meaning for noisy answers, cancellation. What a SELECT answers comes from a Pipeline; the session only
// encodes what was released. Nothing here logs a value, and no error text but the catalogue's reaches a client.
package proxy

import (
	"context"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Pipeline answers single statements. Its methods are called by many sessions at once. A session waits for Answer until
// its context ends, and then tells the client 57014 at once, whatever Answer does afterwards: what was paid goes on.
type Pipeline interface {
	// Describe infers the types of parameters (given ones win; 0: infer) and columns of a Select, Explain or Show. It is
	// free and buys nothing.
	Describe(ctx context.Context, s *Session, stmt parse.Statement, given []policy.Type) (planner.Description, *refuse.Refusal)
	// Answer runs a Select, an Explain, or a Show of a dp.* name that is not a setting. Its error is a *refuse.Refusal or a
	// *Failure; any other error is shown as one constant text. The notices of a Result are sent with an error too.
	Answer(ctx context.Context, s *Session, stmt parse.Statement, params []policy.Value) (Result, error)
}

// Result is the answer to one statement.
type Result struct {
	Columns []sandbox.Column
	Rows    privacy.Released[sandbox.Rows]
	Tag     string // "SELECT", "EXPLAIN" or "SHOW"; the session adds the row count to SELECT
	Notices []Notice
}

// Notice is a NOTICE to the client. The zero Severity is NOTICE, the zero SQLState 00000.
type Notice struct {
	Severity string // "WARNING", "NOTICE", "INFO", "LOG" or "DEBUG"
	SQLState string
	Message  string
	Detail   string
	Hint     string
}

// Failure is an error that is shown to the client as it stands. It never holds a data value.
type Failure struct {
	SQLState string
	Message  string
	Detail   string
	Hint     string
	Position int // 1-based character in the message's text, 0: none
	routine  string
}

func (f *Failure) Error() string { return f.Message }

// Session is what a Pipeline may know of a client, as it stands at the start of one statement. It does not change
// afterwards, so that work which outlives the wait may go on reading it.
type Session struct {
	User     string
	Database string // as asked for at start-up: the dataset's id
	PID      uint32
	Policy   *policy.Policy // the snapshot that the statement lives by
	Dataset  *policy.Dataset
	Settings Settings
	Cursors  []sandbox.Cursor // for pg_cursors and pg_prepared_statements
	Prepared []*sandbox.Prepared
	Clients  func() []sandbox.Client // the sessions of the user, for pg_stat_activity
}

// Settings are the session's variables.
type Settings struct {
	planner.Settings                   // the dp.* variables, search path and time zone, typed
	Variables        map[string]string // every variable by lower-case name, for current_setting() and pg_settings
}
