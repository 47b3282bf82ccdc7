package derived

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// Tested are the rows of From, each with one more column, the last: which of some conditions hold (docs/adr/0223).
//
//	SELECT CASE WHEN price < 12.34 THEN 'low' WHEN price < 56.78 THEN 'middle' END, count(*) FROM lineitem GROUP BY 1
//
// asks for the cells of that column, where price has steps of 0.5: no cell of its own says on which side of 12.34 a
// price is. Its cells are the combinations of truth values that may occur, here three: n comparisons of a column with
// constants are n + 1 intervals, and one more cell where the column is NULL.
//
// Claim: a row of Tested is a function of one row of From, which it replaces, and lies in one cell of the further
// column: the first of which the arm holds, or the last where none does. Neighbours: a unit's rows of the result are as
// many as its rows of From, and follow from them alone, so that what a unit moves is bounded as before, by From's rows
// a unit. Proof: the arms are read off the normalised values of that row, and nothing in them can fail
// (rewrite/predicate.go). The column has so many cells as there are arms, and one, whatever the arms are: no claim about
// which truth values occur is needed for that.
//
// That each condition has on each row the truth value that Cells says is what the answer's being right depends on. It
// follows from predicate.Truths: the row's combination is among Cells, and it alone satisfies its cell's arm and none
// before, each of which has a condition that differs for all later cells.
type Tested struct {
	From       *policy.Table
	Conditions []Condition
	Cells      []string         // of each cell the truth value of each condition: t, f, or n for NULL
	Arms       []predicate.Pred // of all cells but the last, in order
}

// Condition is where a condition is true and where it is false; elsewhere it is NULL.
type Condition struct{ Holds, Fails predicate.Pred }

// Columns are those that a condition reads.
func (c Condition) Columns() []*policy.Column {
	list, _ := predicate.Columns(predicate.AllOf{c.Holds, c.Fails}, nil)
	return list
}

// Over is a condition on a table's columns as one on those of another that are at the same positions.
func (c Condition) Over(from, to *policy.Table) Condition {
	of := func(c *policy.Column) *policy.Column { return to.Columns[slices.Index(from.Columns, c)] }
	return Condition{predicate.Over(c.Holds, of), predicate.Over(c.Fails, of)}
}

// where is where a condition has a truth value.
func (c Condition) where(truth byte) predicate.Pred {
	switch truth {
	case 't':
		return c.Holds
	case 'f':
		return c.Fails
	}
	return predicate.All(predicate.Not(c.Holds), predicate.Not(c.Fails))
}

func (d *Tested) Inputs() []*policy.Table { return []*policy.Table{d.From} }

// Meaning is the arms, which say what each cell is, whatever conditions they come of. See Paired.
func (d *Tested) Meaning(f policy.Fingerprints) []byte {
	return d.encodeArms(encodeInputs([]byte("cells"), d, f))
}

func (d *Tested) encodeArms(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(d.Arms)))
	for _, p := range d.Arms {
		b = predicate.Encode(b, p)
	}
	return b
}

func (d *Tested) columns() (list []*policy.Column) {
	for _, c := range d.Conditions {
		for _, of := range c.Columns() {
			list = predicate.WithColumn(list, of)
		}
	}
	return list
}

// name is how the column is shown: customer.balance > 21.43, or, of what is no single comparison, by a digest of it.
func (d *Tested) name() string {
	of, what := d.columns()[0], ""
	if len(d.Arms) == 1 {
		if c, ok := d.Arms[0].(predicate.Compare); ok {
			of, what = c.Column, " "+c.Op+" "+predicate.Text(predicate.CanonicalValue(c.Value))
		}
	}
	name := of.Name
	if of.Table != nil && of.Table.Derived == nil { // as derived tables name what they take over
		name = of.Table.Name + "." + name
	}
	if what != "" {
		return name + what
	}
	sum := sha256.Sum256(d.encodeArms(nil))
	return "conditions on " + name + " " + hex.EncodeToString(sum[:16])
}

// Bounds of conditions of one column: what finding the truth values that may occur may take, and how many there are.
const (
	maxTruths = 1 << 20
	maxAtOnce = 128
)

// maxParts is how many parts the arms may have beyond two for each condition. They are what is written in SQL.
const maxParts = 200

