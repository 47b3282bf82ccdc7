package parse

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/mysql"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

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

// translatePart translates the part of a text that is a query. before is what stands there in PostgreSQL's SQL; what is
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
