package ast

import pg "github.com/pganalyze/pg_query_go/v6"

// Deparsed writes a SELECT for people.
func Deparsed(sel *pg.SelectStmt) string {
	text, err := pg.Deparse(&pg.ParseResult{Version: GrammarVersion, Stmts: []*pg.RawStmt{{Stmt: Select(sel)}}})
	if err != nil {
		return ""
	}
	return text
}

// Joining are the conditions of WHERE that may join: its conjuncts, and what each arm of an OR among them asks alike.
func Joining(where *pg.Node) []*pg.Node {
	return append(Conjuncts(where), Alike(where)...)
}

// Alike are what each arm of an OR of WHERE asks alike.
func Alike(where *pg.Node) (all []*pg.Node) {
	for _, n := range Conjuncts(where) {
		if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_OR_EXPR {
			all = append(all, common(b.Args)...)
		}
	}
	return all
}

// common are the conjuncts that all arms have, as they are written.
func common(branches []*pg.Node) []*pg.Node {
	count, first := map[string]int{}, map[string]*pg.Node{}
	var order []string
	for _, branch := range branches {
		seen := map[string]bool{}
		for _, n := range Conjuncts(branch) {
			text := Deparsed(&pg.SelectStmt{TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(n, -1)}, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE})
			if text == "" || seen[text] {
				continue
			}
			if seen[text] = true; count[text] == 0 {
				first[text], order = n, append(order, text)
			}
			count[text]++
		}
	}
	var out []*pg.Node
	for _, text := range order {
		if count[text] == len(branches) {
			out = append(out, first[text])
		}
	}
	return out
}
