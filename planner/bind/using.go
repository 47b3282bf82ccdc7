package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// USING and NATURAL equate columns of one name, of which one is seen afterwards: that of the side whose rows stay.

// usingOf are the names that a join equates by USING or NATURAL.
func usingOf(j *pg.JoinExpr, left, right *Rows) ([]string, *refuse.Refusal) {
	if !j.IsNatural {
		return ast.Strings(j.UsingClause), nil
	}
	var names []string
	others := right.visible()
	for _, name := range left.visible() {
		if slices.Contains(others, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, naturalCross.At(right.pos)
	}
	return names, nil
}

// visible are the names of columns and keys that may be written without a table's.
func (r *Rows) visible() []string {
	var names []string
	for i, name := range r.names {
		if !slices.Contains(r.hidden, i) {
			names = append(names, name)
		}
	}
	for i, k := range r.keys {
		if !slices.Contains(r.hiddenKeys, i) {
			names = append(names, k.Name)
		}
	}
	return names
}

// place is the position of the only visible column of a name, or false if there is none or several.
func (r *Rows) place(name string) (at int, ok bool) {
	for i, have := range r.names {
		if have != name || slices.Contains(r.hidden, i) {
			continue
		}
		if ok {
			return 0, false
		}
		at, ok = i, true
	}
	return at, ok
}

// reference writes a visible column with its table's name.
func (r *Rows) reference(name string, pos int) *pg.Node {
	fields := []*pg.Node{pg.MakeStrNode(name)}
	at, ok := r.place(name)
	for _, p := range r.parts {
		if ok && at >= p.from && at < p.to {
			fields = []*pg.Node{pg.MakeStrNode(p.alias), pg.MakeStrNode(name)}
		}
	}
	return pg.MakeColumnRefNode(fields, int32(pos))
}

// equalColumns is the condition that USING stands for.
func equalColumns(left, right *Rows, name string, pos int) *pg.Node {
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, left.reference(name, pos), right.reference(name, pos), int32(pos))
}

// merge lets one column and one key of each name that USING equates be seen in out, of those from a position on and of
// those before it: of an outer join it is that of the side whose rows stay, of an inner one that which PostgreSQL takes
// (scalar.Merged), of the type that both have in common. Of
//
//	SELECT price, count(*) FROM list JOIN lines USING (price) GROUP BY price
//
// it is list's price, 5.00 where lines has 5.0. Where both are the same to the last digit the private one is simpler.
func (b *Binder) merge(out *Rows, j joining, from, fromKey int) *refuse.Refusal {
	var merged, hidden []int
	for _, name := range j.using {
		named := func(k linear.Key) bool { return k.Name == name }
		if at := slices.IndexFunc(out.keys[fromKey:], named); at >= 0 && slices.ContainsFunc(out.keys[:fromKey], named) {
			out.hiddenKeys = append(slices.Clone(out.hiddenKeys), fromKey+at)
		}
		first, second := -1, -1
		for i, have := range out.names {
			switch {
			case have != name || slices.Contains(out.hidden, i):
			case i < from:
				first = i
			case second < 0:
				second = i
			}
		}
		if first < 0 || second < 0 { // one side or both have it as a key alone
			switch only := max(first, second); {
			case first < 0 && second >= 0 && j.outer:
				hidden = append(hidden, second)
			case only >= 0:
				merged = append(merged, only)
			}
			continue
		}
		left, right := out.exprs[first], out.exprs[second]
		if j.mirrored {
			left, right = right, left
		}
		typ, ofRight := scalar.Merged(left.Expr, right.Expr)
		if j.preserved || !j.outer && ofRight != j.mirrored && !alike(left, right) {
			first, second = second, first
		}
		hidden = append(hidden, second)
		if e := out.exprs[first]; typ != policy.Bpchar && typ != e.Type() {
			e, refusal := (&semantics.Translator{Env: b.Env}).As(e, typ, -1, e.Pos)
			if refusal != nil {
				return refusal
			}
			hidden, first = append(hidden, first), len(out.exprs)
			out.names, out.exprs = append(slices.Clone(out.names), name), append(slices.Clone(out.exprs), e)
			out.parts = append(slices.Clone(out.parts), relation{from: first, to: first + 1})
		}
		merged = append(merged, first)
	}
	out.hidden = append(slices.Clone(out.hidden), hidden...)
	out.merged = append(merged, slices.DeleteFunc(slices.Clone(out.merged), func(i int) bool { return slices.Contains(merged, i) || slices.Contains(out.hidden, i) })...)
	return nil
}

// alike tells columns whose equal values are written alike: not those of decimals of two scales.
func alike(a, b *semantics.Expr) bool {
	return a.Type() == b.Type() && a.Typmod() == b.Typmod() && (a.Type() != policy.NumericType || a.Typmod() >= 0)
}

// starTarget is *.
var starTarget = &pg.ResTarget{Val: pg.MakeColumnRefNode([]*pg.Node{{Node: &pg.Node_AStar{AStar: &pg.A_Star{}}}}, -1)}

// starred are the positions that * or alias.* stands for: what USING has merged comes first in *.
func (r *Rows) starred(target *pg.ResTarget, parts []relation) []int {
	if parts == nil { // it is no star
		return nil
	}
	var list []int
	bare := len(ast.Strings(target.Val.GetColumnRef().Fields)) == 0
	if bare {
		list = slices.Clone(r.merged)
	}
	for _, p := range parts {
		for i := p.from; i < p.to; i++ {
			if !bare || !slices.Contains(r.hidden, i) && !slices.Contains(r.merged, i) {
				list = append(list, i)
			}
		}
	}
	return list
}
