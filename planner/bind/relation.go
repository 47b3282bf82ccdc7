package bind

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Private rows as FROM sees them. FROM (SELECT age AS years FROM people WHERE active) t are the rows of people, with a
// column years and the condition active: names are looked up here, and what is below is pulled up into one
// question.

// Rows are private rows as a FROM sees them: one table, of the policy or derived, narrowed by conditions and renamed or
// computed column by column. Projections and filters are pulled up into the leaf, so a nested SELECT asks what the flat
// one asks.
type Rows struct {
	Table          *policy.Table
	parts          []relation // the names in sight, in the order of FROM
	names          []string
	hidden, merged []int             // positions of columns that USING has merged into others, which are seen without their table's name in their place
	hiddenKeys     []int             // positions of keys that USING has merged into others
	lost           []string          // keys that a FULL JOIN does not keep
	exprs          []*semantics.Expr // over positions of table.Columns
	where          []*semantics.Expr
	keys           []linear.Key
	equal          [][2]int                        // keys that are known to be equal in each row, by their positions in table.Keys
	marks          []mark                          // columns that say whether the unit has rows elsewhere
	values         []unitValue                     // columns that say what the unit's rows elsewhere come to
	asked          *linear.Question                // what is asked of them, once that is known
	shape          string                          // which outputs of the SELECT that passes them on are keys, and which columns (shapeOf)
	scope          *Scope                          // the WITH queries in sight
	fan            *Candidates                     // the public list that they meet, nil means none
	met            bool                            // as they meet one candidate of a list
	matched        func() (*Rows, *refuse.Refusal) // of rows with fan, where there is another way: the rows as they match the list one by one
	preserved      int                             // position, counted from 1, of the column that says which public row it is, where public rows without a private row are among them, as SQL sees it; 0 means there are none
	pos            int
}

// relation is one name in FROM and the columns and keys that it brings, as ranges of names and keys. It is empty of the
// keys that FULL JOIN … USING makes of both sides'.
type relation struct {
	alias          string
	plain          *policy.Table // the table itself, which may be named with its schema; nil means anything else
	from, to       int
	fromKey, toKey int
	order          []int           // in which its columns and keys come (described.go); nil means the columns first
	present        *semantics.Expr // whether it has a row, as an outer join may leave none; nil means that is not known
}

// always is present of a relation that no outer join has left without a row.
var always = semantics.ConstantExpr(true, policy.Bool, -1)

// mark is a column of the rows' table that elsewhere added.
type mark struct {
	canon  string
	column int
}

// Names are the columns' names, Exprs what each of them is over the table's columns, Where the conditions that narrow
// the rows, and Pos is where the statement names them.
func (r *Rows) Names() []string          { return r.names }
func (r *Rows) Exprs() []*semantics.Expr { return r.exprs }
func (r *Rows) Where() []*semantics.Expr { return r.where }
func (r *Rows) Pos() int                 { return r.pos }

// Preserved is the position, counted from 1, of the column that says which public row a row is, where public rows
// without a private one are among them; 0 means none are.
func (r *Rows) Preserved() int { return r.preserved }

// AskedBy are the rows as a question is about them: where they get another table, the question does. Of nil they are no
// question's.
func (r *Rows) AskedBy(q *linear.Question) *Rows {
	out := *r
	out.asked = q
	return &out
}

// tableRows are the rows of a table of the policy.
func tableRows(t *policy.Table, pos int) *Rows {
	k := linear.KnownOf(t)
	r := &Rows{Table: t, pos: pos, names: k.Names, exprs: k.Exprs, keys: k.Keys}
	r.parts = []relation{{t.Name, t, 0, len(r.names), 0, len(r.keys), nil, always}}
	if t.Derived == nil {
		r.parts[0].order = described(t, r.names, r.keys)
	}
	return r
}

