package planner

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// Context is what a plan may depend on besides the statement: the policy, the analyst's own settings, and what she has
// paid for. Nothing in it comes from private rows or from another analyst's choices.
type Context struct {
	Policy   *policy.Policy
	Dataset  *policy.Dataset
	User     string
	Settings Settings
	Holdings Holdings
	Now      time.Time
}

// Settings are the session's dp.* variables and those that change what SQL means.
type Settings struct {
	Epsilon      privacy.Epsilon // dp.epsilon: the most that a statement may cost
	Confidence   mechanisms.Confidence
	ErrorColumns bool
	Release      bool // dp.release: an undeclared range may buy a release
	SearchPath   []string
	Zone         *time.Location
}

// Holdings looks up what the analyst has paid for. Implementations answer from memory.
type Holdings interface {
	// Held returns the live releases of that measure that she has paid for, most exact first.
	Held(d Digest) []Holding
	// HeldOn returns the digests of the live multi-cell releases over a table that she has paid for, oldest first.
	HeldOn(table *policy.Table) []Holding
}

// Holding is one saved release.
type Holding struct {
	ID     int64
	Digest Digest
	Spec   mechanisms.Spec
	At     time.Time
	// Described is the planner's own description of the measure (Measure.Describe), from which Reuse rebuilds it.
	Described []byte
}

// Statement is one parsed statement of a message. The zero value is invalid.
type Statement struct {
	Kind StatementKind
	Text string // as written, without the separating semicolon
	// further fields are the planner's own
}

// StatementKind says what a session must do with a statement.
type StatementKind uint8

// The statement kinds. The zero value is invalid.
const (
	KindSelect StatementKind = 1 + iota
	KindExplain
	KindSet
	KindShow
	KindReset
	KindDiscard
	KindDeallocate
	KindBegin
	KindCommit
	KindRollback
	KindSavepoint
	KindReleaseSavepoint
	KindRollbackTo
	KindOther // parsed, but never possible here: planner.Refuse gives the refusal
)

// Refusal is why a statement is not answered. Nothing was charged and nothing was sent to the database.
type Refusal struct {
	ID       string // of the catalogue: "unknown-column"
	SQLState string
	Message  string
	Detail   string
	Hint     string
	Position int // 1-based character position in the statement's text, 0: none
}

func (r *Refusal) Error() string { return r.Message }

// Parse splits and parses the text of one message. Size, token and nesting limits are checked before the grammar's C
// code sees the text. Positions count characters of the whole text.
func Parse(text string) ([]Statement, *Refusal) { panic("to be written") }

// Description is what a client may know of a statement before it runs.
type Description struct {
	Params  []policy.Type
	Columns []OutColumn // nil: the statement returns no rows
}

// Describe infers the parameter types (given ones win; 0: infer) and the answer's columns of a Select or Explain. For an
// outer query whose types only the sandbox knows, Columns is nil and ask is true: describe Build(nil parameters).
func Describe(s Statement, given []policy.Type, c Context) (d Description, ask bool, refusal *Refusal) {
	panic("to be written")
}

// Build plans a Select with its parameters.
func Build(s Statement, params []policy.Value, c Context) (*Plan, *Refusal) { panic("to be written") }
