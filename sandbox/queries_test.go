package sandbox_test

import (
	"os"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// queriesOf reads a file of queries, one a line.
func queriesOf(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if query := strings.TrimSpace(line); query != "" && !strings.HasPrefix(query, "--") {
			list = append(list, query)
		}
	}
	return list
}

// split makes queries of one column of those that list several, so that one that is refused does not hide the others.
func split(t testing.TB, queries []string) []string {
	t.Helper()
	var list []string
	for _, query := range queries {
		list = append(list, query)
		tree, err := pg.Parse(query)
		if err != nil {
			t.Fatalf("%v\n%s", err, query)
		}
		s := tree.Stmts[0].Stmt.GetSelectStmt()
		if len(s.TargetList) < 2 || len(s.GroupClause) > 0 || s.WithClause != nil || len(s.DistinctClause) > 0 || byPosition(s.SortClause) {
			continue
		}
		targets := s.TargetList
		for _, one := range targets {
			s.TargetList = []*pg.Node{one}
			text, err := pg.Deparse(tree)
			if err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
			list = append(list, text)
		}
	}
	return list
}

func byPosition(sort []*pg.Node) bool {
	for _, n := range sort {
		if n.GetSortBy().GetNode().GetAConst() != nil {
			return true
		}
	}
	return false
}
