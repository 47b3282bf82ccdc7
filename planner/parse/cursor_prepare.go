package parse

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Statements that hold a SELECT, or name one that was given before: COPY, cursors, PREPARE and EXECUTE. The session
// runs them; what they hold goes the way of every SELECT.

// Cursor is DECLARE … CURSOR.
type Cursor struct {
	Name     string
	Binary   bool
	Hold     bool // it outlives its transaction
	NoScroll bool // it goes forward only
}

// The options of DECLARE, as the grammar numbers them.
const (
	cursorBinary      = 1
	cursorScroll      = 2
	cursorNoScroll    = 4
	cursorInsensitive = 8
	cursorAsensitive  = 16
	cursorHold        = 32
)

// Fetch is FETCH or MOVE.
type Fetch struct {
	Name      string
	Move      bool // only the place in the cursor changes
	Direction FetchDirection
	Count     int64 // math.MaxInt64: all
}

// FetchDirection says what Count counts.
type FetchDirection uint8

// The directions. A negative count of Forward is as many backward, and the other way round.
const (
	FetchForward FetchDirection = iota
	FetchBackward
	FetchAbsolute
	FetchRelative
)

var fetchDirections = map[pg.FetchDirection]FetchDirection{pg.FetchDirection_FETCH_FORWARD: FetchForward,
	pg.FetchDirection_FETCH_BACKWARD: FetchBackward, pg.FetchDirection_FETCH_ABSOLUTE: FetchAbsolute, pg.FetchDirection_FETCH_RELATIVE: FetchRelative}

func (s *Statement) other(r *refuse.Refusal) { s.Kind, s.refusal = KindOther, r }

// hold makes the SELECT that the statement holds. Anything else that it may hold is refused, for its own reason.
func (s *Statement) hold(node *pg.Node, text string, handedOn bool) bool {
	inner := Statement{Text: text, source: s.source, node: node, HandedOn: handedOn}
	inner.classify()
	if inner.Kind != KindSelect {
		if inner.refusal == nil {
			inner.refusal = otherKind.At(-1, verbOf(text))
		}
		s.other(inner.refusal)
		return false
	}
	s.Inner = &inner
	return true
}

func (s *Statement) declare(d *pg.DeclareCursorStmt) {
	both := func(a, b int32) bool { return d.Options&(a|b) == a|b }
	switch {
	case both(cursorScroll, cursorNoScroll):
		s.other(cursorOptions.At(-1, "SCROLL and NO SCROLL"))
		return
	case both(cursorInsensitive, cursorAsensitive):
		s.other(cursorOptions.At(-1, "INSENSITIVE and ASENSITIVE"))
		return
	}
	if s.hold(d.Query, textAfter(s.Text, "for"), true) {
		s.Kind = KindDeclare
		s.Cursor = &Cursor{Name: d.Portalname, Binary: d.Options&cursorBinary != 0, Hold: d.Options&cursorHold != 0, NoScroll: d.Options&cursorNoScroll != 0}
	}
}

func (s *Statement) fetch(f *pg.FetchStmt) {
	s.Kind = KindFetch
	s.Fetch = &Fetch{Name: f.Portalname, Move: f.Ismove, Direction: fetchDirections[f.Direction], Count: f.HowMany}
}

func (s *Statement) prepare(p *pg.PrepareStmt) {
	if !s.hold(p.Query, textAfter(s.Text, "as"), false) {
		return
	}
	s.Kind, s.Prepared = KindPrepare, p.Name
	for _, n := range p.Argtypes {
		t, refusal := parameterType(n.GetTypeName())
		if refusal != nil {
			s.other(refusal)
			return
		}
		s.ParamTypes = append(s.ParamTypes, t)
	}
}

// parameterType reads a type that PREPARE gives a parameter; 0 leaves it to its surroundings.
func parameterType(n *pg.TypeName) (policy.Type, *refuse.Refusal) {
	name := strings.TrimPrefix(ast.TypeName(n), "pg_catalog.")
	if name == "unknown" {
		return 0, nil
	}
	if name == "bpchar" { // char(3) among them: PostgreSQL, too, gives a parameter no length
		if len(n.ArrayBounds) > 0 {
			return ast.BpcharArray, nil
		}
		return policy.Bpchar, nil
	}
	if t := ast.NamedType(name); t != 0 && len(n.ArrayBounds) == 0 {
		return t, nil
	}
	t, _, array, refusal := ast.ScalarType(n)
	if array {
		t = ast.ArrayTypes[t]
	}
	return t, refusal
}

// Arguments is the SELECT whose one row are the arguments of EXECUTE, each cast to the type of its parameter.
func (s *Statement) Arguments(types []policy.Type) Statement {
	list := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	for i, a := range s.node.GetExecuteStmt().GetParams() {
		list.TargetList = append(list.TargetList, &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: ast.Cast(a, types[i]), Location: -1}}})
	}
	return Statement{Kind: KindSelect, Text: s.Text, source: s.source, ParamTypes: s.ParamTypes,
		node: ast.Select(list)}
}

func (s *Statement) execute(e *pg.ExecuteStmt) {
	s.Kind, s.Prepared, s.ArgumentCount = KindExecute, e.Name, len(e.Params)
	for _, a := range e.Params {
		ast.Each(a.ProtoReflect(), func(m protoreflect.Message) {
			if s.Kind == KindOther {
				return
			}
			switch v := m.Interface().(type) {
			case *pg.SubLink:
				s.other(refuse.Construct.At(int(v.Location), "a sub-query among the arguments of EXECUTE"))
			case *pg.FuncCall:
				if name := ast.Strings(v.Funcname); v.AggStar || ast.Aggregates[name[len(name)-1]] {
					s.other(refuse.AggregateIn.At(int(v.Location), "arguments of EXECUTE"))
				}
			}
		})
	}
}

// textAfter is what stands behind the first word of that name outside parentheses.
func textAfter(text, word string) string {
	lex := lexer{text: text}
	for depth := 0; ; {
		switch t := lex.next(); {
		case t.kind == tokenEnd || t.kind == tokenInvalid:
			return text
		case t.kind == tokenOpen:
			depth++
		case t.kind == tokenClose:
			depth--
		case depth == 0 && t.kind == tokenWord && strings.EqualFold(text[t.from:t.to], word):
			return strings.TrimSpace(text[t.to:])
		}
	}
}

// textInside is what stands in the first parentheses.
func textInside(text string) string {
	lex := lexer{text: text}
	for depth, from := 0, 0; ; {
		switch t := lex.next(); {
		case t.kind == tokenEnd || t.kind == tokenInvalid:
			return text
		case t.kind == tokenOpen:
			if depth++; depth == 1 {
				from = t.to
			}
		case t.kind == tokenClose:
			if depth--; depth == 0 {
				return strings.TrimSpace(text[from:t.from])
			}
		}
	}
}
