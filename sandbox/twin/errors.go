package twin

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What an analyst is told of an error of PostgreSQL's. Its SQLSTATE is kept where a query may bring it about; its text
// is ours where the server's could name a value, or something of the twin.

// messages are what an analyst is told of errors that her query's values raise. PostgreSQL's own text may hold a value.
var messages = map[string]string{
	"22012": "division by zero", "22003": "value out of range", "22P02": "invalid input syntax for the type of a cast",
	"22P03": "invalid input for the type of a cast", "22007": "invalid input syntax for a date or time", "22008": "date or time out of range",
	"22009": "invalid time zone displacement", "22011": "negative substring length not allowed", "22001": "value too long for its type",
	"2201B": "invalid regular expression", "2201E": "cannot take logarithm of zero or a negative number",
	"2201F": "cannot take a power of that number", "2201G": "invalid argument for width_bucket", "22013": "invalid frame of a window function",
	"22014": "argument of ntile must be greater than zero", "22016": "argument of nth_value must be greater than zero",
	"2201W": "LIMIT must not be negative", "2201X": "OFFSET must not be negative", "22021": "character not in the encoding",
	"22023": "a function of the query was given a value that it does not take", "22025": "invalid escape sequence",
	"2202E": "wrong number of array subscripts", "22004": "a null value is not allowed here", "22030": "duplicate JSON object key value",
	"21000": "more than one row returned by a subquery used as an expression", "42704": "there is no object or setting of that name",
	"42501": "the sandbox may not do that", "42P19": "this recursive query is not allowed", "42P01": "relation does not exist",
	"42602": "invalid name", "3F000": "schema does not exist", "54001": "the query is too deep", "54011": "too many columns",
	"54023": "too many arguments",
}

// errDeadline is told where the server ended a query for its time; what had been left of it is not known here.
var errDeadline = &scalar.Error{SQLState: "57014", Message: "canceling statement: the query over released answers took too long"}

// errorOf is the sandbox's error for one of the twin's, and whether an analyst's query may bring it about.
func errorOf(e *pgconn.PgError) (told *scalar.Error, expected bool) {
	if message, ok := messages[e.Code]; ok {
		return &scalar.Error{SQLState: e.Code, Message: message}, e.Code != "42501"
	}
	switch {
	case e.Code == "57014" || e.Code == "55P03":
		return errDeadline, true
	case strings.HasPrefix(e.Code, "53") || e.Code == "54000":
		return sandbox.ErrResources, true
	case strings.HasPrefix(e.Code, "22"):
		return &scalar.Error{SQLState: e.Code, Message: "a value of the query is not valid where it stands"}, true
	case strings.HasPrefix(e.Code, "42") && !inward(e.Message):
		// Names and types of her own query: columns that do not exist, functions of other arguments, missing GROUP BY.
		return &scalar.Error{SQLState: e.Code, Message: e.Message}, true
	case strings.HasPrefix(e.Code, "42"):
		return &scalar.Error{SQLState: e.Code, Message: "the query over released answers is not valid"}, true
	case e.Code == "0A000":
		return &scalar.Error{SQLState: "0A000", Message: "PostgreSQL does not support this query"}, true
	}
	return sandbox.ErrBroken, false
}

// inward tells a text that names what only the sandbox knows.
func inward(message string) bool {
	for _, word := range []string{"leaf_", "dpproxy", "pg_catalog.", "information_schema.", "dp.", "unnest", "parameter"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}
