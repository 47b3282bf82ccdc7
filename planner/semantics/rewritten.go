package semantics

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Functions and operators that are other expressions of what they read, written out as PostgreSQL defines them: of
//
//	num_nulls(a, b)                      CASE WHEN a IS NULL THEN 1 ELSE 0 END + CASE WHEN b IS NULL THEN 1 ELSE 0 END
//	array_position(ARRAY['x', 'y'], a)   CASE WHEN a IS NOT DISTINCT FROM 'x' THEN 1 WHEN … THEN 2 END
//	format('%s-%s', a, b)                concat(a, '-', b)
//	int4range(20, 30) @> a               a >= 20 AND a < 30
//
// conditions are read from steps as they are of what is on the right.

// overlaps is (a, b) OVERLAPS (c, d) of moments: the lesser of two is where a period begins, and the other its end.
// They overlap if each begins before the other ends, or both at once. Of a period of which one is NULL only a moment
// is known: they do if it lies within the other, and else it is NULL. It is made of comparisons, which steps answer.
var overlaps = `$1 IS NOT NULL AND $2 IS NOT NULL AND $3 IS NOT NULL AND $4 IS NOT NULL AND (
	($1 < $3 OR $1 < $4 OR $2 < $3 OR $2 < $4) AND ($3 < $1 OR $3 < $2 OR $4 < $1 OR $4 < $2) OR
	NOT ($1 < $3 AND $1 < $4 OR $2 < $3 AND $2 < $4) AND NOT ($3 < $1 AND $3 < $2 OR $4 < $1 AND $4 < $2))
OR $1 IS NOT NULL AND $2 IS NOT NULL AND (
	$3 IS NULL AND ($1 < $4 OR $2 < $4) AND ($4 < $1 OR $4 < $2) OR
	$4 IS NULL AND ($1 < $3 OR $2 < $3) AND ($3 < $1 OR $3 < $2))
OR $3 IS NOT NULL AND $4 IS NOT NULL AND (
	$1 IS NULL AND ($3 < $2 OR $4 < $2) AND ($2 < $3 OR $2 < $4) OR
	$2 IS NULL AND ($3 < $1 OR $4 < $1) AND ($1 < $3 OR $1 < $4))
OR ($1 IS NULL OR $2 IS NULL OR $3 IS NULL OR $4 IS NULL) AND NULL`

// quoted is quote_nullable of a value's text, which concat has with the blanks of a char.
var quoted = `CASE WHEN $1 IS NULL THEN 'NULL' WHEN strpos(concat($1), '\') > 0
	THEN 'E''' || replace(replace(concat($1), '\', '\\'), '''', '''''') || ''''
	ELSE '''' || replace(concat($1), '''', '''''') || '''' END`

// parsed are the trees of such texts.
var parsed sync.Map

// written is an expression of the text with nodes in the place of $1, $2 and so on.
func written(text string, nodes ...*pg.Node) *pg.Node {
	tree, known := parsed.Load(text)
	if !known {
		made, err := ast.ParsedExpr(text)
		if err != nil {
			panic("semantics: " + err.Error()) // texts are constants of this file
		}
		tree, _ = parsed.LoadOrStore(text, made)
	}
	var part func(n *pg.Node) (*pg.Node, *refuse.Refusal)
	part = func(n *pg.Node) (*pg.Node, *refuse.Refusal) {
		if p := n.GetParamRef(); p != nil {
			return nodes[p.Number-1], nil
		}
		return ast.Copied(n, part)
	}
	out, _ := part(tree.(*pg.Node))
	return out
}

// rewritten translates a call that is written out; nil, nil means it is none of these, or has other arguments.
func (t *Translator) rewritten(name string, f *pg.FuncCall) (*Expr, *refuse.Refusal) {
	pos, args := int(f.Location), f.Args
	if !ast.IsPlainCall(f) {
		return nil, nil
	}
	switch {
	case (name == "num_nulls" || name == "num_nonnulls") && len(args) > 0:
		test := "CASE WHEN $1 IS NULL THEN 1 ELSE 0 END"
		if name == "num_nonnulls" {
			test = "CASE WHEN $1 IS NULL THEN 0 ELSE 1 END"
		}
		sum := written(test, args[0])
		for _, n := range args[1:] {
			sum = written("$1 + $2", sum, written(test, n))
		}
		return t.Expr(sum)
	case name == "array_position" && len(args) == 2:
		return t.position(args[0], args[1], pos)
	case name == "format" && len(args) > 0 && args[0].GetAConst().GetSval() != nil:
		parts, ok := formatted(args[0].GetAConst().GetSval().Sval, args[1:], pos)
		if !ok {
			return nil, nil
		}
		return t.Expr(pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("concat")}, parts, int32(pos)))
	case name == "overlaps" && len(args) == 4:
		return t.overlap(args)
	}
	return nil, nil
}

