package bind

import (
	"slices"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// In which order rows show their columns and keys. Where no private row is shown, keys are columns without values:
//
//	SELECT * FROM visits LIMIT 0                      -- person_id, visited_at, kind, minutes
//	SELECT person_id AS who, minutes FROM visits WHERE false
//
// A column is named by its position among the rows' names, a key by −1 less its position among their keys.

// described is the order in which catalogs list a table's columns.
func described(t *policy.Table, names []string, keys []linear.Key) (order []int) {
	for _, c := range t.Described() {
		if i := slices.Index(names, c.Name); i >= 0 {
			order = append(order, i)
		} else if i := slices.IndexFunc(keys, func(k linear.Key) bool { return k.Name == c.Name }); i >= 0 {
			order = append(order, -1-i)
		}
	}
	return order
}

// ordered is a relation's order; nil where what made it changed its columns or keys since.
func (p relation) ordered() []int {
	columns := 0
	for _, at := range p.order {
		if at >= p.to-p.from || -1-at >= p.toKey-p.fromKey {
			return nil
		}
		if at >= 0 {
			columns++
		}
	}
	if columns != p.to-p.from {
		return nil
	}
	return p.order
}

// Shows calls column or key for each output of the rows.
func (r *Rows) Shows(column func(at int), key func(k *linear.Key)) {
	for _, at := range r.starredWithKeys(starTarget, r.parts) {
		if at >= 0 {
			column(at)
		} else {
			key(&r.keys[-1-at])
		}
	}
}

// starredWithKeys is starred, and the keys that * or alias.* shows where no row is: those that no column has the name
// of, and in * none that USING has hidden.
func (r *Rows) starredWithKeys(target *pg.ResTarget, parts []relation) []int {
	columns := r.starred(target, parts)
	var list, hidden []int
	key := func(i int) {
		if !slices.Contains(hidden, i) && !slices.Contains(list, -1-i) {
			list = append(list, -1-i)
		}
	}
	if len(ast.Strings(target.Val.GetColumnRef().GetFields())) == 0 {
		hidden = r.hiddenKeys
		for _, h := range hidden {
			name := r.keys[h].Name
			if !slices.ContainsFunc(r.merged, func(i int) bool { return r.names[i] == name }) {
				key(slices.IndexFunc(r.keys, func(k linear.Key) bool { return k.Name == name }))
			}
		}
		list = append(list, columns[:len(r.merged)]...)
		columns = columns[len(r.merged):]
	}
	for _, p := range parts {
		order := p.ordered()
		for _, at := range order {
			if at < 0 {
				key(p.fromKey - 1 - at)
			} else if slices.Contains(columns, p.from+at) {
				list = append(list, p.from+at)
			}
		}
		if order != nil {
			continue
		}
		for i := p.from; i < p.to; i++ {
			if slices.Contains(columns, i) {
				list = append(list, i)
			}
		}
		for i := p.fromKey; i < p.toKey; i++ {
			if !slices.Contains(r.names[p.from:p.to], r.keys[i].Name) {
				key(i)
			}
		}
	}
	return list
}

// rename gives the first outputs of the rows' only relation other names: FROM visits AS v (who, at).
func (r *Rows) rename(names []string, order []int) {
	r.names, r.keys = slices.Clone(r.names), slices.Clone(r.keys)
	was := slices.Clone(r.keys)
	for i, name := range names {
		if order[i] < 0 {
			r.keys[-1-order[i]].Name = name
			continue
		}
		for k := range was { // a column that rows are joined by too
			if was[k].Name == r.names[order[i]] {
				r.keys[k].Name = name
			}
		}
		r.names[order[i]] = name
	}
}

// A SELECT in the place of a table's source (docs/adr/0019). One that is analysed is bound wherever a statement names
// the table, by what binds an analyst's sub-query, over the dataset's tables: nothing of it is trusted, and what is
// measured is measured of the tables below. One that is trusted is the owner's own text; what is looked at here is only
// that it is one SELECT, and which relations it reads.

// viewRows are the private rows of an analysed SELECT, under the columns that the policy lists.
func (b *Binder) viewRows(t *policy.Table, pos int) (*Rows, *refuse.Refusal) {
	if slices.Contains(b.viewing, t) {
		return nil, viewCircle.At(pos, t.Name)
	}
	sel, refusal := ViewSelect(t.View.Text)
	if refusal != nil {
		return nil, refusal
	}
	if pos >= 0 { // what is refused of it is refused of the name that means it
		ast.PlaceAt(sel.ProtoReflect(), int32(pos))
	}
	params, path, literals := b.Params, b.Context.Settings.SearchPath, b.Env.Literals
	b.viewing, b.Params, b.Context.Settings.SearchPath = append(b.viewing, t), &semantics.Parameters{}, nil
	b.Env.Literals = &scalar.Literals{Now: b.Env.Now, Zone: time.UTC} // the owner's text, whatever an analyst has set
	found, refusal := b.selectRows(sel, nil)
	b.viewing, b.Params, b.Context.Settings.SearchPath = b.viewing[:len(b.viewing)-1], params, path
	b.Env.Literals = literals
	switch {
	case refusal != nil:
		return nil, refusal
	case found == nil:
		return nil, viewRowsOnly.At(pos, t.Name)
	case found.fan != nil: // each row of it more than once
		return nil, rowsCombined.At(pos, "UNION ALL")
	}
	return b.viewColumns(t, found, pos)
}

// viewColumns holds what the SELECT shows against what the policy lists. Join keys need not be listed.
func (b *Binder) viewColumns(t *policy.Table, found *Rows, pos int) (*Rows, *refuse.Refusal) {
	out := *found
	out.names, out.exprs, out.pos = nil, nil, pos
	for _, c := range t.Columns {
		at := slices.Index(found.names, c.Name)
		switch {
		case at < 0:
			return nil, viewColumn.At(pos, t.Name, c.Name)
		case slices.Contains(found.names[at+1:], c.Name):
			return nil, Ambiguous.At(pos, c.Name)
		}
		e, refusal := (&semantics.Translator{Env: b.Env}).Typed(found.exprs[at], policy.Text)
		if refusal != nil {
			return nil, refusal
		}
		if e.Type().Held() != c.Type {
			return nil, viewType.At(pos, t.Name, c.Name, c.Type.Format(c.Typmod), e.Type().Format(e.Typmod()))
		}
		out.names, out.exprs = append(out.names, c.Name), append(out.exprs, e)
	}
	for _, k := range t.Keys {
		if !slices.ContainsFunc(found.keys, func(have linear.Key) bool { return have.Name == k.Name }) {
			return nil, viewKey.At(pos, t.Name, k.Name)
		}
	}
	out.parts = []relation{{t.Name, t, 0, len(out.names), 0, len(out.keys), described(t, out.names, out.keys), always}}
	return &out, nil
}

// ViewSelect parses the text of a source.
func ViewSelect(text string) (*pg.SelectStmt, *refuse.Refusal) {
	sel, refusal := parse.OneSelect(text)
	if sel == nil && refusal == nil {
		return nil, viewStatement.At(-1)
	}
	return sel, refusal
}

// PublicCondition reads a condition over one public table, of a policy, and returns what says whether it is true for a
// row of it. An empty text is true for all.
func PublicCondition(t *policy.Table, text string) (func([]policy.Value) (bool, *refuse.Refusal), *refuse.Refusal) {
	if text == "" {
		return func([]policy.Value) (bool, *refuse.Refusal) { return true, nil }, nil
	}
	sel, refusal := parse.OneSelect("SELECT " + text)
	if refusal != nil {
		return nil, refusal
	}
	if sel == nil || len(sel.TargetList) != 1 || sel.FromClause != nil || sel.WhereClause != nil {
		return nil, viewStatement.At(-1)
	}
	b := NewBinder(reuse.Context{Dataset: t.Dataset, Settings: plans.Settings{Zone: time.UTC}}, &semantics.Parameters{})
	translator := &semantics.Translator{Env: b.Env, Params: b.Params, Columns: tableRows(t, -1).Column, Place: "where"}
	e, refusal := translator.Condition(sel.TargetList[0].GetResTarget().GetVal(), "where")
	if refusal != nil {
		return nil, refusal
	}
	return func(row []policy.Value) (bool, *refuse.Refusal) {
		v, refusal := e.Value(row)
		return v == true, refusal
	}, nil
}

// noPublicRows replaces public tables before they are copied.
type noPublicRows struct{ reuse.NoCache }

func (noPublicRows) Rows(*policy.Table) ([][]policy.Value, bool) { return nil, true }

// CheckView refuses a SELECT whose rows are not a function of each unit's own rows, or whose conditions have no cells.
func CheckView(p *policy.Policy, t *policy.Table) (refusal *refuse.Refusal) {
	c := reuse.Context{Policy: p, Dataset: t.Dataset, Public: noPublicRows{}, Settings: plans.Settings{Zone: time.UTC}}.Limited()
	defer c.Stopped(&refusal)
	o := discovery.New()
	var last *refuse.Refusal
	for range discovery.MaxBindings {
		b := NewBinder(c, &semantics.Parameters{})
		b.Open = o
		found, refusal := b.viewRows(t, -1)
		if refusal == nil {
			_, refusal = linear.Solve(&linear.Question{Table: found.Table, OffGrid: b.Context.Settings.OffGrid, Where: found.where, Counters: []linear.Counter{{}}}, b.Env, new(semantics.Notes))
		}
		if !o.Learns(refusal) {
			return refusal
		}
		last = refusal
	}
	return last
}
