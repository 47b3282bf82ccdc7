// Package pgerror holds what a client may see of an error: SQLSTATE, message, detail, hint and position, in the words
// of dpproxy alone. Whatever else goes wrong becomes one constant text, so that no library's error carries a value to a
// client. An example: SELECT 1/0 fails in the outer query with a scalar.Error of SQLSTATE 22012; Describe makes of it
// the Failure that the session sends as ErrorResponse.
package pgerror

import (
	"errors"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// Failure is an error that is shown to the client as it is. It never holds a data value.
type Failure struct {
	SQLState string
	Message  string
	Detail   string
	Hint     string
	Position int    // 1-based character in the message's text, 0 means none
	Routine  string // of PostgreSQL, by which drivers know some errors; empty means none
	Logged   bool   // the operator's log has more of it
}

func (f *Failure) Error() string { return f.Message }

// New is an error with a SQLSTATE and a message.
func New(state, message string) *Failure { return &Failure{SQLState: state, Message: message} }

// WithHint adds what the client may do instead.
func (f *Failure) WithHint(hint string) *Failure { f.Hint = hint; return f }

// Fatal ends the session with the error.
func (f *Failure) Fatal() *Fatal { return &Fatal{f} }

// Asked is the failure as the client of a statement sees it: with the statement's number, by which the log has more of
// it, if it does.
func (f *Failure) Asked(number string) *Failure {
	if !f.Logged && f.SQLState != "XX000" && f.SQLState != "58000" {
		return f
	}
	told := *f
	if told.Detail != "" {
		told.Detail += "\n"
	}
	told.Detail += "Request " + number + ": the operator's log has more of it under this number."
	return &told
}

// InMessage is the failure with its detail and its hint behind its message too, as psql would write them below it.
func (f *Failure) InMessage() *Failure {
	whole := *f
	for _, part := range [][2]string{{"DETAIL", f.Detail}, {"HINT", f.Hint}} {
		if part[1] != "" {
			whole.Message += "\n" + part[0] + ":  " + part[1]
		}
	}
	return &whole
}

// Fatal is an error after which the session ends.
type Fatal struct{ *Failure }

// TextInternal is all that a client learns of a fault of ours.
const TextInternal = "internal error"

// Describe turns any error into what the client may see of it. What is neither a refusal nor a failure becomes one
// constant text, so that no library's error can carry a value to a client.
func Describe(err error) *Failure {
	var refusal *refuse.Refusal
	var shown *Failure
	var end *Fatal
	var computed *scalar.Error
	switch {
	case errors.As(err, &end):
		return end.Failure
	case errors.As(err, &shown):
		return shown
	case errors.As(err, &refusal):
		return &Failure{
			SQLState: refusal.SQLState, Message: refusal.Message, Detail: refusal.Detail,
			Hint: refusal.Hint, Position: refusal.Position,
		}
	}
	if errors.As(err, &computed) { // of the outer query, on released values alone
		if computed.SQLState == "0A000" || computed.SQLState == "DP002" { // pools kill connections on 0A000
			return New("DP002", computed.Message)
		}
		f := New(computed.SQLState, computed.Message)
		if computed.SQLState == "22012" {
			f.Hint = "A released count may be 0: divide by NULLIF(count(*), 0). What was paid for stays free."
		}
		return f
	}
	return New("XX000", TextInternal)
}

// Place gives a failure's position as line and column, from 1; zeros: it has none.
func (f *Failure) Place(script string) (line, column int) {
	if f.Position <= 0 {
		return 0, 0
	}
	line, column = 1, 1
	n := 1
	for _, c := range script {
		if n == f.Position {
			break
		}
		if n++; c == '\n' {
			line, column = line+1, 1
		} else {
			column++
		}
	}
	return line, column
}
