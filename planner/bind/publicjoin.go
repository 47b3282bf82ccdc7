package bind

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A public table whose key is unique is a function of the key: joined to private rows, its columns are functions of cells,
// evaluated when the query is planned. The private database sees nothing of it and sensitivities stay as they are. Others
// are matched row by row (matchjoin.go).

// publicTable finds the public table that an item of FROM names.
func (b *Binder) publicTable(n *pg.Node, scope *Scope) (t *policy.Table, alias *pg.Alias) {
	v := n.GetRangeVar()
	if v == nil || v.Schemaname == "" && scope.Find(v.Relname) != nil {
		return nil, nil
	}
	if _, other, refusal := b.Resolve(v); refusal == nil && other.Public != nil {
		return other.Public, v.Alias
	}
	return nil, nil
}

// lookUp joins a public table to private rows.
func (b *Binder) lookUp(from *Rows, n *pg.Node, scope *Scope, j joining) (*Rows, *refuse.Refusal) {
	t, alias := b.publicTable(n, scope)
	listed, answered := t == nil, false
	if listed {
		if out, refusal := b.lateral(from, n, scope, j); out != nil || refusal != nil {
			return out, refusal
		}
		t = b.listTable(n, scope)
		if t == nil && from.fan == nil {
			var refusal *refuse.Refusal
			if t, alias, refusal = b.answeredTable(n, scope); refusal != nil {
				return nil, refusal
			}
			listed, answered = t == nil, t != nil
		}
		if t == nil || from.fan != nil {
			return b.meet(from, n, scope, j)
		}
	}
	from, refusal := from.rowByRow("joined with a public table after it")
	if refusal != nil {
		return nil, refusal
	}
	public := tableRows(t, ast.Location(n))
	public, refusal = public.aliased(alias)
	if refusal != nil {
		return nil, refusal
	}
	if slices.ContainsFunc(from.parts, func(p relation) bool { return p.alias == public.alias() }) {
		return nil, duplicateAlias.At(j.pos, public.alias())
	}
	if from.preserved > 0 {
		return nil, preservedJoined.At(j.pos, from.Table.Name)
	}
	if j.natural {
		if j.using, refusal = usingOf(&pg.JoinExpr{IsNatural: true}, from, public); refusal != nil {
			return nil, refusal
		}
	}
	l := &lookup{b: b, public: public, name: t.Name}
	rest, refusal := l.conditions(from, j)
	if refusal != nil {
		return nil, refusal
	}
	if answered && len(l.args) == 0 && !j.preserved && !j.outer {
		if out, refusal := l.constants(from, t, rest, j); out != nil || refusal != nil {
			return out, refusal
		}
	}
	refusal = l.index(t, j.pos)
	if len(j.also) > 0 && (refusal != nil && refusal.ID == fanOut.ID || refusal == nil && len(l.args) == 0) {
		j.quals, j.also = append(slices.Clone(j.quals), j.also...), nil
		l = &lookup{b: b, public: public, name: t.Name}
		if rest, refusal = l.conditions(from, j); refusal != nil {
			return nil, refusal
		}
		refusal = l.index(t, j.pos)
	}
	switch {
	case refusal != nil && refusal.ID != fanOut.ID:
		return nil, refusal
	case listed && !j.preserved && !j.outer && len(j.using) == 0, refusal == nil && len(l.args) == 0 && !j.preserved && !j.outer:
		return b.meetOrMatch(from, n, scope, j, func() (*Rows, *refuse.Refusal) { return b.match(from, public, t, j, l) })
	case refusal != nil || len(l.args) == 0 || j.preserved || j.outer && len(rest) > 0:
		out, refusal := b.match(from, public, t, j, l)
		if refusal == nil && !(j.outer && j.preserved) {
			out.merge(j.using, len(from.names), j.preserved)
		}
		return out, refusal
	}
	out := *from
	out.names = append(slices.Clone(from.names), public.names...)
	out.exprs = slices.Clone(from.exprs)
	for i, c := range t.Columns {
		out.exprs = append(out.exprs, l.column(i, c))
	}
	out.parts = append(slices.Clone(from.parts), relation{public.alias(), public.parts[0].plain, len(from.names), len(out.names), 0, 0})
	out.merge(j.using, len(from.names), false)
	if !j.outer {
		out.where = append(slices.Clone(from.where), l.found())
	}
	if j.fromWhere {
		return &out, nil
	}
	for _, q := range rest {
		e, refusal := b.overRows(&out, "ON").Condition(q, "JOIN/ON")
		if refusal != nil {
			return nil, refusal
		}
		if j.outer {
			return nil, outerCondition.At(e.Pos)
		}
		out.where = append(out.where, e)
	}
	return &out, nil
}

