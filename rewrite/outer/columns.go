package outer

import (
	"regexp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Columns that PostgreSQL keeps for itself tell of the sandbox's own transactions and pages. They are replaced by what
// they would say of a table whose rows never change, and refused where it cannot be told which table is meant.
//
//	SELECT c.xmin, c.tableoid FROM pg_catalog.pg_class AS c
//	⇒ SELECT '2'::pg_catalog.xid AS xmin, '"pg_catalog"."pg_class"'::pg_catalog.regclass::pg_catalog.oid AS tableoid FROM
//	  "pg_catalog.pg_class" c

// systemColumns are those that PostgreSQL keeps of each row for itself. In a twin they tell of its own transactions and
// pages, which the whole server counts.
var systemColumns = map[string]bool{"xmin": true, "xmax": true, "cmin": true, "cmax": true, "ctid": true, "tableoid": true}

// nameScope is a FROM clause: what its aliases stand for, as schema.name; "" is what has no columns of PostgreSQL's
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
// as it stands, and where one is put together of parts, as TypeORM does of table_catalog, table_schema and table_name.
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
