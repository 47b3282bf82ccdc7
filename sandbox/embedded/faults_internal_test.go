package embedded

import (
	"errors"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
)

// TestLogHasAClass: of what the engine says of a query the operator's log gets the class alone. The rest repeats the query, with what the
// analyst wrote in it.
func TestLogHasAClass(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&duckdb.Error{Type: duckdb.ErrorTypeBinder, Msg: "Binder Error: No function matches 'f'\n\nLINE 1: SELECT f('Kanarienvogel')\n               ^"}, "Binder Error"},
		{&duckdb.Error{Type: duckdb.ErrorTypeNotImplemented, Msg: "Not implemented Error: Kanarienvogel"}, "Not implemented Error"},
		{&duckdb.Error{Type: duckdb.ErrorTypeParser, Msg: "Parser Error: syntax error at or near \"Kanarienvogel\""}, "Parser Error"},
		{&duckdb.Error{Type: duckdb.ErrorTypeInternal, Msg: "INTERNAL Error: Kanarienvogel"}, "INTERNAL Error"},
		{&duckdb.Error{Type: duckdb.ErrorTypeInvalid, Msg: "Kanarienvogel: Error"}, "an error"},
		{&duckdb.Error{Type: duckdb.ErrorTypeInvalid, Msg: "Kanarienvogel"}, "an error"},
		{errors.New("Kanarienvogel"), "*errors.errorString"},
	} {
		if got := failed(c.err); got.log != c.want || strings.Contains(got.fault.Message, "Kanarienvogel") {
			t.Errorf("%v: the log gets %q, not %q; she is told %q", c.err, got.log, c.want, got.fault.Message)
		}
	}
}
