// Package discovery is what a statement knows of columns of `keys: discover`, whose values nobody has declared: the
// keys that she has paid for, those that the statement names, and those that are still to be found (partition
// selection). Of
//
//	SELECT zip, count(*) FROM people GROUP BY zip
//
// the binder asks for the keys of zip (Want); they are looked for among what she holds (Find), and where they are not
// there the plan says what finding them costs (Finish) and is made for placeholders of the keys.
package discovery

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A column of `keys: discover` has no declared values. A statement works with those that it names and those that were
// found: with them the column has a domain like any other, in which all else is 'other' (docs/adr/0018). Which they are
// is known only after the statement has been bound, so it is bound again with what is missing: the constants that an
// open column is compared with, and, where it is grouped by one, the keys that she has paid for. Where she has not, the
// plan says what finding them costs, and is made for placeholders of them; the statement is planned anew once they
// are there.

// Keys is what one binding of a statement knows of open columns, and what it finds missing. Columns are the policy's.
type Keys struct {
	Found  map[*policy.Column]*Finding
	Values map[*policy.Column][]string
	Wanted []*policy.Column
	Tables map[*policy.Table]*policy.Table

	readings map[*policy.Column][]*policy.Column // what the statement asks of texts, by the policy's column, each once
	wanted   bool                                // by this binding, of a reading that its tables do not have

	Large    bool                     // keys with too many combinations are found
	products map[string]*policy.Table // with a column of combinations
}

// Finding are the keys of an open column: found, or, where measure is not nil, to be found.
type Finding struct {
	policy.Found
	order   map[string]int // the place of each key in the release, by its text; NULL's is that of privacy.NullKey
	holding reuse.Holding
	Measure *plans.Measure
}

// discoveries is how many discoveries a budget's δ pays for where dp.delta does not say: a public part of it is what
// each takes.
const discoveries = 16

// standIns is the number of keys that a plan has in the place of those to be found.
const standIns = 16

// MaxBindings bounds how often a statement is bound; each time more of it is known.
const MaxBindings = 16

// Find looks for the keys of a column among what she has paid for.
func (o *Keys) Find(c *policy.Column, x reuse.Context) *refuse.Refusal {
	m := KeysOf(c)
	if x.Holdings != nil && x.Found != nil {
		for _, h := range x.Holdings.Held(m.Digest) {
			if noisy, ok := x.Found(h.ID); ok {
				o.Found[c] = foundIn(noisy, h)
				return nil
			}
		}
	}
	budget, ok := x.Dataset.Budget(x.User)
	if !ok || budget.Cost.Delta.Atto() < discoveries {
		return NoDelta.At(-1, c.Name)
	}
	if d := x.Settings.Delta; d.Atto() > budget.Cost.Delta.Atto() || d.Atto() != 0 && d.Atto() < discoveries {
		return DeltaRange.At(-1, d.String(), budget.Cost.Delta.String())
	}
	// The most and the least that it may come to cost: both must do.
	for _, share := range []privacy.Cost{o.Share(x, false, int64(len(o.Wanted))), o.Share(x, true, 1)} {
		if err := m.Price(share); err != nil {
			return linear.NoMechanism.At(-1, err.Error())
		}
	}
	f := &Finding{order: map[string]int{}, Measure: m, holding: reuse.Holding{Spec: m.Finding.Spec(standIns)}}
	for i := range standIns {
		text := predicate.Text(int64(i + 1))
		if c.Type.Textual() {
			text = c.Name + " " + text
		}
		f.Values = append(f.Values, text)
		f.order["="+text] = i
	}
	slices.Sort(f.Values)
	o.Found[c] = f
	return nil
}

