package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// fanned is a grouping of private rows that meet a public list. The SELECT is bound once for any candidate, whose columns
// stand at virtual positions, and once for each: what differs between them are constants and conditions. What is asked is
// one question with counters of its own for each candidate; its answer is turned over, so that candidates are rows.
type fanned struct {
	g     *grouping
	each  []*grouping // by candidate: binds over the rows as they meet it
	where []*expr     // of all candidates
	own   [][]*expr   // by candidate: conditions of its own
	keys  []fanKey
	calls []*pg.Node // aggregates bound so far
	found []*found   // by call
	race  *race      // nil: more is shown than the first candidates
	label *pg.Node   // of race: stands for their rank
}

// fanKey is a key: a constant of each candidate, or an expression over the private rows.
type fanKey struct {
	values  []policy.Value // nil: it is
	private *expr
}

// fan binds the conditions of a SELECT for each candidate.
func (g *grouping) fan(from *rows) *refuse.Refusal {
	f := &fanned{g: g, own: make([][]*expr, len(from.fan.rows))}
	if len(f.own) == 0 {
		return manyCandidates.At(from.pos, 0, mostCandidates)
	}
	for i := range from.fan.rows {
		met := from.meeting(i)
		sub := &grouping{b: g.b, sel: g.sel, rows: met, q: &question{table: from.table, apart: true, offGrid: g.b.c.Settings.OffGrid}, keyAt: map[string]int{}, centred: map[string]bool{}}
		f.each, f.own[i] = append(f.each, sub), slices.Clone(from.fan.where[i])
		if g.sel.WhereClause == nil {
			continue
		}
		e, refusal := g.b.overKeys(met, "WHERE").condition(g.sel.WhereClause, "WHERE")
		if refusal != nil {
			return refusal
		}
		f.own[i] = append(f.own[i], e)
	}
	f.own, f.where = inCommon(f.own)
	f.where = slices.Concat(from.where, f.where)
	g.fanned = f
	return nil
}

// inCommon takes the conditions that all candidates have out of their own.
func inCommon(own [][]*expr) (rest [][]*expr, all []*expr) {
	rest = make([][]*expr, len(own))
	times := map[string]int{}
	for i, list := range own {
		rest[i] = conjuncts(list)
		here := map[string]bool{}
		for _, e := range rest[i] {
			if !here[e.canon] {
				here[e.canon] = true
				times[e.canon]++
			}
		}
	}
	shared := func(e *expr) bool { return times[e.canon] == len(own) }
	for _, e := range rest[0] {
		if shared(e) && !slices.ContainsFunc(all, func(have *expr) bool { return have.canon == e.canon }) {
			all = append(all, e)
		}
	}
	for i := range rest {
		rest[i] = slices.DeleteFunc(slices.Clone(rest[i]), shared)
	}
	return rest, all
}

// key binds a key for each candidate.
func (f *fanned) key(n *pg.Node, pos int) *refuse.Refusal {
	own, constant, private := make([]*expr, len(f.each)), true, true
	for i, sub := range f.each {
		e, refusal := sub.below("GROUP BY").expr(n)
		if refusal != nil {
			return refusal
		}
		own[i] = e
		constant = constant && e.isConstant()
		private = private && e.canon == own[0].canon
	}
	switch {
	case constant:
		k := fanKey{values: make([]policy.Value, len(own))}
		for i, e := range own {
			var refusal *refuse.Refusal
			if k.values[i], refusal = e.value(nil); refusal != nil {
				return refusal
			}
		}
		f.keys = append(f.keys, k)
	case private:
		f.keys = append(f.keys, fanKey{private: own[0]})
		f.g.b.open.want(f.g.rows.table, own[0].cols)
	default:
		return candidateKeys.At(pos, f.g.rows.fan.alias)
	}
	return nil
}

