// Package lookup tells what the rows of public tables say of private ones: the row that is found by a key, the rows
// that match, as functions of the private columns' cells, evaluated when a statement is planned. Of
//
//	SELECT p.brand, count(*) FROM lines l JOIN parts p ON p.part = l.part GROUP BY p.brand
//
// p.brand is a function of l.part, and the private database sees nothing of parts. Which conditions join the tables is
// for package bind to read; here are rows, keys and cells.
package lookup

import (
	"fmt"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Keyed is a public table as a function of some expressions over private rows: the row whose keys they equal.
type Keyed struct {
	Public reuse.PublicRows // nil: no public table has been copied
	Env    scalar.Env
	Table  *policy.Table
	Pos    int // where the statement names it
	Args   []*semantics.Expr
	Keys   []derived.Key // of the public table, by argument
	Filter []*semantics.Expr
	rows   *derived.Keyed
}

// Comparable tells types whose equal values have equal key texts.
func Comparable(a, b policy.Type) bool {
	number := func(t policy.Type) bool { return t.Integer() || t == policy.NumericType }
	return a == b || number(a) && number(b) || a.Textual() && b.Textual()
}

// Equate adds an equation of an expression over private rows with one over a public row, which is a column's. A char is
// compared with a varchar as chars are.
func (l *Keyed) Equate(arg *semantics.Expr, key int, of *semantics.Expr) *refuse.Refusal {
	if of.Type() == policy.Bpchar && arg.Type() == policy.Varchar {
		short, err := l.Env.Call("rtrim", arg.Expr)
		if err != nil {
			return semantics.ScalarRefusal(err, arg.Pos)
		}
		arg = semantics.Node(semantics.FormOther, "rtrim", short, arg.Pos, arg)
	}
	l.Args, l.Keys = append(l.Args, arg), append(l.Keys, derived.Key{Column: key, Short: arg.Type() == policy.Bpchar && of.Type() == policy.Varchar})
	return nil
}

// Rows are those of a public table, as it was copied last.
func Rows(from reuse.PublicRows, t *policy.Table, pos int) ([][]policy.Value, *refuse.Refusal) {
	if from != nil {
		if data, ok := from.Rows(t); ok {
			return data, nil
		}
	}
	return nil, NotCopied.At(pos, t.Name)
}

// Index reads the public rows by their keys, which must be unique. An index over all rows of a copy is made once: two
// plans that join the same table, SELECT … FROM lineitem JOIN part ON l_partkey = p_partkey say, look into the same
// one.
func (l *Keyed) Index(pos int) *refuse.Refusal {
	t := l.Table
	data, refusal := Rows(l.Public, t, pos)
	if refusal != nil {
		return refusal
	}
	if len(l.Keys) == 0 {
		l.Env.Work.Take(len(data), derived.BytesKeyed)
		l.rows = &derived.Keyed{}
		return nil
	}
	made := fmt.Sprintf("%p %p %v", t, data, l.Keys) // what is made of them holds both, so that no other has their place
	for _, e := range l.Filter {
		made += " " + e.Canon
	}
	if have, _ := l.Env.Work.Kept(made).(*indexed); have != nil {
		l.rows = have.rows
		return l.unique(pos)
	}
	l.Env.Work.Take(len(data), derived.BytesKeyed)
	each, name := 1+len(l.Keys)+len(t.Columns), fmt.Sprint("by ", l.Keys)
	if len(l.Filter) == 0 {
		if l.rows, _ = l.Public.Cached(t, data, name).(*derived.Keyed); l.rows != nil {
			l.Env.Work.Step(len(data) * each) // what is refused must not depend on who planned before
		}
	}
	if l.rows == nil {
		rows := data
		if len(l.Filter) > 0 {
			if rows, refusal = l.Filtered(data); refusal != nil {
				return refusal
			}
		}
		l.rows = derived.KeyedBy(rows, l.Keys, func() { l.Env.Work.Step(each) })
		if len(l.Filter) == 0 {
			l.Public.Cache(t, data, name, l.rows)
		}
	}
	l.Env.Work.Keep(made, &indexed{t, data, l.rows})
	return l.unique(pos)
}

// indexed are public rows by their keys, as one planning has read them.
type indexed struct {
	of   *policy.Table
	data [][]policy.Value
	rows *derived.Keyed
}

// unique refuses keys of which several rows have the same: they are matched row by row then.
func (l *Keyed) unique(pos int) *refuse.Refusal {
	if l.rows.Twice {
		return fansOut(pos, l.Table)
	}
	return nil
}

// Filtered are the rows for which the join's conditions on public columns hold.
func (l *Keyed) Filtered(data [][]policy.Value) (rows [][]policy.Value, refusal *refuse.Refusal) {
	each := WorkOf(l.Filter...)
	for _, row := range data {
		l.Env.Work.Step(each)
		kept := true
		for _, e := range l.Filter {
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

// WorkOf is how many steps one evaluation of each of some expressions takes.
func WorkOf(list ...*semantics.Expr) (steps int) {
	for _, e := range list {
		steps += e.Steps()
	}
	return steps
}

// Column is a column of the public table as a function of the arguments; NULL where no row is found.
func (l *Keyed) Column(i int) *semantics.Expr {
	c := l.Table.Columns[i]
	t, typmod := c.Shown()
	return l.node(c.Name, looked{l, t, typmod, i})
}

// Found says whether a row is found.
func (l *Keyed) Found() *semantics.Expr { return l.node("", looked{l, policy.Bool, -1, -1}) }

func (l *Keyed) node(column string, s looked) *semantics.Expr {
	e := semantics.Node(semantics.FormOther, "lookup:"+l.Table.Name+":"+l.rows.Digest+":"+column, s, l.Pos, l.Args...)
	if a := l.Released(); a != nil {
		e.Answered, e.Awaited = true, e.Awaited || a.Standing
	}
	if len(l.Args) == 1 {
		e.Looked = &semantics.Looked{Rows: l.rows, Column: s.column, Key: l.Keys[0] == derived.Key{Column: s.column}}
	}
	return e
}

// Released is the answer whose rows the table's are; nil means they are others.
func (l *Keyed) Released() *plans.Answer {
	own, _ := l.Public.(lists)
	return own.answers[l.Table]
}

// looked evaluates a lookup.
type looked struct {
	from   *Keyed
	typ    policy.Type
	typmod int32
	column int // −1: whether a row is found
}

func (k looked) Type() policy.Type { return k.typ }
func (k looked) Typmod() int32     { return k.typmod }

func (k looked) Eval(row scalar.Row) (policy.Value, error) {
	values := make([]policy.Value, len(k.from.Args))
	for i, a := range k.from.Args {
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
