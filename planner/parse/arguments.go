package parse

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Arguments that are given by their names are put into their places before anything else reads the tree, with
// PostgreSQL's defaults for those that are left out between them:
//
//	now() - make_interval(days => 90)  ⇒  now() - make_interval(0, 0, 0, 90)
//
// A call of which the names fit none of a function's forms, or several, keeps them, and is refused where it is.

// PlaceArguments does so in all of a tree, if its text has a sign of it.
func PlaceArguments(tree *pg.ParseResult, text string) {
	if !strings.Contains(text, "=>") && !strings.Contains(text, ":=") {
		return
	}
	ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
		if f, ok := m.Interface().(*pg.FuncCall); ok && ast.NamedArgument(f) != "" {
			if args := placed(f); args != nil {
				f.Args = args
			}
		}
	})
}

// placed are the arguments of a call in their places; nil means not one form of the function takes them.
func placed(f *pg.FuncCall) (found []*pg.Node) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil || f.FuncVariadic {
		return nil
	}
	for _, form := range scalar.Arguments(name) {
		args := placedIn(form, f.Args)
		if args != nil && found != nil {
			return nil
		}
		if args != nil {
			found = args
		}
	}
	return found
}

// placedIn puts arguments into the places that one form of a function has; nil means it does not take them.
func placedIn(form []scalar.Argument, given []*pg.Node) []*pg.Node {
	args, last, names := make([]*pg.Node, len(form)), 0, false
	for i, g := range given {
		at := i
		if n := g.GetNamedArgExpr(); n != nil {
			names = true
			at = slices.IndexFunc(form, func(a scalar.Argument) bool { return a.Name == n.Name })
			g = n.Arg
		} else if names {
			return nil // a place behind a name
		}
		if at < 0 || at >= len(args) || args[at] != nil {
			return nil
		}
		args[at], last = g, max(last, at)
	}
	for i := range args {
		if args[i] != nil {
			continue
		}
		if form[i].Default == "" {
			return nil
		}
		if i < last {
			args[i] = defaultOf(form[i].Default)
		}
	}
	return args[:last+1]
}

// defaultOf is the tree of an expression of PostgreSQL's catalog, which is nowhere in a statement.
func defaultOf(sql string) *pg.Node {
	tree, err := pg.Parse("SELECT " + sql)
	if err != nil {
		return nil
	}
	node := tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val
	ast.PlaceAt(node.ProtoReflect(), -1)
	return node
}

// Numbers are lifted out of texts, so that what differs in them alone has one template (planner/template.go, ADR 107).
// An example: SELECT count(*) FROM people WHERE income BETWEEN 20 AND 3000 has the numbers 20 and 3000, and a text
// without them.

// Lifted is a statement and its parameters, or the numbers in their places in its text.
type Lifted struct {
	Text   string // without what is in the places of parameters: the same for all that have one template
	Params []policy.Value
	Values []policy.Value // the parameters, or the numbers
	at     []int32        // where the numbers are, as the grammar counts
}

// Lift lifts the numbers out of a statement without parameters.
func Lift(s Statement, params []policy.Value) Lifted {
	l := Lifted{Text: s.Text, Params: params, Values: params}
	if len(params) > 0 || s.Kind != KindSelect || s.Translation() != "" || s.Select().GetWhereClause() == nil {
		return l
	}
	if l.numbers(s.Select().WhereClause); len(l.at) == 0 {
		return l
	}
	key, from := make([]byte, 0, len(s.Text)), 0
	for i, at := range l.at {
		digits, begin := strconv.FormatInt(l.Values[i].(int64), 10), s.Place(int(at))
		end := begin + len(digits)
		if begin < from || end > len(s.Text) || s.Text[begin:end] != digits || end < len(s.Text) && isOfNumber(s.Text[end]) {
			return Lifted{Text: s.Text, Params: params, Values: params}
		}
		key = append(append(key, s.Text[from:begin]...), 0) // which no text has
		from = end
	}
	l.Text = string(append(key, s.Text[from:]...))
	return l
}

