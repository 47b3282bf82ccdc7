package outer

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// A query is bound from the inside out. Each becomes a relation, a text whose columns have generated names (c1, c2, …), and each
// table of a FROM clause an entry under a generated alias (t1, t2, …). A scope says what the client's names mean at one place;
// they do not occur in the text.
//
//	SELECT a.k AS key FROM leaf_1 AS a
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."k" AS "c1" FROM "leaf_1" AS "t1") AS "q2"

// typed is the type of an expression.
type typed struct {
	oid    policy.Type
	mod    int32
	fields []column // of a record
	// even tells that equal values look alike: all values of a numeric have one scale, all of a char one length.
	even bool
	// ragged tells that the blanks at the end of a char are not known: it is a choice that was made below the leaf, coalesce(store, 'x').
	ragged bool
	// whole tells that no value of a numeric has decimals: it is a sum of whole numbers.
	whole bool
	// given tells that an untyped text is a parameter's, which is read as the session's settings are, and not as literals.
	given bool
	// parameter is the number of a parameter that is described: an untyped NULL, whose type what stands around it tells (parameters.go).
	parameter int
}

// expr is a bound expression: its DuckDB text and its PostgreSQL type.
type expr struct {
	sql string
	typed
	literal *string     // an untyped literal (type unknown), with its text
	decimal *decimal    // of a numeric: the same as DuckDB's decimal; nil: it may have any number of digits
	null    bool        // the untyped NULL
	series  bool        // returns a set: sql is an unnest(…)
	means   scalar.Expr // what it is to package scalar (failing.go)
}

// column is a column that expressions can name.
type column struct {
	name string
	sql  string
	typed
	decimal *decimal // beside it, of a numeric
}

// value is a column as an expression.
func (c column) value() expr { return expr{sql: c.sql, typed: c.typed, decimal: c.decimal} }

// of are the columns of a table by its alias.
func (c column) of(alias string) column {
	if c.sql = alias + "." + c.sql; c.decimal != nil {
		d := *c.decimal
		d.sql = alias + "." + d.sql
		c.decimal = &d
	}
	return c
}

// withoutDecimals are columns as texts alone.
func withoutDecimals(columns []column) []column {
	out := slices.Clone(columns)
	for i := range out {
		out[i].decimal = nil
	}
	return out
}

// entry is a table of a FROM clause under its alias.
type entry struct {
	schema, alias string
	columns       []column
	oid           int64 // of a catalog relation: what tableoid says
}

// shared is a table expression of a WITH clause.
type shared struct {
	name    string
	sql     string // DuckDB's name of it
	columns []column
	certain
}

// scope is what names mean at one place.
type scope struct {
	parent  *scope
	entries []*entry
	visible []column // what an unqualified name may mean, and what * stands for
	with    []*shared
	windows map[string]*pg.WindowDef
	certain // of the rows of FROM
}

// binder rewrites one statement.
type binder struct {
	asked
	plan       *plans.Plan
	names      int
	careful    bool // what joined describes
	hasty      bool // there would be another text
	describing      // what is told of described parameters; nil: none is described
	*finding        // what is known of certain failures; nil: none is looked for
}

// asked is what a query asks besides leaves: session parameters, and relations as schema.name.
type asked struct{ params, relations []string }

// place is the number of a session parameter.
func (a *asked) place(name string) int {
	if !slices.Contains(a.params, name) {
		a.params = append(a.params, name)
	}
	return slices.Index(a.params, name) + 1
}

func (a *asked) reads(relation string) {
	if !slices.Contains(a.relations, relation) {
		a.relations = append(a.relations, relation)
	}
}

// fresh returns a name that nothing else has.
func (b *binder) fresh(prefix string) string {
	b.names++
	return `"` + prefix + strconv.Itoa(b.names) + `"`
}

// param returns the reference to a session parameter, a text.
func (b *binder) param(name string) string {
	return "CAST($" + strconv.Itoa(b.place(name)) + " AS VARCHAR)"
}