// aliased gives the rows another name and, where the alias lists them, other column names.
func (r *Rows) aliased(a *pg.Alias) (*Rows, *refuse.Refusal) {
	if a == nil {
		return r, nil
	}
	out := *r
	out.parts = []relation{{a.Aliasname, nil, 0, len(r.names), 0, len(r.keys), r.starredWithKeys(starTarget, r.parts), nil}}
	if len(r.parts) == 1 {
		out.parts[0].present = r.parts[0].present
	}
	if len(r.hidden) > 0 { // (a JOIN b USING (x)) AS c: c has what * shows
		out.names, out.exprs = nil, nil
		for at, i := range out.parts[0].order {
			if i >= 0 {
				out.parts[0].order[at] = len(out.names)
				out.names, out.exprs = append(out.names, r.names[i]), append(out.exprs, r.exprs[i])
			}
		}
		out.hidden, out.merged = nil, nil
		out.parts[0].to = len(out.names)
	}
	if len(r.hiddenKeys) > 0 {
		at := map[int]int{}
		out.keys, out.hiddenKeys = nil, nil
		for i, k := range r.keys {
			if !slices.Contains(r.hiddenKeys, i) {
				at[-1-i] = -1 - len(out.keys)
				out.keys = append(out.keys, k)
			}
		}
		for i, was := range out.parts[0].order {
			if was < 0 {
				out.parts[0].order[i] = at[was]
			}
		}
		out.parts[0].toKey = len(out.keys)
	}
	if refusal := out.nameFirst(ast.Strings(a.Colnames)); refusal != nil {
		return nil, refusal
	}
	return &out, nil
}

// nameFirst gives the first outputs of the rows' only relation other names.
func (r *Rows) nameFirst(names []string) *refuse.Refusal {
	order, shown := r.parts[0].ordered(), len(r.names)
	ofSelect := len(names) > 0 && r.shape != "" && strings.Trim(r.shape, "kcb") == ""
	if ofSelect {
		shown = len(r.shape)
	} else if order != nil {
		shown = len(order)
	}
	switch {
	case len(names) > shown:
		return ColumnCount.At(r.pos, r.parts[0].alias, shown, len(names))
	case ofSelect:
		r.renamed(names)
	case order != nil:
		r.rename(names, order)
	default:
		r.names = slices.Concat(names, r.names[len(names):])
	}
	return nil
}

// renamed gives the outputs of a SELECT, keys among them, other names: FROM (SELECT person_id, count(*) …) AS t
// (person, n).
func (r *Rows) renamed(names []string) {
	r.names, r.keys = slices.Clone(r.names), slices.Clone(r.keys)
	column, key := 0, 0
	for i, name := range names {
		if r.shape[i] != 'k' {
			r.names[column], column = name, column+1
		}
		if r.shape[i] != 'c' {
			r.keys[key].Name, key = name, key+1
		}
	}
}

// Alias is the name of the rows for messages: that of the first relation which has one.
func (r *Rows) Alias() string {
	for _, p := range r.parts {
		if p.alias != "" {
			return p.alias
		}
	}
	return ""
}

// Ungrouped refuses a column that is neither a key nor inside an aggregate, by the relation that has it.
func (r *Rows) Ungrouped(fields []string, pos int) *refuse.Refusal {
	alias, name := r.Alias(), fields[len(fields)-1]
	for _, p := range r.named(fields[:len(fields)-1]) {
		if p.alias != "" && slices.Contains(r.names[p.from:p.to], name) {
			alias = p.alias
			break
		}
	}
	return Ungrouped.At(pos, alias+"."+name)
}

// systemColumns exist in every PostgreSQL table and would tell rows apart.
var systemColumns = map[string]bool{"ctid": true, "xmin": true, "xmax": true, "cmin": true, "cmax": true, "tableoid": true, "rowid": true}

// Column resolves a reference among the rows' columns.
func (r *Rows) Column(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	name := fields[len(fields)-1]
	parts := r.named(fields[:len(fields)-1])
	if len(parts) == 0 {
		return nil, UnknownAlias.At(pos, strings.Join(fields[:len(fields)-1], "."))
	}
	found := -1
	for _, p := range parts {
		for i := p.from; i < p.to; i++ {
			if r.names[i] != name || len(fields) == 1 && slices.Contains(r.hidden, i) {
				continue
			}
			if found >= 0 {
				return nil, Ambiguous.At(pos, name)
			}
			found = i
		}
	}
	if found < 0 {
		return nil, r.missing(fields, parts, pos)
	}
	e := r.exprs[found]
	if e.Pos == pos {
		return e, nil
	}
	same := *e
	same.Pos = pos
	return &same, nil
}

