package parse

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/refuse"
)

// OneSelect parses a text that is one SELECT; nil without a refusal: it is something else.
func OneSelect(text string) (*pg.SelectStmt, *refuse.Refusal) {
	blank, refusal := admitted(text)
	if refusal != nil {
		return nil, refusal.InCharacters(text)
	}
	tree, err := pg.Parse(blank)
	if err != nil {
		return nil, syntaxRefusal(err, blank).InCharacters(text)
	}
	PlaceArguments(tree, blank)
	if len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil {
		return nil, nil
	}
	return tree.Stmts[0].Stmt.GetSelectStmt(), nil
}
