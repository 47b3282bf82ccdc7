package planner

import (
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// Context is what a plan may depend on besides the statement: the policy, the analyst's own settings, and what she has
// paid for. Nothing in it comes from private rows or from another analyst's choices.
type Context struct {
	Policy     *policy.Policy
	Dataset    *policy.Dataset
	User       string
	Settings   Settings
	Holdings   Holdings
	Public     PublicRows                              // nil: no public table has been copied
	Found      func(id int64) (mechanisms.Noisy, bool) // the keys of a release that she holds; nil: there are none
	AlarmsLeft func(id int64) int                      // the yes answers left to a run of alarms of hers, 0: it has ended; nil: she has none
	Left       func(id int64) int                      // the updates left to an online release of hers, 0: it has stopped; nil: none has
	Now        time.Time
	Work       *Work // what this one planning may take; nil: the default limits, and nothing that ends it earlier

	Alternatives bool // keep every way that was weighed, for EXPLAIN (ALTERNATIVES)
}

// Settings are the session's dp.* variables and those that change what SQL means.
type Settings struct {
	Epsilon      privacy.Epsilon // dp.epsilon: the most that a statement may cost
	MaxError     float64         // dp.max_error: the most that a count or sum may be off at the confidence, at the least cost; 0: off
	Confidence   mechanisms.Confidence
	ErrorColumns bool
	Alarms       int  // dp.alarms: the yes answers that a run of alarms is bought for; 0: counts are compared
	Release      bool // dp.release: an undeclared range may buy a release
	OffGrid      OffGrid
	SearchPath   []string
	Zone         *time.Location
}

// OffGrid says what becomes of a bound between two steps of a column.
type OffGrid uint8

// The values. The zero value leaves it to the policy.
const (
	OffGridPolicy OffGrid = iota
	OffGridSnap           // it moves to the step
	OffGridExact          // it is counted exactly and afresh
)

// Holdings looks up what the analyst has paid for. Implementations answer from memory.
type Holdings interface {
	// Held returns the live releases of that measure that she has paid for, most exact first.
	Held(d Digest) []Holding
	// Stock returns what she has paid for over a table; nil is nothing.
	Stock(table *policy.Table) *Stock
}

// Holding is one saved release.
type Holding struct {
	ID     int64
	Digest Digest
	Spec   mechanisms.Spec
	At     time.Time
	Ladder Rungs
	Cost   privacy.Cost // what she paid for it
	// Described is the planner's own description of the measure (Measure.Describe), from which Reuse rebuilds it.
	Described []byte
}

// Statement is one parsed statement of a message. The zero value is invalid.
type Statement struct {
	Kind StatementKind
	Text string // as written, without the separating semicolon
	From int    // where the statement begins in the text of the message, in bytes

	Name      string   // Set, Show, Reset: the variable in lower case, "all"; "transaction", "session characteristics"; Discard: what; Close: empty is ALL
	Values    []string // Set: its values; Begin, and Set of a transaction's modes: name, value, name, value, …
	Default   bool     // Set … TO DEFAULT
	Local     bool     // Set LOCAL
	Prepared  string   // Deallocate: empty is ALL; Prepare, Execute
	Savepoint string   // Savepoint, ReleaseSavepoint, RollbackTo
	Chain     bool     // Commit and Rollback AND CHAIN
	Explain   *Explain // Explain: what is explained, and how

	Inner         *Statement // Copy, Declare, Prepare: the Select that it holds
	Copy          *Copy      // Copy: how its rows are written
	Cursor        *Cursor    // Declare
	Fetch         *Fetch     // Fetch
	ArgumentCount int        // Execute

	Assignments []Assignment // Select: what it sets
	Acts        []Act        // Select: what it does besides

	// ParamTypes are the types of the parameters as the client gave them or Describe told them; may be nil, 0 is unknown.
	ParamTypes []policy.Type

	source  string   // the text of the whole message: locations in node count its bytes
	written string   // as the analyst wrote it, where Text is a translation; else empty
	node    *pg.Node // shared between plans, never changed
	refusal *Refusal // Other: why
}

// Explain is an EXPLAIN: ANALYZE is accepted and changes nothing, since EXPLAIN never runs anything.
type Explain struct {
	Statement Statement // a Select, or an Execute, which stands for one
	JSON      bool
	Analyze   bool

	Alternatives bool // show every way that was weighed
	NoSQL        bool // leave out the SQL that would run, which is long
}

// Refuse is why a statement of KindOther is not run.
func Refuse(s Statement) *Refusal { return s.refusal }

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
	KindOther   // parsed, but never possible here: planner.Refuse gives the refusal
	KindNothing // accepted, and nothing to do: LISTEN, UNLISTEN; Name is the command tag
	KindCopy    // TO STDOUT
	KindDeclare
	KindFetch // and MOVE
	KindClose
	KindPrepare
	KindExecute
)

// Refusal is why a statement is not answered. Nothing was charged and nothing was sent to the database.
type Refusal struct {
	ID       string // of the catalogue: "unknown-column"
	SQLState string
	Message  string
	Detail   string
	Hint     string
	Position int // 1-based character position in the statement's text, 0: none

	named []namedValue // constants that the statement is bound again with
}

func (r *Refusal) Error() string { return r.Message }

// Description is what a client may know of a statement before it runs.
type Description struct {
	Params  []policy.Type
	Columns []OutColumn // nil: the statement returns no rows
}
