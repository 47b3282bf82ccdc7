package outerquery

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Names that only an enclosing query has. In SELECT (SELECT count(*) FROM visits v WHERE v.person_id = p.person_id)
// FROM people p the sub-query would be counted for each row of people, which is no single question: it is refused as
// that, and not for an unknown name.

// around says of a name that is not found whether the query around has it: the sub-query is then counted for each row
// of that query, which is no single question, and what is wrong is not the name.
func (b *Query) around(refusal *refuse.Refusal) *refuse.Refusal {
	if refusal == nil {
		return nil
	}
	usual := func(of *refuse.Reason) bool { return refusal.ID == of.ID && refusal.Hint == of.Hint }
	switch {
	case usual(refuse.UnknownFunction):
		return b.otherwiseNamed(refusal)
	case usual(semantics.UnknownColumn):
		b.otherwiseNamed(refusal)
	}
	if refusal.Position == 0 || refusal.ID != bind.UnknownAlias.ID && refusal.ID != semantics.UnknownColumn.ID {
		return refusal
	}
	place := int32(refusal.Position - 1)
	words, enclosing := reference(b.Top.ProtoReflect(), place)
	if len(words) == 0 {
		return refusal
	}
	w := walkOf(b.Binder, false)
	w.without = func(sel *pg.SelectStmt) bool { return holdsPlace(sel, place) }
	for i, sel := range enclosing {
		w = w.inside(sel)
		for _, n := range sel.FromClause {
			w.item(n)
		}
		switch last := i == len(enclosing)-1; {
		case !last && w.shows(words):
			return bind.CountedAround.At(refusal.Position-1, words[len(words)-1])
		case last && len(words) == 1 && w.names(words[0]):
			return semantics.NoForm.At(refusal.Position-1, "a whole row")
		}
	}
	return refusal
}

// names reports whether a relation in sight has an alias, of those whose columns may be named.
func (s *sight) names(alias string) bool {
	return slices.ContainsFunc(s.relations, func(r relation) bool { return r.alias == alias && (r.known || len(r.columns) > 0) })
}

// shows reports whether a relation in sight answers to a name.
func (s *sight) shows(words []string) bool {
	if len(words) > 1 {
		return s.names(words[len(words)-2])
	}
	return s.find(words) != nil
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

// otherwiseNamed says what PostgreSQL calls a function that it does not know by the name of another database, or whose
// first argument is no column but a word there.
func (b *Query) otherwiseNamed(refusal *refuse.Refusal) *refuse.Refusal {
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
