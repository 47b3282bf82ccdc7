package sandboxtest

import (
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/internal/material"
)

// Recorded are the statements that were recorded of a client, without their comments.
func Recorded(t testing.TB, name string) []string {
	t.Helper()
	var out []string
	for _, block := range material.Of(t, name) {
		var lines []string
		for line := range strings.Lines(block) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		if s := strings.TrimSpace(strings.Join(lines, "")); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// CatalogOnly reports whether a text is one SELECT without parameters that names no table of the recording's own.
func CatalogOnly(text string) bool {
	tree, err := pg.Parse(text)
	if err != nil || len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil || strings.Contains(text, "$1") {
		return false
	}
	for _, name := range []string{"orders", "users", "paid", "public.", "tt"} {
		for _, node := range tree.Stmts[0].Stmt.GetSelectStmt().GetFromClause() {
			if node.GetRangeVar().GetRelname() == name {
				return false
			}
		}
	}
	return true
}
