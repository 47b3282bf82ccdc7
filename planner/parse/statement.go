package parse

import (
	"strings"
	"unicode"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

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
	Bounds      []Bound      // Select: of which columns it wants an end of their interval
	Listed      bool         // Select: it stands within another, and all of its rows decide there
	HandedOn    bool         // Select: COPY or a cursor hands its rows on

	// ParamTypes are the types of the parameters as the client gave them or Describe told them; may be nil, 0 is
	// unknown.
	ParamTypes []policy.Type
	// Literals is how its literals were read when it was prepared; nil means as the settings are when it runs.
	Literals *scalar.Literals

	source  string          // the text of the whole message: locations in node count its bytes
	written string          // as the analyst wrote it, where Text is a translation; else empty
	node    *pg.Node        // shared between plans, never changed
	refusal *refuse.Refusal // Other: why
}

// Explain is an EXPLAIN: ANALYZE is accepted and changes nothing, since EXPLAIN never runs anything.
type Explain struct {
	Statement Statement // a Select, or an Execute, which stands for one
	JSON      bool

	Alternatives bool // show every way that was weighed
	NoSQL        bool // leave out the SQL that would run, which is long
}

// Refuse is why a statement of KindOther is not run.
func Refuse(s Statement) *refuse.Refusal { return s.refusal }

// NotSelect refuses a statement by its kind, where only a Select may stand.
func (s *Statement) NotSelect() *refuse.Refusal { return otherKind.At(-1, verbOf(s.Text)) }

// Within is a SELECT within a statement as one of its own, of which places are still those of the whole text.
func (s *Statement) Within(sel *pg.SelectStmt, text string) Statement {
	return Statement{Kind: KindSelect, Text: text, From: s.From, ParamTypes: s.ParamTypes, source: s.source, written: s.written, node: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: sel}}}
}

// Select is the tree of a Select, which plans share and never change.
func (s *Statement) Select() *pg.SelectStmt { return s.node.GetSelectStmt() }

// Place is where a location of the tree is in Text, in bytes; −1: Text is not a part of what was parsed.
func (s *Statement) Place(location int) int {
	if s.From > len(s.source) {
		return -1
	}
	rest := strings.TrimLeftFunc(s.source[s.From:], unicode.IsSpace)
	if !strings.HasPrefix(rest, s.Text) {
		return -1
	}
	return location - (len(s.source) - len(rest))
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
	KindOther   // parsed, but never possible here: Refuse gives the refusal
	KindNothing // accepted, and nothing to do: LISTEN, UNLISTEN, LOCK TABLE; Name is the command tag
	KindCopy    // TO STDOUT
	KindDeclare
	KindFetch // and MOVE
	KindClose
	KindPrepare
	KindExecute
)
