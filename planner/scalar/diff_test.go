package scalar

import (
	"os"
	"strings"
	"testing"
)

// TestAgainstServer holds the expressions of testdata against a PostgreSQL server, row by row.
func TestAgainstServer(t *testing.T) {
	s := newServer(t)
	refusals, all := 0, 0
	for _, sql := range fileExpressions(t) {
		difference, refused := s.difference(sql)
		all++
		if refused {
			refusals++
			t.Log("refused on some row: ", sql)
		}
		if difference != "" {
			t.Error(difference)
		}
	}
	t.Logf("%d expressions, %d refused on some row", all, refusals)
}

// fileExpressions reads testdata/expressions.txt, one a line; lines that begin with # are comments.
func fileExpressions(t *testing.T) []string {
	text, err := os.ReadFile("testdata/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}
