package planner

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// rows are private rows as a FROM sees them: one table, narrowed by conditions and renamed or computed column by column.
// Projections and filters are pulled up into the leaf, so a nested SELECT asks what the flat one asks.
type rows struct {
	table *policy.Table
	alias string
	plain bool // the table itself, which may be named with its schema
	names []string
	exprs []*expr // over positions of table.Columns
	where []*expr
	pos   int
}

// tableRows are the rows of a table.
func tableRows(t *policy.Table, alias string, pos int) *rows {
	k := knownOf(t)
	r := &rows{table: t, alias: t.Name, plain: true, pos: pos, names: k.names, exprs: k.exprs}
	if alias != "" {
		r.alias, r.plain = alias, false
	}
	return r
}

// aliased gives the rows another name and, where the alias lists them, other column names.
func (r *rows) aliased(a *pg.Alias) (*rows, *Refusal) {
	if a == nil {
		return r, nil
	}
	out := *r
	out.alias, out.plain = a.Aliasname, false
	if names := stringsOf(a.Colnames); len(names) > len(r.names) {
		return nil, columnCount.at(r.pos, a.Aliasname, len(r.names), len(names))
	} else if len(names) > 0 {
		out.names = append(append([]string{}, names...), r.names[len(names):]...)
	}
	return &out, nil
}

// systemColumns exist in every PostgreSQL table and would tell rows apart.
var systemColumns = map[string]bool{"ctid": true, "xmin": true, "xmax": true, "cmin": true, "cmax": true, "tableoid": true, "rowid": true}

// column resolves a reference among the rows' columns.
func (r *rows) column(fields []string, pos int) (*expr, *Refusal) {
	name := fields[len(fields)-1]
	if !r.qualifies(fields[:len(fields)-1]) {
		return nil, unknownAlias.at(pos, strings.Join(fields[:len(fields)-1], "."))
	}
	found := -1
	for i, n := range r.names {
		if n == name {
			if found >= 0 {
				return nil, ambiguous.at(pos, name)
			}
			found = i
		}
	}
	if found < 0 {
		if systemColumns[name] {
			return nil, systemColumn.at(pos, name)
		}
		refusal := unknownColumn.at(pos, strings.Join(fields, "."))
		if near := nearest(name, r.names); near != "" {
			refusal.Hint = `Perhaps you meant to reference the column "` + r.alias + "." + near + `".`
		}
		return nil, refusal
	}
	e := r.exprs[found]
	if e.pos == pos {
		return e, nil
	}
	same := *e
	same.pos = pos
	return &same, nil
}

// qualifies tells whether the words before a column name name these rows.
func (r *rows) qualifies(words []string) bool {
	switch n := len(words); {
	case n == 0:
		return true
	case words[n-1] != r.alias:
		return false
	case n == 1:
		return true
	default:
		return r.plain && words[n-2] == r.table.Schema && (n == 2 || n == 3 && r.table.Dataset != nil && words[0] == r.table.Dataset.ID)
	}
}

// nearest is the known name that is within a third of its length of edits, or "".
func nearest(name string, known []string) string {
	best, least := "", len(name)/3+1
	for _, k := range known {
		if d := edits(strings.ToLower(name), strings.ToLower(k)); d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
