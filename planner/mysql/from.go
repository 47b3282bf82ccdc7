package mysql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
)

// from translates FROM and enters its tables into the scope. The parser makes a comma a join without a condition.
func (t *translator) from(f *ast.TableRefsClause, sc *scope) []*pg.Node {
	if f == nil {
		return nil
	}
	var tail []ast.ResultSetNode
	head := ast.ResultSetNode(f.TableRefs)
	for {
		j, ok := head.(*ast.Join)
		if !ok || j.Right != nil && !listed(j) {
			break
		}
		if head = j.Left; j.Right != nil {
			tail = append(tail, j.Right)
		}
		if len(tail) > maxDepth {
			panic(tooDeep(-1))
		}
	}
	out := []*pg.Node{t.table(head, sc)}
	for _, next := range slices.Backward(tail) {
		out = append(out, t.table(next, sc))
	}
	return out
}

// listed reports whether a join is what a comma in FROM says too.
func listed(j *ast.Join) bool {
	return j.Tp == ast.CrossJoin && j.On == nil && j.Using == nil && !j.ExplicitParens
}

func (t *translator) table(n ast.ResultSetNode, sc *scope) *pg.Node {
	t.enter()
	defer t.leave()
	switch n := n.(type) {
	case *ast.TableSource:
		return t.aliased(n, sc)
	case *ast.Join:
		return t.join(n, sc)
	}
	bail(Construct, "this item of FROM", "Name tables, joins and sub-queries.")
	return nil
}

func (t *translator) join(n *ast.Join, sc *scope) *pg.Node {
	if n.Right == nil {
		return t.table(n.Left, sc)
	}
	kind := pg.JoinType_JOIN_INNER
	switch n.Tp {
	case ast.LeftJoin:
		kind = pg.JoinType_JOIN_LEFT
	case ast.RightJoin:
		kind = pg.JoinType_JOIN_RIGHT
	}
	if n.NaturalJoin {
		bail(Construct, "NATURAL JOIN", "Name the columns: JOIN … ON a.x = b.x.")
	}
	left := t.table(n.Left, sc)
	right := t.table(n.Right, sc)
	out := &pg.JoinExpr{Jointype: kind, Larg: left, Rarg: right}
	if n.On != nil {
		out.Quals = t.condition(n.On.Expr, sc)
	}
	for _, c := range n.Using {
		found, _ := sc.find("", c.Name.L)
		if !found.kind.key && (found.kind.class == text || found.kind.class == unknown) {
			bail(Collation, "USING ("+c.Name.O+")", "Write ON BINARY a.x = b.x, which compares the texts by their bytes.")
		}
		out.UsingClause = append(out.UsingClause, pg.MakeStrNode(found.name))
	}
	return &pg.Node{Node: &pg.Node_JoinExpr{JoinExpr: out}}
}

// derived is the relation of a query in FROM or WITH, whose columns may be given other names.
func derived(alias string, items []*item, names []ast.CIStr) (relation, []*pg.Node) {
	if len(names) > 0 && len(names) != len(items) {
		bail(Construct, "a list of names that is not as long as the query has columns", "Name each column of the query.")
	}
	r := relation{alias: alias, ref: alias, columns: map[string]column{}, open: len(items) == 0}
	var nodes []*pg.Node
	for i, it := range items {
		k, name := it.kind, it.name
		k.literal, k.quotient, k.column = nil, false, false
		if it.literal != nil {
			k.values = []string{*it.literal}
		}
		if len(names) > 0 {
			name = names[i].L
			nodes = append(nodes, pg.MakeStrNode(name))
		}
		r.columns[strings.ToLower(name)] = column{name, k}
	}
	return r, nodes
}

func (t *translator) aliased(n *ast.TableSource, sc *scope) *pg.Node {
	alias := n.AsName.L
	if alias == "full" {
		bail(Ambiguous, "FULL", "MySQL has no FULL JOIN and takes the word for an alias: choose another alias, or write the statement for PostgreSQL and RESET dp.dialect.")
	}
	name, ok := n.Source.(*ast.TableName)
	if !ok {
		if n.Lateral || alias == "" {
			bail(Construct, "a sub-query that is LATERAL or has no alias",
				"Write the sub-query for itself, and give it an alias.")
		}
		query, items := t.query(n.Source, nil, false)
		r, names := derived(alias, items, n.ColumnNames)
		sc.relations = append(sc.relations, r)
		return &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: statementNode(query), Alias: &pg.Alias{Aliasname: alias, Colnames: names}}}}
	}
	if len(name.PartitionNames) > 0 || name.AsOf != nil || name.TableSample != nil {
		bail(Construct, "PARTITION, AS OF or TABLESAMPLE", "Leave it out: partitions are not seen here.")
	}
	schema, table := t.schemaOf(name.Schema.O), name.Name.L
	r := relation{alias: table, open: true}
	if with := t.defined(table); with != nil && schema == "" {
		r = *with
	} else if known, ok := t.named(schema, name.Name.O); ok {
		table, r.columns, r.open = known.Name, columnsOf(known), false
	}
	if r.ref = table; alias != "" {
		r.alias, r.ref = alias, alias
	}
	sc.relations = append(sc.relations, r)
	v := &pg.RangeVar{Schemaname: schema, Relname: table, Inh: true, Relpersistence: "p", Location: -1}
	if alias != "" {
		v.Alias = &pg.Alias{Aliasname: alias}
	}
	return &pg.Node{Node: &pg.Node_RangeVar{RangeVar: v}}
}

