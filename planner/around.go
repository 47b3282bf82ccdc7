package planner

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// around says of a name that is not found whether the query around has it: the sub-query is then counted for each row of
// that query, which is no single question, and what is wrong is not the name.
func (b *binder) around(refusal *Refusal) *Refusal {
	if refusal == nil || refusal.Position == 0 || refusal.ID != unknownAlias.ID && refusal.ID != unknownColumn.ID {
		return refusal
	}
	words, enclosing := reference(b.top.ProtoReflect(), int32(refusal.Position-1))
	for _, sel := range enclosing[:max(len(enclosing)-1, 0)] {
		if len(words) > 0 && b.shows(sel, words, int32(refusal.Position-1)) {
			return countedAround.at(refusal.Position-1, words[len(words)-1])
		}
	}
	return refusal
}

// reference is the column reference at a place, and the SELECTs that it stands in, the outermost first.
func reference(m protoreflect.Message, place int32) (words []string, enclosing []*pg.SelectStmt) {
	eachMessage(m, func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.ColumnRef:
			if v.Location == place && len(v.Fields) > 0 && v.Fields[len(v.Fields)-1].GetAStar() == nil {
				words = stringsOf(v.Fields)
			}
		case *pg.SelectStmt:
			if holdsPlace(v, place) {
				enclosing = append(enclosing, v)
			}
		}
	})
	return words, enclosing
}

func holdsPlace(sel *pg.SelectStmt, place int32) (held bool) {
	eachMessage(sel.ProtoReflect(), func(m protoreflect.Message) {
		if c, ok := m.Interface().(*pg.ColumnRef); ok {
			held = held || c.Location == place
		}
	})
	return held
}

// shows tells whether a relation in the FROM clause of a SELECT answers to the name, beside the one that the name stands in.
func (b *binder) shows(sel *pg.SelectStmt, words []string, place int32) (shown bool) {
	column, qualifier := words[len(words)-1], ""
	if len(words) > 1 {
		qualifier = words[len(words)-2]
	}
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		if j := n.GetJoinExpr(); j != nil {
			visit(j.Larg)
			visit(j.Rarg)
		}
		v, sub := n.GetRangeVar(), n.GetRangeSubselect()
		if sub != nil && holdsPlace(sub.Subquery.GetSelectStmt(), place) {
			return
		}
		alias := v.GetAlias().GetAliasname() + sub.GetAlias().GetAliasname()
		if alias == "" {
			alias = v.GetRelname()
		}
		if qualifier != "" {
			shown = shown || alias == qualifier
			return
		}
		if v != nil {
			t := b.c.Dataset.Table(v.Schemaname, v.Relname)
			shown = shown || t != nil && t.Column(column) != nil
		}
		for _, target := range sub.GetSubquery().GetSelectStmt().GetTargetList() {
			shown = shown || columnLabel(target.GetResTarget()) == column
		}
	}
	for _, n := range sel.FromClause {
		visit(n)
	}
	return shown
}
