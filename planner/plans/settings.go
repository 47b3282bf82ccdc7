package plans

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Settings are the session's dp.* variables and those that change what SQL means.
type Settings struct {
	Epsilon      privacy.Epsilon // dp.epsilon: the most that a statement may cost
	Delta        privacy.Delta   // dp.delta: the most δ that a statement may use to find keys; 0 means a part of the budget's
	MaxError     float64         // dp.max_error: the most that a count or sum may be off at the confidence, at the least cost; 0 means off
	Confidence   mechanisms.Confidence
	ErrorColumns bool
	Alarms       int  // dp.alarms: the yes answers that a run of alarms is bought for; 0 means counts are compared
	Release      bool // dp.release: releases go before counts that are more exact, hers too
	Probes       Probes
	OffGrid      OffGrid
	SearchPath   []string // nil: public
	Zone         *time.Location
	Form         scalar.Form
	Literals     *scalar.Literals // how the literals of a statement that was prepared are read; nil means by Zone and Form
}

// Probes says what a SELECT of private rows that looks at a table is answered with: dp.probes.
type Probes uint8

// The values.
const (
	ProbesRefused Probes = iota
	ProbesEmpty          // no rows
	ProbesMadeUp         // rows that are made up, if it is SELECT columns FROM table LIMIT n
)

// Reading is how the literals of a statement are read that is prepared now.
func (s Settings) Reading(now time.Time) *scalar.Literals {
	return &scalar.Literals{Now: now, Zone: s.Zone, Form: s.Form}
}

// OffGrid says what becomes of a bound between two steps of a column.
type OffGrid uint8

// The values. The zero value leaves it to the policy.
const (
	OffGridPolicy OffGrid = iota
	OffGridSnap           // it moves to the step
	OffGridExact          // each row is compared with it
)

// Description is what a client may know of a statement before it runs.
type Description struct {
	Params  []policy.Type
	Columns []OutColumn // nil: the statement returns no rows
	Outputs []Output    // nil: not all are known
}

// Output is a column of an answer: its name, and the column of a table that it is; the zero Origin: it is computed.
type Output struct {
	Name string
	Of   pgcatalog.Origin
}

// Variable is a row of pg_settings: values are whole numbers of the unit where it has one.
type Variable struct {
	Name, Value, Boot, Reset string
	Unit, Kind, Low, High    string // Kind is pg_settings' vartype; the others may be empty
	Choices                  []string
	About                    string
	Fixed                    bool // no session can change it
}