// foundIn reads a release of keys. Of more keys than a statement works with, those are taken that have most units.
func foundIn(n mechanisms.Noisy, h reuse.Holding) *Finding {
	f := &Finding{order: map[string]int{}, holding: h}
	places := semantics.IdentityOf(len(n.Keys))
	if len(places) > policy.MaxKeys {
		slices.SortStableFunc(places, func(a, b int) int { return int(min(max(n.Observations[b]-n.Observations[a], -1), 1)) })
		places = places[:policy.MaxKeys]
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

// KeysOf is the measure that finds the keys of an open column, without its cost.
func KeysOf(c *policy.Column) *plans.Measure {
	t := c.Table
	m := &plans.Measure{Kind: "keys", Name: t.Name + "_" + c.Name, Table: t, Open: c, Counters: []predicate.Pred{nil}}
	m.Described = predicate.EncodeText(predicate.EncodeText(predicate.EncodeText(nil, "keys"), linear.KnownOf(t).Fingerprint), c.Name)
	m.Digest = sha256.Sum256(m.Described)
	return m
}

// Finish prices what is to be found: half of what the statement may cost, or all of it where nothing else is bought.
func (o *Keys) Finish(p *plans.Plan, c reuse.Context) *refuse.Refusal {
	parts := int64(0)
	for _, column := range o.Wanted {
		if o.Found[column].Measure != nil {
			parts++
		}
		p.Notes = append(p.Notes, "of "+column.Name+" those keys are shown that enough "+
			column.Table.Dataset.Unit.Name+"s have, and those that the statement names: rows of others are in no group, "+
			"and may be in no total")
	}
	var said []string
	for of, list := range o.readings {
		if slices.ContainsFunc(list, func(c *policy.Column) bool { return c.Reading.Folds() }) {
			said = append(said, "lower, upper and ILIKE of "+of.Name+" change the letters A to Z alone")
		}
		beyond := func(p policy.Part) bool { return utf8.RuneCountInString(p.Text) > of.Longest() }
		if slices.ContainsFunc(list, func(c *policy.Column) bool { return c.Reading.Cuts() || slices.ContainsFunc(c.Reading, beyond) }) {
			said = append(said, fmt.Sprintf("of %s the first %d characters are read", of.Name, of.Longest()))
		}
	}
	slices.Sort(said)
	p.Notes = append(p.Notes, slices.Compact(said)...)
	whole := p.Cost.IsZero()
	for _, column := range o.Wanted {
		m := o.Found[column].Measure
		if m == nil {
			continue
		}
		if !whole || parts > 1 {
			if err := m.Price(o.Share(c, whole, parts)); err != nil {
				return linear.NoMechanism.At(-1, err.Error())
			}
		}
		p.Finds = append(p.Finds, m)
		p.Cost = p.Cost.Plus(m.Cost)
		p.Notes = append(p.Notes, "the keys of "+column.Name+" are found for "+m.Cost.String()+": one is shown that "+
			"at least about "+predicate.Text(m.Finding.Half())+" "+m.Table.Dataset.Unit.Name+"s have"+fewOf(m)+"; every "+
			"question by it uses them from then on")
	}
	return nil
}

// fewOf says how many keys of a unit are looked at where it may have any number of them.
func fewOf(m *plans.Measure) string {
	n := m.Finding.KeysEach()
	switch {
	case !m.Table.AnyRows:
		return ""
	case n == 1:
		return ", of whose keys one each is counted"
	}
	return ", of whose keys " + predicate.Text(n) + " each are counted"
}

// Share is what each of so many discoveries of a statement may cost: all of it together, or half.
func (o *Keys) Share(c reuse.Context, whole bool, parts int64) privacy.Cost {
	budget, _ := c.Dataset.Budget(c.User)
	of := parts
	if !whole {
		of *= 2
	}
	share := c.Share(int(of))
	share.Delta = privacy.AttoDelta(budget.Cost.Delta.Atto() / discoveries / parts)
	if d := c.Settings.Delta; d.Atto() > 0 {
		share.Delta = privacy.AttoDelta(d.Atto() / parts)
	}
	return share
}

// Table is the table with what is known of its open columns.
func (o *Keys) Table(t *policy.Table) *policy.Table {
	if o == nil || !t.IsOpen() {
		return t
	}
	if known := o.Tables[t]; known != nil {
		return known
	}
	found := map[*policy.Column]policy.Found{}
	var asked []*policy.Column
	for _, c := range t.Columns {
		values := slices.Clone(o.Values[c])
		f := o.Found[c]
		asked = append(asked, o.readings[c]...)
		for _, r := range o.readings[c] {
			if r.Open != nil {
				named := slices.Clone(o.Values[r])
				slices.Sort(named)
				found[r] = policy.Found{Values: slices.Compact(named)}
			}
		}
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
	if len(found) > 0 || len(asked) > 0 {
		slices.SortFunc(asked, func(a, b *policy.Column) int { return strings.Compare(a.Name, b.Name) })
		known = t.With(found, asked...)
	}
	o.Tables[t] = known
	return known
}

// New is what is known before a statement is bound: nothing.
func New() *Keys {
	return &Keys{Found: map[*policy.Column]*Finding{}, Values: map[*policy.Column][]string{}, Tables: map[*policy.Table]*policy.Table{}}
}

// Learns takes what a binding has found missing, if there was anything: the statement is then bound again.
func (o *Keys) Learns(refusal *refuse.Refusal) bool {
	learnt := o.wanted
	if o.wanted = false; refusal != nil {
		for _, v := range refusal.Named {
			o.Values[v.Column], learnt = append(o.Values[v.Column], v.Text), true
		}
	}
	if learnt {
		o.Tables = map[*policy.Table]*policy.Table{}
	}
	return learnt
}

// Lacks reports whether this binding was made with something missing: it is in vain.
func (o *Keys) Lacks() bool { return o != nil && o.wanted }

// Texts are what expressions over some rows ask of texts. Of
//
//	SELECT count(*) FROM orders WHERE note LIKE '%late%' OR left(note, 3) = 'Re:'
//
// a first binding notes two readings of note, a second one has columns for both, and names 'Re:', which has a cell in
// the third.
func (o *Keys) Texts(of func() *policy.Table) *semantics.Texts {
	if o == nil {
		return nil
	}
	return &semantics.Texts{Of: of, Want: o.want}
}

// want notes a reading of a text of the policy; not ok: the tables of this binding have it already.
func (o *Keys) want(of *policy.Column, r policy.Reading) (ok bool, err error) {
	c, err := policy.NewReading(of, r)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(o.readings[of], func(have *policy.Column) bool { return have.Name == c.Name }) {
		return o.wanted, nil
	}
	if len(o.readings[of]) >= policy.MaxReadings {
		return false, errors.New("more than " + strconv.Itoa(policy.MaxReadings) + " different conditions on one text")
	}
	if o.readings == nil {
		o.readings = map[*policy.Column][]*policy.Column{}
	}
	o.readings[of], o.wanted = append(o.readings[of], c), true
	return true, nil
}

// Want notes that the keys of the open columns among those of a table are needed.
func (o *Keys) Want(t *policy.Table, columns []int) {
	for _, i := range columns {
		if c := t.Columns[i].Open; c != nil && !c.Any && o != nil && !slices.Contains(o.Wanted, c) {
			o.Wanted = append(o.Wanted, c)
		}
	}
}

// Held are the numbers of units of found keys, as a measure over the table that counts rows, which is the same where a
// unit has one.
func (o *Keys) Held(t *policy.Table) []reuse.HeldOn {
	if o == nil || !t.Opened || t.MaxRowsPerUnit != 1 {
		return nil
	}
	var list []reuse.HeldOn
	for _, c := range t.Columns {
		f := o.Found[c.Open]
		if c.Open == nil || f == nil || len(f.order) == 0 {
			continue
		}
		s := linear.Identity(t, []*policy.Column{c})
		p := s.Factors[0]
		for cell := range p.Class {
			key := privacy.NullKey
			if cell < c.Domain.Regular {
				key = "=" + c.Domain.Values[cell]
			}
			at, ok := f.order[key]
			if p.Class[cell] = int32(at); !ok || cell != c.Domain.Null && cell >= c.Domain.Regular {
				p.Class[cell] = -1
			}
		}
		s.Cells = f.holding.Spec.Cells
		p.Classes = s.Cells
		list = append(list, reuse.HeldOn{Holding: f.holding, Measure: &reuse.HeldMeasure{Query: s, Kind: "keys", Name: t.Name + "_" + c.Name, Adds: []string{""}}, Declared: nil})
	}
	return list
}

// NoDelta is refused for whoever has no δ to find keys with.
var NoDelta = refuse.New("no-delta", "DP002", `the keys of column "%s" have to be found, which takes δ, and your budget has none`, "Name the values: WHERE column IN (…) without GROUP BY, or count(*) FILTER (WHERE column = 'value') for each.", "")

// DeltaRange is refused where dp.delta is more than she has, or too little to find anything with.
var DeltaRange = refuse.New("delta-range", "DP002", `dp.delta is %s, and your budget has δ %s for keys`, "SET dp.delta = auto takes a sixteenth of it.", "")
