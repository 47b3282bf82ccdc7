// Package outer writes outer queries: all of a statement that is above the leaves of its plan, and is asked of
// released tables and of the catalogs in a sandbox that has never seen private data. It does no I/O, and does not see
// the package that writes for the private database.
//
// The sandbox is a PostgreSQL, where names, types and functions mean what they mean everywhere, so the tree is printed
// as it is but for what tells of the sandbox itself or of its server: relations that pgcatalog.Overlaid names are read
// from table expressions that the sandbox puts in front, functions of the session and of the cluster are answered from
// the session's parameters.
//
//	SELECT k, d.datname FROM leaf_1, pg_catalog.pg_database AS d
//	⇒ SELECT k, d.datname FROM leaf_1, "pg_catalog.pg_database" d
package outer

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// Query is the regenerated outer query for a sandbox.
type Query struct {
	SQL       string
	Params    []string // what the session gives for $1, $2, …: "user", "database", "pid", "now", "zone", "version" or a setting; a text itself (Given); or a parameter of a described statement (Open)
	Relations []string // what it reads besides leaves, as schema.name
	Apart     string   // a text like SQL that reads the public tables that are given with the query, each by schema.name; empty if SQL reads none besides leaves
	With      string   // what precedes SQL, whose own table expressions come first: "", "WITH ", "WITH RECURSIVE "
}

// Render regenerates the outer query of a plan. What must not be asked of the sandbox is refused.
func Render(p *plans.Plan) (q Query, refusal *refuse.Refusal) {
	if p.Outer.Tree == nil {
		return Query{}, refuse.Sandbox("this query has no outer query to run")
	}
	defer func() {
		if r := recover(); r != nil {
			stop, ours := r.(*refuse.Refusal)
			if !ours {
				panic(r)
			}
			q, refusal = Query{}, stop
		}
	}()
	if slices.ContainsFunc(p.Leaves, ragged) && looksAtBlanks(p.Outer.Tree) {
		return Query{}, refuse.Unsupported("the blanks at the end of a choice among chars").Hinting(
			"As a text it has none, and can be asked of anything: GROUP BY coalesce(store, 'x')::text.")
	}
	if q, refusal = written(p, false); refusal != nil || len(p.Leaves) == 0 || !slices.ContainsFunc(p.Outer.Relations, func(r plans.Relation) bool { return r.Public != nil }) {
		return q, refusal
	}
	if apart, refusal := written(p, true); refusal == nil && slices.Equal(apart.Params, q.Params) && apart.With == q.With {
		q.Apart = apart.SQL
	}
	return q, nil
}

// written is one text: with public tables as the server has them, or apart, as table expressions like those of the
// catalogs.
func written(p *plans.Plan, apart bool) (Query, *refuse.Refusal) {
	t := &writer{}
	for _, r := range p.Outer.Relations {
		t.reads(r.Schema + "." + r.Name)
		if apart && r.Public != nil {
			t.apart = append(t.apart, r.Schema+"."+r.Name)
		}
	}
	tree := proto.Clone(p.Outer.Tree).(*pg.Node)
	ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
		if g, ok := m.Interface().(*pg.ParamRef); ok && g.Number > 0 && len(p.Outer.Given) > 0 {
			g.Number = int32(t.place(Given(int(g.Number), p.Outer.Given[g.Number-1])))
		} else if ok && g.Number < 0 {
			g.Number = int32(t.place(open + strconv.Itoa(int(-g.Number))))
		}
	})
	t.rewrite(tree)
	text, err := deparsed(tree)
	if err != nil {
		return Query{}, refuse.Sandbox("this query cannot be written for the sandbox")
	}
	q := Query{SQL: text, Params: t.params, Relations: t.relations}
	if w := tree.GetSelectStmt().GetWithClause(); w != nil {
		q.With = "WITH "
		if w.GetRecursive() {
			q.With = "WITH RECURSIVE "
		}
		rest, found := strings.CutPrefix(text, q.With)
		if !found {
			return Query{}, refuse.Sandbox("this query cannot be written for the sandbox")
		}
		q.SQL = rest
	}
	return q, nil
}

// Given is the name of a parameter that is a text (plans.Outer.Given). Two of one text may have two types.
func Given(number int, text string) string { return "=" + strconv.Itoa(number) + "=" + text }