// Empty tells that there is nothing that a template leaves open.
func (l *Lifted) Empty() bool { return len(l.Values) == 0 }

// numbers lists the whole numbers that are ends of conditions that hold together.
func (l *Lifted) numbers(n *pg.Node) {
	for _, arg := range n.GetBoolExpr().GetArgs() {
		l.numbers(arg)
	}
	a := n.GetAExpr()
	l.number(a.GetLexpr())
	l.number(a.GetRexpr())
	for _, end := range a.GetRexpr().GetList().GetItems() {
		l.number(end)
	}
}

func (l *Lifted) number(n *pg.Node) {
	if number := n.GetAConst().GetIval(); number != nil {
		l.at, l.Values = append(l.at, n.GetAConst().Location), append(l.Values, int64(number.Ival))
	}
}

// isOfNumber tells what a longer number, or a name, goes on with.
func isOfNumber(b byte) bool {
	return b == '.' || b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// Of returns which of the values a node is; false means none.
func (l *Lifted) Of(n *pg.Node) (at int, ok bool) {
	if p := n.GetParamRef(); p != nil {
		return int(p.GetNumber()) - 1, p.GetNumber() > 0
	}
	if c := n.GetAConst(); c.GetIval() != nil {
		at = slices.Index(l.at, c.Location)
		return at, at >= 0
	}
	return 0, false
}

// Numbers tells that numbers were lifted.
func (l *Lifted) Numbers() bool { return len(l.at) > 0 }

// Bound is a call of dp.low or dp.high as a column of a SELECT:
//
//	SELECT sex, avg(income), dp.low(avg(income)), dp.high(avg(income)) FROM people GROUP BY sex
//
// To the plan it is its argument, which costs nothing besides; once the SELECT is answered, an end of the argument's
// interval is put in its place (docs/adr/0084).
type Bound struct {
	Column int // of the answer, from 0
	High   bool
}

// boundCall tells dp.low and dp.high.
func boundCall(f *pg.FuncCall) (high, ok bool) {
	names := ast.Strings(f.GetFuncname())
	if len(names) != 2 || names[0] != "dp" || names[1] != "low" && names[1] != "high" {
		return false, false
	}
	return names[1] == "high", true
}

// takeBounds puts the arguments in the place of the calls. A call stays, and is refused, wherever it is no column of
// its own, or where the rows or their order would be made by the argument: below DISTINCT, beside *, and as what ORDER
// BY or GROUP BY names.
func (s *Statement) takeBounds(q *pg.SelectStmt) {
	if q.Op != pg.SetOperation_SETOP_NONE || len(q.DistinctClause) > 0 || slices.ContainsFunc(q.TargetList, func(item *pg.Node) bool { return ast.IsStar(item.GetResTarget().GetVal()) }) {
		return
	}
	for column, item := range q.TargetList {
		target := item.GetResTarget()
		f := target.GetVal().GetFuncCall()
		high, ok := boundCall(f)
		if !ok || len(f.Args) != 1 || !ast.IsPlainCall(f) || namedBy(q.SortClause, target, column) || namedBy(q.GroupClause, target, column) {
			continue
		}
		s.Bounds = append(s.Bounds, Bound{column, high})
		target.Name = ast.Label(target)
		target.Val = f.Args[0]
	}
}

// namedBy reports whether a clause names an output column, by its place or its name.
func namedBy(clause []*pg.Node, target *pg.ResTarget, column int) bool {
	return slices.ContainsFunc(clause, func(n *pg.Node) bool {
		if sort := n.GetSortBy(); sort != nil {
			n = sort.Node
		}
		fields := n.GetColumnRef().GetFields()
		return n.GetAConst().GetIval() != nil && int(n.GetAConst().GetIval().Ival) == column+1 ||
			len(fields) == 1 && fields[0].GetString_().GetSval() == ast.Label(target)
	})
}
