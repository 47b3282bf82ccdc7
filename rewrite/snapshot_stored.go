package rewrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A snapshot reads most columns of PostgreSQL as they are stored, in binary, and brings their values into the domain
// here: a server compares with two constants, or looks a list up, on one processor and row by row, for as long as
// reading the row takes. Of `visits`
//
//	her rows:  SELECT (t."who")::int8 AS "u", CASE WHEN octet_length((t."ward")::text) > 1 THEN '--'::text ELSE (t."ward")::text END AS "n1",
//	                  (t."minutes")::int8 AS "n2", t."day" AS "n3", (t."fee")::numeric AS "n4" FROM …
//	here:      n1 'B' is cell 1, n2 200 is NULL (or 59), n3 2024-03-01 is day 19783, n4 12.50 is 1250
//
// Claim. Value is extracted's number: of each stored value the one that PostgreSQL makes of the normalised value
// (normalised, extracted). Proof, by form. Whole numbers, dates, moments and decimals are compared with the same ends,
// in their own order: infinities lie beyond both, NaN is missing. A decimal v comes as ⌊v·10^s⌋ and whether that is
// less, and the ends are whole there (fixedOf): v < least if and only if ⌊v·10^s⌋ < least·10^s, and v > most if and
// only if ⌊v·10^s⌋ > most·10^s, or is most·10^s with something cut off. Texts are declared values where their bytes are
// (COLLATE "C"); one of more bytes than all of those comes as another text that is none of them.
// TestStoredValuesAreTheirCells holds it against PostgreSQL's own.
//
// Claim. No value fails a copy, and what comes of a value is bounded. Proof. Each form is total on the bytes that its
// type sends; a text has at most a byte more than the longest declared one, and its length is found without its being
// read. A message that is no value of its type is a fault of the server's.

// Stored is how a field's number is made of a stored value.
type Stored struct {
	form        storedForm
	least, most int64            // the ends of an ordered domain
	clamp       bool             // what lies beyond them is the nearest
	scale       int              // of a decimal: in units of 10^−scale
	cells       map[string]int64 // of declared texts
	other       int64            // the cell of texts that are not declared; below 0: NULL
	truth       [2]int64         // the cells of false and true; below 0: NULL
}

type storedForm uint8

const (
	storedWhole   storedForm = 1 + iota // int8
	storedDays                          // date: days since 2000
	storedMicros                        // timestamp, timestamptz: microseconds since 2000
	storedDecimal                       // numeric
	storedTruth                         // bool
	storedText                          // text, at most so long
)

// String is all that Value depends on: copies that were made by another one are another's.
func (s *Stored) String() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%d %d %d %t %d %#v %d %d", s.form, s.least, s.most, s.clamp, s.scale, s.cells, s.other, s.truth) // maps are printed in the order of their keys
}

// kind is that of the field of a column that is read so.
func (s *Stored) kind() FieldKind {
	if s.form == storedDecimal {
		return Fixed
	}
	return Whole
}

// asStoredValue is how a column is read as it is stored: what is selected, and what is made of it; nil means it is not.
func (w cells) asStoredValue(c *policy.Column) (item string, s *Stored) {
	if !w.dialect.Binary || c.Open != nil || c.Domain == nil || len(c.Product) > 0 || c.Outside != policy.OutsideClamp && c.Outside != policy.OutsideOther && c.Outside != policy.OutsideExclude {
		return "", nil
	}
	d, column := c.Domain, "t."+w.name(c.Source)
	if !d.Ordered() {
		return w.storedCell(c, column)
	}
	s = &Stored{clamp: c.Outside == policy.OutsideClamp}
	s.least, s.most, _ = wholeEnds(d)
	switch d.Min.(type) {
	case int64:
		s.form, item = storedWhole, w.cast(column, "int8")
	case policy.Date:
		s.form, item = storedDays, column
	case policy.Timestamp, policy.Timestamptz:
		s.form, item = storedMicros, column
	case policy.Numeric:
		held, err := fixedOf(c, dialect.Snapshot)
		if err != nil {
			return "", nil
		}
		least, most := held.ends()
		if !least.IsInt64() || !most.IsInt64() {
			return "", nil
		}
		s.form, s.scale, s.least, s.most, item = storedDecimal, int(held.scale), least.Int64(), most.Int64(), w.cast(column, "numeric")
	default:
		return "", nil
	}
	return item, s
}

