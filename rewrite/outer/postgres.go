package outer

import (
	"errors"
	"slices"
	"strings"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// forTwin regenerates the outer query for a PostgreSQL sandbox. Names, types and functions mean there what they mean
// everywhere in PostgreSQL, so the tree is printed as it is but for what tells of the sandbox itself or of its server:
// relations that pgcatalog.Overlaid names are read from table expressions that the sandbox puts in front, functions of the
// session and of the cluster are answered from the session's parameters.
//
//	SELECT k, d.datname FROM leaf_1, pg_catalog.pg_database AS d
//	⇒ SELECT k, d.datname FROM leaf_1, "pg_catalog.pg_database" d
func forTwin(p *plans.Plan) (Query, *refuse.Refusal) {
	if slices.ContainsFunc(p.Leaves, ragged) { // whose blanks PostgreSQL would take for what they are not: the binder knows what looks at them
		if _, refusal := caught((&binder{plan: p}).whole); refusal != nil {
			return Query{}, refuse.Sandbox("what may look at the blanks of a choice among chars cannot be run by the sandbox").Hinting(asText)
		}
	}
	q, refusal := twinText(p, false)
	if refusal != nil || len(p.Leaves) == 0 || !slices.ContainsFunc(p.Outer.Relations, func(r plans.Relation) bool { return r.Public != nil }) {
		return q, refusal
	}
	if apart, refusal := twinText(p, true); refusal == nil && slices.Equal(apart.Params, q.Params) && apart.With == q.With {
		q.Apart = apart.SQL
	}
	return q, nil
}

// twinText is one text: with public tables as the server has them, or apart, as table expressions like those of the catalogs.
func twinText(p *plans.Plan, apart bool) (Query, *refuse.Refusal) {
	t := &twin{}
	for _, r := range p.Outer.Relations {
		t.reads(r.Schema + "." + r.Name)
		if apart && r.Public != nil {
			t.apart = append(t.apart, r.Schema+"."+r.Name)
		}
	}
	tree := proto.Clone(p.Outer.Tree).(*pg.Node)
	if len(p.Outer.Given) > 0 {
		ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
			if g, ok := m.Interface().(*pg.ParamRef); ok && g.Number > 0 {
				g.Number = int32(t.place(Given(int(g.Number), p.Outer.Given[g.Number-1])))
			}
		})
	}
	eachNode(tree.ProtoReflect(), func(n *pg.Node) {
		if n.GetParamRef().GetNumber() < 0 { // described: what it is worth is not known yet
			n.Node = &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true, Location: -1}}
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

// grammarVersion is what the grammar's printer asks of a tree that it did not parse itself.
var grammarVersion = sync.OnceValue(func() int32 {
	tree, err := pg.Parse("SELECT 1")
	if err != nil {
		panic("outer: grammar: " + err.Error())
	}
	return tree.GetVersion()
})

// deparsed prints a statement, and reads it again: the printer leaves out parentheses that some expressions need, and
// what reads as another statement must not be sent.
func deparsed(tree *pg.Node) (string, error) {
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

// twin rewrites one statement for a PostgreSQL sandbox.
type twin struct {
	asked
	system   map[*pg.ColumnRef]*twinScope // where columns that PostgreSQL keeps for itself are named
	labelled map[string]bool              // names that the statement gives to columns
	bound    map[*pg.FuncCall]bool        // calls that stay as they are, where they are never made
	apart    []string                     // public tables that are read from table expressions too, as schema.name
}

// rewrite changes the tree in place. Columns whose name came from what is replaced keep it.
func (t *twin) rewrite(tree *pg.Node) {
	labels := map[*pg.ResTarget]string{}
	t.system, t.labelled, t.bound = map[*pg.ColumnRef]*twinScope{}, map[string]bool{}, map[*pg.FuncCall]bool{}
	eachNode(tree.ProtoReflect(), t.sets)
	t.scopes(tree.ProtoReflect(), nil)
	eachNode(tree.ProtoReflect(), func(n *pg.Node) {
		target := n.GetResTarget()
		if name := target.GetName(); name != "" {
			t.labelled[name] = true
		} else if target != nil {
			labels[target], _ = ast.ColumnName(target.GetVal())
		}
	})
	eachNode(tree.ProtoReflect(), t.node)
	for target, label := range labels {
		if now, _ := ast.ColumnName(target.GetVal()); now != label {
			target.Name = label
		}
	}
	t.renumber(tree)
}

// renumber leaves out the parameters that no part of the tree reads any more.
func (t *twin) renumber(tree *pg.Node) {
	var used asked
	eachNode(tree.ProtoReflect(), func(n *pg.Node) {
		if p := n.GetParamRef(); p != nil {
			p.Number = int32(used.place(t.params[p.GetNumber()-1]))
		}
	})
	t.params = used.params
}

// children visits the messages in the fields of a message.
func children(m protoreflect.Message, visit func(protoreflect.Message)) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i).Message())
			}
		default:
			visit(v.Message())
		}
		return true
	})
}

