package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
)

// writer rewrites one statement for the sandbox.
type writer struct {
	asked
	system   map[*pg.ColumnRef]*nameScope // where columns that PostgreSQL keeps for itself are named
	labelled map[string]bool              // names that the statement gives to columns
	bound    map[*pg.FuncCall]bool        // calls that stay as they are, where they are never made
	apart    []string                     // public tables that are read from table expressions too, as schema.name
}

// rewrite changes the tree in place. Columns whose name came from what is replaced keep it.
func (t *writer) rewrite(tree *pg.Node) {
	labels := map[*pg.ResTarget]string{}
	t.system, t.labelled, t.bound = map[*pg.ColumnRef]*nameScope{}, map[string]bool{}, map[*pg.FuncCall]bool{}
	ast.Each(tree.ProtoReflect(), refuseUnending)
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
func (t *writer) renumber(tree *pg.Node) {
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

func (t *writer) node(n *pg.Node) {
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
		if f, ok := replacedFunctions[name]; ok {
			n.Node = t.call(f, v.FuncCall).Node
		} else if pgcatalog.Silent(name) != nil {
			t.silent(n, v.FuncCall)
		}
	case *pg.Node_SqlvalueFunction:
		if name, ok := replacedValues[v.SqlvalueFunction.GetOp()]; ok {
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
func (t *writer) table(v *pg.RangeVar) {
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

// expressed reports whether a relation is read from a table expression.
func (t *writer) expressed(schema, name string) bool {
	return pgcatalog.Overlaid(schema, name) || slices.Contains(t.apart, schema+"."+name)
}

// column fits a column reference to what its table has become. The columns that PostgreSQL keeps for itself tell of the
// sandbox's own transactions and pages: their table's number is known, their versions are those of rows that are
// frozen.
func (t *writer) column(n *pg.Node, c *pg.ColumnRef) {
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

// unending are types whose operators look at no cancel while they work, however long their values are.
var unending = []string{"path", "polygon"}

// refuseUnending refuses a type, or a function that makes values of one.
func refuseUnending(m protoreflect.Message) {
	name := ""
	switch v := m.Interface().(type) {
	case *pg.TypeName:
		name = lastName(v.GetNames())
	case *pg.FuncCall:
		name = lastName(v.GetFuncname())
	}
	if slices.Contains(unending, strings.TrimPrefix(name, "_")) {
		cannot("what is made of type " + name)
	}
}
