// Package parse makes statements of the text of one message. It counts bytes, tokens and depth before the grammar's C
// code sees the text, splits what is left into statements, and says of each what a session must do with it. Of
//
//	BEGIN; DECLARE c CURSOR FOR SELECT count(*) FROM people; FETCH ALL FROM c
//
// it makes three: a Begin, a Declare that holds a Select, and a Fetch of as many rows as there are. What only a SELECT
// can tell, it leaves in its tree, which the planner binds. What never runs here (INSERT, CREATE, …) is a statement
// with its refusal, so that one among many refuses when its turn comes. A SELECT in MySQL's dialect is written as
// PostgreSQL's first (package mysql) and goes the same way from there on.
package parse

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Parse splits and parses the text of one message. Size, token and nesting limits are checked before the grammar's C
// code sees the text. Positions count characters of the whole text.
func Parse(text string) ([]Statement, *refuse.Refusal) {
	tree, refusal := read(text)
	if refusal != nil {
		return nil, refusal
	}
	statements := make([]Statement, 0, len(tree.Stmts))
	for _, raw := range tree.Stmts {
		from, to := int(raw.StmtLocation), len(text)
		if raw.StmtLen > 0 {
			to = from + int(raw.StmtLen)
		}
		s := Statement{Text: strings.TrimSpace(text[from:to]), From: from, source: text, node: raw.Stmt}
		s.classify()
		s.refusal = s.Placed(s.refusal)
		statements = append(statements, s)
	}
	return statements, nil
}

// read is the tree of a text.
func read(text string) (*pg.ParseResult, *refuse.Refusal) {
	blank, refusal := admitted(text)
	if refusal != nil {
		return nil, refusal.InCharacters(text)
	}
	tree, err := pg.Parse(blank)
	if err != nil {
		return nil, syntaxRefusal(err, blank).InCharacters(text)
	}
	PlaceArguments(tree, blank)
	return tree, nil
}

// OneSelect parses a text that is one SELECT; nil without a refusal: it is something else.
func OneSelect(text string) (*pg.SelectStmt, *refuse.Refusal) {
	tree, refusal := read(text)
	if refusal != nil || len(tree.Stmts) != 1 {
		return nil, refusal
	}
	return tree.Stmts[0].Stmt.GetSelectStmt(), nil
}

// GrammarVersion is the version of PostgreSQL whose grammar is built in, such as 17.7.
func GrammarVersion() string {
	tree, err := pg.Parse("SELECT 1")
	if err != nil {
		return "unknown"
	}
	return strconv.Itoa(int(tree.Version/10_000)) + "." + strconv.Itoa(int(tree.Version%10_000))
}

// selectTop is how other databases limit the rows of a query.
var selectTop = regexp.MustCompile(`(?i)\bselect\s+(distinct\s+)?top\s*\(?\s*[0-9]+`)

// syntaxRefusal relays the grammar's own message, which quotes the statement alone. Its place, like others, is one of
// bytes: the grammar counts the characters of a text whose comments are spaces, one for each of their bytes.
func syntaxRefusal(err error, text string) *refuse.Refusal {
	var e *parser.Error
	if !errors.As(err, &e) {
		return refuse.Syntax.At(-1, "the statement cannot be parsed")
	}
	r := refuse.Syntax.At(-1, e.Message)
	if selectTop.MatchString(text) {
		r.Hint = "PostgreSQL's is LIMIT, at the end of the statement: SELECT … ORDER BY … LIMIT 5."
	}
	for at := range text {
		if r.Position++; r.Position == e.Cursorpos {
			r.Position = at + 1
			return r
		}
	}
	r.Position = 0
	if e.Cursorpos > 0 {
		r.Position = len(text) + 1
	}
	return r
}

// accessShare is the mode that every SELECT locks a table in: only what nobody may do here waits for it.
const accessShare = 1

// lock takes LOCK TABLE in the mode of a SELECT, which does nothing, and refuses it in others.
func (s *Statement) lock(l *pg.LockStmt) {
	if l.Mode != accessShare {
		s.other(otherKind.At(-1, "LOCK in a mode above ACCESS SHARE"))
		return
	}
	s.Kind, s.Name = KindNothing, "LOCK TABLE"
}