// missing refuses a name that is no column: a join key, a system column, or nothing.
func (r *Rows) missing(fields []string, parts []relation, pos int) *refuse.Refusal {
	name := fields[len(fields)-1]
	if k, refusal := r.key(fields, pos); refusal != nil {
		return refusal
	} else if k != nil {
		return keyOnly.At(pos, name, r.Table.Dataset.Unit.Name)
	}
	for _, t := range r.Table.Base() {
		c := t.Column(name)
		switch {
		case c == nil || !r.inSight(t, fields):
		case c.Private && c.List != nil:
			return lookup.NotCopied.At(pos, c.List.Of.Name)
		case c.Private:
			return noBounds.At(pos, name, t.Name)
		case c.Open != nil && c.Reading == nil: // a FULL JOIN has no domain for it
			return semantics.UnknownText(c, pos)
		}
	}
	if slices.Contains(r.lost, name) {
		return keyOnly.At(pos, name, r.Table.Dataset.Unit.Name)
	}
	if systemColumns[name] {
		return systemColumn.At(pos, name)
	}
	refusal := semantics.UnknownColumn.At(pos, strings.Join(fields, "."))
	for _, p := range parts {
		names := slices.Clone(r.names[p.from:p.to])
		for _, k := range r.keys[p.fromKey:p.toKey] {
			names = append(names, k.Name)
		}
		if near := refuse.Nearest(name, names); near != "" {
			refusal.Hint = `Perhaps you meant to reference the column "` + p.alias + "." + near + `".`
			break
		}
	}
	return refusal
}

// inSight reports whether the words before a column's name may mean a table of the policy below the rows.
func (r *Rows) inSight(t *policy.Table, fields []string) bool {
	return len(fields) == 1 || slices.ContainsFunc(r.named(fields[:len(fields)-1]), func(p relation) bool { return p.plain == nil || p.plain == t })
}

// key resolves a reference among the join keys in sight, or returns nil if it is none.
func (r *Rows) key(fields []string, pos int) (*linear.Key, *refuse.Refusal) {
	var found *linear.Key
	for _, p := range r.named(fields[:len(fields)-1]) {
		for i := p.fromKey; i < p.toKey; i++ {
			k := &r.keys[i]
			if k.Name != fields[len(fields)-1] || len(fields) == 1 && slices.Contains(r.hiddenKeys, i) {
				continue
			}
			if found != nil {
				return nil, Ambiguous.At(pos, k.Name)
			}
			found = k
		}
	}
	return found, nil
}

// KeyNode is key for a node; nil means the node is no reference to a key.
func (r *Rows) KeyNode(n *pg.Node) (*linear.Key, *refuse.Refusal) {
	ref := n.GetColumnRef()
	if ref == nil {
		return nil, nil
	}
	fields := ast.Strings(ref.Fields)
	if len(fields) == 0 || len(fields) < len(ref.Fields) {
		return nil, nil
	}
	return r.key(fields, int(ref.Location))
}

// IsKeyOnly tells a reference to a join key that is not a column with a domain as well.
func (r *Rows) IsKeyOnly(n *pg.Node) bool {
	k, refusal := r.KeyNode(n)
	if k == nil || refusal != nil {
		return false
	}
	_, refusal = r.Column(ast.Strings(n.GetColumnRef().Fields), ast.Location(n))
	return refusal != nil
}

// on returns that a relation has a row where a column is true, as an outer join says of a side of it; nil if it may
// have none there too.
func (p relation) on(column int) *semantics.Expr {
	if p.present != always {
		return nil
	}
	return semantics.ColumnExpr(column, policy.Bool, -1, -1)
}

// Whole returns whether a node's relation has a row, of a node that is a whole row, as p is in count(p) FROM people p;
// nil of another, or where that is not known. A row is not NULL, whatever is in it.
func (r *Rows) Whole(n *pg.Node) *semantics.Expr {
	fields := ast.Strings(n.GetColumnRef().GetFields())
	if len(fields) != 1 || slices.Contains(r.names, fields[0]) || slices.ContainsFunc(r.keys, func(k linear.Key) bool { return k.Name == fields[0] }) {
		return nil
	}
	if parts := r.named(fields); len(parts) == 1 {
		return parts[0].present
	}
	return nil
}

// KeyColumn is the key of the rows' table that one in sight is.
func (r *Rows) KeyColumn(k *linear.Key) *policy.Column { return r.Table.Keys[k.At] }

func (r *Rows) areEqual(a, b *linear.Key) bool {
	return a.At == b.At || r.KeyColumn(a).Unit && r.KeyColumn(b).Unit || slices.Contains(r.equal, [2]int{a.At, b.At}) || slices.Contains(r.equal, [2]int{b.At, a.At})
}

// named lists the relations that the words before a column name name: all of them where there are no words.
func (r *Rows) named(words []string) []relation {
	n := len(words)
	if n == 0 {
		return r.parts
	}
	var found []relation
	for _, p := range r.parts {
		if p.alias != words[n-1] {
			continue
		}
		if t := p.plain; n == 1 || t != nil && words[n-2] == t.Schema && (n == 2 || n == 3 && t.Dataset != nil && words[0] == t.Dataset.ID) {
			found = append(found, p)
		}
	}
	return found
}

