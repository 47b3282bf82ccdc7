package plans

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
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
	CoversAll    bool // dp.coverage is all: errors of totals bound what is above their clamps too, as far as can be
	ErrorColumns bool
	Significant  bool // dp.digits: values have the digits that their errors leave, and no more
	Alarms       int  // dp.alarms: the yes answers that a run of alarms is bought for; 0 means counts are compared
	Release      bool // dp.release: releases go before counts that are more exact, hers too
	Probes       Probes
	OffGrid      OffGrid
	Contribution Contribution
	SearchPath   []string // nil: public
	Zone         *time.Location
	Form         scalar.Form
	Literals     *scalar.Literals // how the literals of a statement that was prepared are read; nil means by Zone and Form
}

// Contribution says what bounds a unit in counts and sums: dp.contribution. The zero value leaves it to the policy.
type Contribution struct {
	Rows   bool     // the policy's bound of them
	Ladder bool     // its total, by a clamp that is chosen from what is released
	Most   *big.Rat // its total is clamped to that; nil means it is not
}

// ByRows reports whether counts and sums of a table are by rows: where that is asked for, or nothing is and the policy
// bounds rows and no totals.
func (c Contribution) ByRows(t *policy.Table) bool {
	if c.Ladder || c.Most != nil {
		return false
	}
	return c.Rows || !derived.AnyRows(t) && !slices.ContainsFunc(t.Base(), (*policy.Table).DeclaresTotal)
}

// String is as SET takes it; nothing is said of what the policy decides.
func (c Contribution) String() string {
	switch {
	case c.Most != nil:
		return c.Most.RatString()
	case c.Ladder:
		return "ladder"
	case c.Rows:
		return "rows"
	}
	return ""
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

// Outer is everything above the privacy boundary. Exactly one of Direct and Tree is set.
type Outer struct {
	Direct *Direct
	// Tree is the statement with each leaf replaced by a reference to its released table, parameters replaced by typed
	// literals, and every node, function and relation on the allow-list. It is regenerated, never copied, by package
	// rewrite; relations of pg_catalog, information_schema, dp and public tables keep their names, schema-qualified.
	Tree *pg.Node
	// Relations are the non-leaf relations that Tree reads.
	Relations []Relation
	Literals  *scalar.Literals // how its literals are read; nil means as the session's settings are
	// Given are texts of parameters whose types an engine alone learns from what is around them, and which are read as
	// the settings are: $1, $2, … of Tree. Where literals are read alike they are literals themselves. In a plan that
	// is described only, $-n is parameter n where its type is not known.
	Given []string
}

// Relation is a table of the sandbox that an outer query reads.
type Relation struct {
	Schema, Name string
	Public       *policy.Table   // set for a public table
	Release      *policy.Release // set for the made-up rows of a release, which become a leaf
}

// The names of released tables and their columns.
func LeafName(i int) string { return "leaf_" + strconv.Itoa(i+1) }

func KeyName(k int) string { return "k" + strconv.Itoa(k+1) }

func CountName(n int) string { return "n" + strconv.Itoa(n+1) }

// IsLeafName tells the names that released tables have.
func IsLeafName(name string) bool {
	digits, found := strings.CutPrefix(name, "leaf_")
	return found && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// Inner is a sub-query that must be answered before its statement can be planned to the end (ADR 117): of
//
//	SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people)
//
// the average, with a plan of its own. What is released of it is an Answer, and is in the statement as a constant.
type Inner struct {
	Key  string // what names it among a statement's sub-queries: its SQL
	Plan *Plan
}

// Answer is what a sub-query came to: released rows, or, where Standing, rows in place of those which are not known
// yet.
type Answer struct {
	Columns  []AnswerColumn
	Rows     [][]policy.Value
	Private  bool // it asks private rows, and so has a part of what its statement may cost
	Standing bool
	Notes    []string // of its plan
}

// AnswerColumn is a column of it. What reads it has its type, a char's too, whose values have their blanks here as in
// any answer.
type AnswerColumn struct {
	Name   string
	Type   policy.Type
	Typmod int32
}

// Private reports whether a plan asks private rows: by its statement, and not by what was released of its sub-queries,
// for which perhaps no row can be counted.
func (p *Plan) Private() bool { return len(p.Leaves)+len(p.Inner) > 0 }

// Inmost are the plans that are answered first of all: those of sub-queries which wait for no others.
func (p *Plan) Inmost() (list []*Inner) {
	for _, in := range p.Inner {
		if below := in.Plan.Inmost(); len(below) > 0 {
			list = append(list, below...)
		} else {
			list = append(list, in)
		}
	}
	return list
}

// Within is the plan and those of its sub-queries, each before what waits for it.
func (p *Plan) Within() (list []*Plan) {
	for _, in := range p.Inner {
		list = append(list, in.Plan.Within()...)
	}
	return append(list, p)
}

// Bought are the measures that a plan and its sub-queries buy or read.
func (p *Plan) Bought() (list []*Measure) {
	for _, q := range p.Within() {
		list = append(list, q.Measures...)
	}
	return list
}

// AddInner makes a plan wait for sub-queries, and pay for them. Its own part is not known before they are answered, but
// never dearer than most.
func (p *Plan) AddInner(list []*Inner, most privacy.Cost) {
	if most.Delta = p.Cost.Delta; p.Cost.Fits(most) {
		p.Cost = most
	}
	for _, in := range list {
		p.Cost = p.Cost.Plus(in.Plan.Cost)
	}
	p.Inner = list
}
