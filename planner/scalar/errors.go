package scalar

import (
	"fmt"

	"github.com/dpproxy/dpproxy/policy"
)

// The SQLSTATEs of this package.
const (
	stateUnsupported    = "0A000"
	stateDivision       = "22012"
	stateRange          = "22003"
	stateText           = "22P02"
	stateDateFormat     = "22007"
	stateDateOverflow   = "22008"
	stateParameter      = "22023"
	stateEscape         = "22025"
	stateSubstring      = "22011"
	stateRegex          = "2201B"
	stateWidthBucket    = "2201G"
	stateNull           = "22004"
	stateLog            = "2201E"
	statePower          = "2201F"
	stateMismatch       = "42804"
	stateCannotCoerce   = "42846"
	stateUndefined      = "42883"
	stateAmbiguous      = "42725"
	stateIntervalFields = "22015"
	stateSyntax         = "42601" // of a template of numbers
	stateLimit          = "54000"
)

func fail(state, message string) error { return &Error{state, message} }

func failf(state, format string, args ...any) error {
	return &Error{state, fmt.Sprintf(format, args...)}
}

// unsupported is the refusal of what PostgreSQL would answer and this package does not.
func unsupported(format string, args ...any) error {
	return &Error{stateUnsupported, fmt.Sprintf(format, args...) + " is not supported"}
}

var (
	errDivision  = fail(stateDivision, "division by zero")
	errTimestamp = fail(stateDateOverflow, "timestamp out of range")
	errDate      = fail(stateDateOverflow, "date out of range")
	errInterval  = fail(stateDateOverflow, "interval out of range")
	errOverflow  = fail(stateRange, "value out of range: overflow")
	errUnderflow = fail(stateRange, "value out of range: underflow")
	errNumeric   = fail(stateRange, "value overflows numeric format")
	errInfinite  = unsupported("an infinite date or timestamp, or a numeric that is infinite or NaN,")
)

func outOfRange(t policy.Type) error { return failf(stateRange, "%s out of range", t.Name()) }

// badText refuses a text form. Texts that a user wrote as literals are added by whoever knows them to be literals.
func badText(t policy.Type) error {
	return failf(stateText, "invalid input syntax for type %s", t.Name())
}

func badDate(t policy.Type) error {
	return failf(stateDateFormat, "invalid input syntax for type %s", t.Name())
}
