package twin

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// The text that is sent. SELECT datname FROM pg_database becomes WITH "pg_catalog.pg_database" AS (SELECT … FROM ROWS
// FROM (unnest($1) …)) SELECT datname FROM "pg_catalog.pg_database": released tables and what the policy or the session
// gives are arrays, relations that tell of the server are shown with those columns masked, and all others are the
// server's own.

// shapes is what a twin's own catalogs say of themselves: the columns of each relation of pg_catalog and
// information_schema, by schema.name.
type shapes map[string][]column

type column struct {
	name string
	oid  policy.Type // of a domain: of its base type
	text string      // the type as format_type writes it
}

// typeAnyArray is the type of the values in pg_stats, which differs from row to row.
const typeAnyArray policy.Type = 2277

// composer puts the table expressions of one query in front of it: released tables as arrays, and relations of the
// catalogs that are not shown as they are.
type composer struct {
	session sandbox.Session
	policy  *policy.Policy
	catalog shapes
	blank   bool // arrays are NULL: the query is only bound
	args    [][]byte
	parts   []string
}

// compose returns the whole text; args are its parameters.
func (c *composer) compose(q outer.Query, tables []sandbox.Table) string {
	now := time.Now().UnixMicro()
	for _, p := range q.Params {
		if outer.Open(p) > 0 { // of a described statement
			c.args = append(c.args, nil)
		} else {
			c.args = append(c.args, []byte(catalog.Parameter(c.session, p, now)))
		}
	}
	given := map[string]bool{}
	for _, t := range tables {
		name := t.Qualified()
		given[name] = true
		c.table(name, t.Rows.Value())
	}
	for _, name := range q.Relations {
		schema, relation, _ := strings.Cut(name, ".")
		if given[name] || !pgcatalog.Overlaid(schema, relation) {
			continue
		}
		given[name] = true
		if pgcatalog.Replaced(schema, relation) {
			c.table(name, c.shaped(name, catalog.Overlay(c.policy, c.session, name)))
		} else {
			c.masked(schema, relation)
		}
	}
	// With a table expression in front the text can be nothing but a query: the grammar is the second lock on that
	// door.
	c.parts = append(c.parts, `" " AS (SELECT)`)
	if q.With == "" {
		return "WITH " + strings.Join(c.parts, ", ") + " " + q.SQL
	}
	return q.With + strings.Join(c.parts, ", ") + ", " + q.SQL
}

// shaped gives rows the columns that this server's version of the relation has.
func (c *composer) shaped(name string, rows sandbox.Rows) sandbox.Rows {
	columns := c.catalog[name]
	if columns == nil {
		return rows
	}
	at := map[string]int{}
	for i, have := range rows.Columns {
		at[have.Name] = i
	}
	out := sandbox.Rows{Data: make([][]policy.Value, len(rows.Data))}
	for i := range out.Data {
		out.Data[i] = make([]policy.Value, len(columns))
	}
	schema, relation, _ := strings.Cut(name, ".")
	for k, want := range columns {
		out.Columns = append(out.Columns, sandbox.Column{Name: want.name, Type: want.oid, Typmod: typmodOf(pgcatalog.Lookup(schema, relation), want.name)})
		if i, ok := at[want.name]; ok {
			for r := range out.Data {
				out.Data[r][k] = rows.Data[r][i]
			}
		}
	}
	return out
}

// typmodOf is the modifier of a column of the catalogs: a yes_or_no of information_schema is a varchar(3).
func typmodOf(rel *pgcatalog.Relation, column string) int32 {
	if rel != nil {
		for _, c := range rel.Columns {
			if c.Name == column {
				return c.Typmod
			}
		}
	}
	return -1
}

