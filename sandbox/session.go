package sandbox

import (
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// What an outer query may know of who asks: her name, her settings, and what her own sessions have opened.

// Session is what an outer query may know of the client: current_user, current_database(), settings.
type Session struct {
	User, Database string
	PID            uint32
	Settings       map[string]string       // for current_setting(), by lower-case name
	Listed         func() []plans.Variable // for pg_settings; nil means it lists those of Settings
	Cursors        []Cursor
	Prepared       []*Prepared
	Clients        func() []Client  // the sessions of the user; nil means this one
	Zone           *time.Location   // of the settings; nil means that of the name in Settings
	Literals       *scalar.Literals // how the literals of the query are read; nil means as the settings are

	Unreleased bool // no released value comes with the query: its errors may be given in the server's words

	Time   time.Duration       // of the processor, that is left to the statement; 0 means the engine's own deadline
	OfTime time.Duration       // of so much, which is told where that is over
	Took   func(time.Duration) // told how much a query took; nil means nobody asks
}

// Variables are the rows of pg_settings.
func (s Session) Variables() (list []plans.Variable) {
	if s.Listed != nil {
		return s.Listed()
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		list = append(list, plans.Variable{Name: name, Value: s.Settings[name], Boot: s.Settings[name], Reset: s.Settings[name], Kind: "string"})
	}
	return list
}

// Setting is a setting of the session, or what stands for one that it does not have.
func (s Session) Setting(name, otherwise string) string {
	if v, ok := s.Settings[name]; ok {
		return v
	}
	return otherwise
}

// Form is how the session has values written as texts, and read.
func (s Session) Form() scalar.Form {
	extra, err := strconv.Atoi(s.Setting("extra_float_digits", "1"))
	if err != nil {
		extra = 1
	}
	return scalar.FormOf(s.Setting("datestyle", "ISO, MDY"), s.Setting("intervalstyle", "postgres"), extra)
}

// Location is the session's time zone, UTC where it names none that is known.
func (s Session) Location() *time.Location {
	if s.Zone != nil {
		return s.Zone
	}
	zone, _, ok := scalar.SessionZone(s.Setting("timezone", "UTC"))
	if !ok {
		return time.UTC
	}
	return zone
}

// Cursor is an open cursor of a session, for pg_cursors.
type Cursor struct {
	Name, Statement      string
	Hold, Binary, Scroll bool
	Created              policy.Timestamptz
}

// Prepared is a prepared statement of a session, for pg_prepared_statements.
type Prepared struct {
	Name, Statement string
	Created         policy.Timestamptz
	Params, Results []policy.Type // Results is nil for a statement without rows
	FromSQL         bool
	Generic, Custom atomic.Int64 // how often it ran, without parameters and with some
}

// Client is a session of the user who asks, for pg_stat_activity.
type Client struct {
	PID                   uint32
	Database, Application string
	Started               policy.Timestamptz
	Active                bool
}
