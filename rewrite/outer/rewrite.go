package outer

import (
	"regexp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// writer rewrites one statement for the sandbox.
type writer struct {
	asked
	system   map[*pg.ColumnRef]*nameScope // where columns that PostgreSQL keeps for itself are named
	labelled map[string]bool              // names that the statement gives to columns
	bound    map[*pg.FuncCall]bool        // calls that stay as they are, where they are never made
	bytes    int                          // of arguments that templates have copied
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
	case *pg.Node_AIndirection:
		refuseSystemColumns(v.AIndirection)
	case *pg.Node_FuncCall:
		t.function(n, v.FuncCall)
	case *pg.Node_SqlvalueFunction:
		if name, ok := replacedValues[v.SqlvalueFunction.GetOp()]; ok {
			n.Node = t.expand(`CAST("$`+name+`" AS pg_catalog.name)`, nil).Node
		}
	case *pg.Node_TypeCast:
		switch lastName(v.TypeCast.GetTypeName().GetNames()) {
		case "regrole", "_regrole":
			cannot("a cast to regrole")
		case "regclass":
			t.className(v.TypeCast)
		}
	}
}

// callable reports whether a node may be a function in FROM.
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

// function replaces n, a call, where it would tell of the sandbox's server.
func (t *writer) function(n *pg.Node, call *pg.FuncCall) {
	name := lastName(call.GetFuncname())
	if f, ok := replacedFunctions[name]; ok {
		n.Node = t.call(f, call).Node
	} else if args := call.GetArgs(); name == "age" && len(args) == 1 {
		n.Node = t.expand(ageOf, args).Node
	} else if pgcatalog.Silent(name) != nil {
		t.silent(n, call)
	}
}

// refuseSystemColumns refuses (t).xmin.
func refuseSystemColumns(of *pg.A_Indirection) {
	for _, field := range of.GetIndirection() {
		if name := field.GetString_().GetSval(); systemColumns[name] {
			cannot("the column " + name + " of a row")
		}
	}
}

// Columns that PostgreSQL keeps for itself tell of the sandbox's own transactions and pages. They are replaced by what
// they would say of a table whose rows never change, and refused where it is not known which table is meant.
//
//	SELECT c.xmin, c.tableoid FROM pg_catalog.pg_class AS c
//	⇒ SELECT '2'::pg_catalog.xid AS xmin, '"pg_catalog"."pg_class"'::pg_catalog.regclass::pg_catalog.oid AS tableoid FROM
//	  "pg_catalog.pg_class" c

// systemColumns are those that PostgreSQL keeps of each row for itself. In a twin they tell of its own transactions and
// pages, which the whole server counts.
var systemColumns = map[string]bool{"xmin": true, "xmax": true, "cmin": true, "cmax": true, "ctid": true, "tableoid": true}

// nameScope is a FROM clause: what its aliases mean, as schema.name; "" is what has no columns of PostgreSQL's
// own.
type nameScope struct {
	parent *nameScope
	names  map[string]string
}

// scopes finds the FROM clauses around each system column.
func (t *writer) scopes(m protoreflect.Message, around *nameScope) {
	switch v := m.Interface().(type) {
	case *pg.SelectStmt:
		around = &nameScope{parent: around, names: map[string]string{}}
		for _, n := range v.GetFromClause() {
			around.add(n)
		}
	case *pg.ColumnRef:
		if around != nil && systemColumns[lastName(v.GetFields())] {
			t.system[v] = around
		}
	}
	children(m, func(c protoreflect.Message) { t.scopes(c, around) })
}

func (s *nameScope) add(n *pg.Node) {
	switch v := n.GetNode().(type) {
	case *pg.Node_JoinExpr:
		s.add(v.JoinExpr.GetLarg())
		s.add(v.JoinExpr.GetRarg())
	case *pg.Node_RangeVar:
		alias, full := v.RangeVar.GetAlias().GetAliasname(), ""
		if alias == "" {
			alias = v.RangeVar.GetRelname()
		}
		if schema := v.RangeVar.GetSchemaname(); schema != "" && schema != "dp" {
			full = schema + "." + v.RangeVar.GetRelname()
		}
		s.names[alias] = full
	case *pg.Node_RangeSubselect:
		s.names[v.RangeSubselect.GetAlias().GetAliasname()] = ""
	case *pg.Node_RangeFunction:
		s.names[v.RangeFunction.GetAlias().GetAliasname()] = ""
	}
}

// stands finds the table that a system column belongs to; "" where it is a column of a sub-query.
func (t *writer) stands(fields []*pg.Node, s *nameScope) string {
	if len(fields) > 1 {
		alias := fields[len(fields)-2].GetString_().GetSval()
		for ; s != nil; s = s.parent {
			if full, known := s.names[alias]; known {
				return full
			}
		}
		return ""
	}
	var found []string
	for ; s != nil && found == nil; s = s.parent {
		for _, full := range s.names {
			if full != "" {
				found = append(found, full)
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	if len(found) > 1 || t.labelled[lastName(fields)] {
		cannot("the column " + lastName(fields) + " without its table")
	}
	return found[0]
}

// systemColumn replaces a system column: a table's number is known, its rows are all frozen.
func (t *writer) systemColumn(n *pg.Node, fields []*pg.Node, s *nameScope) {
	full := t.stands(fields, s)
	if full == "" {
		return
	}
	value := ""
	switch lastName(fields) {
	case "xmin", "xmax":
		value = "CAST('2' AS pg_catalog.xid)"
	case "cmin", "cmax":
		value = "CAST('0' AS pg_catalog.cid)"
	case "ctid":
		cannot("the column ctid")
	default:
		schema, name, _ := strings.Cut(full, ".")
		value = "CAST(CAST(" + dialect.QuoteText(dialect.QuoteName(schema)+"."+dialect.QuoteName(name)) + " AS pg_catalog.regclass) AS pg_catalog.oid)"
	}
	n.Node = t.expand(value, nil).Node
}

// database finds the name of a database before those of a schema and of a relation.
const database = `^(?:"[^"]+"|[^".]+)\.((?:"[^"]+"|[^".]+)\.(?:"[^"]+"|[^".]+))$`

var databaseBefore = regexp.MustCompile(database)

// className leaves out the name of the database before that of a relation, which would be the sandbox's own: in a text
// as it is, and where one is put together of parts, as TypeORM does of table_catalog, table_schema and table_name.
//
//	SELECT 'demo.public.people'::regclass
//	⇒ SELECT 'public.people'::regclass
func (t *writer) className(c *pg.TypeCast) {
	if text := c.GetArg().GetAConst().GetSval(); text != nil {
		text.Sval = databaseBefore.ReplaceAllString(text.Sval, "$1")
	} else if joined := c.GetArg().GetAExpr(); joined != nil && lastName(joined.GetName()) == "||" && len(c.GetTypeName().GetArrayBounds()) == 0 {
		c.Arg = t.expand(`pg_catalog.regexp_replace("%1", `+dialect.QuoteText(database)+`, '\1')`, []*pg.Node{c.GetArg()})
	}
}
