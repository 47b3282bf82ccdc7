package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Names that only an enclosing query has. In SELECT (SELECT count(*) FROM visits v WHERE v.person_id = p.person_id) FROM people p the
// sub-query would be counted for each row of people, which is no single question: it is refused as that, and not for an unknown name.

// Around says of a name that is not found whether the query around has it: the sub-query is then counted for each row of
// that query, which is no single question, and what is wrong is not the name.
func (b *Binder) Around(refusal *refuse.Refusal) *refuse.Refusal {
	if refusal != nil && refusal.ID == refuse.UnknownFunction.ID && refusal.Hint == refuse.UnknownFunction.Hint {
		return b.otherwiseNamed(refusal)
	}
	if refusal != nil && refusal.ID == semantics.UnknownColumn.ID && refusal.Hint == semantics.UnknownColumn.Hint {
		b.otherwiseNamed(refusal)
	}
	if refusal == nil || refusal.Position == 0 || refusal.ID != UnknownAlias.ID && refusal.ID != semantics.UnknownColumn.ID {
		return refusal
	}
	words, enclosing := reference(b.Top.ProtoReflect(), int32(refusal.Position-1))
	for _, sel := range enclosing[:max(len(enclosing)-1, 0)] {
		if len(words) > 0 && b.shows(sel, words, int32(refusal.Position-1)) {
			return CountedAround.At(refusal.Position-1, words[len(words)-1])
		}
	}
	return refusal
}

// reference is the column reference at a place, and the SELECTs that it stands in, the outermost first.
func reference(m protoreflect.Message, place int32) (words []string, enclosing []*pg.SelectStmt) {
	ast.Each(m, func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.ColumnRef:
			if v.Location == place && len(v.Fields) > 0 && v.Fields[len(v.Fields)-1].GetAStar() == nil {
				words = ast.Strings(v.Fields)
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
	ast.Each(sel.ProtoReflect(), func(m protoreflect.Message) {
		if c, ok := m.Interface().(*pg.ColumnRef); ok {
			held = held || c.Location == place
		}
	})
	return held
}

// shows tells whether a relation in the FROM clause of a SELECT answers to the name, beside the one that the name stands in.
func (b *Binder) shows(sel *pg.SelectStmt, words []string, place int32) (shown bool) {
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
		v, sub, f := n.GetRangeVar(), n.GetRangeSubselect(), n.GetRangeFunction()
		if sub != nil && holdsPlace(sub.Subquery.GetSelectStmt(), place) {
			return
		}
		alias := v.GetAlias().GetAliasname() + sub.GetAlias().GetAliasname() + f.GetAlias().GetAliasname()
		if alias == "" {
			alias = v.GetRelname()
		}
		if qualifier != "" {
			shown = shown || alias == qualifier
			return
		}
		if v != nil {
			t := b.Context.Dataset.Table(v.Schemaname, v.Relname)
			shown = shown || t != nil && t.Column(column) != nil
		}
		if names := ast.Strings(f.GetAlias().GetColnames()); f != nil { // generate_series(1, 3) AS n has a column n
			shown = shown || slices.Contains(names, column) || len(names) == 0 && alias == column
		}
		for _, target := range sub.GetSubquery().GetSelectStmt().GetTargetList() {
			shown = shown || ast.Label(target.GetResTarget()) == column
		}
	}
	for _, n := range sel.FromClause {
		visit(n)
	}
	return shown
}

// otherNames are what PostgreSQL calls functions of other databases.
var otherNames = map[string]string{
	"var": "var_samp(x), which variance(x) is too, or var_pop(x)", "std": "stddev_samp(x) or stddev_pop(x)", "stdev": "stddev_samp(x)",
	"stdevp": "stddev_pop(x)", "varp": "var_pop(x)", "mean": "avg(x)", "countif": "count(*) FILTER (WHERE …)",
	"count_if": "count(*) FILTER (WHERE …)", "sumif": "sum(x) FILTER (WHERE …)", "ifnull": "coalesce(x, y)", "nvl": "coalesce(x, y)",
	"isnull": "coalesce(x, y)", "iif": "CASE WHEN … THEN x ELSE y END", "if": "CASE WHEN … THEN x ELSE y END", "len": "length(x)",
	"ucase": "upper(x)", "lcase": "lower(x)", "getdate": "now()", "year": "extract(year FROM x)", "month": "extract(month FROM x)",
	"day": "extract(day FROM x)", "quarter": "extract(quarter FROM x)", "week": "extract(week FROM x)", "hour": "extract(hour FROM x)",
	"datediff": "y - x, the days between two dates, or extract(epoch FROM y - x) / 3600, the hours between two moments", "dateadd": "x + interval '1 day'",
	"convert": "CAST(x AS integer), or x::integer", "approx_distinct": "count(DISTINCT x)", "approx_count_distinct": "count(DISTINCT x)", "percentile": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
}

// otherwiseNamed says what PostgreSQL calls a function that it does not know by the name of another database, or whose first
// argument is no column but a word there.
func (b *Binder) otherwiseNamed(refusal *refuse.Refusal) *refuse.Refusal {
	ast.Each(b.Top.ProtoReflect(), func(m protoreflect.Message) {
		f, ok := m.Interface().(*pg.FuncCall)
		if !ok || len(f.Funcname) != 1 {
			return
		}
		// DATEADD(day, 1, placed) is no column day.
		word := len(f.Args) > 1 && f.Args[0].GetColumnRef() != nil && ast.Location(f.Args[0]) == refusal.Position-1
		if int(f.Location) != refusal.Position-1 && !word {
			return
		}
		if name := otherNames[f.Funcname[0].GetString_().GetSval()]; name != "" {
			refusal.Hint = "PostgreSQL's is " + name + "."
		}
	})
	return refusal
}
