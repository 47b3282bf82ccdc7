package aggregate

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates of rows that meet a public list. SELECT v.n, count(*) FROM people, (VALUES (10), (20)) v(n) WHERE age >
// v.n GROUP BY v.n is asked as two counters of one group, age > 10 and age > 20; the answer is turned over, so that
// candidates are rows.

// fanned is a grouping of private rows that meet a public list. The SELECT is bound once for any candidate, whose
// columns have virtual positions, and once for each: what differs between them are constants and conditions. What
// is asked is one question with counters of its own for each candidate; its answer is turned over, so that candidates
// are rows.
type fanned struct {
	g       *Grouping
	each    []*Grouping         // by candidate: binds over the rows as they meet it
	where   []*semantics.Expr   // of all candidates
	own     [][]*semantics.Expr // by candidate: conditions of its own
	keys    []fanKey
	calls   []*pg.Node      // aggregates bound so far
	found   []*Found        // by call
	ranking *linear.Ranking // nil: more is shown than the first candidates
	label   *pg.Node        // of ranking: the column of their rank
}

// fanKey is a key: a constant of each candidate, or an expression over the private rows.
type fanKey struct {
	values  []policy.Value // nil: it is
	private *semantics.Expr
}

// fan binds the conditions of a SELECT for each candidate.
func (g *Grouping) fan(from *bind.Rows) *refuse.Refusal {
	list := from.Candidates()
	f := &fanned{g: g, own: make([][]*semantics.Expr, list.Len())}
	if len(f.own) == 0 {
		return bind.ManyCandidates.At(from.Pos(), 0, bind.MaxCandidates)
	}
	for i := range list.Len() {
		met := from.Meeting(i)
		sub := &Grouping{b: g.b, Sel: g.Sel, Rows: met, Question: &linear.Question{Table: from.Table, Apart: true, OffGrid: g.b.Context.Settings.OffGrid}, keyAt: map[string]int{}, centred: map[string]bool{}}
		f.each, f.own[i] = append(f.each, sub), slices.Clone(list.Where(i))
		if g.Sel.WhereClause == nil {
			continue
		}
		e, refusal := g.b.OverKeys(met, "WHERE").Condition(g.Sel.WhereClause, "WHERE")
		if refusal != nil {
			return refusal
		}
		f.own[i] = append(f.own[i], e)
	}
	f.own, f.where = linear.InCommon(f.own)
	f.where = slices.Concat(from.Where(), f.where)
	g.Fanned = f
	return nil
}

// key binds a key for each candidate.
func (f *fanned) key(n *pg.Node, pos int) *refuse.Refusal {
	own, constant, private := make([]*semantics.Expr, len(f.each)), true, true
	for i, sub := range f.each {
		e, refusal := sub.Below("GROUP BY").Expr(n)
		if refusal != nil {
			return refusal
		}
		own[i] = e
		constant = constant && e.IsConstant()
		private = private && e.Canon == own[0].Canon
	}
	switch {
	case constant:
		k := fanKey{values: make([]policy.Value, len(own))}
		for i, e := range own {
			var refusal *refuse.Refusal
			if k.values[i], refusal = e.Value(nil); refusal != nil {
				return refusal
			}
		}
		f.keys = append(f.keys, k)
	case private:
		f.keys = append(f.keys, fanKey{private: own[0]})
		f.g.b.Open.Want(f.g.Rows.Table, own[0].Cols)
	default:
		return candidateKeys.At(pos, f.g.Rows.Candidates().Alias())
	}
	return nil
}

// tellsApart refuses keys that do not tell the candidates apart: rows that meet two of one key would count twice in it.
func (f *fanned) tellsApart(pos int) *refuse.Refusal {
	if f.g.Question.Sets != nil {
		return bind.CandidateRows.At(pos, "grouped by GROUPING SETS, ROLLUP or CUBE")
	}
	seen := map[string]bool{}
	for i := range f.each {
		var values []policy.Value
		for _, k := range f.keys {
			if k.values != nil {
				values = append(values, k.values[i])
			}
		}
		text := semantics.KeyText(values)
		if len(values) == 0 && len(f.each) > 1 || seen[text] {
			return candidateKeys.At(pos, f.g.Rows.Candidates().Alias())
		}
		seen[text] = true
	}
	f.findRanking()
	return nil
}