// named gives the rows of a sub-query its name. A literal without a type is text there, whatever it is compared with
// outside, as FROM (SELECT '1' AS a, …) AS s; before, as a part of UNION, it becomes what the other parts have.
func (b *Binder) named(r *Rows, a *pg.Alias) (*Rows, *refuse.Refusal) {
	out, refusal := r.aliased(a)
	if refusal != nil {
		return nil, refusal
	}
	named := *out
	named.exprs = slices.Clone(out.exprs)
	for i, e := range named.exprs {
		if e.Type() != policy.Unknown {
			continue
		}
		b.Params.Note(e, policy.Text)
		text, refusal := b.asType(e, policy.Text)
		if refusal != nil {
			return nil, refusal
		}
		if named.exprs[i] = text; e.Parameter > 0 { // whose value is not known
			text.Parameter, text.Canon = e.Parameter, e.Canon
		}
	}
	return &named, nil
}

// What a name in FROM means. FROM people is a private table, FROM regions a public one, FROM pg_class and FROM
// dp.tables are relations of the sandbox, and FROM dp.people_made_up the made-up rows of a release.

// Resolve finds what a name in FROM means: a private table, or a relation of the sandbox.
func (b *Binder) Resolve(v *pg.RangeVar) (private *policy.Table, other plans.Relation, refusal *refuse.Refusal) {
	pos := int(v.Location)
	d := b.Context.Dataset
	if v.Catalogname != "" && (d == nil || v.Catalogname != d.ID) {
		return nil, other, unknownDatabase.At(pos, v.Catalogname+"."+v.Schemaname+"."+v.Relname)
	}
	if v.Schemaname != "" {
		return b.resolveIn(v.Schemaname, v.Relname, pos)
	}
	path := b.Context.Settings.SearchPath
	if !slices.Contains(path, "pg_catalog") {
		path = append([]string{"pg_catalog"}, path...)
	}
	if b.Context.Settings.SearchPath == nil {
		path = append(path, "public")
	}
	for _, schema := range path {
		if private, other, refusal = b.resolveIn(schema, v.Relname, pos); refusal == nil || refusal.ID == ownCatalogue.ID {
			return private, other, refusal
		}
	}
	if d != nil && slices.Contains(path, "public") {
		if t := d.Table("", v.Relname); t != nil {
			return b.table(t)
		}
	}
	if refusal = unknownTable.At(pos, v.Relname); d != nil {
		if near := nearestTable(d, v.Relname, path); near != "" {
			refusal.Hint = `Perhaps you meant "` + near + `".`
		}
	}
	return nil, other, refusal
}

// nearestTable is the table of a name that is spelled much like another, or empty. It has its schema where no path leads
// to that.
func nearestTable(d *policy.Dataset, name string, path []string) string {
	names := make([]string, len(d.Tables))
	for i, t := range d.Tables {
		names[i] = t.Name
	}
	near := refuse.Nearest(name, names)
	if t := d.Table("", near); near != "" && t != nil && !slices.Contains(path, t.Schema) {
		return t.Schema + "." + near
	}
	return near
}

func (b *Binder) resolveIn(schema, name string, pos int) (*policy.Table, plans.Relation, *refuse.Refusal) {
	catalog := schema == "pg_catalog" || schema == "information_schema" || schema == "dp"
	known := pgcatalog.Lookup(schema, name)
	switch {
	case known != nil && known.Readable:
		return nil, plans.Relation{Schema: schema, Name: name}, nil
	case known != nil:
		return nil, plans.Relation{}, ownCatalogue.At(pos, schema+"."+name)
	case schema == "dp" && b.Context.Dataset != nil && b.Context.Dataset.MadeUp(name) != nil:
		return nil, plans.Relation{Schema: schema, Name: name, Release: b.Context.Dataset.MadeUp(name)}, nil
	case catalog:
		return nil, plans.Relation{}, unknownTable.At(pos, schema+"."+name).Hinting("The catalogs are those of PostgreSQL 15; SELECT relname FROM pg_class lists them.")
	case b.Context.Dataset != nil:
		if t := b.Context.Dataset.Table(schema, name); t != nil && t.Schema == schema {
			return b.table(t)
		}
	}
	return nil, plans.Relation{}, unknownTable.At(pos, schema+"."+name)
}

func (b *Binder) table(t *policy.Table) (*policy.Table, plans.Relation, *refuse.Refusal) {
	if t.Public {
		return nil, plans.Relation{Schema: t.Schema, Name: t.Name, Public: t}, nil
	}
	return b.Open.Table(t), plans.Relation{}, nil
}