// statement rewrites the whole tree. Types that PostgreSQL shows by name (regclass …) become text only here, so that
// they sort and compare as the numbers that they are.
func (b *binder) statement(tree *pg.Node) (string, []Column) {
	s := tree.GetSelectStmt()
	if s == nil {
		cannot("a statement that is not a SELECT")
	}
	q := b.textual(b.query(s, nil))
	var items []string
	var columns []Column
	for _, c := range q.columns {
		items = append(items, b.shown(c)+" AS "+c.sql)
		columns = append(columns, Column{Name: c.name, Type: c.oid, Typmod: c.mod})
	}
	alias := b.fresh("q")
	return "SELECT " + orTrue(items) + " FROM (" + q.sql + ") AS " + alias + q.orderBy, columns
}

// shown is a column of the answer as it is sent.
func (b *binder) shown(c column) string {
	if isNamed(c.oid) {
		return b.nameOf(expr{sql: c.sql, typed: c.typed}).sql
	}
	if e, ok := elements[c.oid]; ok && isNamed(e) {
		return b.namesOf(c.sql, e)
	}
	if c.oid == typeRecord {
		cannot("a row as a value of the answer")
	}
	if c.decimal != nil {
		return c.decimal.sql
	}
	return c.sql
}

// relation is a bound query: its text and the columns that it returns, each under a generated name. orderBy (with LIMIT
// and OFFSET) is still to be put behind the text's own FROM, and names hidden columns.
type relation struct {
	sql     string
	columns []column
	orderBy string
	certain
}

// query binds a SELECT, VALUES or set operation.
func (b *binder) query(s *pg.SelectStmt, parent *scope) (q relation) {
	inner := &scope{parent: parent}
	if b.parameters == nil {
		return b.boundQuery(s, inner)
	}
	b.visited[s] = typeRecord
	if !b.attempt(func() { q = b.boundQuery(s, inner) }) {
		b.rest(s, inner)
		cannot("this query")
	}
	return q
}

func (b *binder) boundQuery(s *pg.SelectStmt, inner *scope) relation {
	if len(s.GetLockingClause()) > 0 || s.GetIntoClause() != nil {
		cannot("SELECT … INTO or FOR UPDATE")
	}
	with := b.withClause(s.GetWithClause(), inner)
	var q relation
	switch {
	case s.GetOp() != pg.SetOperation_SETOP_NONE && s.GetOp() != pg.SetOperation_SET_OPERATION_UNDEFINED:
		q = b.setOperation(s, inner)
		q = b.sorted(s, q, inner)
	case len(s.GetValuesLists()) > 0:
		q = b.values(s, inner)
		q = b.sorted(s, q, inner)
	default:
		q = b.selection(s, inner)
	}
	q.sql = with + q.sql
	return q
}

// nested binds a query as a part of another: sorted and cut, unknown types settled.
func (b *binder) nested(s *pg.SelectStmt, parent *scope) relation {
	return b.settle(b.query(s, parent))
}

// textual gives columns of unknown type the type text, as PostgreSQL does.
func (b *binder) textual(q relation) relation {
	for i := range q.columns {
		if q.columns[i].oid == policy.Unknown {
			b.told(q.columns[i].typed, policy.Text)
			q.columns[i].typed = typed{oid: policy.Text, mod: -1}
		}
	}
	return q
}

// settle makes a relation a query of its own: unknown types are text, the order is applied.
func (b *binder) settle(q relation) relation {
	if q = b.textual(q); q.orderBy == "" {
		return q
	}
	return relation{sql: "SELECT " + columnList(q.columns) + " FROM (" + q.sql + ") AS " + b.fresh("q") + q.orderBy, columns: q.columns, certain: q.certain}
}

func columnList(columns []column) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, c.sql)
	}
	for _, c := range columns {
		if c.decimal != nil {
			parts = append(parts, c.decimal.sql)
		}
	}
	return orTrue(parts)
}

// columnName is the generated name of a column: "c1", "c2", …
func columnName(prefix string, i int) string { return `"` + prefix + strconv.Itoa(i+1) + `"` }