// aggregate binds an aggregate for each candidate: the same counters in the same places, which count under conditions
// of their own.
func (f *fanned) aggregate(call *pg.FuncCall) (*Found, *refuse.Refusal) {
	n := &pg.Node{Node: &pg.Node_FuncCall{FuncCall: call}}
	if at := slices.IndexFunc(f.calls, func(have *pg.Node) bool { return ast.SameTree(have, n) }); at >= 0 {
		return f.found[at], nil
	}
	var first *Found
	before := len(f.each[0].Question.Counters)
	for i, sub := range f.each {
		own, refusal := sub.Aggregate(call)
		if refusal != nil {
			return nil, refusal
		}
		if i == 0 {
			first = own
		}
		if own.choice || own.Type != first.Type || own.Counter != first.Counter || !ast.SameTree(own.Formula, first.Formula) ||
			len(sub.Question.Counters) != len(f.each[0].Question.Counters) {
			return nil, candidateAggregate.At(int(call.Location))
		}
	}
	for _, c := range f.each[0].Question.Counters[before:] {
		if c.Values != nil || c.Units != nil || c.Choice != nil || c.Presence != "" {
			return nil, candidateAggregate.At(int(call.Location))
		}
	}
	f.g.Question.Counters = f.each[0].Question.Counters
	f.calls, f.found = append(f.calls, n), append(f.found, first)
	return first, nil
}

// Flat is the question with the counters of all candidates side by side; at says which are whose.
func (f *fanned) Flat() (q *linear.Question, at [][]int) {
	g := f.g.Question
	q = &linear.Question{Table: f.g.Rows.Table, Where: f.where, SQL: g.SQL, Keys: f.privateKeys(), OffGrid: g.OffGrid,
		Frequency: g.Frequency}
	at = make([][]int, len(f.each))
	for i, sub := range f.each {
		for n, c := range sub.Question.Counters {
			if n == 0 && f.ranking != nil {
				at[i] = append(at[i], -1)
				continue
			}
			if c.Width != nil {
				at[i] = append(at[i], q.WidthOf(at[i][*c.Width], c.Use))
				continue
			}
			c.Where = slices.Concat(c.Where, f.own[i])
			at[i] = append(at[i], q.Add(c))
		}
	}
	return q, at
}

func (f *fanned) privateKeys() (keys []*semantics.Expr) {
	for _, k := range f.keys {
		if k.values == nil {
			keys = append(keys, k.private)
		}
	}
	return keys
}

// Ranking is the score by which the first candidates are shown.
func (f *fanned) Ranking() *linear.Ranking { return f.ranking }

// Over is a leaf of the flat question turned over: its rows once for each candidate.
func (f *fanned) Over(flat *plans.Leaf, at [][]int) *plans.Leaf {
	out := &plans.Leaf{Name: flat.Name, SQL: flat.SQL, Found: flat.Found, Rows: flat.Rows * len(f.each)}
	private := 0
	for k, key := range f.keys {
		t, typmod := f.g.Question.Keys[k].Type(), f.g.Question.Keys[k].Typmod()
		column := plans.KeyColumn{Name: plans.KeyName(k), Type: t, Typmod: typmod}
		for i := range f.each {
			if key.values == nil {
				column.Values = append(column.Values, flat.Keys[private].Values...)
				continue
			}
			column.Values = append(column.Values, slices.Repeat([]policy.Value{key.values[i]}, flat.Rows)...)
		}
		if key.values == nil {
			private++
		}
		out.Keys = append(out.Keys, column)
	}
	for n, c := range f.g.Question.Counters {
		column := plans.CountColumn{Name: f.g.Question.ColumnName(n), Width: c.Width != nil}
		for i := range f.each {
			if from := at[i][n]; from >= 0 {
				column.Runs = append(column.Runs, flat.Counts[from].Runs...)
			} else {
				column.Runs = append(column.Runs, plans.Run{Measure: -1, Spans: make([][]mechanisms.Span, flat.Rows)})
			}
		}
		out.Counts = append(out.Counts, column)
	}
	return out
}

// aside are the refusals of rows that meet a list, side by side.
var aside = []string{bind.CandidateRows.ID, candidateKeys.ID, candidateAggregate.ID, bind.ManyCandidates.ID}

// meets binds the aggregates of a SELECT over rows that meet a list: what is refused of them has another way.
func (g *Grouping) meets() (refusal *refuse.Refusal) {
	g.visit(func(n *pg.Node) bool {
		if f := n.GetFuncCall(); refusal == nil && f != nil && ast.IsAggregate(f) {
			if _, r := g.Aggregate(f); r != nil && slices.Contains(aside, r.ID) {
				refusal = r
			}
		}
		return false
	})
	return refusal
}