// table writes a table expression that reads arrays.
func (c *composer) table(name string, rows sandbox.Rows) {
	head := dialect.QuoteName(name)
	if len(rows.Columns) == 0 {
		c.parts = append(c.parts, head+" AS (SELECT FROM pg_catalog.generate_series(1, "+strconv.Itoa(len(rows.Data))+"))")
		return
	}
	env := scalar.Env{Zone: time.UTC}
	var items, arrays, names []string
	for k, col := range rows.Columns {
		u := "c" + strconv.Itoa(k+1)
		if longer(rows, k) { // what outside: other makes of a value is none of its column's, and not cut
			col.Typmod = -1
		}
		shown, array := typeText(col), "pg_catalog.text[]"
		item := "u." + u
		if col.Type == typeAnyArray {
			item = "(SELECT s.most_common_vals FROM pg_catalog.pg_stats AS s WHERE false)" // no text can be cast to it
		} else if simple(col.Type) {
			array = shown + "[]"
			if col.Typmod >= 0 {
				array = typeText(sandbox.Column{Type: col.Type, Typmod: -1}) + "[]"
				item = "CAST(" + item + " AS " + shown + ")"
			}
		} else {
			item = "CAST(" + item + " AS " + shown + ")"
		}
		if c.blank {
			c.args = append(c.args, nil)
		} else {
			c.args = append(c.args, arrayText(env, rows.Columns[k], rows.Data, k))
		}
		items = append(items, item+" AS "+dialect.QuoteName(col.Name))
		arrays = append(arrays, "pg_catalog.unnest(CAST($"+strconv.Itoa(len(c.args))+" AS "+array+"))")
		names = append(names, u)
	}
	c.parts = append(c.parts, head+" AS (SELECT "+strings.Join(items, ", ")+" FROM ROWS FROM ("+strings.Join(arrays, ", ")+
		") AS u("+strings.Join(names, ", ")+"))")
}

// longer reports whether some value of a column of char(n) or varchar(n) is longer than n.
func longer(rows sandbox.Rows, k int) bool {
	c := rows.Columns[k]
	bounded := c.Typmod >= 0 && (c.Type == policy.Bpchar || c.Type == policy.Varchar)
	return bounded && slices.ContainsFunc(rows.Data, func(row []policy.Value) bool {
		s, ok := row[k].(string)
		return ok && utf8.RuneCountInString(s) > policy.CharLength(c.Typmod)
	})
}

// masked writes a table expression that shows a relation without what it tells of the cluster.
func (c *composer) masked(schema, relation string) {
	var items []string
	for _, col := range c.catalog[schema+"."+relation] {
		name := dialect.QuoteName(col.name)
		item := name
		switch {
		case schema == "information_schema":
			item = c.ownName(col, name)
		case pgcatalog.Masked(col.name, col.oid):
			item = maskedValue(col)
		}
		items = append(items, item+" AS "+name)
	}
	c.parts = append(c.parts, dialect.QuoteName(schema+"."+relation)+" AS NOT MATERIALIZED (SELECT "+strings.Join(items, ", ")+" FROM "+
		schema+"."+dialect.QuoteName(relation)+")")
}

// ownName replaces the names of the database and of its roles in a column of information_schema.
func (c *composer) ownName(col column, name string) string {
	as := func(value string) string {
		return "CAST(CASE WHEN " + name + " IS NOT NULL THEN " + value + " END AS " + col.text + ")"
	}
	text := func(v string) string { return "'" + strings.ReplaceAll(v, "'", "''") + "'" }
	switch {
	case strings.HasSuffix(col.name, "_catalog") || col.name == "catalog_name":
		return as(text(c.session.Database))
	case col.name == "grantor" || strings.HasSuffix(col.name, "_owner"):
		return as(text(pgcatalog.OwnerName))
	case col.name == "grantee" || col.name == "role_name" || col.name == "authorization_identifier":
		return as("CASE WHEN " + name + " = 'PUBLIC' THEN 'PUBLIC' ELSE " + text(c.session.User) + " END")
	}
	return name
}

// maskedValue returns the value in place of a column that is not shown.
func maskedValue(col column) string {
	value := "NULL"
	switch {
	case col.name == "reltuples":
		value = "-1"
	case strings.HasSuffix(col.name, "owner") && col.oid == 26:
		value = strconv.FormatInt(catalog.OwnerOid, 10)
	case strings.HasSuffix(col.name, "owner"):
		value = "'" + pgcatalog.OwnerName + "'"
	case col.oid == 28:
		value = "'2'"
	case strings.HasPrefix(col.name, "rel") && col.oid != 1034:
		value = "0"
	}
	return "CAST(" + value + " AS " + col.text + ")"
}
