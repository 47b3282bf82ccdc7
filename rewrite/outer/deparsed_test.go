package outer

import (
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// TestDeparsedKeepsTheStatement: the printer drops parentheses that these need; they are refused rather than changed.
func TestDeparsedKeepsTheStatement(t *testing.T) {
	for text, kept := range map[string]bool{
		"SELECT (NOT a) IS NULL FROM t":        false,
		"SELECT (a AND b) IS NULL FROM t":      false,
		"SELECT NOT (a IS NULL) FROM t":        true,
		"SELECT (a + 1) * 2, a || 'x' FROM t":  true,
		"SELECT CASE WHEN a THEN 1 END FROM t": true,
	} {
		tree, err := pg.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := deparsed(tree.Stmts[0].Stmt); (err == nil) != kept {
			t.Errorf("%s: %q, %v", text, out, err)
		}
	}
}
