package derived

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Tested are the rows of From, each with one more column, the last: whether a condition holds (docs/adr/0216).
//
//	SELECT balance > 21.43, count(*) FROM customer GROUP BY 1
//
// asks for cells of that column, where balance has steps of 0.5: no cell of its own says on which side a balance is.
//
// Claim: a row of Tested is a function of one row of From, which it replaces, and lies in one cell of the further
// column: true where Holds does, else false where Fails does, else NULL. Where Fails is the complement of Holds there is
// no NULL, and the SQL asks for Holds alone: true, or else false. A condition may be NULL though no column of it is
// (balance > 21.43 OR NULL), so it is the predicates that are compared. Neighbours: a unit's rows of the result are as
// many as its rows of From, and follow from them alone, so that what a unit moves is bounded as before, by From's rows
// a unit. Proof: both conditions are read off the normalised values of that row, and nothing in them can fail
// (rewrite/predicate.go).
type Tested struct {
	From         *policy.Table
	Holds, Fails predicate.Pred
}

func (d *Tested) Inputs() []*policy.Table { return []*policy.Table{d.From} }

// Meaning: see Paired.
func (d *Tested) Meaning() []byte {
	return predicate.Encode(predicate.Encode(encodeInputs([]byte("tested"), d), d.Holds), d.Fails)
}

// Total reports whether one of the two conditions holds of each row.
func (d *Tested) Total() bool {
	return bytes.Equal(predicate.Encode(nil, predicate.Not(d.Holds)), predicate.Encode(nil, d.Fails))
}

// columns are those that the conditions read.
func (d *Tested) columns() []*policy.Column {
	list, _ := predicate.Columns(d.Holds, nil)
	list, _ = predicate.Columns(d.Fails, list)
	return list
}

// name is how the column is shown: customer.balance > 21.43, or, of what is no single comparison, by a digest of it.
func (d *Tested) name() string {
	of := d.columns()[0]
	name := of.Name
	if of.Table != nil && of.Table.Derived == nil { // as derived tables name what they take over
		name = of.Table.Name + "." + name
	}
	if c, ok := d.Holds.(predicate.Compare); ok && d.Total() {
		return name + " " + c.Op + " " + predicate.Text(predicate.CanonicalValue(c.Value))
	}
	sum := sha256.Sum256(predicate.Encode(predicate.Encode(nil, d.Holds), d.Fails))
	return "a condition on " + name + " " + hex.EncodeToString(sum[:16])
}

// NewTested makes the table of a Tested: the columns and keys of From, then the condition.
func NewTested(d *Tested) *policy.Table {
	t := newDerived(d, d.From.MaxRowsPerUnit)
	t.Name = d.From.Name
	addAll(t, d.From)
	c := &policy.Column{Name: d.name(), Type: policy.Bool, Typmod: -1, Table: t, Domain: truths(),
		Nulls: policy.NullExclude, Outside: policy.OutsideExclude}
	if !d.Total() {
		c.Domain, c.Nulls = c.Domain.WithNull(), policy.NullCell
	}
	t.Columns = append(t.Columns, c)
	return t
}

// TestedIn is the position of the column of t that says already whether a condition on its columns holds, or false.
func TestedIn(t *policy.Table, holds, fails predicate.Pred) (at int, ok bool) {
	for from := t; ; {
		d, is := from.Derived.(*Tested)
		if !is {
			return 0, false
		}
		own := func(p predicate.Pred) []byte {
			return predicate.Encode(nil, predicate.Over(p,
				func(c *policy.Column) *policy.Column { return d.From.Columns[slices.Index(t.Columns, c)] }))
		}
		read, _ := predicate.Columns(holds, nil)
		if read, _ = predicate.Columns(fails, read); slices.ContainsFunc(read,
			func(c *policy.Column) bool { return slices.Index(t.Columns, c) >= len(d.From.Columns) }) {
			return 0, false
		}
		if bytes.Equal(own(holds), predicate.Encode(nil, d.Holds)) &&
			bytes.Equal(own(fails), predicate.Encode(nil, d.Fails)) {
			return len(d.From.Columns), true
		}
		from = d.From
	}
}

// TestsOf is how many conditions are columns of a table already.
func TestsOf(t *policy.Table) (n int) {
	for ; t != nil; t = Widened(t) {
		if _, is := t.Derived.(*Tested); is {
			n++
		}
	}
	return n
}
