package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
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
