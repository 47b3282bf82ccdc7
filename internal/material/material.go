// Package material finds what lies beside the repository and is not part of it: real data and recordings of real
// clients. Where it is absent, the test that asks for it is skipped, and says so. Only tests import this package.
package material

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// variable names the folder where it lies elsewhere.
const variable = "DPPROXY_SHARED"

// Path is a file or folder of what is shared, absolute.
func Path(t testing.TB, elements ...string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = beside(t)
	}
	path, err := filepath.Abs(filepath.Join(append([]string{dir}, elements...)...))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("not shared here: %v (set %s)", err, variable)
	}
	return path
}

// beside is the folder next to the repository that the test runs in.
func beside(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs(".")
	for err == nil && root != filepath.Dir(root) {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			return filepath.Join(filepath.Dir(root), "shared")
		}
		root = filepath.Dir(root)
	}
	t.Skipf("no module around the test: %v", err)
	return ""
}

// Statements are the blocks that were recorded of all clients: each the statements of one message.
func Statements(t testing.TB) (blocks []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(Path(t, "clients"), "*.sql"))
	for _, file := range files {
		for _, block := range read(t, file) {
			blocks = append(blocks, strings.TrimSpace(block))
		}
	}
	return blocks
}

// Of are the blocks of one client. What precedes the first is about the recording.
func Of(t testing.TB, client string) []string {
	t.Helper()
	return read(t, Path(t, "clients", client+".sql"))[1:]
}

func read(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n;;\n")
}
