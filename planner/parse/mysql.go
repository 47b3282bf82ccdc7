package parse

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/mysql"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// sessionVerbs are the first words of statements that are read as PostgreSQL's in every dialect: those that settings and
// transactions need, so that a session can always go back.
var sessionVerbs = []string{"set", "show", "reset", "begin", "start", "commit", "end", "rollback", "abort", "savepoint",
	"release", "discard", "deallocate", "close", "fetch", "move", "execute", "listen", "unlisten", "notify"}

// parseMySQL splits and parses a message in MySQL's dialect. Each SELECT becomes a tree of PostgreSQL's grammar, is
// written as text, and goes the way of every other statement from that text on.
func parseMySQL(text string, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	if len(text) > MaxBytes {
		return nil, tooLong.At(-1, len(text), MaxBytes)
	}
	var out []Statement
	for _, piece := range mysql.Split(text) {
		s, refusal := parsePiece(piece.Text, d)
		if refusal != nil {
			if refusal.Position > 0 {
				refusal.Position += piece.From
			}
			return nil, refusal.InCharacters(text)
		}
		for i := range s {
			s[i].From = piece.From
		}
		out = append(out, s...)
	}
	return out, nil
}

func parsePiece(text string, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	word, at := mysql.First(text)
	switch {
	case word == "select" || word == "with" || word == "(":
		return translate(text, "", text, "", d)
	case word == "explain":
		query := mysql.Query(text)
		if query < 0 {
			return explainsExecute(text, at)
		}
		return translatePart(text, text[at:query], query, len(text), d)
	case word == "declare" || word == "prepare" || word == "copy":
		return parseHolder(text, word, d)
	case word == "values" || word == "table":
		return nil, mysqlConstruct.At(at, strings.ToUpper(word)).
			Hinting("Write SELECT, or write the statement for PostgreSQL: RESET dp.dialect.")
	}
	statements, refusal := Parse(text)
	if refusal != nil || len(statements) != 1 || slices.Contains(sessionVerbs, word) {
		return statements, refusal
	}
	if k := statements[0].Kind; k != KindOther {
		return nil, mysqlConstruct.At(at, strings.ToUpper(word))
	}
	return statements, nil
}

// translate makes one statement of a query, between what is around it in PostgreSQL's SQL.
func translate(whole, before, query, behind string, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	node, refused := mysql.Translate(query, d)
	if refused != nil {
		refusal := mysqlReasons[refused.Reason].At(refused.At, refused.What)
		refusal.Hint = cmp.Or(refused.Hint, refusal.Hint)
		return nil, refusal
	}
	made := &pg.ParseResult{Version: ast.GrammarVersion, Stmts: []*pg.RawStmt{{Stmt: node}}}
	text, err := pg.Deparse(made)
	if err != nil {
		return nil, mysqlConstruct.At(-1, "this statement")
	}
	if refusal := checkLimits(text); refusal != nil {
		refusal.Position = 0
		return nil, refusal
	}
	read, err := pg.Parse(text)
	if err != nil || !sameTrees(made, read) {
		return nil, mysqlConstruct.At(-1, "this statement: its translation is not read back as it was meant")
	}
	statements, refusal := Parse(before + text + behind)
	if refusal != nil {
		refusal.Position = 0
		return nil, refusal
	}
	for i := range statements {
		statements[i].translated(whole)
	}
	return statements, nil
}

// translated marks a statement as a translation: positions in it say nothing to whom wrote another text.
func (s *Statement) translated(written string) {
	s.written = written
	if s.refusal != nil {
		s.refusal.Position = 0
	}
	if s.Explain != nil {
		s.Explain.Statement.translated(written)
	}
	if s.Inner != nil {
		s.Inner.translated(written)
	}
}

// Placed gives a refusal its place in the text that the analyst wrote, and where that was translated, what it was read
// as.
func (s *Statement) Placed(r *refuse.Refusal) *refuse.Refusal {
	if s.written == "" || r == nil {
		return r.InCharacters(s.source)
	}
	r.Position = 0
	if r.Detail == "" && len(s.Text) <= maxQuoted {
		r.Detail = "It was read as: " + s.Text
	}
	return r
}

// maxQuoted is the longest translation that an error repeats.
const maxQuoted = 2000

// Translation is the statement in PostgreSQL's SQL where it was written in another dialect, else empty.
func (s *Statement) Translation() string {
	if s.written == "" {
		return ""
	}
	return s.Text
}

var mysqlReasons = map[mysql.Reason]*refuse.Reason{mysql.Syntax: mysqlSyntax, mysql.Construct: mysqlConstruct, mysql.Collation: mysqlCollation,
	mysql.Untyped: mysqlUntyped, mysql.Temporal: mysqlTemporal, mysql.Ambiguous: mysqlAmbiguous, mysql.TooDeep: mysqlDeep}

// sameTrees tells that two single statements have equal trees.
func sameTrees(a, b *pg.ParseResult) bool {
	return len(a.Stmts) == 1 && len(b.Stmts) == 1 && ast.SameTree(a.Stmts[0].Stmt, b.Stmts[0].Stmt)
}

// Statements that hold a SELECT keep PostgreSQL's form in MySQL's dialect, as the session's own statements do: MySQL
// has no DECLARE outside a procedure, no COPY, and a PREPARE that reads a string. What they hold is written in MySQL's.

func parseHolder(text, word string, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	if from := mysql.Query(text); from >= 0 && word == "copy" {
		return translatePart(text, text[:from+1], from+1, mysql.Closing(text, from), d)
	} else if from >= 0 {
		return translatePart(text, text[:from], from, len(text), d)
	}
	statements, refusal := Parse(text)
	if refusal == nil && len(statements) == 1 && (statements[0].Kind == KindOther || statements[0].node.GetCopyStmt().GetRelation() != nil) {
		return statements, nil // refused in every dialect, or COPY of a table
	}
	refusal = mysqlConstruct.At(-1, "this form of "+strings.ToUpper(word))
	if word == "prepare" {
		refusal.Hinting("Write PREPARE name AS SELECT …, with $1, $2, … for its parameters, then EXECUTE name (…).")
	}
	return nil, refusal
}

// explainsExecute parses EXPLAIN EXECUTE, the one thing besides a query that is explained.
func explainsExecute(text string, at int) ([]Statement, *refuse.Refusal) {
	statements, refusal := Parse(text)
	if refusal != nil || len(statements) != 1 || statements[0].Explain == nil || statements[0].Explain.Statement.Kind != KindExecute {
		return nil, explained.At(at)
	}
	return statements, nil
}

// translatePart translates the part of a text that is a query. before is what is before it in PostgreSQL's SQL; what is
// behind it is.
func translatePart(text, before string, from, to int, d *policy.Dataset) ([]Statement, *refuse.Refusal) {
	behind := text[to:]
	if trimmed := strings.TrimRight(before, " \t\r\n"); trimmed == before && !strings.HasSuffix(before, "(") {
		before += " "
	}
	s, refusal := translate(text, before, text[from:to], behind, d)
	if refusal != nil && refusal.Position > 0 {
		refusal.Position += from
	}
	return s, refusal
}