// storedCell is asStoredValue of an enumerated column.
func (w cells) storedCell(c *policy.Column, column string) (item string, s *Stored) {
	d := c.Domain
	s = &Stored{form: storedText, cells: map[string]int64{}, other: -1, truth: [2]int64{-1, -1}}
	if c.Outside == policy.OutsideOther && d.Other >= 0 {
		s.other = int64(d.Other)
	}
	switch {
	case c.Type == policy.Bool:
		s.form = storedTruth
		for cell, v := range d.Values {
			s.truth[map[bool]int{true: 1}[v == "true"]] = int64(cell)
		}
		return column, s
	case !c.Type.Textual():
		return "", nil
	}
	longest := 0
	for cell, v := range d.Values {
		longest = max(longest, len(v))
		if _, before := s.cells[v]; !before {
			s.cells[v] = int64(cell)
		}
	}
	if c.Enum { // whose labels are short
		return dialect.Fill(w.dialect.ReadEnum, column), s
	}
	text := w.cast(column, "text")
	longer := dialect.Fill(w.dialect.Quoted, strings.Repeat("-", longest+1))
	return "CASE WHEN " + w.operate(dialect.Fill(w.dialect.Octets, text), ">", w.int4(longest)) + " THEN " + longer + " ELSE " + text + " END", s
}

// days and micros from 1970 to 2000, from when PostgreSQL counts.
const (
	daysTo2000   = 10957
	microsTo2000 = daysTo2000 * 86_400_000_000
)

// storedLengths are how many bytes values of a form have, or 0 where that depends on the value.
var storedLengths = [storedText + 1]int{storedWhole: 8, storedDays: 4, storedMicros: 8, storedTruth: 1}

// Value is the number that is made of a stored value, which is not NULL, as PostgreSQL sends it in binary; known is
// whether it is one and not NULL, ok whether these are the bytes of such a value.
func (s *Stored) Value(v []byte) (n int64, known, ok bool) {
	if length := storedLengths[s.form]; length > 0 && len(v) != length {
		return 0, false, false
	}
	switch s.form {
	case storedText:
		if n, known = s.cells[string(v)]; known {
			return n, true, true
		}
		return s.other, s.other >= 0, true
	case storedWhole:
		n = int64(binary.BigEndian.Uint64(v))
	case storedDays:
		n = int64(int32(binary.BigEndian.Uint32(v))) + daysTo2000
	case storedMicros:
		n = min(int64(binary.BigEndian.Uint64(v)), math.MaxInt64-microsTo2000) + microsTo2000
	case storedTruth:
		if v[0] > 1 {
			return 0, false, false
		}
		n = s.truth[v[0]]
		return n, n >= 0, true
	case storedDecimal:
		return s.decimal(v)
	default:
		return 0, false, false
	}
	switch {
	case n >= s.least && n <= s.most:
		return n, true, true
	case !s.clamp:
		return 0, false, true
	case n < s.least:
		return s.least, true, true
	}
	return s.most, true, true
}

// decimal is Value of a numeric.
func (s *Stored) decimal(v []byte) (n int64, known, ok bool) {
	d, ok := numericOf(v)
	if !ok || d.nan {
		return 0, false, ok
	}
	n, beyond := d.floor(s.scale)
	switch {
	case beyond == 0 && n >= s.least && (n < s.most || n == s.most && !d.cut):
		return n, true, true
	case !s.clamp:
		return 0, false, true
	case beyond < 0 || beyond == 0 && n < s.least:
		return s.least, true, true
	}
	return s.most, true, true
}

// Decimals as PostgreSQL sends them in binary, from which a snapshot takes whole numbers of their last digit: of 12.5
// at scale 2 it takes 1250.
//
// Claim. floor is ⌊value·10^scale⌋ where int64 holds it, and long is where it does not. Proof. A value is ± the sum of
// digits dᵢ·10000^(weight−i) with 0 ≤ dᵢ < 10000, so that value·10^scale is that of dᵢ·10^(4(weight−i)+scale): a whole
// number where the power is at least 0; from −3 on its whole part and a rest; further down less than 1. The powers fall
// by four, so that at most one digit has both a whole part and a rest, and all that is left out together is less than
// 1: of a positive value the sum of whole parts is the floor, of a negative one that is less than minus this sum by one
// where something is left out. TestStoredValuesAreTheirCells and TestDecimalsAreFloored hold both against other
// arithmetic.

