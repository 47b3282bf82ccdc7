package derived

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// How many pairs a join leaves of one unit (docs/adr/0058). For
//
//	SELECT count(*) FROM payment p JOIN rental r ON r.rental_id = p.rental_id
//
// where a unit has at most 50 rows of each, there are at most 50 · 50 pairs; but at most 50 if no two of a unit's
// rentals have the same rental_id.
//
// Claim. A unit has at most rows() pairs, or rows of the left side and its partners. Proof. Pairs are of one unit: the
// SQL equates the units themselves, whatever keys are equal besides. Let a unit have l rows on the left and r on the
// right, so that l ≤ L and r ≤ R, the inputs' bounds. Each row of one side is in as many pairs as it has partners: l·r
// are always enough. If the right side is single in the keys that are equated, a row of the left fixes their values, so
// it has at most one partner: at most l pairs, and in an outer join one row for each of the l, with its partner or
// without. If the left side is single there are at most r pairs, and in an outer join up to l rows without one besides.
// All rows of a side can be in as many.
//
// Claim. single says that of the rows of a unit in t whose keys are all not NULL no two have the same values in all of
// them: the join equates them all, so that other rows find no partner. Proof, by the derivation of t. A table of the
// policy: at most one row a unit; a key through which units are found, for which every query over the measure's tables
// needs a constraint (rewrite.Required); or one that the policy declares unique, whose proof is a constraint read in
// the leaf's own snapshot, or else the SQL itself, which takes one row of those of a unit that share it
// (rewrite/source.go): what is declared is relied upon by nobody. Marked, Computed, Tabulated and Windowed: their rows
// are their input's, or some of them. PerUnit: one row a unit and combination of what it is grouped by, if all of that
// is given, keys and columns: of a column a group has one value, and no other group has it. Paired: the keys of one
// side fix its row, and with it the values that the other side must have in the keys that are equated, and if these fix the other side's row too the pair is fixed. In an outer join a
// left row is there without a partner only where it has none, and a right side's key that is not NULL is of a pair.
//
// Theorem. The sensitivities that are computed from MaxRowsPerUnit hold for joins, inner and left, and for joins of
// joins.

// rows bounds the pairs of one unit, and says what that relies on.
func (p *Paired) rows() (int64, []Unique) {
	left, right := p.Left.MaxRowsPerUnit, p.Right.MaxRowsPerUnit
	rows, relied := left*right, []Unique(nil)
	fewer := func(bound int64, given []Unique, single bool) {
		if single && bound < rows {
			rows, relied = bound, given
		}
	}
	lefts, rights, base := p.equated()
	given, single := singleIn(p.Right, rights, base)
	fewer(left, given, single)
	if given, single = singleIn(p.Left, lefts, base); p.Outer {
		fewer(left+right, given, single) // rows of the left without a partner stay
	} else {
		fewer(right, given, single)
	}
	return rows, distinctUniques(relied)
}

// equated are the keys and columns of either side that are equated, and the policy's tables below both.
func (p *Paired) equated() (lefts, rights []*policy.Column, base []*policy.Table) {
	for _, e := range slices.Concat(p.On, p.Alike) {
		lefts, rights = append(lefts, e.Left), append(rights, e.Right)
	}
	return lefts, rights, slices.Concat(p.Left.Base(), p.Right.Base())
}

// fewPairs reports whether of one side no row has two partners, by what holds of all rows of a unit and not of so many:
// a unit has no more pairs then than rows. Without that one unit's rows could take all the time that a question has:
// a thousand of them in three tables make 10^9.
func (p *Paired) fewPairs() bool {
	lefts, _, base := p.equated()
	given, single := singleIn(p.Left, lefts, base)
	return p.KeepsLeft() || single && p.enforces(given)
}

// KeepsLeft reports whether a row of the left side has one partner at most, by what holds of all rows of a unit.
func (p *Paired) KeepsLeft() bool {
	_, rights, base := p.equated()
	given, single := singleIn(p.Right, rights, base)
	return single && p.enforces(given)
}

// enforces reports whether the SQL of the pairs takes one row for each of some keys.
func (p *Paired) enforces(given []Unique) bool {
	return len(distinctUniques(slices.Concat(p.Unique, given))) == len(p.Unique)
}

