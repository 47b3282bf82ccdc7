package outer

import (
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// TestDeparsedKeepsTheStatement: operands whose parentheses the printer drops are written as calls; what is printed
// reads as it was meant.
func TestDeparsedKeepsTheStatement(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT (NOT a) IS NULL FROM t":         "SELECT COALESCE(NOT a) IS NULL FROM t",
		"SELECT (a AND b) IS NULL FROM t":       "SELECT COALESCE(a AND b) IS NULL FROM t",
		"SELECT NOT (a IS NULL) FROM t":         "SELECT NOT a IS NULL FROM t",
		"SELECT (a + 1) * 2, a || 'x' FROM t":   "SELECT (a + 1) * 2, a || 'x' FROM t",
		"SELECT CASE WHEN a THEN 1 END FROM t":  "SELECT CASE WHEN a THEN 1 END FROM t",
		"SELECT (a = b) = (c < d) FROM t":       "SELECT (a = b) = (c < d) FROM t",
		"SELECT (a IN (1, 2)) IS TRUE FROM t":   "SELECT a IN (1, 2) IS TRUE FROM t",
		"SELECT (a BETWEEN 1 AND 2) = b FROM t": "SELECT (a BETWEEN 1 AND 2) = b FROM t",
	} {
		tree, err := pg.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := deparsed(tree.Stmts[0].Stmt); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}