// classify sets the kind and the details that a session needs.
func (s *Statement) classify() {
	s.Kind = KindOther
	switch n := s.node.GetNode().(type) {
	case *pg.Node_SelectStmt:
		s.Kind = KindSelect
		s.takeAssignments(n.SelectStmt)
		s.takeActs(n.SelectStmt)
		s.takeBounds(n.SelectStmt)
	case *pg.Node_ExplainStmt:
		s.explain(n.ExplainStmt)
	case *pg.Node_VariableSetStmt:
		s.set(n.VariableSetStmt)
	case *pg.Node_VariableShowStmt:
		s.Kind, s.Name = KindShow, strings.ToLower(n.VariableShowStmt.Name)
	case *pg.Node_TransactionStmt:
		s.transaction(n.TransactionStmt)
	case *pg.Node_DiscardStmt:
		s.Kind = KindDiscard
		s.Name = map[pg.DiscardMode]string{pg.DiscardMode_DISCARD_ALL: "all", pg.DiscardMode_DISCARD_PLANS: "plans", pg.DiscardMode_DISCARD_SEQUENCES: "sequences", pg.DiscardMode_DISCARD_TEMP: "temp"}[n.DiscardStmt.Target]
	case *pg.Node_DeallocateStmt:
		s.Kind, s.Prepared = KindDeallocate, n.DeallocateStmt.Name
	case *pg.Node_UnlistenStmt, *pg.Node_ListenStmt:
		s.Kind, s.Name = KindNothing, verbOf(s.Text)
	case *pg.Node_LockStmt:
		s.lock(n.LockStmt)
	case *pg.Node_ClosePortalStmt:
		s.Kind, s.Name = KindClose, n.ClosePortalStmt.Portalname
	case *pg.Node_DeclareCursorStmt:
		s.declare(n.DeclareCursorStmt)
	case *pg.Node_FetchStmt:
		s.fetch(n.FetchStmt)
	case *pg.Node_PrepareStmt:
		s.prepare(n.PrepareStmt)
	case *pg.Node_ExecuteStmt:
		s.execute(n.ExecuteStmt)
	case *pg.Node_CopyStmt:
		s.copyTo(n.CopyStmt)
	default:
		s.refusal = otherStatement(s.node, s.Text)
	}
}

func (s *Statement) explain(e *pg.ExplainStmt) {
	s.Kind = KindExplain
	inner := Statement{Text: explainedText(s.Text), source: s.source, node: e.Query}
	inner.classify()
	if inner.Kind == KindDeclare {
		inner = *inner.Inner
	}
	if inner.Kind != KindSelect && inner.Kind != KindExecute {
		s.Kind, s.refusal = KindOther, explained.At(-1)
		return
	}
	s.Explain = &Explain{Statement: inner}
	verbose, sql := false, ""
	for _, o := range e.Options {
		d := o.GetDefElem()
		value, _ := settingValue(d.GetArg())
		switch name := strings.ToLower(d.GetDefname()); name {
		case "format":
			if s.Explain.JSON = strings.EqualFold(value, "json"); !s.Explain.JSON && !strings.EqualFold(value, "text") {
				s.Kind, s.refusal = KindOther, explainArg.At(int(d.Location), "FORMAT "+value)
			}
		case "alternatives":
			s.Explain.Alternatives = isOn(value)
		case "sql":
			sql = cmp.Or(value, "on")
		case "verbose":
			verbose = isOn(value)
		case "analyze", "costs", "settings", "buffers", "wal", "timing", "summary", "generic_plan", "memory", "serialize":
		default:
			s.Kind, s.refusal = KindOther, explainArg.At(int(d.Location), name)
		}
	}
	if s.Explain.SQL = verbose || s.Explain.JSON; sql != "" {
		s.Explain.SQL = isOn(sql)
	}
}

// explainedText returns what is behind EXPLAIN and its options.
func explainedText(text string) string {
	lex := lexer{text: text}
	lex.next()
	for depth, first := 0, true; ; first = false {
		t := lex.next()
		word := strings.ToLower(text[t.from:t.to])
		switch {
		case t.kind == tokenEnd || t.kind == tokenInvalid:
			return text
		case t.kind == tokenOpen && first:
			if after := lex; startsQuery(after.next(), text) {
				return text[t.from:]
			}
			depth++
		case t.kind == tokenOpen && depth > 0:
			depth++
		case t.kind == tokenClose:
			depth--
		case depth == 0 && word != "analyze" && word != "analyse" && word != "verbose":
			return text[t.from:]
		}
	}
}

// startsQuery tells that a token is the first one of a query; an option of EXPLAIN has none of these names.
func startsQuery(t token, text string) bool {
	return slices.Contains([]string{"(", "select", "with", "values", "table"}, strings.ToLower(text[t.from:t.to]))
}

func isOn(value string) bool {
	return slices.Contains([]string{"", "on", "true", "1"}, strings.ToLower(value))
}

func (s *Statement) set(v *pg.VariableSetStmt) {
	s.Kind, s.Name, s.Local = KindSet, strings.ToLower(v.Name), v.IsLocal
	switch v.Kind {
	case pg.VariableSetKind_VAR_RESET:
		s.Kind = KindReset
	case pg.VariableSetKind_VAR_RESET_ALL:
		s.Kind, s.Name = KindReset, "all"
	case pg.VariableSetKind_VAR_SET_DEFAULT:
		s.Default = true
	case pg.VariableSetKind_VAR_SET_MULTI:
		for _, a := range v.Args {
			if d := a.GetDefElem(); d != nil {
				value, _ := settingValue(d.Arg)
				s.Values = append(s.Values, d.Defname, value)
			} else if value, ok := settingValue(a); ok {
				s.Values = append(s.Values, value)
			}
		}
	default:
		for _, a := range v.Args {
			value, ok := settingValue(a)
			if !ok {
				s.Kind, s.refusal = KindOther, refuse.Construct.At(-1, "this form of SET")
				return
			}
			s.Values = append(s.Values, value)
		}
	}
}

