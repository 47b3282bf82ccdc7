// Package refuse says why a statement is not answered. Each part of the planner has its own reasons, and refuses with
// them:
//
//	SELECT count(*) FROM people WHERE agee > 3
//
// names a column that is not there, so the planner's reason unknownColumn makes a Refusal at that place in the text,
// with its SQLSTATE, message and hint. This package has what a reason and a refusal are, the reasons that more than one
// part gives, and those that are found once there is a plan. All of them together are the catalogue, which
// docs/refusals.md is written from. Nothing in a refusal comes from private rows: nothing was charged, and nothing was
// sent to the database.
package refuse

import (
	"fmt"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
)

// Refusal is why a statement is not answered. Nothing was charged and nothing was sent to the database.
type Refusal struct {
	ID       string // of the catalogue: "unknown-column"
	SQLState string
	Message  string
	Detail   string
	Hint     string
	Position int // 1-based character position in the statement's text, 0 means none

	Named []NamedValue // constants that the statement is bound again with
}

func (r *Refusal) Error() string { return r.Message }

// NamedValue is a constant that an open column is compared with.
type NamedValue struct {
	Column *policy.Column
	Text   string
}

// Reason is one entry of the catalogue of refusals: docs/refusals.md is generated from it.
type Reason struct {
	ID       string
	SQLState string
	Text     string // fmt format; its arguments are names, SQL of the analyst or public figures, never data
	Hint     string // fmt format over the same arguments, with explicit indexes
	Example  string // a statement over the table of the examples that is refused so
}

// New makes an entry of the catalogue: its word, PostgreSQL's code for it, what it says, what it hints, and an example.
func New(id, sqlState, text, hint, example string) *Reason {
	return &Reason{ID: id, SQLState: sqlState, Text: text, Hint: hint, Example: example}
}

// At makes a Refusal of the entry; position is a byte offset into the text, −1 for none.
func (e *Reason) At(position int, args ...any) *Refusal {
	r := &Refusal{ID: e.ID, SQLState: e.SQLState, Message: format(e.Text, args), Hint: format(e.Hint, args)}
	if position >= 0 {
		r.Position = position + 1
	}
	return r
}

// In gives a refusal without a place that of what it is in, a byte offset into the text.
func (r *Refusal) In(position int) *Refusal {
	if r.Position <= 0 && position >= 0 {
		r.Position = position + 1
	}
	return r
}

// Hinting replaces the hint.
func (r *Refusal) Hinting(hint string) *Refusal {
	r.Hint = hint
	return r
}

func format(text string, args []any) string {
	if len(args) == 0 || !hasVerb(text) {
		return text
	}
	return fmt.Sprintf(text, args...)
}

func hasVerb(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] == '%' {
			return true
		}
	}
	return false
}

// InCharacters turns a 1-based byte position of text into a 1-based character position.
func (r *Refusal) InCharacters(text string) *Refusal {
	if r != nil && r.Position > 0 && r.Position <= len(text)+1 {
		r.Position = utf8.RuneCountInString(text[:r.Position-1]) + 1
	}
	return r
}