// schemaOf is the schema of a table's name. MySQL's qualifier is a database, which is a dataset here.
func (t *translator) schemaOf(q string) string {
	if q == "" {
		return ""
	}
	if t.dataset != nil {
		if q == t.dataset.ID {
			return ""
		}
		for _, table := range t.dataset.Tables {
			if strings.EqualFold(table.Schema, q) {
				return table.Schema
			}
		}
	}
	if strings.EqualFold(q, "dp") {
		return "dp"
	}
	bail(Construct, "the database "+q, "Only the dataset that this connection is open on is seen; for catalogs, write for PostgreSQL and RESET dp.dialect.")
	return ""
}

// ranks are the window functions that look at the order of rows alone.
var ranks = map[string]class{"row_number": integer, "rank": integer, "dense_rank": integer, "ntile": integer,
	"percent_rank": float, "cume_dist": float}

// reaches are those that hand on what another row has.
var reaches = set("lag lead first_value last_value nth_value")

// window translates a function with OVER.
func (t *translator) window(n *ast.WindowFuncExpr, sc *scope) value {
	name := strings.ToLower(n.Name)
	if n.Distinct || n.IgnoreNull || n.FromLast {
		bail(Construct, "DISTINCT, IGNORE NULLS or FROM LAST in a window function", "MySQL has none of them.")
	}
	var v value
	switch {
	case aggregates[name]:
		v = t.aggregate(name, n.Args, false, sc)
	case ranks[name] != unknown:
		v = value{call(name, t.rowCounts(n.Args)...), kind{class: ranks[name]}}
	case reaches[name]:
		first := t.expr(n.Args[0], sc)
		rest := n.Args[1:]
		nodes := []*pg.Node{first.node}
		if len(rest) > 0 {
			nodes = append(nodes, t.rowCounts(rest[:1])...)
		}
		if len(rest) > 1 { // what is shown where there is no such row
			list, k := alike([]value{first, t.expr(rest[1], sc)})
			first.kind, nodes[0], nodes = k, list[0].node, append(nodes, list[1].node)
		}
		first.column, first.literal = false, nil
		v = value{call(name, nodes...), first.kind}
	}
	if v.node.GetFuncCall() == nil {
		bail(Construct, strings.ToUpper(name)+" with OVER",
			"COUNT, SUM, AVG, MIN, MAX, ROW_NUMBER, RANK and their relatives, LAG, LEAD and their relatives are read so.")
	}
	v.node.GetFuncCall().Over = t.over(&n.Spec, sc)
	return v
}

func (t *translator) rowCounts(list []ast.ExprNode) []*pg.Node {
	var out []*pg.Node
	for _, e := range list {
		out = append(out, t.whole(e))
	}
	return out
}

// The bits in which PostgreSQL's grammar keeps a frame, as parsenodes.h has them.
const (
	frameGiven   = 0x1
	frameRange   = 0x2
	frameRows    = 0x4
	frameGroups  = 0x8
	frameBetween = 0x10
	// frameStart and frameEnd are the least bit of a start and of an end: each kind of bound has two, one for each.
	frameStart   = 0x20
	frameEnd     = 0x40
	frameDefault = frameRange | frameStart | frameEnd<<4 // RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)

// frames are the kinds of frames by the parser's names.
var frames = map[ast.FrameType]int32{ast.Rows: frameRows, ast.Ranges: frameRange, ast.Groups: frameGroups}

// over is a window: its name, or its keys, order and frame.
func (t *translator) over(s *ast.WindowSpec, sc *scope) *pg.WindowDef {
	out := &pg.WindowDef{Name: s.Name.L, Refname: s.Ref.L, FrameOptions: frameDefault, Location: -1}
	if s.PartitionBy != nil {
		for _, o := range s.PartitionBy.Items {
			v := shown(t.windowKey(o.Expr, sc))
			distinctTexts(v)
			out.PartitionClause = append(out.PartitionClause, v.node)
		}
	}
	for _, o := range ordersOf(s.OrderBy) {
		v := t.windowKey(o.Expr, sc)
		out.OrderClause = append(out.OrderClause, t.sorted(ordered(v, v.node), o))
	}
	if s.Frame != nil {
		start, low := t.bound(s.Frame.Extent.Start)
		end, high := t.bound(s.Frame.Extent.End)
		out.FrameOptions = frameGiven | frameBetween | frames[s.Frame.Type] | frameStart<<start | frameEnd<<end
		out.StartOffset, out.EndOffset = low, high
	}
	return out
}

func (t *translator) windowKey(e ast.ExprNode, sc *scope) value {
	if _, position := e.(*ast.PositionExpr); position {
		bail(Construct, "a constant as a window's key", "Name the column: a position has no meaning in OVER.")
	}
	return t.expr(e, sc)
}

// bound is one end of a frame: which of the kinds of bounds, as a shift of the least bit, and its number of rows.
func (t *translator) bound(b ast.FrameBound) (int, *pg.Node) {
	kind := 0 // UNBOUNDED PRECEDING
	switch {
	case b.Type == ast.CurrentRow:
		return 4, nil
	case b.UnBounded && b.Type == ast.Following:
		kind = 2
	case b.UnBounded:
	case b.Type == ast.Following:
		kind = 8
	default:
		kind = 6
	}
	if b.UnBounded {
		return kind, nil
	}
	if b.Unit != ast.TimeUnitInvalid {
		bail(Construct, "an INTERVAL as the end of a frame", "Write ROWS and a number of rows.")
	}
	return kind, t.whole(b.Expr)
}
