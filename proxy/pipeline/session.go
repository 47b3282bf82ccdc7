package pipeline

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Result is the answer to one statement.
type Result struct {
	Columns []sandbox.Column
	Rows    privacy.Released[sandbox.Rows]
	Tag     string // "SELECT", "EXPLAIN" or "SHOW"; the session adds the row count to SELECT
	Notices []Notice
	Last    *Last // what dp.last shows of it; nil means what it shows stays

	repeatable bool // the same again would be the same: see repeatable
	quick      bool // and is made anew in microseconds
}

// Notice is a NOTICE to the client. The zero Severity is NOTICE, the zero SQLState 00000.
type Notice struct {
	Severity string // "WARNING", "NOTICE", "INFO", "LOG" or "DEBUG"
	SQLState string
	Message  string
	Detail   string
	Hint     string
}

// Session is what the answer to a statement may know of a client, as it stands at the start of one statement. It does
// not change afterwards, so that work which outlives the wait may go on reading it.
type Session struct {
	User     string
	Database string // as asked for at start-up: the dataset's id
	PID      uint32
	Policy   *policy.Policy // the snapshot that the statement lives by
	Dataset  *policy.Dataset
	Settings Settings
	Cursors  []sandbox.Cursor // for pg_cursors and pg_prepared_statements
	Prepared []*sandbox.Prepared
	Listed   func() []plans.Variable // for pg_settings
	Clients  func() []sandbox.Client // the sessions of the user, for pg_stat_activity
	Last     func() *Last            // what dp.last shows, nil before the first answer; nil means nothing ever
}

// Settings are the session's variables.
type Settings struct {
	plans.Settings                   // the dp.* variables, search path and time zone, typed
	MaxCost        *privacy.Rho      // dp.max_cost; nil means off
	Variables      map[string]string // every variable by lower-case name, for current_setting()
}
