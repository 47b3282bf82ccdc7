// Package sandbox is the face of what runs outer queries: the SQL above the counts, over released tables, and questions
// about catalogs, where nobody has ever seen private data. It holds tables, sessions, limits, the interface Engine and
// Direct, which needs no engine. The engine is twin, databases on a PostgreSQL server (ADR 15): one of the owner's, or
// one that cluster starts (ADR 200).
//
// SELECT sex, count(*) FROM people GROUP BY sex ORDER BY 2 has a leaf of rows (sex, noisy count). Its outer query only
// sorts them, so the planner compiled it and Direct evaluates it in Go. With round(100.0 * count(*) / sum(count(*))
// OVER (), 1) in its list it needs an engine: Query is given the leaf as a Table named leaf_1 and the rewritten text
// over it.
package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// Column is one column of a table or a result.
type Column struct {
	Name   string
	Type   policy.Type
	Typmod int32
	Number pgcatalog.Number // what catalogs know it by, where it is a table's
}

// Rows is a result: columns, and rows of values in their order.
type Rows struct {
	Columns []Column
	Data    [][]policy.Value
}

// Table is a released table handed to an outer query under Name.
type Table struct {
	Schema, Name string
	Rows         privacy.Released[Rows]
}

// Qualified is the name by which the SQL of an outer query names a table: schema.name, or the name of a leaf.
func (t Table) Qualified() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Same reports whether two tables are one copy.
func (t Table) Same(other Table) bool {
	a, b := t.Rows.Value(), other.Rows.Value()
	return slices.Equal(a.Columns, b.Columns) && len(a.Data) == len(b.Data) && (len(a.Data) == 0 || &a.Data[0] == &b.Data[0])
}

// Engine is a sandbox. Query loads the given tables for this query alone and leaves nothing behind.
type Engine interface {
	// Catalog replaces what the analysts' catalogs are generated from; it is called at load and on policy reload.
	Catalog(ctx context.Context, p *policy.Policy) error
	// Load keeps public tables of a dataset, in place of earlier copies, until Close.
	Load(ctx context.Context, dataset string, tables ...Table) error
	// Query runs an outer query for a session. Its error is a *scalar.Error or the context's. A public table among the
	// given is read in place of the engine's own copy, where that is another one by now.
	Query(ctx context.Context, s Session, q outer.Query, tables []Table) (privacy.Released[Rows], error)
	// Describe binds an outer query without running it.
	Describe(ctx context.Context, s Session, q outer.Query, tables []Table) (Description, error)
	// Numbers are those by which the catalogs of a dataset know columns. The caller does not change them.
	Numbers(dataset string) pgcatalog.Numbers
	// Slots is how many queries run at a time; 0 means any number.
	Slots() int
	Close() error
}

// Description is what an outer query answers, and takes.
type Description struct {
	Columns []Column
	Params  map[int]policy.Type // of a described statement's own parameters, by their numbers
}

// Size is about how many bytes rows take in memory.
func (r Rows) Size() (bytes int64) {
	for _, row := range r.Data {
		bytes += SizeOf(row)
	}
	return bytes
}

// RowSize is about how many bytes a row of so many small values takes: a slice, and an interface and a word a value.
func RowSize(columns int) int { return 24 + 24*columns }

// SizeOf is about how many bytes one row takes; it counts what the larger values hold too.
func SizeOf(row []policy.Value) (bytes int64) {
	bytes = int64(RowSize(len(row)))
	for _, v := range row {
		switch v := v.(type) {
		case string:
			bytes += int64(len(v))
		case []policy.Value:
			bytes += SizeOf(v)
		case policy.Numeric:
			if v.Coefficient != nil {
				bytes += 40 + int64(v.Coefficient.BitLen()/8)
			}
		}
	}
	return bytes
}

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
	OfTime time.Duration       // of so much, which is named where that is over
	Took   func(time.Duration) // is given how much a query took; nil means nobody asks
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

// Setting returns a setting of the session, or otherwise for one that it does not have.
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

// Options set the limits of an engine. Zero values take the defaults.
type Options struct {
	Log      *slog.Logger
	Deadline time.Duration // of one query; default 10 s
	Memory   uint64        // bytes that one query may take beside what the engine holds anyway; default 512 MiB
	MaxRows  int           // rows of an answer; default 1,000,000
}

// WithDefaults fills in what is not set.
func (o Options) WithDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Deadline <= 0 {
		o.Deadline = 10 * time.Second
	}
	if o.Memory == 0 {
		o.Memory = 512 << 20
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 1_000_000
	}
	return o
}

// Limits are what one query may take: the policy's, where it has any, else those of the engine's options.
type Limits struct {
	Time   time.Duration // of the processor
	Memory uint64
}

// Limits are those of queries under a policy; nil before there is one.
func (o Options) Limits(p *policy.Policy) Limits {
	l := Limits{o.Deadline, o.Memory}
	if p != nil && p.Server.Limits.StatementCPU > 0 {
		l.Time = p.Server.Limits.StatementCPU
	}
	if p != nil && p.Server.Limits.StatementMemory > 0 {
		l.Memory = uint64(p.Server.Limits.StatementMemory)
	}
	return l
}

// Late is the error of a query that took more processor time than there was for it.
func (l Limits) Late(s Session) error {
	whole := l.Time
	if s.OfTime > 0 {
		whole = s.OfTime
	}
	return &scalar.Error{SQLState: "57014", Message: fmt.Sprintf("canceling statement: the query over released answers took more than its %s of processor time (server.limits.statement_cpu)", whole)}
}

// Large is the error of a query that needed more memory than it may take.
func (l Limits) Large() error {
	return &scalar.Error{SQLState: ErrResources.SQLState, Message: fmt.Sprintf("%s: %s (server.limits.statement_memory)", ErrResources.Message, policy.SizeText(int64(l.Memory)))}
}

// The errors of a query that had to be ended. The engine's own text is never relayed.
var (
	ErrResources = &scalar.Error{SQLState: "54000", Message: "the query over released answers needs more memory than it may use"}
	ErrTooMany   = &scalar.Error{SQLState: "54000", Message: "the answer has more rows than the sandbox returns; add a LIMIT"}
	ErrBroken    = &scalar.Error{SQLState: "XX000", Message: "the query over released answers could not be run"}
	ErrAway      = &scalar.Error{SQLState: "57P03",
		Message: "the sandbox's PostgreSQL does not answer; ask again, what was paid for stays free"}
	ErrClosed = &scalar.Error{SQLState: "57P01", Message: "the sandbox is shut down"}
)

// Missing is an engine that could not be had: it refuses every query and says why. What needs no engine is answered.
func Missing(why error) Engine {
	return missing{&scalar.Error{SQLState: "0A000", Message: "this statement needs the sandbox, which is missing: " + why.Error()}}
}

type missing struct{ refusal *scalar.Error }

func (m missing) Catalog(context.Context, *policy.Policy) error { return nil }

func (m missing) Load(context.Context, string, ...Table) error { return nil }

func (m missing) Query(context.Context, Session, outer.Query, []Table) (privacy.Released[Rows], error) {
	return privacy.Released[Rows]{}, m.refusal
}

func (m missing) Describe(context.Context, Session, outer.Query, []Table) (Description, error) {
	return Description{}, m.refusal
}

func (m missing) Numbers(string) pgcatalog.Numbers { return nil }

func (m missing) Slots() int { return 1 }

func (m missing) Close() error { return nil }
