package rewrite

import (
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Until they are in order the values of a row wait in as few whole numbers as hold them: each is written, read, sorted
// and carried along, and is a part of the hash by which rows are ordered (roworder.go). Neighbouring columns of few
// values are the digits of one, the first the highest, NULL the largest digit. Of ward (A to D, another, NULL), minutes
// (0 to 59, NULL) and day (730, NULL):
//
//	p1 = (ward·61 + minutes)·731 + day
//
// Claim. Rows have the ranks that they would have with a field for each column. Proof. Digits are the limbs of the hash
// (columnLimb), and words, which are runs of digits, lie within one round of it: hashed joins neighbouring limbs while
// their sizes multiply to 2^31 at most, by the same first-digit-highest rule, so that the word in place of its limbs
// gives the same rounds. And p1 < p1' if and only if the first of their digits that differ does, as one column after
// the other says, NULL last.

// maxPacked bounds what a whole number is packed with: it is below 2^62.
const maxPacked = 1 << 62

// digit is the place of a column's value in a packed number: (number / factor) mod size is the value less base, and
// size − 1 of NULL.
type digit struct {
	column             *policy.Column
	stored             *Stored
	item               string // what is selected for it
	base, size, factor int64
	top                bool  // no digit is above it
	goesOn             bool  // the next digit is of the same word
	wordSize           int64 // of the digits of the word as far as this one
	wordTop            bool  // no digit is above these
}

// packable is the digit of a column that may be one.
func (w *columns) packable(c *policy.Column) (d digit, ok bool) {
	if w.table.Appends != nil && w.table.Appends.Column == c {
		return d, false // rows are ordered by it before all else
	}
	w.checkRules(c)
	d.column = c
	if d.item, d.stored = w.asStoredValue(c); d.stored == nil {
		return d, false
	}
	if !c.Domain.Ordered() {
		d.size = int64(c.Domain.Size()) + 1
		return d, d.size <= hashPrime
	}
	if width := uint64(d.stored.most) - uint64(d.stored.least); width < hashPrime-1 {
		d.base, d.size = d.stored.least, int64(width)+2
	}
	return d, d.size > 0
}

// packed finds the fields of several columns, each a run of neighbours.
func (w *columns) packed() (fields []Field) {
	order := newWriter(dialect.Snapshot, w.table, "b")
	round, field := int64(0), int64(0) // what the digits of the round, and of the field, multiply to; 0 means there is none
	inWord := false
	for i, c := range w.table.Columns {
		d, ok := digit{}, false
		if c.Open == nil {
			d, ok = w.packable(c)
		}
		size := d.size
		switch n := "b.n" + strconv.Itoa(i+1); {
		case ok || w.table.Appends != nil && w.table.Appends.Column == c:
		case c.Open != nil:
			size = order.textLimb(n).size
		default:
			size = order.columnLimb(c, n).size
		}
		same := round > 0 && round <= (hashPrime+1)/max(size, 1) // as hashed joins limbs
		switch {
		case size == 0: // no part of the hash
		case same:
			round *= size
		default:
			round = size
		}
		if !ok {
			field, inWord = 0, false
			continue
		}
		if field == 0 || field > maxPacked/size {
			fields, field, inWord = append(fields, Field{Name: "p" + strconv.Itoa(len(fields)+1), Kind: Whole}), 1, false
		}
		field *= size
		last := &fields[len(fields)-1]
		if n := len(last.packed); n > 0 && same && inWord {
			last.packed[n-1].goesOn = true
		}
		inWord = true
		last.packed = append(last.packed, d)
	}
	for _, f := range fields {
		factor := int64(1)
		for i := len(f.packed) - 1; i >= 0; i-- {
			d := &f.packed[i]
			d.factor, d.top = factor, i == 0
			factor *= d.size
		}
		for i := range f.packed {
			d := &f.packed[i]
			d.wordSize, d.wordTop = d.size, d.top
			if i > 0 && f.packed[i-1].goesOn {
				d.wordSize, d.wordTop = f.packed[i-1].wordSize*d.size, f.packed[i-1].wordTop
			}
		}
	}
	return fields
}

// digitFor is a column's place among fields that are packed; nil means it has none.
func digitFor(fields []Field, c *policy.Column) (*Field, *digit) {
	for i := range fields {
		for at := range fields[i].packed {
			if d := &fields[i].packed[at]; d.column == c {
				return &fields[i], d
			}
		}
	}
	return nil, nil
}

// Items is how many items of the query a field is made of.
func (f *Field) Items() int { return max(len(f.packed), 1) }

// Number is the value of a field that is packed, or of a column that is read as it is stored (Reads), of its items as
// PostgreSQL sends them in binary, nil of NULL; known is whether it is not NULL, ok whether they are values of their
// types.
func (f *Field) Number(items [][]byte) (n int64, known, ok bool) {
	if f.stored != nil {
		if items[0] == nil {
			return 0, false, true
		}
		return f.stored.Value(items[0])
	}
	for i := range f.packed {
		d := &f.packed[i]
		own := d.size - 1
		if items[i] != nil {
			v, known, ok := d.stored.Value(items[i])
			if !ok {
				return 0, false, false
			}
			if known {
				own = v - d.base
			}
		}
		n += own * d.factor
	}
	return n, true, true
}

// Stored reports whether a field's value is Number's.
func (f *Field) Stored() bool { return f.stored != nil || len(f.packed) > 0 }

// Meaning is all that Number depends on: a copy that was made by another rule is another.
func (f *Field) Meaning() string {
	text := f.stored.String()
	for _, d := range f.packed {
		text += "; " + d.stored.String() + " " + strconv.FormatInt(d.base, 10) + " " + strconv.FormatInt(d.size, 10)
	}
	return text
}

// digitOf writes the digits of a packed number from one of size and factor on.
func (w cells) digitOf(number string, factor, size int64, top bool) string {
	if factor > 1 {
		number = w.operate(number, "/", w.whole(factor))
	}
	if !top {
		number = w.operate(number, "%", w.whole(size))
	}
	return number
}

// unpacked writes what a field of its own would hold.
func (w cells) unpacked(d *digit, number string) string {
	own := w.digitOf(number, d.factor, d.size, d.top)
	value := own
	if d.base != 0 {
		value = w.operate(own, "+", w.whole(d.base))
	}
	return "CASE WHEN " + w.operate(own, "<", w.whole(d.size-1)) + " THEN " + value + " END"
}
