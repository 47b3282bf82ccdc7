package mysql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"
)

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
