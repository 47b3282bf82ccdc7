package sandboxtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Recorded are the statements that were recorded of a client. The test is skipped where the recordings are absent: they lie
// beside the repository, or where DPPROXY_SHARED says.
func Recorded(t testing.TB, name string) []string {
	t.Helper()
	dir := os.Getenv("DPPROXY_SHARED")
	if dir == "" {
		dir = beside(t, "shared")
	}
	text, err := os.ReadFile(dir + "/clients/" + name + ".sql")
	if err != nil {
		t.Skipf("recorded statements are absent: %v", err)
	}
	var out []string
	for block := range strings.SplitSeq(string(text), "\n;;\n") {
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

// beside is a folder next to the repository that a test runs in.
func beside(t testing.TB, name string) string {
	t.Helper()
	root, err := filepath.Abs(".")
	for err == nil && root != filepath.Dir(root) {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			return filepath.Join(filepath.Dir(root), name)
		}
		root = filepath.Dir(root)
	}
	t.Skipf("no module around the test: %v", err)
	return ""
}

// CatalogOnly tells whether a text is one SELECT without parameters that names no table of the recording's own.
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
