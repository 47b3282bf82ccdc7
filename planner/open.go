package planner

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A column of `keys: discover` has no declared values. A statement works with those that it names and those that were
// found: with them the column has a domain like any other, in which all else is 'other' (docs/adr/0018). Which they are is
// known only after the statement has been bound, so it is bound again with what is missing: the constants that an open
// column is compared with, and, where it is grouped by one, the keys that she has paid for. Where she has not, the plan
// says what finding them costs, and is made for keys that stand for them; the statement is planned anew once they are
// there.

// opening is what one binding of a statement knows of open columns, and what it finds missing. Columns are the policy's.
type opening struct {
	found  map[*policy.Column]*finding
	values map[*policy.Column][]string
	wanted []*policy.Column
	tables map[*policy.Table]*policy.Table

	large    bool                     // keys with too many combinations are found
	products map[string]*policy.Table // with a column of combinations
}

// finding are the keys of an open column: found, or, where measure is not nil, to be found.
type finding struct {
	policy.Found
	order   map[string]int // the place of each key in the release, by its text; NULL's is that of privacy.NullKey
	holding Holding
	measure *Measure
}

// discoveries is how many discoveries a budget's δ pays for: a public part of it is what each takes.
const discoveries = 16

// standIns is the number of keys that a plan has in the place of those to be found.
const standIns = 16

// mostBindings bounds how often a statement is bound; each time more of it is known.
const mostBindings = 16

// find looks for the keys of a column among what she has paid for.
func (o *opening) find(c *policy.Column, x Context) *refuse.Refusal {
	m := keysOf(c)
	if x.Holdings != nil && x.Found != nil {
		for _, h := range x.Holdings.Held(m.Digest) {
			if noisy, ok := x.Found(h.ID); ok {
				o.found[c] = foundIn(noisy, h)
				return nil
			}
		}
	}
	budget, ok := x.Dataset.Budget(x.User)
	if !ok || budget.Cost.Delta.Atto() < discoveries {
		return noDelta.At(-1, c.Name)
	}
	// The most and the least that it may come to cost: both must do.
	for _, share := range []privacy.Cost{o.share(x, false, int64(len(o.wanted))), o.share(x, true, 1)} {
		if err := m.price(share); err != nil {
			return noMechanism.At(-1, err.Error())
		}
	}
	f := &finding{order: map[string]int{}, measure: m, holding: Holding{Spec: m.Finding.Spec(standIns)}}
	for i := range standIns {
		text := c.Name + " " + predicate.Text(int64(i+1))
		f.Values = append(f.Values, text)
		f.order["="+text] = i
	}
	slices.Sort(f.Values)
	o.found[c] = f
	return nil
}

// foundIn reads a release of keys. Of more keys than a statement works with, those are taken that have most units.
func foundIn(n mechanisms.Noisy, h Holding) *finding {
	f := &finding{order: map[string]int{}, holding: h}
	places := identityOf(len(n.Keys))
	if len(places) > policy.MostKeys {
		slices.SortStableFunc(places, func(a, b int) int { return int(min(max(n.Observations[b]-n.Observations[a], -1), 1)) })
		places = places[:policy.MostKeys]
	}
	for _, i := range places {
		f.order[n.Keys[i]] = i
		if text, ok := strings.CutPrefix(n.Keys[i], "="); ok {
			f.Values = append(f.Values, text)
		} else {
			f.Null = true
		}
	}
	slices.Sort(f.Values)
	f.holding.Spec.Cells = max(len(n.Keys), 1)
	return f
}

// keysOf is the measure that finds the keys of an open column, without its cost.
func keysOf(c *policy.Column) *Measure {
	t := c.Table
	m := &Measure{Kind: "keys", Name: t.Name + "_" + c.Name, Table: t, Open: c, Counters: []predicate.Pred{nil}}
	m.described = predicate.EncodeText(predicate.EncodeText(predicate.EncodeText(nil, "keys"), knownOf(t).fingerprint), c.Name)
	m.Digest = sha256.Sum256(m.described)
	return m
}

