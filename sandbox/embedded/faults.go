package embedded

import (
	"errors"
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What an analyst is told when a query fails: errors that our functions raise as they raised them, DuckDB's own by their class
// and in words that are ours, so that no text of the engine's comes out.

// faultMark begins the text of an error that a function of ours, or a macro, raises inside the engine: then SQLSTATE,
// a bar, the message, and the mark again. It is how such an error is told from the engine's own.
const faultMark = outer.FaultMark

func marked(err error) error {
	var fault *scalar.Error
	if !errors.As(err, &fault) {
		fault = sandbox.ErrBroken
	}
	return errors.New(faultMark + fault.SQLState + "|" + fault.Message + faultMark)
}

// failed is the reply to a query that ended with an error: ours as it was raised, the engine's by its class. The engine's
// class goes to the operator's log, and only where the query should not have failed: its text repeats words of the statement.
func failed(err error) *reply {
	if fault := raised(err); fault != nil {
		return &reply{fault: fault}
	}
	var fault *duckdb.Error
	if !errors.As(err, &fault) {
		return &reply{fault: sandbox.ErrBroken, log: fmt.Sprintf("%T", err)}
	}
	switch fault.Type {
	case duckdb.ErrorTypeOutOfRange:
		return &reply{fault: errRange}
	case duckdb.ErrorTypeDivideByZero:
		return &reply{fault: &scalar.Error{SQLState: "22012", Message: "division by zero"}}
	case duckdb.ErrorTypeConversion:
		return &reply{fault: &scalar.Error{SQLState: "22P02", Message: "invalid input syntax for the type of a cast"}}
	case duckdb.ErrorTypeOutOfMemory, duckdb.ErrorTypeObjectSize:
		return &reply{fault: sandbox.ErrResources}
	case duckdb.ErrorTypeInvalidInput:
		if strings.Contains(fault.Msg, "More than one row") {
			return &reply{fault: &scalar.Error{SQLState: "21000", Message: "more than one row returned by a subquery used as an expression"}}
		}
		return &reply{fault: &scalar.Error{SQLState: "22023", Message: "a function of the query was given a value that it does not take"}}
	case duckdb.ErrorTypeBinder:
		if strings.Contains(fault.Msg, "GROUP BY") {
			return &reply{fault: &scalar.Error{SQLState: "42803", Message: "a column must appear in the GROUP BY clause or be used in an aggregate function"}}
		}
		return &reply{fault: errUnable, log: classOf(fault)}
	case duckdb.ErrorTypeNotImplemented, duckdb.ErrorTypeParser, duckdb.ErrorTypeCatalog:
		return &reply{fault: errUnable, log: classOf(fault)}
	}
	if memoryIsOut(fault.Msg) {
		return &reply{fault: sandbox.ErrResources}
	}
	return &reply{fault: sandbox.ErrBroken, log: classOf(fault)}
}

// classOf is how DuckDB's text of an error begins, "Binder Error": the rest repeats the statement.
func classOf(fault *duckdb.Error) string {
	class, _, _ := strings.Cut(fault.Msg, ":")
	if words, known := strings.CutSuffix(class, "Error"); !known || len(words) > 30 {
		return "an error"
	}
	return class
}

// memoryIsOut knows the words of an engine to whom the system gave no more memory, in whatever class it puts them.
func memoryIsOut(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "bad_alloc") || strings.Contains(text, "allocat") || strings.Contains(text, "out of memory")
}

// raised finds an error that our functions or macros raised.
func raised(err error) *scalar.Error {
	_, rest, _ := strings.Cut(err.Error(), faultMark)
	inner, _, ok := strings.Cut(rest, faultMark)
	state, message, found := strings.Cut(inner, "|")
	if ok && found && len(state) == 5 {
		return &scalar.Error{SQLState: state, Message: message}
	}
	var fault *scalar.Error
	if errors.As(err, &fault) {
		return fault
	}
	return nil
}

var (
	errRange  = &scalar.Error{SQLState: "22003", Message: "value out of range"}
	errUnable = &scalar.Error{SQLState: "DP002", Message: "the embedded sandbox cannot run this query over released answers"}
)