// fullRows bounds the rows that a unit has of a FULL JOIN: pairs, rows of the left side without a partner and rows of
// the right side without one.
//
// Claim. These are at most L + R where one side is single, and else the greater of L·R and L + R. Proof. Of l and r
// rows a left and b right ones have partners. If the right side is single each left row is in one pair or alone: l
// rows, and r − b besides; if the left side is, r and l − a. Otherwise a·b + (l − a) + (r − b), which is linear in a
// and in b, is largest at their ends: l·r where all have partners, l + r where none has (one side alone has none). That
// a side is single is what made the bound of pairs less than L·R, and what that relies on is enforced with it.
//
// Claim. Where the branches are apart they are at most as many as the larger branch has. Proof. See apart: all rows of
// a unit are of one branch.
func (u *United) fullRows(p *Paired) int64 {
	if u.apart(p) {
		return max(u.Branches[0].From.MaxRowsPerUnit, u.Branches[1].From.MaxRowsPerUnit)
	}
	left, right := p.Left.MaxRowsPerUnit, p.Right.MaxRowsPerUnit
	if rows, _ := p.rows(); rows < left*right {
		return left + right
	}
	return max(left*right, left+right)
}

// apart reports whether no unit has rows of both branches of a FULL JOIN, as where the unit alone is equated:
//
//	SELECT p.sex, v.ward, count(*) FROM people p FULL JOIN (SELECT DISTINCT ON (who) who, ward FROM visits ORDER BY who, day) v ON v.who = p.person_id GROUP BY 1, 2
//
// where whoever has a row on each side has one pair of them, and no other row.
//
// Claim. A unit has rows of the first branch, or of the second, and not of both. Proof. A row of the first branch has a
// left row of its unit for which the branch's condition holds, which reads columns of the left side alone. The second
// branch's rows are marked by whether their unit has a left row for which the mark's condition holds, in no further
// key: if that is the same condition, the unit's rows on the right side are all marked. Those that are marked are none
// of the branch, where its condition leaves the mark's false alone.
func (u *United) apart(p *Paired) bool {
	pairs, alone := u.Branches[0], u.Branches[1]
	m, ok := alone.From.Derived.(*Marked)
	if !ok || m.Other != p.Left || len(m.On)+len(m.Same) > 0 {
		return false
	}
	known := true
	of := predicate.Over(pairs.Where, func(c *policy.Column) *policy.Column {
		if at := slices.Index(pairs.From.Columns, c); at >= 0 && at < len(p.Left.Columns) && p.Left.Columns[at].Domain == c.Domain {
			return p.Left.Columns[at]
		}
		known = false
		return c
	})
	if !known || !bytes.Equal(predicate.Encode(nil, of), predicate.Encode(nil, m.Where)) {
		return false
	}
	mark := alone.From.Columns[len(alone.From.Columns)-1]
	marked, ok := mark.Domain.Cell(true)
	conditions, several := alone.Where.(predicate.AllOf)
	if !several {
		conditions = predicate.AllOf{alone.Where}
	}
	return ok && slices.ContainsFunc(conditions, func(c predicate.Pred) bool {
		in, is := c.(predicate.InCells)
		return is && in.Column == mark && !predicate.Contains(in.Spans, marked)
	})
}

// singleIn reports whether no two rows of a unit in t share the values of keys, and what that relies on; base are the
// policy's tables below the measure.
func singleIn(t *policy.Table, keys []*policy.Column, base []*policy.Table) ([]Unique, bool) {
	if t.MaxRowsPerUnit == 1 {
		return nil, true
	}
	switch d := t.Derived.(type) {
	case nil:
		return declaredSingle(t, inputsOf(t, keys, func(at int) *policy.Column { return t.Keys[at] }), base)
	case *Computed, *Tabulated, *Tested, *Marked, *Windowed:
		from := t.Derived.Inputs()[0]
		return singleIn(from, inputsOf(t, keys, func(at int) *policy.Column { return from.Keys[at] }), base)
	case *PerUnit:
		of := inputsOf(t, keys, func(at int) *policy.Column { return d.KeysOf()[at] })
		missing := func(of []*policy.Column) func(*policy.Column) bool {
			return func(c *policy.Column) bool { return !slices.Contains(of, c) }
		}
		return nil, !slices.ContainsFunc(t.Columns[:len(d.Keys)], missing(keys)) &&
			!slices.ContainsFunc(d.JoinKeys, missing(of))
	case *Paired:
		return d.single(t, keys, base)
	}
	return nil, false
}

