package bind

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/lookup"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Lists that a statement writes itself, as public tables (docs/adr/0122): calendars, VALUES, and projections of public
// tables. Of
//
//	SELECT d.day, count(v.person_id) FROM generate_series(date '2025-01-01', date '2025-01-31', interval '1 day') d(day)
//	LEFT JOIN visits v ON v.day = d.day::date GROUP BY 1
//
// the series is a table of 31 rows, which are matched with the cells of v.day when the statement is planned, as the
// rows of any public table are (matchjoin.go).

// maxListRows bounds a list that is a table.
const maxListRows = 1 << 14

// listTable makes a public table of a list of constants; nil means the item of FROM is none.
func (b *Binder) listTable(n *pg.Node, scope *Scope) *policy.Table {
	list, refusal := b.candidatesOf(nil, n, scope)
	if list == nil || refusal != nil || len(list.rows) == 0 {
		return nil
	}
	t := &policy.Table{Name: list.alias, Public: true}
	for i, name := range list.names {
		c := &policy.Column{Table: t, Name: name}
		c.Become(list.types[i], list.typmod[i])
		t.Columns = append(t.Columns, c)
	}
	rows := make([][]policy.Value, len(list.rows))
	for i, row := range list.rows {
		b.Env.Work.Step(1 + len(row))
		for _, e := range row {
			v, refusal := e.Value(nil)
			if refusal != nil || !e.IsConstant() {
				return nil
			}
			rows[i] = append(rows[i], v)
		}
	}
	b.keep(t, rows, nil)
	return t
}

// keep has a table's rows found beside those of the public tables.
func (b *Binder) keep(t *policy.Table, rows [][]policy.Value, released *plans.Answer) {
	b.Context.Public = lookup.Beside(b.Context.Public, t, rows, released)
}

// times fills a list with a series of moments. PostgreSQL's has no form for dates: they are moments of the session's
// zone.
func (b *Binder) times(list *Candidates, f *pg.FuncCall, ends []*semantics.Expr) (*Candidates, *refuse.Refusal) {
	if len(ends) != 3 {
		return nil, refuse.UnknownFunction.At(int(f.Location), "generate_series")
	}
	typ := policy.TimestampTZ
	if first, last := ends[0].Type(), ends[1].Type(); (first == policy.TimestampT || last == policy.TimestampT) && first != policy.TimestampTZ && last != policy.TimestampTZ {
		typ = policy.TimestampT
	}
	var values [3]policy.Value
	for i, to := range []policy.Type{typ, typ, policy.IntervalT} {
		e, refusal := b.asType(ends[i], to)
		if refusal == nil {
			values[i], refusal = e.Value(nil)
		}
		if refusal != nil {
			return nil, refusal
		}
		b.Params.Note(ends[i], to)
		if values[i] == nil {
			return list.typed(typ).described(b.Params, f), nil
		}
	}
	sign := semantics.StepsOf(values[2]).Sign()
	if sign == 0 {
		return nil, semantics.Evaluation.At(int(f.Location), "step size cannot equal zero")
	}
	step := scalar.Constant(values[2], policy.IntervalT)
	for x, last := values[0], semantics.StepsOf(values[1]); semantics.StepsOf(x).Cmp(last)*sign <= 0; {
		if len(list.rows) > maxListRows {
			return nil, ManyCandidates.At(int(f.Location), len(list.rows), maxListRows)
		}
		list.rows = append(list.rows, []*semantics.Expr{semantics.ConstantExpr(x, typ, int(f.Location))})
		s, err := b.Env.Call("+", scalar.Constant(x, typ), step)
		if err == nil {
			x, err = s.Eval(nil)
		}
		if err != nil {
			return nil, semantics.ScalarRefusal(err, int(f.Location))
		}
	}
	return list.typed(typ), nil
}

// castSeries is SELECT generate_series(…)::date AS day: each value of the series as the cast makes it.
func (b *Binder) castSeries(target *pg.ResTarget) (*Candidates, *refuse.Refusal) {
	n := target.Val
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	f := n.GetFuncCall()
	list, refusal := b.seriesCandidates(f, ast.Label(target))
	if list == nil || refusal != nil {
		return nil, refusal
	}
	for i, row := range list.rows {
		t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "SELECT", Hook: func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
			if n.GetFuncCall() == f {
				return row[0], nil
			}
			return nil, nil
		}}
		e, refusal := constantOutput(target.Val, t)
		if refusal != nil {
			return nil, refusal
		}
		list.rows[i], list.types[0] = []*semantics.Expr{e}, e.Type()
	}
	return list, nil
}
