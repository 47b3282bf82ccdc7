package derived

import (
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Laddered are the totals of units, split between the steps of a ladder (package totals). For
//
//	SELECT city, sum(amount) FROM orders WHERE paid GROUP BY city
//
// a customer whose paid orders come to 400 in Kyiv and 100 in Lviv, 500 in all, has for steps of 243 and 729 a row for
// each of the two cities and steps, of shares in 2^30ths: Kyiv and 243 has 4/5 · (729 − 500)/486, and so on. What the
// shares of a city and a step add up to over all customers, times the steps, adds up to the sum of amounts.
//
// Its rows are of all of a unit's rows, however many: no bound of rows is asked of From, or of what From is made of.
// Neighbours and claim: the shares of a unit are not below 0 and come to at most totals.Parts, so that a sum of them is
// moved as by one row of up to totals.Parts (MaxRowsPerUnit is 1); with Root that is so of their squares, hence in L2.
// Nothing but that one sum may be asked of the table, which rewrite checks. Proof: at laddered in package rewrite,
// which writes the shares.
type Laddered struct {
	From  *policy.Table
	Where predicate.Pred // on From's columns: the rows that are added up
	Keys  []UnitKey      // a unit's rows are added up for each combination of these
	Value RowValue       // what is added up of a row; nil means rows are counted
	Steps totals.Ladder
	Signs bool // a total may be below 0: the cells of these come behind the others
	Root  bool // a unit's squared shares come to totals.Parts², and not its shares (totals.Norm); all keys have First
}

// RowValue is a whole number of each row, by what it means.
type RowValue interface{ Meaning() []byte }

func (l *Laddered) Inputs() []*policy.Table { return []*policy.Table{l.From} }

// Meaning: see Paired.
func (l *Laddered) Meaning(f policy.Fingerprints) []byte {
	b := predicate.Encode(encodeInputs([]byte("laddered"), l, f), l.Where)
	b = encodeUnitKeys(b, l.Keys)
	if l.Value != nil {
		b = append(append(b, 'v'), l.Value.Meaning()...)
	}
	b = binary.AppendUvarint(b, uint64(len(l.Steps)))
	for _, step := range l.Steps {
		b = binary.AppendVarint(b, step)
	}
	if l.Signs {
		b = append(b, 's')
	}
	if l.Root {
		b = append(b, 'r')
	}
	return b
}

// NewLaddered makes the table of a Laddered: its keys, the number of the step, from 0 on, and the share.
func NewLaddered(l *Laddered) *policy.Table {
	t := newDerived(l, 1)
	t.Name = l.From.Name
	for _, k := range l.Keys {
		addColumn(t, k.Column, l.From, k.Column.Domain)
	}
	cells, of := int64(len(l.Steps)), "sums"
	if l.Signs {
		cells *= 2
	}
	if l.Value == nil {
		of = "rows"
	}
	for _, c := range []struct {
		name string
		most int64
	}{{"step of " + of, cells - 1}, {"share", totals.Parts}} {
		t.Columns = append(t.Columns, &policy.Column{Name: c.name, Type: policy.Int8, Typmod: -1, Table: t,
			Nulls: policy.NullExclude, Outside: policy.OutsideExclude,
			Domain: steppedDomain(policy.Int8, -1, 0, c.most, policy.NullExclude)})
	}
	return t
}

// MostApart is up to how many combinations of keys' classes and of steps are looked at one by one, whether shares whose
// squares are bounded are in cells of their own. Of keys that are found it counts what is none of them too.
const MostApart = 1 << 21

// IsLaddered reports whether the rows of a table are shares.
func IsLaddered(t *policy.Table) bool {
	_, is := t.Derived.(*Laddered)
	return is
}

// BySquares reports whether the rows of a table are shares whose squares add up to a unit's parts.
func BySquares(t *policy.Table) bool {
	l, is := t.Derived.(*Laddered)
	return is && l.Root
}

// SeveralRows reports whether a unit may have several rows of a table whose rows are all read: of what has one row by
// the policy that one is read, as it is by rows (package rewrite).
func SeveralRows(t *policy.Table) bool {
	return t.MaxRowsPerUnit > 1 || slices.ContainsFunc(t.Base(), func(b *policy.Table) bool {
		return b.MaxRowsPerUnit > 1
	})
}

// AnyRows reports whether no bound of a unit's rows is declared for a table, or for one that it is made of.
func AnyRows(t *policy.Table) bool {
	return t.AnyRows || slices.ContainsFunc(t.Base(), func(b *policy.Table) bool { return b.AnyRows })
}

// CanLadder reports whether the rows of a table can be added up unit by unit whatever bounds there are of them: each is
// a row of the policy's tables, or of several that are joined along the unit and by what gives no row of one side two
// partners, and none names no unit.
func CanLadder(t *policy.Table) bool {
	switch t.Derived.(type) {
	case nil:
		return !t.Dataset.Unit.Row && !t.NullEach && t.Appends == nil
	case *Computed, *Tabulated, *Tested, *Matched:
		return CanLadder(t.Derived.Inputs()[0])
	case *PerUnit: // else what aggregates come to is of so many rows
		from := t.Derived.Inputs()[0]
		return from.AnyRows && CanLadder(from)
	case *Paired:
		return t.Derived.(*Paired).fewPairs() &&
			!slices.ContainsFunc(t.Derived.Inputs(), func(in *policy.Table) bool { return !CanLadder(in) })
	}
	return false
}