// numericValue is a numeric as PostgreSQL sends it in binary: digits to the base 10,000, the power of the first, and
// the sign.
type numericValue struct {
	digits        []byte // two bytes each
	weight        int
	negative, nan bool
	infinite      int  // −1 or 1 of an infinity
	cut           bool // something has been left out
}

func numericOf(v []byte) (d numericValue, ok bool) {
	if len(v) < 8 {
		return d, false
	}
	d.weight, d.digits = int(int16(binary.BigEndian.Uint16(v[2:]))), v[8:]
	switch binary.BigEndian.Uint16(v[4:]) {
	case 0:
	case 0x4000:
		d.negative = true
	case 0xC000:
		d.nan = true
	case 0xD000:
		d.infinite = 1
	case 0xF000:
		d.infinite = -1
	default:
		return d, false
	}
	return d, len(d.digits) == 2*int(binary.BigEndian.Uint16(v))
}

// part is what the i-th digit adds to ⌊|value|·10^scale⌋, whole·10^power.
func (d *numericValue) part(i, scale int) (whole uint64, power int) {
	digit := uint64(binary.BigEndian.Uint16(d.digits[2*i:]))
	switch power = 4*(d.weight-i) + scale; {
	case digit == 0:
		return 0, 0
	case power >= 0:
		return digit, power
	case power > -4:
		whole = digit / powersOfTen[-power]
		d.cut = d.cut || whole*powersOfTen[-power] != digit
		return whole, 0
	}
	d.cut = true
	return 0, 0
}

// floor is ⌊value·10^scale⌋ of a value that is not NaN; beyond is −1 or 1 where that is none of int64.
func (d *numericValue) floor(scale int) (n int64, beyond int) {
	if d.infinite != 0 {
		return 0, d.infinite
	}
	beyond = 1
	if d.negative {
		beyond = -1
	}
	const most = 1 << 63 // the distance from 0 of the least int64
	size := uint64(0)
	for i := range len(d.digits) / 2 {
		whole, power := d.part(i, scale)
		if power >= len(powersOfTen) {
			return 0, beyond
		}
		factor := powersOfTen[power]
		if whole > (most-size)/factor {
			return 0, beyond
		}
		size += whole * factor
	}
	if d.negative && d.cut {
		if size == most {
			return 0, beyond
		}
		size++
	}
	switch {
	case d.negative:
		return -int64(size), 0 // of 2^63 as well, which wraps twice
	case size == most:
		return 0, beyond
	}
	return int64(size), 0
}

// maxPower bounds the powers of ten of a Long field, whose domain has at most 38 digits.
const maxPower = 100

// Decimal is the text of ⌊value·10^scale⌋ / 10^scale of a Long field, as PostgreSQL sends it in binary; not ok: it is
// no finite value, or a far larger one than the field holds.
func (f *Field) Decimal(v []byte) (text string, ok bool) {
	d, ok := numericOf(v)
	if scale := int(f.Scale); !ok || d.nan || d.infinite != 0 || scale < 0 || 4*d.weight+scale > maxPower {
		return "", false
	}
	return policy.Numeric{Coefficient: d.long(int(f.Scale)), Scale: f.Scale}.String(), true
}

// long is floor of whatever size.
func (d *numericValue) long(scale int) *big.Int {
	n, ten := new(big.Int), big.NewInt(10)
	for i := range len(d.digits) / 2 {
		whole, power := d.part(i, scale)
		if whole > 0 {
			factor := new(big.Int).Exp(ten, big.NewInt(int64(power)), nil)
			n.Add(n, factor.Mul(factor, new(big.Int).SetUint64(whole)))
		}
	}
	if d.negative {
		if n.Neg(n); d.cut {
			n.Sub(n, big.NewInt(1))
		}
	}
	return n
}

// powersOfTen are 10^0 to 10^18.
var powersOfTen = func() (list [19]uint64) {
	list[0] = 1
	for i := range list[1:] {
		list[i+1] = 10 * list[i]
	}
	return list
}()