// finish prices what is to be found: half of what the statement may cost, or all of it where nothing else is bought.
func (o *opening) finish(p *Plan, c Context) *refuse.Refusal {
	parts := int64(0)
	for _, column := range o.wanted {
		if o.found[column].measure != nil {
			parts++
		}
		p.Notes = append(p.Notes, "of "+column.Name+" those keys are shown that enough "+column.Table.Dataset.Unit.Name+"s have, and those that the statement names")
	}
	whole := p.Cost.IsZero()
	for _, column := range o.wanted {
		m := o.found[column].measure
		if m == nil {
			continue
		}
		if !whole || parts > 1 {
			if err := m.price(o.share(c, whole, parts)); err != nil {
				return noMechanism.At(-1, err.Error())
			}
		}
		p.Finds = append(p.Finds, m)
		p.Cost = p.Cost.Plus(m.Cost)
		p.Notes = append(p.Notes, "the keys of "+column.Name+" are found for "+m.Cost.String()+": one is shown that at least about "+predicate.Text(m.Finding.Half())+" "+m.Table.Dataset.Unit.Name+
			"s have; every question by it uses them from then on")
	}
	return nil
}

// share is what each of so many discoveries of a statement may cost: all of it together, or half.
func (o *opening) share(c Context, whole bool, parts int64) privacy.Cost {
	budget, _ := c.Dataset.Budget(c.User)
	of := parts
	if !whole {
		of *= 2
	}
	share := c.share(int(of))
	share.Delta = privacy.AttoDelta(budget.Cost.Delta.Atto() / discoveries / parts)
	return share
}

// table is the table with what is known of its open columns.
func (o *opening) table(t *policy.Table) *policy.Table {
	if o == nil || !t.IsOpen() {
		return t
	}
	if known := o.tables[t]; known != nil {
		return known
	}
	found := map[*policy.Column]policy.Found{}
	for _, c := range t.Columns {
		values := slices.Clone(o.values[c])
		f := o.found[c]
		if c.Open == nil || len(values) == 0 && f == nil {
			continue
		}
		var all policy.Found
		if f != nil {
			values, all.Null = append(values, f.Values...), f.Null
		}
		slices.Sort(values)
		all.Values = slices.Compact(values)
		found[c] = all
	}
	known := t
	if len(found) > 0 {
		known = t.With(found)
	}
	o.tables[t] = known
	return known
}

// want notes that the keys of the open columns among those of a table are needed.
func (o *opening) want(t *policy.Table, columns []int) {
	for _, i := range columns {
		if c := t.Columns[i].Open; c != nil && o != nil && !slices.Contains(o.wanted, c) {
			o.wanted = append(o.wanted, c)
		}
	}
}

// held are the numbers of units of found keys, as a measure over the table that counts rows, which is the same where a unit
// has one.
func (o *opening) held(t *policy.Table) []heldOn {
	if o == nil || !t.Opened || t.MaxRowsPerUnit != 1 {
		return nil
	}
	var list []heldOn
	for _, c := range t.Columns {
		f := o.found[c.Open]
		if c.Open == nil || f == nil || len(f.order) == 0 {
			continue
		}
		s := identity(t, []*policy.Column{c})
		p := s.parts[0]
		for cell := range p.class {
			key := privacy.NullKey
			if cell < c.Domain.Regular {
				key = "=" + c.Domain.Values[cell]
			}
			at, ok := f.order[key]
			if p.class[cell] = int32(at); !ok || cell != c.Domain.Null && cell >= c.Domain.Regular {
				p.class[cell] = -1
			}
		}
		s.cells = f.holding.Spec.Cells
		p.classes = s.cells
		list = append(list, heldOn{f.holding, &heldMeasure{solved: s, kind: "keys", name: t.Name + "_" + c.Name, adds: []string{""}}, nil})
	}
	return list
}