// constants are private rows beside the one row of a table, as in people, (SELECT avg(income) AS a FROM people) q; nil: it has several, or none.
func (l *lookup) constants(from *Rows, t *policy.Table, rest []*pg.Node, j joining) (*Rows, *refuse.Refusal) {
	rows, _ := l.b.Context.Public.Rows(t)
	rows, refusal := l.filtered(rows)
	if len(rows) != 1 || refusal != nil {
		return nil, refusal
	}
	out := *from
	out.names, out.exprs = slices.Concat(from.names, l.public.names), slices.Clone(from.exprs)
	for i, c := range t.Columns {
		out.exprs = append(out.exprs, semantics.ConstantExpr(rows[0][i], c.Type, l.public.pos))
	}
	out.parts = append(slices.Clone(from.parts), relation{l.public.alias(), nil, len(from.names), len(out.names), 0, 0})
	if j.fromWhere {
		return &out, nil
	}
	for _, q := range rest {
		e, refusal := l.b.overRows(&out, "ON").Condition(q, "JOIN/ON")
		if refusal != nil {
			return nil, refusal
		}
		out.where = append(slices.Clone(out.where), e)
	}
	return &out, nil
}

// lookup is a public table as a function of some expressions over private rows.
type lookup struct {
	b      *Binder
	public *Rows
	name   string
	args   []*semantics.Expr
	keys   []int // columns of the public table, by argument
	filter []*semantics.Expr
	rows   *derived.Keyed
}

// conditions takes the join's conditions apart: equations of a public column with a private expression, conditions on the
// public columns alone, and the rest.
func (l *lookup) conditions(from *Rows, j joining) (rest []*pg.Node, refusal *refuse.Refusal) {
	for _, name := range j.using {
		key, refusal := l.public.Column([]string{name}, j.pos)
		if refusal != nil {
			return nil, refusal
		}
		arg, refusal := from.Column([]string{name}, j.pos)
		if refusal != nil {
			return nil, refusal
		}
		l.args, l.keys = append(l.args, arg), append(l.keys, key.Cols[0])
	}
	for _, n := range j.quals {
		if l.equation(n, from) {
			continue
		}
		public := &semantics.Translator{Env: l.b.Env, Params: l.b.Params, Columns: l.public.Column, Place: "ON"}
		if e, refusal := public.Condition(n, "JOIN/ON"); refusal == nil && !e.IsConstant() {
			l.filter = append(l.filter, e)
			continue
		}
		rest = append(rest, n)
	}
	return rest, nil
}

// equation reads private expression = public column.
func (l *lookup) equation(n *pg.Node, from *Rows) bool {
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || !slices.Equal(ast.Strings(e.Name), []string{"="}) {
		return false
	}
	for _, sides := range [][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
		fields := ast.Strings(sides[1].GetColumnRef().GetFields())
		if len(fields) == 0 {
			if l.computed(sides[0], sides[1], from) {
				return true
			}
			continue
		}
		key, refusal := l.public.Column(fields, -1)
		if refusal != nil {
			continue
		}
		if len(fields) == 1 {
			if _, refusal := from.Column(fields, -1); refusal == nil {
				continue // either side's: SQL calls it ambiguous
			}
		}
		arg, refusal := l.b.overKeys(from, "ON").Expr(sides[0])
		if refusal != nil || arg.IsConstant() || !comparable(arg.Type(), key.Type()) {
			continue
		}
		l.args, l.keys = append(l.args, arg), append(l.keys, key.Cols[0])
		return true
	}
	return false
}

// computed reads private expression = expression over the columns of a list of the statement's own.
func (l *lookup) computed(private, public *pg.Node, from *Rows) bool {
	key, refusal := (&semantics.Translator{Env: l.b.Env, Params: l.b.Params, Columns: l.public.Column, Place: "ON"}).Expr(public)
	if refusal != nil || key.IsConstant() {
		return false
	}
	arg, refusal := l.b.overKeys(from, "ON").Expr(private)
	if refusal != nil || arg.IsConstant() || !comparable(arg.Type(), key.Type()) {
		return false
	}
	at, ok := l.extended(key)
	if ok {
		l.args, l.keys = append(l.args, arg), append(l.keys, at)
	}
	return ok
}

// comparable tells types whose equal values have equal key texts.
func comparable(a, b policy.Type) bool {
	number := func(t policy.Type) bool { return t.Integer() || t == policy.NumericType }
	return a == b || number(a) && number(b) || a.Textual() && b.Textual()
}