// eachNode visits the nodes of a tree, the inner ones first.
func eachNode(m protoreflect.Message, visit func(*pg.Node)) {
	children(m, func(c protoreflect.Message) { eachNode(c, visit) })
	if n, ok := m.Interface().(*pg.Node); ok {
		visit(n)
	}
}

func (t *twin) node(n *pg.Node) {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		t.table(v.RangeVar)
	case *pg.Node_RangeFunction:
		for _, f := range v.RangeFunction.GetFunctions() {
			if items := f.GetList().GetItems(); len(items) > 0 && !callable(items[0]) {
				t.oneRow(n, v.RangeFunction)
				return
			}
		}
	case *pg.Node_ColumnRef:
		t.column(n, v.ColumnRef)
	case *pg.Node_FuncCall:
		name := lastName(v.FuncCall.GetFuncname())
		if f, ok := twinFunctions[name]; ok {
			n.Node = t.call(f, v.FuncCall).Node
		} else if pgcatalog.Silent(name) != nil {
			t.silent(n, v.FuncCall)
		}
	case *pg.Node_SqlvalueFunction:
		if name, ok := twinValues[v.SqlvalueFunction.GetOp()]; ok {
			n.Node = t.expand(`CAST("$`+name+`" AS pg_catalog.name)`, nil).Node
		}
	case *pg.Node_TypeCast:
		switch lastName(v.TypeCast.GetTypeName().GetNames()) {
		case "regrole":
			cannot("a cast to regrole")
		case "regclass":
			t.className(v.TypeCast)
		}
	}
}

// callable tells what may stand for a function in FROM.
func callable(n *pg.Node) bool {
	switch n.GetNode().(type) {
	case *pg.Node_FuncCall, *pg.Node_SqlvalueFunction, *pg.Node_CoalesceExpr, *pg.Node_MinMaxExpr:
		return true
	}
	return false
}

// table has an overlaid relation read from the table expression of its full name.
func (t *twin) table(v *pg.RangeVar) {
	v.Catalogname = ""
	if v.GetSchemaname() == "" || !t.expressed(v.GetSchemaname(), v.GetRelname()) {
		return
	}
	if v.GetAlias() == nil {
		v.Alias = &pg.Alias{Aliasname: v.GetRelname()}
	}
	v.Schemaname, v.Relname = "", v.GetSchemaname()+"."+v.GetRelname()
	t.reads(v.Relname)
}

// expressed tells whether a relation is read from a table expression.
func (t *twin) expressed(schema, name string) bool {
	return pgcatalog.Overlaid(schema, name) || slices.Contains(t.apart, schema+"."+name)
}

// column fits a column reference to what its table has become. The columns that PostgreSQL keeps for itself tell of the
// sandbox's own transactions and pages: their table's number is known, their versions are those of rows that are frozen.
func (t *twin) column(n *pg.Node, c *pg.ColumnRef) {
	fields := c.GetFields()
	if len(fields) > 3 {
		fields = fields[len(fields)-3:]
	}
	if len(fields) == 3 && t.expressed(fields[0].GetString_().GetSval(), fields[1].GetString_().GetSval()) {
		fields = fields[1:]
	}
	c.Fields = fields
	if scope := t.system[c]; scope != nil {
		t.systemColumn(n, fields, scope)
	}
}

func castTo(n *pg.Node, name string) *pg.Node {
	inner := &pg.Node{Node: n.Node}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: inner, Location: -1, TypeName: &pg.TypeName{
		Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(name)}, Typemod: -1, Location: -1}}}}
}