// settingValue is a constant as SET takes it.
func settingValue(n *pg.Node) (string, bool) {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst:
		switch c := v.AConst.Val.(type) {
		case *pg.A_Const_Sval:
			return c.Sval.Sval, true
		case *pg.A_Const_Ival:
			return strconv.FormatInt(int64(c.Ival.GetIval()), 10), true
		case *pg.A_Const_Fval:
			return c.Fval.Fval, true
		case *pg.A_Const_Boolval:
			if c.Boolval.GetBoolval() {
				return "on", true
			}
			return "off", true
		}
		return "", false
	case *pg.Node_String_:
		return v.String_.Sval, true
	case *pg.Node_Integer:
		return strconv.FormatInt(int64(v.Integer.Ival), 10), true
	case *pg.Node_TypeCast: // SET TIME ZONE INTERVAL '+01:00' HOUR TO MINUTE
		return settingValue(v.TypeCast.Arg)
	}
	return "", false
}

func (s *Statement) transaction(t *pg.TransactionStmt) {
	s.Savepoint, s.Chain = t.SavepointName, t.Chain
	for _, o := range t.Options {
		if d := o.GetDefElem(); d != nil {
			value, _ := settingValue(d.Arg)
			s.Values = append(s.Values, d.Defname, value)
		}
	}
	if kind, ok := transactionKinds[t.Kind]; ok {
		s.Kind = kind
	} else {
		s.refusal = twoPhase.At(-1)
	}
}

var transactionKinds = map[pg.TransactionStmtKind]StatementKind{pg.TransactionStmtKind_TRANS_STMT_BEGIN: KindBegin,
	pg.TransactionStmtKind_TRANS_STMT_START: KindBegin, pg.TransactionStmtKind_TRANS_STMT_COMMIT: KindCommit,
	pg.TransactionStmtKind_TRANS_STMT_ROLLBACK: KindRollback, pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT: KindSavepoint,
	pg.TransactionStmtKind_TRANS_STMT_RELEASE: KindReleaseSavepoint, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO: KindRollbackTo}

// otherStatement refuses a statement that never runs here.
func otherStatement(n *pg.Node, text string) *refuse.Refusal {
	verb := verbOf(text)
	switch n.GetNode().(type) {
	case *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt, *pg.Node_TruncateStmt:
		return refuse.Writes.At(-1, verb)
	case *pg.Node_NotifyStmt:
		return notifies.At(-1)
	case *pg.Node_AlterRoleStmt:
		if setsPassword(n.GetAlterRoleStmt()) {
			return definitions.At(-1, verb).Hinting("The data owner changes passwords in the policy file: dpproxy user add NAME --policy FILE.")
		}
	}
	switch verb {
	case "CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "COMMENT", "REINDEX", "VACUUM", "ANALYZE", "CLUSTER", "REFRESH", "IMPORT", "REASSIGN", "SECURITY":
		return definitions.At(-1, verb)
	}
	return otherKind.At(-1, verb)
}

// setsPassword tells ALTER USER … PASSWORD, which is what psql's \password sends.
func setsPassword(s *pg.AlterRoleStmt) bool {
	return slices.ContainsFunc(s.Options, func(o *pg.Node) bool { return o.GetDefElem().GetDefname() == "password" })
}

// verbOf is the first word of a statement.
func verbOf(text string) string {
	lex := lexer{text: text}
	for {
		switch t := lex.next(); t.kind {
		case tokenWord:
			return strings.ToUpper(text[t.from:t.to])
		case tokenEnd, tokenInvalid:
			return "this statement"
		}
	}
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
	Bounds      []Bound      // Select: of which columns it wants an end of their interval
	Listed      bool         // Select: it is within another, and all of its rows decide there
	HandedOn    bool         // Select: COPY or a cursor hands its rows on

	// ParamTypes are the types of the parameters as the client gave them or Describe replied; may be nil, 0 is unknown.
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
	Statement Statement // a Select, or an Execute, which names one
	JSON      bool

	Alternatives bool // show every way that was weighed
	SQL          bool // show the SQL that would run, which is long: what is VERBOSE, and what tools read, does
}

// Refuse is why a statement of KindOther is not run.
func Refuse(s Statement) *refuse.Refusal { return s.refusal }

// NotSelect refuses a statement by its kind, where only a Select may be.
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
