// Package outer writes outer queries: all of a statement that stands above the leaves of its plan, and is asked of released
// tables and of the catalogs in a sandbox that has never seen private data. What cannot be written is refused. It does no I/O,
// and does not see the package that writes for the private database.
//
// For DuckDB the tree is bound here: every column, operator, function and cast is resolved by PostgreSQL's rules, and the
// text that comes out names generated aliases only, so that none of DuckDB's own rules of name or type resolution is ever
// asked. Integers, text, booleans and comparisons are DuckDB's; what means something else there (numerics, floating point,
// dates, functions) is computed by package scalar, which the engine calls. For PostgreSQL the tree is printed nearly as it is
// (postgres.go).
//
// A file says at its head what it binds and how one statement comes out; leaf_1 is a released table there, with the keys
// k (text) and g (integer) and the count n (bigint). One statement through all of it:
//
//	SELECT k, sum(n) AS n FROM leaf_1 GROUP BY k
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT "t1"."k" AS "c1", num_in(CAST(sum("t1"."n") AS VARCHAR)) AS "c2" FROM
//	  "leaf_1" AS "t1" GROUP BY "t1"."k") AS "q2"
//
// Render hands the tree to statement (bind.go), which binds a plain SELECT (select.go): its FROM (from.go) makes t1 of the
// leaf, its select list the columns c1 and c2. k is found in t1 (names.go). sum is an aggregate (function.go), and PostgreSQL's
// sum of bigint is numeric, which the engine holds as a text that num_in writes (aggregate.go). GROUP BY k is the column, not
// the output column of that name (group.go). Around it stands the SELECT that shows values as they are sent. The names k and
// n travel beside the text.
package outer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Query is the regenerated outer query for a sandbox.
type Query struct {
	SQL       string
	Careful   string   // DuckDB: a text of the same meaning for where SQL fails on a value that PostgreSQL would not have come to; empty: there is none
	Params    []string // what the session gives for $1, $2, …: "user", "database", "pid", "now", "zone", "version" or a setting; or a text itself (Given)
	Relations []string // what it reads besides leaves, as schema.name
	Columns   []Column // of the answer; nil for PostgreSQL, which says so itself
	Apart     string   // PostgreSQL: a text like SQL that reads the public tables that are given with the query, each by schema.name; empty: SQL reads none beside leaves
	With      string   // PostgreSQL: what stands before SQL, whose own table expressions come first: "", "WITH ", "WITH RECURSIVE "
}

// Column is a column of an outer query's answer.
type Column struct {
	Name   string
	Type   policy.Type
	Typmod int32
}

// Render regenerates the outer query of a plan: for PostgreSQL nearly as it is, for DuckDB with names, operators, functions and
// casts mapped so that they mean what they mean in PostgreSQL. What cannot be mapped is refused.
func Render(p *plans.Plan, d dialect.Dialect) (Query, *refuse.Refusal) {
	if p.Outer.Tree == nil {
		return Query{}, refuse.Sandbox("this query has no outer query to run")
	}
	return caught(func() (Query, *refuse.Refusal) {
		if d.PostgreSQLs {
			return forTwin(p)
		}
		return (&binder{plan: p}).whole()
	})
}

// whole binds the plan of a binder.
func (b *binder) whole() (Query, *refuse.Refusal) {
	sql, columns := b.statement(b.plan.Outer.Tree)
	q := Query{SQL: sql, Params: b.params, Relations: b.relations, Columns: columns}
	if b.hasty {
		again := &binder{plan: b.plan, careful: true}
		if q.Careful, _ = again.statement(b.plan.Outer.Tree); !slices.Equal(again.params, q.Params) {
			q.Careful = "" // its parameters would be others
		}
	}
	return q, nil
}

// caught has a refusal that was carried up from the depth of a tree returned.
func caught(write func() (Query, *refuse.Refusal)) (q Query, refusal *refuse.Refusal) {
	defer func() {
		if r := recover(); r != nil {
			stop, ours := r.(*refusing)
			if !ours {
				panic(r)
			}
			q, refusal = Query{}, stop.refusal
		}
	}()
	return write()
}

// Given is the name of a parameter that is a text (plans.Outer.Given). Two of one text may have two types.
func Given(number int, text string) string { return "=" + strconv.Itoa(number) + "=" + text }

// GivenText is the text of such a parameter; false: it is one that the session gives, none of whose names begins so.
func GivenText(name string) (string, bool) {
	rest, given := strings.CutPrefix(name, "=")
	_, text, _ := strings.Cut(rest, "=")
	return text, given
}

// refusing carries a refusal up from the depth of a tree.
type refusing struct{ refusal *refuse.Refusal }

// cannot ends the rewriting: the query has a part that the embedded sandbox does not run. It returns to nobody.
func cannot(what string) expr {
	panic(&refusing{refuse.Unsupported(what)})
}

// wrong ends the rewriting: PostgreSQL, too, would refuse the query. It returns to nobody.
func wrong(state, message string, location int32) expr {
	r := refuse.Invalid(state, message, "")
	if location > 0 {
		r.Position = int(location) + 1
	}
	panic(&refusing{r})
}

// takes holds a call against how many arguments the function has.
func takes(name string, args []expr, least, most int) {
	if len(args) < least || len(args) > most {
		wrong("42883", "function "+name+" does not exist with this number of arguments", 0)
	}
}