// NewTested makes the table of a Tested: the columns and keys of From, then the conditions' column. It is nil where
// several conditions have too many combinations; a single one never has. In which order they are given, and how often,
// makes no difference. Of one cell the column is not used.
func NewTested(from *policy.Table, conditions []Condition) *policy.Table {
	d := &Tested{From: from, Conditions: slices.Clone(conditions)}
	slices.SortFunc(d.Conditions, func(a, b Condition) int { return strings.Compare(a.encoded(), b.encoded()) })
	d.Conditions = slices.CompactFunc(d.Conditions, func(a, b Condition) bool { return a.encoded() == b.encoded() })
	if !d.find() || !d.tell() {
		return nil
	}
	t := newExtended(d, from.MaxRowsPerUnit)
	t.Columns = append(t.Columns, &policy.Column{Name: d.name(), Type: policy.Int4, Typmod: -1, Table: t,
		Domain: steppedDomain(policy.Int4, -1, 0, int64(len(d.Arms)), policy.NullExclude),
		Nulls:  policy.NullExclude, Outside: policy.OutsideExclude})
	return t
}

// find finds the cells; false means there are too many combinations to look at.
func (d *Tested) find() bool {
	var list []predicate.Pred
	for _, c := range d.Conditions {
		list = append(list, c.Holds, c.Fails)
	}
	truths := predicate.Truths(list, maxTruths)
	switch {
	case len(d.Conditions) > maxAtOnce, truths == nil && len(d.Conditions) > 1:
		return false
	case truths == nil:
		d.Cells = []string{"t", "f", "n"}
		return true
	}
	for of := range truths {
		cell := make([]byte, len(d.Conditions))
		for i := range cell {
			switch {
			case of[2*i]:
				cell[i] = 't'
			case of[2*i+1]:
				cell[i] = 'f'
			default:
				cell[i] = 'n'
			}
		}
		if !slices.Contains(d.Cells, string(cell)) {
			d.Cells = append(d.Cells, string(cell))
		}
		if len(d.Cells) > d.mostParts() { // each arm has one
			return false
		}
	}
	return len(d.Cells) > 0
}

func (d *Tested) mostParts() int { return maxParts + 2*len(d.Conditions) }

// tell finds the arms: of each cell truth values that no later cell has, first those that most of these have not; false
// means they have too many parts.
func (d *Tested) tell() bool {
	parts := 0
	for k, cell := range d.Cells[:len(d.Cells)-1] {
		var arm []predicate.Pred
		for later := d.Cells[k+1:]; len(later) > 0; {
			best, fewest := 0, len(later)
			for i := range cell {
				alike := 0
				for _, o := range later {
					if o[i] == cell[i] {
						alike++
					}
				}
				if alike < fewest {
					best, fewest = i, alike
				}
			}
			if parts++; parts > d.mostParts() {
				return false
			}
			arm = append(arm, d.Conditions[best].where(cell[best]))
			later = slices.DeleteFunc(slices.Clone(later), func(o string) bool { return o[best] != cell[best] })
		}
		d.Arms = append(d.Arms, predicate.All(arm...))
	}
	return true
}

// truths are of each cell the truth value of one condition.
func (d *Tested) truths(condition int) string {
	var b strings.Builder
	for _, cell := range d.Cells {
		b.WriteByte(cell[condition])
	}
	return b.String()
}

// TestedIn is the position of the column of t that says already whether a condition on its columns holds, and of each
// cell of it the truth value, as Cells has them; false means there is none.
func TestedIn(t *policy.Table, c Condition) (at int, truths string, ok bool) {
	for from := t; from != nil; from = extended(from) {
		d, is := from.Derived.(*Tested)
		if !is || slices.ContainsFunc(c.Columns(), func(c *policy.Column) bool {
			return slices.Index(t.Columns, c) >= len(d.From.Columns)
		}) {
			continue
		}
		own := c.Over(t, d.From).encoded()
		if i := slices.IndexFunc(d.Conditions, func(o Condition) bool { return o.encoded() == own }); i >= 0 {
			return len(d.From.Columns), d.truths(i), true
		}
	}
	return 0, "", false
}

func (c Condition) encoded() string {
	return string(predicate.Encode(predicate.Encode(nil, c.Holds), c.Fails))
}

// CellsTested is how many combinations there are of the cells of all conditions' columns of a table.
func CellsTested(t *policy.Table) int {
	n := 1
	for ; t != nil; t = extended(t) {
		if d, is := t.Derived.(*Tested); is {
			n *= len(d.Cells)
		}
	}
	return n
}