// sole reports whether a column has one value in all rows that a unit has in t.
//
//	SELECT p.city, sum(v.price) AS s FROM people p JOIN visits v ON v.person_id = p.person_id GROUP BY p.person_id, p.city
//
// Claim. A PerUnit whose keys are all sole in its input, and that has no join keys, has at most one row a unit. Proof.
// A unit's rows of the input agree in all keys, and so are in one group. That they agree, by the derivation of t: it
// has one row a unit; a pair of an inner join has the value of a row of one side, and all rows of that side have the
// same; in an outer join so has the left side (a right side's column is NULL in rows without a partner, and not in
// others); Marked passes a row's columns on.
func sole(t *policy.Table, c *policy.Column) bool {
	if t.MaxRowsPerUnit == 1 {
		return true
	}
	at := slices.Index(t.Columns, c)
	switch d := t.Derived.(type) {
	case *Paired:
		if at < 0 || at >= len(d.Origins) || d.Outer && d.Origins[at].Right {
			return false
		}
		if of := d.Origins[at]; of.Right {
			return sole(d.Right, of.Column)
		}
		return sole(d.Left, d.Origins[at].Column)
	case *Marked:
		return at >= 0 && at < len(d.From.Columns) && sole(d.From, d.From.Columns[at])
	}
	return false
}

