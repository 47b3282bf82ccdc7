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

// textAfter returns what is behind the first word of that name outside parentheses.
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

// textInside returns what is in the first parentheses.
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

// Copy is how COPY … TO STDOUT writes its rows: PostgreSQL 15's options, checked and with their defaults.
type Copy struct {
	Format     CopyFormat
	Delimiter  byte
	Null       string
	Header     bool
	Quote      byte
	Escape     byte
	ForceAll   bool     // FORCE_QUOTE *
	ForceQuote []string // columns whose values are always in quotes
}

// CopyFormat is a format of COPY.
type CopyFormat uint8

// The formats of COPY.
const (
	CopyText CopyFormat = iota
	CopyCSV
	CopyBinary
)

var copyFormats = map[string]CopyFormat{"text": CopyText, "csv": CopyCSV, "binary": CopyBinary}

// copyTo reads COPY. A table means the SELECT of its columns, and is answered or refused as that is.
func (s *Statement) copyTo(c *pg.CopyStmt) {
	switch {
	case c.IsFrom:
		s.other(copies.At(-1, "FROM"))
		return
	case c.IsProgram:
		s.other(copies.At(-1, "TO PROGRAM"))
		return
	case c.Filename != "":
		s.other(copies.At(-1, "TO a file of the server"))
		return
	}
	options, refusal := copyOptions(c.Options)
	if refusal != nil {
		s.other(refusal)
		return
	}
	query, text := c.Query, textInside(s.Text)
	if query == nil {
		query, text = rowsOf(c), s.Text
	}
	if s.hold(query, text, true) {
		s.Kind, s.Copy = KindCopy, options
	}
}

// rowsOf is the SELECT that COPY of a table means.
func rowsOf(c *pg.CopyStmt) *pg.Node {
	q := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
		FromClause: []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: c.Relation}}}}
	add := func(field *pg.Node) {
		ref := &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: &pg.ColumnRef{Fields: []*pg.Node{field}, Location: c.Relation.Location}}}
		q.TargetList = append(q.TargetList, &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: ref, Location: c.Relation.Location}}})
	}
	for _, column := range c.Attlist {
		add(column)
	}
	if len(c.Attlist) == 0 {
		add(&pg.Node{Node: &pg.Node_AStar{AStar: &pg.A_Star{}}})
	}
	return ast.Select(q)
}

func copyOptions(list []*pg.Node) (*Copy, *refuse.Refusal) {
	out, given := &Copy{Delimiter: '\t', Null: `\N`, Quote: '"'}, map[string]string{}
	for _, n := range list {
		if refusal := out.take(n.GetDefElem(), given); refusal != nil {
			return nil, refusal
		}
	}
	if refusal := out.conflicts(given); refusal != nil {
		return nil, refusal
	}
	if out.Format == CopyCSV {
		out.Delimiter, out.Null = ',', ""
	}
	if null, ok := given["null"]; ok {
		out.Null = null
	}
	for _, o := range []struct {
		name string
		to   *byte
	}{{"delimiter", &out.Delimiter}, {"quote", &out.Quote}, {"escape", &out.Escape}} {
		text, ok := given[o.name]
		if ok && len(text) != 1 {
			return nil, copyOption.At(-1, "COPY "+o.name+" must be a single one-byte character")
		}
		if ok {
			*o.to = text[0]
		}
	}
	if _, ok := given["escape"]; !ok {
		out.Escape = out.Quote
	}
	return out, out.check()
}

// take reads one option, and adds it to those that were given before.
func (c *Copy) take(d *pg.DefElem, given map[string]string) *refuse.Refusal {
	name, at := strings.ToLower(d.GetDefname()), int(d.GetLocation())
	if _, again := given[name]; again {
		return copySyntax.At(at, "conflicting or redundant options")
	}
	value, constant := settingValue(d.GetArg())
	if b := d.GetArg().GetBoolean(); b != nil {
		if value, constant = "off", true; b.Boolval {
			value = "on"
		}
	}
	switch given[name] = value; name {
	case "format":
		f, ok := copyFormats[value]
		if !ok {
			return copyOption.At(at, `COPY format "`+value+`" not recognized`)
		}
		c.Format = f
	case "delimiter", "null", "quote", "escape":
	case "header":
		return c.takeHeader(d, value, constant, at)
	case "force_quote":
		c.ForceAll, c.ForceQuote = d.GetArg().GetAStar() != nil, ast.Strings(d.GetArg().GetList().GetItems())
		if !c.ForceAll && len(c.ForceQuote) == 0 {
			return copyOption.At(at, `argument to option "force_quote" must be a list of column names`)
		}
	case "encoding":
		if e := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(value)); e != "utf8" && e != "unicode" && e != "sqlascii" {
			return copyOption.At(at, "COPY is written in UTF8 alone")
		}
	case "freeze", "force_not_null", "force_null", "on_error", "log_verbosity":
		return copyOption.At(at, "COPY "+name+" is for COPY FROM")
	default:
		return copySyntax.At(at, `option "`+name+`" not recognized`)
	}
	return nil
}

func (c *Copy) takeHeader(d *pg.DefElem, value string, constant bool, at int) *refuse.Refusal {
	switch low := strings.ToLower(value); {
	case d.GetArg() == nil || constant && isOn(low):
		c.Header = true
	case constant && (low == "off" || low == "false" || low == "0"):
	case low == "match":
		return copyOption.At(at, `cannot use "match" with HEADER in COPY TO`)
	default:
		return copySyntax.At(at, `header requires a Boolean value or "match"`)
	}
	return nil
}

// conflicts refuses options that the format has no place for.
func (c *Copy) conflicts(given map[string]string) *refuse.Refusal {
	for _, name := range []string{"delimiter", "null", "header"} {
		if _, is := given[name]; c.Format == CopyBinary && is && (name != "header" || c.Header) {
			return copySyntax.At(-1, "cannot specify "+strings.ToUpper(name)+" in BINARY mode")
		}
	}
	for _, name := range []string{"quote", "escape", "force_quote"} {
		if _, is := given[name]; c.Format != CopyCSV && is {
			return copyOption.At(-1, "COPY "+strings.ReplaceAll(name, "_", " ")+" available only in CSV mode")
		}
	}
	return nil
}

// check refuses characters that could not be distinguished in what is written.
func (c *Copy) check() *refuse.Refusal {
	text := ""
	switch delimiter := string(rune(c.Delimiter)); {
	case c.Format == CopyBinary:
		return nil
	case strings.ContainsAny(delimiter, "\r\n"):
		text = "COPY delimiter cannot be newline or carriage return"
	case strings.ContainsAny(c.Null, "\r\n"):
		text = "COPY null representation cannot use newline or carriage return"
	case c.Format == CopyText && strings.ContainsAny(delimiter, `\.abcdefghijklmnopqrstuvwxyz0123456789`):
		text = `COPY delimiter cannot be "` + delimiter + `"`
	case c.Format == CopyCSV && c.Delimiter == c.Quote:
		text = "COPY delimiter and quote must be different"
	case strings.Contains(c.Null, delimiter):
		text = "COPY delimiter must not appear in the NULL specification"
	case c.Format == CopyCSV && strings.IndexByte(c.Null, c.Quote) >= 0:
		text = "CSV quote character must not appear in the NULL specification"
	default:
		return nil
	}
	return copyOption.At(-1, text)
}