// index reads the public rows by their keys, which must be unique. An index over all rows of a copy is made once: two plans that
// join the same table, SELECT … FROM lineitem JOIN part ON l_partkey = p_partkey say, look into the same one.
func (l *lookup) index(t *policy.Table, pos int) *refuse.Refusal {
	if l.b.Context.Public == nil {
		return notCopied.At(pos, t.Name)
	}
	data, ok := l.b.Context.Public.Rows(t)
	if !ok {
		return notCopied.At(pos, t.Name)
	}
	if len(l.keys) == 0 {
		l.b.Env.Work.Take(len(data), derived.BytesKeyed)
		l.rows = &derived.Keyed{}
		return nil
	}
	made := fmt.Sprintf("%p %p %v", t, data, l.keys) // what is made of them holds both, so that no other has their place
	for _, e := range l.filter {
		made += " " + e.Canon
	}
	if have, _ := l.b.Env.Work.Kept(made).(*indexed); have != nil {
		l.rows = have.rows
		return l.unique(t, pos)
	}
	l.b.Env.Work.Take(len(data), derived.BytesKeyed)
	each, name := 1+len(l.keys)+len(t.Columns), fmt.Sprint("by ", l.keys)
	if len(l.filter) == 0 {
		if l.rows, _ = l.b.Context.Public.Cached(t, data, name).(*derived.Keyed); l.rows != nil {
			l.b.Env.Work.Step(len(data) * each) // what is refused must not depend on who planned before
		}
	}
	if l.rows == nil {
		rows := data
		if len(l.filter) > 0 {
			var refusal *refuse.Refusal
			if rows, refusal = l.filtered(data); refusal != nil {
				return refusal
			}
		}
		l.rows = derived.KeyedBy(rows, l.keys, func() { l.b.Env.Work.Step(each) })
		if len(l.filter) == 0 {
			l.b.Context.Public.Cache(t, data, name, l.rows)
		}
	}
	l.b.Env.Work.Keep(made, &indexed{t, data, l.rows})
	return l.unique(t, pos)
}

// indexed are public rows by their keys, as one planning has read them.
type indexed struct {
	of   *policy.Table
	data [][]policy.Value
	rows *derived.Keyed
}

// unique refuses keys of which several rows have the same.
func (l *lookup) unique(t *policy.Table, pos int) *refuse.Refusal {
	if l.rows.Twice {
		return fanOut.At(pos, t.Name, derived.MaxMatches, derived.MaxPairs, derived.MaxRows) // it is matched row by row then
	}
	return nil
}

// filtered are the rows for which the join's conditions on public columns hold.
func (l *lookup) filtered(data [][]policy.Value) (rows [][]policy.Value, refusal *refuse.Refusal) {
	each := workOf(l.filter...)
	for _, row := range data {
		l.b.Env.Work.Step(each)
		kept := true
		for _, e := range l.filter {
			v, refusal := e.Value(row)
			if refusal != nil {
				return nil, refusal
			}
			kept = kept && v == true
		}
		if kept {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// workOf is how many steps one evaluation of each of some expressions takes.
func workOf(list ...*semantics.Expr) (steps int) {
	for _, e := range list {
		steps += max(e.Nodes, 1)
	}
	return steps
}

// column is a column of the public table as a function of the arguments; NULL where no row is found.
func (l *lookup) column(i int, c *policy.Column) *semantics.Expr {
	return l.node(c.Name, looked{l, c.Type, c.Typmod, i})
}

// found says whether a row is found.
func (l *lookup) found() *semantics.Expr { return l.node("", looked{l, policy.Bool, -1, -1}) }

func (l *lookup) node(column string, s looked) *semantics.Expr {
	e := semantics.Node(semantics.FormOther, "lookup:"+l.name+":"+l.rows.Digest+":"+column, s, l.public.pos, l.args...)
	own, _ := l.b.Context.Public.(lists)
	e.Answered = e.Answered || own.answered[l.public.Table]
	return e
}

// looked evaluates a lookup.
type looked struct {
	from   *lookup
	typ    policy.Type
	typmod int32
	column int // −1: whether a row is found
}

func (k looked) Type() policy.Type { return k.typ }
func (k looked) Typmod() int32     { return k.typmod }

func (k looked) Eval(row scalar.Row) (policy.Value, error) {
	values := make([]policy.Value, len(k.from.args))
	for i, a := range k.from.args {
		v, err := a.Eval(row)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	found := k.from.rows.Find(values)
	switch {
	case k.column < 0:
		return found != nil, nil
	case found == nil:
		return nil, nil
	}
	return found[k.column], nil
}
