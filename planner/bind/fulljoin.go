package bind

import (
	"cmp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// FULL JOIN along the unit (docs/adr/0147). The rows of
//
//	(SELECT person_id, day FROM web GROUP BY 1, 2) w FULL JOIN (SELECT person_id, day FROM shop GROUP BY 1, 2) s ON s.person_id = w.person_id AND s.day_key = w.day_key
//
// are those of the LEFT JOIN, and below them those of s whose unit has no such row of w, with NULL in w's columns: a
// United of a Paired and of a Marked, with two columns that say which sides a row has.

// full makes these rows. Keys are equated by on; the conditions are those of ON that are none.
func (b *Binder) full(on []equation, left, right *Rows, quals []*pg.Node, onLeft, onRight []*semantics.Expr, j joining) (*Rows, *refuse.Refusal) {
	for _, e := range slices.Concat(left.exprs, right.exprs) {
		if e.Form != semantics.FormColumn {
			return nil, computedOuter.At(j.pos)
		}
	}
	onLeft, onRight, both, refusal := b.ofSides(left, right, quals, onLeft, onRight)
	if refusal = cmp.Or(refusal, noneReadsBoth(both)); refusal != nil {
		return nil, refusal
	}
	p := &derived.Paired{Left: left.Table, Right: right.Table, On: equals(left.Table, right.Table, on), Outer: true}
	if p.Only, refusal = b.Lowered(left.Table, onLeft); refusal != nil {
		return nil, refusal
	}
	if p.Where, refusal = b.Lowered(right.Table, slices.Concat(right.where, onRight)); refusal != nil {
		return nil, refusal
	}
	pairs := paired(b.Env.Work, p)
	alone := *right
	alone.where, alone.asked = slices.Clone(right.where), nil
	m := &derived.Marked{Other: left.Table}
	var turned []equation
	for _, e := range on {
		turned = append(turned, equation{e.right, e.left})
	}
	if m.Where, refusal = b.Lowered(left.Table, slices.Concat(left.where, onLeft)); refusal != nil {
		return nil, refusal
	}
	met := append([]*semantics.Expr{semantics.ColumnExpr(alone.mark(m, turned), policy.Bool, -1, j.pos)}, onRight...)
	without, refusal := noneOf(met, j.pos)
	if refusal != nil {
		return nil, refusal
	}
	alone.where = append(alone.where, without)
	u := &derived.United{Full: true, Branches: []derived.UnitedBranch{{From: pairs}, {From: alone.Table}}}
	if pairs == nil {
		return nil, tooManyRows.At(j.pos, left.Table.Name, right.Table.Name, derived.MaxRows)
	}
	if u.Branches[0].Where, refusal = b.Lowered(pairs, left.where); refusal != nil {
		return nil, refusal
	}
	if u.Branches[1].Where, refusal = b.Lowered(alone.Table, alone.where); refusal != nil {
		return nil, refusal
	}
	for _, side := range []**Rows{&left, &right} {
		if *side, refusal = (*side).closed(); refusal != nil {
			return nil, refusal
		}
	}
	out, types := sidesUnited(u, pairs, left, right, alone.Table)
	if out.Table = derived.NewUnited(u, types); out.Table == nil {
		return nil, unionDomain.At(j.pos)
	}
	return out.ofBoth(left, right, j)
}

// closed are the rows without the columns whose values nobody declared, of which a union's domain would say that no row
// has a value that the statement does not name below it. What shows one by another name, or what is asked of one, is
// refused.
func (r *Rows) closed() (*Rows, *refuse.Refusal) {
	own, at := *r, make([]int, len(r.names)+1)
	own.names, own.exprs, own.parts, own.hidden = nil, nil, slices.Clone(r.parts), nil
	for i, e := range r.exprs {
		at[i] = len(own.names)
		if refusal := semantics.Closed(r.Table, e); refusal != nil {
			if !slices.ContainsFunc(r.Table.Base(), func(t *policy.Table) bool {
				c := t.Column(r.names[i])
				return c != nil && c.Open != nil && c.Reading == nil
			}) {
				return nil, refusal
			}
			continue
		}
		if slices.Contains(r.hidden, i) {
			own.hidden = append(own.hidden, len(own.names))
		}
		own.names, own.exprs = append(own.names, r.names[i]), append(own.exprs, e)
	}
	at[len(r.names)] = len(own.names)
	for i, p := range own.parts {
		own.parts[i].from, own.parts[i].to = at[p.from], at[p.to]
	}
	return &own, nil
}

// noneOf says that one of some conditions is not true.
func noneOf(conditions []*semantics.Expr, pos int) (*semantics.Expr, *refuse.Refusal) {
	t := &semantics.Translator{}
	all, refusal := t.Junction(semantics.FormAnd, pos, conditions...)
	if refusal != nil {
		return nil, refusal
	}
	return t.Not(isTrue(all, pos))
}

// sidesUnited puts the pairs, and the right rows without a partner, below one another: what the sides show of their
// columns, then whether a row has a left and a right side.
func sidesUnited(u *derived.United, pairs *policy.Table, left, right *Rows, alone *policy.Table) (*Rows, []policy.Type) {
	out, types := &Rows{pos: left.pos}, []policy.Type(nil)
	pair, rest := &u.Branches[0], &u.Branches[1]
	add := func(typ policy.Type, ofPair, ofRest derived.UnitedValue) {
		types = append(types, typ)
		pair.Values, rest.Values = append(pair.Values, ofPair), append(rest.Values, ofRest)
	}
	shown := func(r *Rows, from int, of func(at int) derived.UnitedValue) {
		places := map[int]int{}
		for i, e := range r.exprs {
			at := e.Cols[0]
			c := r.Table.Columns[at]
			if _, known := places[at]; !known {
				places[at] = len(types)
				add(c.Type, derived.UnitedValue{Column: pairs.Columns[from+at]}, of(at))
			}
			out.names, out.exprs = append(out.names, r.names[i]), append(out.exprs, semantics.ColumnExpr(places[at], e.Type(), e.Typmod(), e.Pos))
		}
	}
	shown(left, 0, func(int) derived.UnitedValue { return derived.UnitedValue{} })
	shown(right, len(left.Table.Columns), func(at int) derived.UnitedValue { return derived.UnitedValue{Column: alone.Columns[at]} })
	add(policy.Bool, derived.UnitedValue{Constant: true}, derived.UnitedValue{Constant: false})
	add(policy.Bool, derived.UnitedValue{Column: pairs.Columns[len(pairs.Columns)-1]}, derived.UnitedValue{Constant: true})
	unit := func(t *policy.Table) []*policy.Column {
		return slices.DeleteFunc(slices.Clone(t.Keys), func(k *policy.Column) bool { return !k.Unit })
	}
	if ofPair, ofRest := unit(left.Table), unit(alone); len(ofPair) > 0 && len(ofRest) > 0 { // else lines are joined with lines, by the order through which each finds its unit
		pair.Keys, rest.Keys = unit(pairs)[:1], ofRest[:1]
	}
	return out, types
}

// ofBoth names what is in sight of both sides. Of their keys these are the units', where both have them, each where its
// side has a row; what USING equates is there in any row.
func (out *Rows) ofBoth(left, right *Rows, j joining) (*Rows, *refuse.Refusal) {
	last := len(out.Table.Columns)
	isUnit := func(r *Rows, k linear.Key) bool { return len(out.Table.Keys) > 0 && r.KeyColumn(&k).Unit }
	for _, name := range j.using {
		if slices.ContainsFunc(left.keys, func(k linear.Key) bool { return k.Name == name && isUnit(left, k) }) {
			out.keys = append(out.keys, linear.Key{Name: name})
		}
	}
	equated := len(out.keys)
	if equated > 0 {
		out.parts = []relation{{"", nil, 0, 0, 0, equated, nil, nil}}
	}
	names := 0
	out.lost = slices.Concat(left.lost, right.lost)
	for i, r := range []*Rows{left, right} {
		for _, p := range r.parts {
			from := len(out.keys)
			for at := p.fromKey; at < p.toKey; at++ {
				k := r.keys[at]
				switch {
				case isUnit(r, k) && k.Present > 0:
					return nil, outerCondition.At(j.pos)
				case isUnit(r, k):
					if slices.Contains(r.hiddenKeys, at) || slices.ContainsFunc(out.keys[:equated], func(of linear.Key) bool { return of.Name == k.Name }) {
						out.hiddenKeys = append(out.hiddenKeys, len(out.keys))
					}
					out.keys = append(out.keys, linear.Key{Name: k.Name, Present: last - 1 + i})
				default:
					out.lost = append(out.lost, k.Name)
				}
			}
			order := p.order
			if len(out.keys)-from != p.toKey-p.fromKey {
				order = nil
			}
			out.parts = append(out.parts, relation{p.alias, p.plain, p.from + names, p.to + names, from, len(out.keys), order, p.on(last - 2 + i)})
		}
		names += len(r.names)
		for _, at := range r.hidden {
			out.hidden = append(out.hidden, at+names-len(r.names))
		}
	}
	return out, nil
}

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

// equalColumns returns the condition that USING means.
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

// starred returns the positions that * or alias.* means: what USING has merged comes first in *.
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