// position is array_position of an array that is written out, so that its first element is the first and none is an
// array.
func (t *Translator) position(array, n *pg.Node, pos int) (*Expr, *refuse.Refusal) {
	x, r := t.Expr(n)
	if r != nil {
		return nil, r
	}
	list, r := t.elements(array, x, pos)
	if r != nil || len(list) > maxOperations {
		return nil, r
	}
	var parts []*Expr
	for i, e := range list {
		var same *Expr
		if e.IsConstant() && MustConstant(e) == nil {
			same, r = t.Not(NotNull(x))
		} else if same, r = t.Combine("=", pos, x, e); r == nil {
			same, r = t.isTruth(same, true, pos)
		}
		if r != nil {
			return nil, r
		}
		parts = append(parts, same, ConstantExpr(int64(i+1), policy.Int4, pos))
	}
	if len(parts) == 0 {
		return ConstantExpr(nil, policy.Int4, pos), nil
	}
	return t.Case(parts, pos)
}

// formatted are the parts of format(template, args…), put together by concat; not ok of what concat has no part for:
// widths, identifiers, and templates that fail.
func formatted(template string, args []*pg.Node, pos int) (parts []*pg.Node, ok bool) {
	next := 0
	text := func(s string) { parts = append(parts, pg.MakeAConstStrNode(s, int32(pos))) }
	for {
		before, after, more := strings.Cut(template, "%")
		if text(before); !more {
			return parts, true
		}
		if template = strings.TrimPrefix(after, "%"); len(template) < len(after) {
			text("%")
			continue
		}
		if n, rest, numbered := strings.Cut(template, "$"); numbered {
			if at, err := strconv.Atoi(n); err == nil && at > 0 {
				next, template = at-1, rest
			}
		}
		if template == "" || next >= len(args) {
			return nil, false
		}
		switch template[0] {
		case 's':
			parts = append(parts, args[next])
		case 'L':
			parts = append(parts, written(quoted, args[next]))
		default:
			return nil, false
		}
		next, template = next+1, template[1:]
	}
}

// overlap is OVERLAPS of periods of moments, of which each has two ends, or one and a length.
func (t *Translator) overlap(args []*pg.Node) (*Expr, *refuse.Refusal) {
	ends, read, lone := slices.Clone(args), map[policy.Type]bool{}, false
	for i, n := range args {
		e, r := t.Expr(n)
		if r != nil {
			return nil, r
		}
		read[e.Type()] = true
		if e.Type() == policy.IntervalT && i%2 == 1 {
			ends[i] = nil
		} else if !e.Type().Moment() && e.Type() != policy.Unknown {
			return nil, nil
		}
		lone = lone || e.Type() == policy.Unknown && i%2 == 1
	}
	if lone && read[policy.IntervalT] { // which may be an end or a length
		return nil, nil
	}
	as := "::timestamptz" // of days, too, which are moments of the session's zone
	switch {
	case read[policy.TimestampT] && !read[policy.TimestampTZ]:
		as = "::timestamp"
	case len(read) == 1 && read[policy.DateType]: // and in the same order as these
		as = ""
	}
	for i, n := range ends {
		if n != nil {
			ends[i] = written("($1)"+as, n)
		} else {
			ends[i] = written("$1 + $2", ends[i-1], args[i])
		}
	}
	return t.Expr(written(overlaps, ends...))
}

// rangeOf are the types of ranges whose values are compared here, by the types of these.
var rangeOf = map[string]policy.Type{"int4range": policy.Int4, "int8range": policy.Int8, "numrange": policy.NumericType,
	"daterange": policy.DateType, "tsrange": policy.TimestampT, "tstzrange": policy.TimestampTZ}

// within is a value in a constant range, range @> x: whoever evaluates constants tells its ends. nil, nil means it is
// another operation.
func (t *Translator) within(op string, pos int, nodes []*pg.Node) (*Expr, *refuse.Refusal) {
	if op != "<@" && op != "@>" || t.Constants == nil || len(nodes) != 2 {
		return nil, nil
	}
	of, n := nodes[0], nodes[1]
	if op == "<@" {
		of, n = n, of
	}
	ends := t.Constants(written(`ARRAY[pg_typeof($1)::text, lower($1)::text, upper($1)::text,
		lower_inc($1)::text, upper_inc($1)::text, isempty($1)::text]`, of), true)
	if ends == nil {
		return nil, nil
	}
	x, r := t.Expr(n)
	if r != nil {
		return nil, r
	}
	if len(ends) != 6 { // which are not there yet
		e, r := t.Expr(written("$1 IS NOT NULL OR NULL", n))
		if r == nil {
			e.Awaited = true
		}
		return e, r
	}
	var told [6]string
	for i, e := range ends {
		told[i], _ = MustConstant(e).(string)
	}
	name := told[0]
	if rangeOf[name] != x.Type() {
		return nil, nil
	}
	switch told[5] {
	case "":
		return ConstantExpr(nil, policy.Bool, pos), nil
	case "true":
		return t.Expr(written("$1 IS NULL AND NULL", n))
	}
	cond := written("$1 IS NOT NULL OR NULL", n)
	for i, op := range []string{">", "<"} {
		if told[1+i] == "" {
			continue
		}
		if told[3+i] == "true" {
			op += "="
		}
		end := ast.Cast(pg.MakeAConstStrNode(told[1+i], int32(pos)), x.Type())
		cond = written("$1 AND $2 "+op+" $3", cond, n, end)
	}
	return t.Expr(cond)
}