// told refuses keys that do not tell the candidates apart: rows that meet two of one key would count twice in it.
func (f *fanned) told(pos int) *refuse.Refusal {
	if f.g.q.sets != nil {
		return candidateRows.At(pos, "grouped by GROUPING SETS, ROLLUP or CUBE")
	}
	seen := map[string]bool{}
	for i := range f.each {
		var values []policy.Value
		for _, k := range f.keys {
			if k.values != nil {
				values = append(values, k.values[i])
			}
		}
		text := keyText(values)
		if len(values) == 0 && len(f.each) > 1 || seen[text] {
			return candidateKeys.At(pos, f.g.rows.fan.alias)
		}
		seen[text] = true
	}
	f.findRace()
	return nil
}

// aggregate binds an aggregate for each candidate: the same counters in the same places, which count under conditions of
// their own.
func (f *fanned) aggregate(call *pg.FuncCall) (*found, *refuse.Refusal) {
	n := &pg.Node{Node: &pg.Node_FuncCall{FuncCall: call}}
	if at := slices.IndexFunc(f.calls, func(have *pg.Node) bool { return ast.SameTree(have, n) }); at >= 0 {
		return f.found[at], nil
	}
	var first *found
	before := len(f.each[0].q.counters)
	for i, sub := range f.each {
		own, refusal := sub.aggregate(call)
		if refusal != nil {
			return nil, refusal
		}
		if i == 0 {
			first = own
		}
		if own.choice || own.typ != first.typ || own.counter != first.counter || (own.formula == nil) != (first.formula == nil) ||
			own.formula != nil && !ast.SameTree(own.formula, first.formula) || len(sub.q.counters) != len(f.each[0].q.counters) {
			return nil, candidateAggregate.At(int(call.Location))
		}
	}
	for _, c := range f.each[0].q.counters[before:] {
		if c.values != nil || c.units != nil || c.choice != nil {
			return nil, candidateAggregate.At(int(call.Location))
		}
	}
	f.g.q.counters = f.each[0].q.counters
	f.calls, f.found = append(f.calls, n), append(f.found, first)
	return first, nil
}

// Flat is the question with the counters of all candidates side by side; at says which are whose.
func (f *fanned) Flat() (q *question, at [][]int) {
	q = &question{table: f.g.rows.table, where: f.where, sql: f.g.q.sql, keys: f.privateKeys(), offGrid: f.g.q.offGrid}
	at = make([][]int, len(f.each))
	for i, sub := range f.each {
		for n, c := range sub.q.counters {
			if n == 0 && f.race != nil {
				at[i] = append(at[i], -1)
				continue
			}
			if c.width != nil {
				at[i] = append(at[i], q.widthOf(at[i][*c.width]))
				continue
			}
			c.where = slices.Concat(c.where, f.own[i])
			at[i] = append(at[i], q.add(c))
		}
	}
	return q, at
}

func (f *fanned) privateKeys() (keys []*expr) {
	for _, k := range f.keys {
		if k.values == nil {
			keys = append(keys, k.private)
		}
	}
	return keys
}

// Race is the score by which the first candidates are shown.
func (f *fanned) Race() *race { return f.race }

// Over is a leaf of the flat question turned over: its rows once for each candidate.
func (f *fanned) Over(flat *Leaf, at [][]int) *Leaf {
	out := &Leaf{Name: flat.Name, SQL: flat.SQL, Found: flat.Found, Rows: flat.Rows * len(f.each)}
	private := 0
	for k, key := range f.keys {
		e := f.g.q.keys[k]
		column := KeyColumn{Name: keyName(k), Type: e.Type(), Typmod: e.Typmod()}
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
	for n := range f.g.q.counters {
		column := CountColumn{Name: f.g.q.columnName(n)}
		for i := range f.each {
			if from := at[i][n]; from >= 0 {
				column.Runs = append(column.Runs, flat.Counts[from].Runs...)
			} else {
				column.Runs = append(column.Runs, Run{Measure: -1, Spans: make([][]mechanisms.Span, flat.Rows)})
			}
		}
		out.Counts = append(out.Counts, column)
	}
	return out
}
