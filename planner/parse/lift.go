package parse

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// Numbers are lifted out of texts, so that what differs in them alone has one template (planner/template.go, ADR 107).
// An example: SELECT count(*) FROM people WHERE income BETWEEN 20 AND 3000 has the numbers 20 and 3000, and a text
// without them.

// Lifted is a statement and its parameters, or what stands for them in its text.
type Lifted struct {
	Text   string // without what stands for parameters: the same for all that have one template
	Params []policy.Value
	Values []policy.Value // the parameters, or the numbers
	at     []int32        // where the numbers stand, as the grammar counts
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