// GivenText is the text of such a parameter; it reports false for one that the session gives, none of whose names
// begins so.
func GivenText(name string) (string, bool) {
	rest, given := strings.CutPrefix(name, "=")
	_, text, _ := strings.Cut(rest, "=")
	return text, given
}

// open begins the names of parameters that a described statement has, whose types and values are not known.
const open = "?"

// Open returns the number of a parameter of a described statement, or 0 if the name is that of another parameter.
func Open(name string) int {
	rest, _ := strings.CutPrefix(name, open)
	n, err := strconv.Atoi(rest)
	if err != nil || rest == name {
		return 0
	}
	return n
}

// cannot ends the rewriting: the query has a part that the sandbox does not run. It does not return.
func cannot(what string) { panic(refuse.Unsupported(what)) }

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

// lastName is the last part of a qualified name.
func lastName(nodes []*pg.Node) string {
	if len(nodes) == 0 {
		return ""
	}
	return nodes[len(nodes)-1].GetString_().GetSval()
}

// grammarVersion is what the grammar's printer asks of a tree that it did not parse itself.
var grammarVersion = sync.OnceValue(func() int32 {
	tree, err := pg.Parse("SELECT 1")
	if err != nil {
		panic("outer: grammar: " + err.Error())
	}
	return tree.GetVersion()
})

// deparsed prints a statement, and reads it again: what reads as another statement must not be sent. The printer leaves
// out parentheses that some operands need; these get the form of a call then.
func deparsed(tree *pg.Node) (string, error) {
	eachNode(tree.ProtoReflect(), spellBoolean)
	text, err := printed(tree)
	if err != nil {
		called := proto.Clone(tree).(*pg.Node)
		eachNode(called.ProtoReflect(), callOperands)
		text, err = printed(called)
	}
	return text, err
}

// spellBoolean makes 't'::boolean the grammar's own true, as which its printer writes it.
func spellBoolean(n *pg.Node) {
	c := n.GetTypeCast()
	if c == nil || lastName(c.GetTypeName().GetNames()) != "bool" || len(c.GetTypeName().GetArrayBounds()) > 0 {
		return
	}
	if v, ok := c.GetArg().GetAConst().GetVal().(*pg.A_Const_Sval); ok && (v.Sval.GetSval() == "t" || v.Sval.GetSval() == "f") {
		c.Arg = &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: v.Sval.GetSval() == "t"}}, Location: -1}}}
	}
}

func printed(tree *pg.Node) (string, error) {
	text, err := pg.Deparse(&pg.ParseResult{Version: grammarVersion(), Stmts: []*pg.RawStmt{{Stmt: tree}}})
	if err != nil {
		return "", err
	}
	again, err := pg.Parse(text)
	if err != nil || len(again.Stmts) != 1 {
		return "", errors.New("outer: a statement that cannot be printed")
	}
	if !ast.SameTree(tree, again.Stmts[0].Stmt) {
		return "", errors.New("outer: a statement that its printed form does not keep")
	}
	return text, nil
}

// callOperands writes each operand of an operator or a test that is itself one as coalesce of it alone, which is the
// operand.
func callOperands(n *pg.Node) {
	call := func(operands ...*pg.Node) {
		for _, o := range operands {
			switch o.GetNode().(type) {
			case *pg.Node_AExpr, *pg.Node_BoolExpr, *pg.Node_NullTest, *pg.Node_BooleanTest, *pg.Node_SubLink, *pg.Node_CollateClause, *pg.Node_CaseExpr:
				o.Node = &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: []*pg.Node{{Node: o.Node}}, Location: -1}}
			}
		}
	}
	switch v := n.GetNode().(type) {
	case *pg.Node_AExpr:
		call(v.AExpr.GetLexpr(), v.AExpr.GetRexpr())
		call(v.AExpr.GetRexpr().GetList().GetItems()...)
	case *pg.Node_NullTest:
		call(v.NullTest.GetArg())
	case *pg.Node_BooleanTest:
		call(v.BooleanTest.GetArg())
	case *pg.Node_CollateClause:
		call(v.CollateClause.GetArg())
	case *pg.Node_SubLink:
		call(v.SubLink.GetTestexpr())
	case *pg.Node_TypeCast:
		call(v.TypeCast.GetArg())
	}
}