// inputsOf are the columns of an input that some keys of t are, by their places among t's keys.
func inputsOf(t *policy.Table, keys []*policy.Column, of func(at int) *policy.Column) (list []*policy.Column) {
	for _, k := range keys {
		if at := slices.Index(t.Keys, k); at >= 0 {
			if c := of(at); c != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// declaredSingle is singleIn for a table of the policy. Its unit is equated in any case.
func declaredSingle(t *policy.Table, keys []*policy.Column, base []*policy.Table) ([]Unique, bool) {
	for _, k := range keys {
		if slices.ContainsFunc(base, func(b *policy.Table) bool { return b.Via != nil && b.Via.Table == t && b.Via.Key == k.Source }) {
			return nil, true
		}
	}
	for _, sources := range t.Unique {
		u := Unique{Table: t}
		for _, source := range sources {
			if at := slices.IndexFunc(keys, func(k *policy.Column) bool { return k.Source == source }); at >= 0 {
				u.Keys = append(u.Keys, keys[at])
			} else if source != t.UnitColumn {
				u.Keys = nil
				break
			}
		}
		if len(u.Keys) > 0 {
			return []Unique{u}, true
		}
	}
	return nil, false
}

// single is singleIn for the table of d.
func (p *Paired) single(t *policy.Table, keys []*policy.Column, base []*policy.Table) ([]Unique, bool) {
	for _, right := range []bool{false, true} {
		own, other := p.Left, p.Right
		if right {
			own, other = other, own
		}
		ofSide := func(side bool) []*policy.Column {
			return inputsOf(t, keys, func(at int) *policy.Column {
				if p.KeyOrigins[at].Right != side {
					return nil
				}
				return p.KeyOrigins[at].Column
			})
		}
		owns, others := ofSide(right), ofSide(!right)
		if right && len(owns) == 0 { // whose key would tell that it is a pair
			continue
		}
		for _, e := range p.On {
			if right {
				others = append(others, e.Left)
			} else {
				others = append(others, e.Right)
			}
		}
		given, single := singleIn(own, owns, base)
		if !single {
			continue
		}
		if more, also := singleIn(other, others, base); also {
			return append(given[:len(given):len(given)], more...), true
		}
	}
	return nil, false
}

// distinctUniques leaves out what is there already.
func distinctUniques(list []Unique) (out []Unique) {
	for _, u := range list {
		if !slices.ContainsFunc(out, func(o Unique) bool { return o.Table == u.Table && slices.Equal(o.Keys, u.Keys) }) {
			out = append(out, u)
		}
	}
	return out
}

// UniquesOf lists what the bounds of a table's rows rely on, each once.
func UniquesOf(t *policy.Table) []Unique {
	var list []Unique
	if t.Derived != nil {
		for _, in := range t.Derived.Inputs() {
			list = append(list, UniquesOf(in)...)
		}
		if p, ok := t.Derived.(*Paired); ok {
			list = append(list, p.Unique...)
		}
	}
	return distinctUniques(list)
}

// Keyed are the rows of a public table by the values of some of its columns, no two of them by the same. A plan looks
// into it once for each cell: of lineitem JOIN part ON l_partkey = p_partkey 100,000 times, so that keys which are
// whole numbers near one another, as serial ones are, are places in a list. So are they of several columns where one
// tells the rows apart by itself, as s_suppkey does in
//
//	l_suppkey = s_suppkey AND c_nationkey = s_nationkey
type Keyed struct {
	Twice  bool // two rows have the same key: there is nothing to look up in
	Digest string
	byText map[string][]policy.Value
	dense  [][]policy.Value // by one of the keys, from first on; nil means by text
	first  int64
	by     int // which
	keys   []Key

	mu     sync.Mutex // plans share an index
	values map[int]*Places
}

// Key is a column by whose values rows are looked for. Where a varchar is compared with a char its trailing blanks do
// not count: it is looked for without them, as the values of a char are.
type Key struct {
	Column int
	Short  bool
}

// Of is the key of a row.
func (k Key) Of(row []policy.Value) policy.Value {
	v := row[k.Column]
	if text, ok := v.(string); ok && k.Short {
		return strings.TrimRight(text, " ")
	}
	return v
}

// BytesKeyed is about what a public row takes in an index by its key.
const BytesKeyed = 96

// sparsest is how many places a list may have for each row.
const sparsest = 4

// KeyedBy reads rows by their keys, a step each, whatever the keys are; rows of which one is NULL are left out.
func KeyedBy(rows [][]policy.Value, keys []Key, step func()) *Keyed {
	k := &Keyed{byText: make(map[string][]policy.Value, len(rows))}
	hash := sha256.New()
	values := make([]policy.Value, len(keys))
	list := make([]extent, len(keys))
	for _, row := range rows {
		if step(); k.Twice {
			continue
		}
		for i, k := range keys {
			values[i] = k.Of(row)
		}
		key, known := JoinKey(values)
		if !known {
			continue
		}
		if k.byText[key] != nil {
			k.Twice, k.byText = true, nil
			continue
		}
		for i, v := range values {
			list[i].take(v, len(k.byText) == 0)
		}
		k.byText[key] = row
		fmt.Fprintf(hash, "%q", key)
		for _, v := range row {
			fmt.Fprintf(hash, " %q", predicate.Text(v))
		}
	}
	if k.Twice {
		return k
	}
	k.Digest = hex.EncodeToString(hash.Sum(nil)[:16])
	for i := range keys {
		if k.dense = k.listed(keys[i].Column, list[i]); k.dense != nil {
			k.first, k.by, k.keys, k.byText = list[i].least, i, keys, nil
			break
		}
	}
	return k
}

// extent is from where to where the values of a key go.
type extent struct {
	least, most int64
	other       bool // one of them is no whole number
}

func (e *extent) take(v policy.Value, first bool) {
	n, whole := v.(int64)
	switch {
	case !whole:
		e.other = true
	case first:
		e.least, e.most = n, n
	default:
		e.least, e.most = min(e.least, n), max(e.most, n)
	}
}

// listed are the rows as a list by one column; nil means its values are far apart, or two rows have the same.
func (k *Keyed) listed(column int, e extent) [][]policy.Value {
	span := uint64(e.most) - uint64(e.least)
	if e.other || span >= uint64(sparsest*len(k.byText)) {
		return nil
	}
	list := make([][]policy.Value, span+1)
	for _, row := range k.byText {
		at := row[column].(int64) - e.least
		if list[at] != nil {
			return nil
		}
		list[at] = row
	}
	return list
}

// Find is the row with a key, nil where there is none.
func (k *Keyed) Find(key []policy.Value) []policy.Value {
	if k.dense == nil {
		text, known := JoinKey(key)
		if !known {
			return nil
		}
		return k.byText[text]
	}
	n, ok := wholeOf(key[k.by])
	if !ok || n < k.first || uint64(n)-uint64(k.first) >= uint64(len(k.dense)) {
		return nil
	}
	row := k.dense[n-k.first]
	for i, own := range k.keys {
		if row != nil && i != k.by && !sameKey(key[i], own.Of(row)) {
			return nil
		}
	}
	return row
}

// sameKey tells values whose key texts are equal.
func sameKey(a, b policy.Value) bool {
	n, whole := a.(int64)
	if m, also := b.(int64); whole && also {
		return n == m
	}
	left, known := joinText(a)
	right, also := joinText(b)
	return known && also && left == right
}

// wholeOf is a value as the whole number that it equals, as joinText has them equal.
func wholeOf(v policy.Value) (int64, bool) {
	if n, ok := v.(int64); ok || v == nil {
		return n, ok
	}
	x, ok := RatOf(v)
	if !ok || !x.IsInt() || !x.Num().IsInt64() {
		return 0, false
	}
	return x.Num().Int64(), true
}

// JoinKey is the key text of values that are equal where their texts are; false where one is NULL, which equals
// nothing.
func JoinKey(values []policy.Value) (string, bool) {
	var b strings.Builder
	for _, v := range values {
		text, known := joinText(v)
		if !known {
			return "", false
		}
		b.Write(predicate.EncodeText(nil, text))
	}
	return b.String(), true
}

// joinText is the key text of a value; false for NULL, which equals nothing.
func joinText(v policy.Value) (string, bool) {
	if v == nil {
		return "", false
	}
	if n, ok := v.(int64); ok { // as below
		return strconv.FormatInt(n, 10), true
	}
	if x, ok := RatOf(v); ok {
		return x.RatString(), true
	}
	return predicate.Text(v), true
}
