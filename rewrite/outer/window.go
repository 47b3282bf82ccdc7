package outer

import (
	"regexp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// Windows are DuckDB's, with PostgreSQL's order of NULLs and its frames written out.
//
//	SELECT sum(n) OVER (PARTITION BY k ORDER BY g ROWS 1 PRECEDING) FROM leaf_1
//	⇒ SELECT "c1" AS "c1" FROM (SELECT num_in(CAST(sum("t1"."n") OVER (PARTITION BY "t1"."k" ORDER BY "t1"."g" ASC NULLS LAST
//	  ROWS BETWEEN CAST(CAST(1 AS INTEGER) AS BIGINT) PRECEDING AND CURRENT ROW) AS VARCHAR)) AS "c1" FROM "leaf_1" AS "t1")
//	  AS "q2"

// windowFunction binds the functions that need OVER.
func (b *binder) windowFunction(name string, args []expr, tail string) expr {
	plain := func(t typed, count int) expr {
		takes(name, args, count, count)
		return expr{sql: name + "(" + joined(args) + ")" + tail, typed: t}
	}
	switch name {
	case "row_number", "rank", "dense_rank":
		return plain(int8Type, 0)
	case "percent_rank", "cume_dist":
		return plain(of(policy.Float8), 0)
	case "ntile":
		takes(name, args, 1, 1)
		args[0] = b.cast(args[0], int4Type)
		args[0].sql = "(CASE WHEN " + args[0].sql + " < 1 THEN CAST(" + raise("22014", "argument of ntile must be greater than zero") + " AS INTEGER) ELSE " + args[0].sql + " END)"
		e := plain(int4Type, 1)
		return expr{sql: "CAST(" + e.sql + " AS INTEGER)", typed: int4Type}
	case "first_value", "last_value":
		return plain(args[0].typed, 1)
	case "nth_value":
		takes(name, args, 2, 2)
		args[1] = b.cast(args[1], int4Type)
		args[1].sql = "(CASE WHEN " + args[1].sql + " < 1 THEN CAST(" + raise("22016", "argument of nth_value must be greater than zero") + " AS BIGINT) ELSE " + args[1].sql + " END)"
		return plain(args[0].typed, 2)
	case "lag", "lead":
		if len(args) > 2 {
			args[2] = b.cast(args[2], bare(args[0].typed))
			args[0].even = args[0].even && args[2].even
		}
		return plain(args[0].typed, len(args))
	}
	return cannot("window function " + name)
}

// The bits of WindowDef.frame_options, as the grammar defines them.
const (
	frameGiven         = 0x1
	frameRows          = 0x4
	frameGroups        = 0x8
	startFirst         = 0x20
	endLast            = 0x100
	startCurrent       = 0x200
	endCurrent         = 0x400
	startBefore        = 0x800
	endBefore          = 0x1000
	startAfter         = 0x2000
	endAfter           = 0x4000
	excludeCurrentRow  = 0x8000
	excludeGroup       = 0x10000
	excludeTies        = 0x20000
	frameNeedsDistance = startBefore | endBefore | startAfter | endAfter
)

// window writes what stands in OVER (…).
func (b *binder) window(w *pg.WindowDef, sc *scope) string {
	if name := w.GetName(); name != "" {
		named, ok := sc.windows[name]
		if !ok {
			wrong("42704", `window "`+name+`" does not exist`, w.GetLocation())
		}
		w = named
	}
	if w.GetRefname() != "" {
		cannot("a window that extends another")
	}
	var parts, keys []string
	for _, node := range w.GetPartitionClause() {
		keys = append(keys, b.orderKey(b.expr(node, sc)))
	}
	if keys != nil {
		parts = append(parts, "PARTITION BY "+strings.Join(keys, ", "))
	}
	if len(w.GetOrderClause()) > 0 {
		parts = append(parts, "ORDER BY "+b.ordering(w.GetOrderClause(), sc))
	}
	if w.GetFrameOptions()&frameGiven != 0 {
		parts = append(parts, b.frame(w, sc))
	}
	return strings.Join(parts, " ")
}

// constantNumber is a number, not negative, that is written in the query.
var constantNumber = regexp.MustCompile(`^CAST\(CAST\([0-9]+ AS INTEGER\) AS BIGINT\)$`)

func (b *binder) frame(w *pg.WindowDef, sc *scope) string {
	o := w.GetFrameOptions()
	unit := "RANGE"
	if o&frameRows != 0 {
		unit = "ROWS"
	} else if o&frameGroups != 0 {
		unit = "GROUPS"
	}
	if unit == "RANGE" && o&frameNeedsDistance != 0 {
		var by expr
		if len(w.GetOrderClause()) == 1 {
			by = b.expr(w.GetOrderClause()[0].GetSortBy().GetNode(), sc)
		}
		for _, node := range []*pg.Node{w.GetStartOffset(), w.GetEndOffset()} {
			if node != nil {
				b.told(b.expr(node, sc).typed, reach(by.oid))
			}
		}
		if !by.oid.Integer() {
			cannot("RANGE with a distance over other types than integers")
		}
	}
	distance := func(node *pg.Node) string {
		n := b.cast(b.expr(node, sc), int8Type).sql
		if constantNumber.MatchString(n) {
			return n
		}
		return "(CASE WHEN " + n + " IS NULL THEN CAST(" + raise("22004", "a frame's offset must not be null") + " AS BIGINT) WHEN " + n + " < 0 THEN CAST(" +
			raise("22013", "a frame's offset must not be negative") + " AS BIGINT) ELSE " + n + " END)"
	}
	bound := func(first, current, before, after int32, node *pg.Node, otherwise string) string {
		switch {
		case o&first != 0:
			return otherwise
		case o&current != 0:
			return "CURRENT ROW"
		case o&before != 0:
			return distance(node) + " PRECEDING"
		case o&after != 0:
			return distance(node) + " FOLLOWING"
		}
		cannot("this window frame")
		return ""
	}
	text := unit + " BETWEEN " + bound(startFirst, startCurrent, startBefore, startAfter, w.GetStartOffset(), "UNBOUNDED PRECEDING") +
		" AND " + bound(endLast, endCurrent, endBefore, endAfter, w.GetEndOffset(), "UNBOUNDED FOLLOWING")
	switch {
	case o&excludeCurrentRow != 0:
		text += " EXCLUDE CURRENT ROW"
	case o&excludeGroup != 0:
		text += " EXCLUDE GROUP"
	case o&excludeTies != 0:
		text += " EXCLUDE TIES"
	}
	return text
}
