package rewrite

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Which rows of a unit stay within a bound, and which of its groups, is said by a hash of the unit and of the row's
// contents, or of the unit and the group: one whole number to sort by, below 2^31 and the same on every engine
// (docs/adr/0050). For `visits` with the columns ward and minutes, under {type: bigint} units, a row is numbered by
//
//	row_number() OVER (PARTITION BY b.u ORDER BY h, b.n1, b.n2), where h = r(r(r(m(m(K, unit), ward·62 + minutes))))
//	m(s, x) = (s XOR x)·C mod (2^31 − 1), r(s) = m(s, another constant)
//
// Claim. The order is a function of the unit's own rows, and rows that tie are the same to every measure of the table.
// Proof. Every limb x is made of the row's unit, normalised columns and join keys; after the hash the order goes by the
// contents themselves, as bytes. Theorem (privacy rule 10): what bounding leaves of a unit depends on nothing but its
// rows.
//
// Claim. No step fails. Proof. Limbs and states are whole numbers from 0 to 2^31 − 1, constants lie below 2^31:
// products lie below 2^62. Limbs are cut out of 62 bits, or counted from the public least value of a domain, within its
// public width.
//
// Limits. The hash is no secret and keeps nobody from choosing rows: nothing rests on it but that the rows that stay
// are not all of one kind. XOR and multiplication modulo a prime commute with nothing but themselves, so that which of
// a unit's rows stay differs from unit to unit as by lot: TestKeptRowsAreASample holds it against that.

// hashPrime is 2^31 − 1, and the largest limb, which means NULL where it is not a value's.
const hashPrime = 1<<31 - 1

// hashConstants are the first round constants of SHA-256, of which the lower 31 bits count: numbers that nobody chose.
var hashConstants = [...]int64{0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5}

// lastRounds are the rounds after the last limb: with fewer, which of two rows comes first shows in how they differ.
const lastRounds = 3

// limb is a whole number from 0 to below size ≤ 2^31, never NULL.
type limb struct {
	sql  string // of type int8
	size int64
}

// rowOrder writes what a unit's rows, under an alias, are ordered by. It is empty where they are all alike.
func (w *writer) rowOrder(alias string) string {
	if w.dialect.Ready && !w.copying {
		return " ORDER BY " + alias + ".r"
	}
	return w.contentOrder(alias)
}

// contentOrder orders by the hash of all that a row holds, and by that itself.
func (w *writer) contentOrder(alias string) string {
	var first, contents []string
	limbs := []limb{w.unitLimb(alias + ".u")}
	for i, c := range w.table.Columns {
		n := alias + ".n" + strconv.Itoa(i+1)
		if f, d := digitFor(w.packs, c); d != nil { // as the limbs of its word's columns would be joined (snapshot_arrange.go)
			if !d.goesOn {
				limbs = append(limbs, limb{w.digitOf(alias+"."+f.Name, d.factor, d.wordSize, d.wordTop), d.wordSize})
			}
			if d.top {
				contents = append(contents, alias+"."+f.Name)
			}
			continue
		}
		if w.table.Appends != nil && w.table.Appends.Column == c { // a unit's first rows by date are counted for good
			first = append(first, n)
			continue
		}
		contents = append(contents, n)
		if c.Open != nil && w.copying {
			limbs = append(limbs, w.textLimb(n))
			continue
		}
		if x := w.columnLimb(c, n); x.size > 0 {
			limbs = append(limbs, x)
		}
	}
	for i, k := range w.table.Keys {
		if !k.Unit {
			j := alias + ".j" + strconv.Itoa(i+1)
			contents = append(contents, w.inBytes(k, j))
			limbs = append(limbs, w.keyLimb(k.Type, j))
		}
	}
	if len(limbs) > 1 {
		first = append(first, w.hashed(limbs))
	}
	order := append(first, contents...)
	if len(order) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(order, " ASC NULLS LAST, ") + " ASC NULLS LAST"
}

// hashed writes the hash of a unit, the first limb, and the others, of which small ones share a round.
func (w cells) hashed(limbs []limb) string {
	rounds := limbs[:1:1]
	for _, x := range limbs[1:] {
		if x.size < 1 || x.size > hashPrime+1 {
			w.fail("a part of a hash that is too wide")
			return "NULL"
		}
		if last := len(rounds) - 1; last > 0 && rounds[last].size <= (hashPrime+1)/x.size {
			packed := w.operate(w.operate(rounds[last].sql, "*", w.whole(x.size)), "+", x.sql)
			rounds[last] = limb{packed, rounds[last].size * x.size}
			continue
		}
		rounds = append(rounds, x)
	}
	state := w.whole(hashConstants[7] & hashPrime)
	for i, x := range rounds {
		state = w.round(state, x.sql, i)
	}
	for i := range lastRounds {
		state = w.round(state, w.whole(hashConstants[4+i]&hashPrime), len(rounds)+i)
	}
	return state
}

// round is (state XOR x)·C mod (2^31 − 1).
func (w cells) round(state, x string, number int) string {
	return w.modulo(w.operate(w.operate(state, "#", x), "*", w.whole(hashConstants[number%4]&hashPrime)))
}

func (w cells) modulo(n string) string { return w.operate(n, "%", w.whole(hashPrime)) }

// folded is a limb of a whole number that may be negative: of its last 62 bits.
func (w cells) folded(n string) limb {
	return w.orNull(limb{w.modulo(w.operate(n, "&", w.whole(1<<62-1))), hashPrime})
}

// orNull gives NULL the number after the last.
func (w cells) orNull(x limb) limb {
	return limb{"COALESCE(" + x.sql + ", " + w.whole(x.size) + ")", x.size + 1}
}

// unitLimb is that of the column that names the unit.
func (w *columns) unitLimb(u string) limb {
	if w.dialect.Ready && unitKind(w.table) == Words {
		return w.orNull(limb{w.operate(u, "&", w.whole(unitMask)), 1 << 28})
	}
	return w.keyLimb(w.table.UnitType(), u)
}

// keyLimb is that of a key, of whose values nothing is known but their type, 0 if not even that. In PostgreSQL & is an
// operator on whole numbers: where the key is something else, the statement fails when it is parsed, alike for any
// rows.
func (w cells) keyLimb(t policy.Type, key string) limb {
	if !t.Integer() {
		return w.textLimb(key)
	}
	return w.folded(dialect.Fill(w.dialect.Read, key, w.dialect.Type("int8")))
}

// textLimb is that of any value, by the beginning of its text: 28 bits of its MD5, which both engines have.
func (w cells) textLimb(value string) limb {
	hex := w.call("left", w.call("md5", w.call("left", w.cast(value, "text"), strconv.Itoa(policy.MaxKeyLength))), "7")
	return w.orNull(limb{dialect.Fill(w.dialect.HexToWhole, hex), 1 << 28})
}

// columnLimb is that of a column's normalised value n. It has no size where the contents alone must tell values apart.
func (w cells) columnLimb(c *policy.Column, n string) limb {
	d := c.Domain
	if d == nil {
		w.fail("a column without a domain")
		return limb{}
	}
	if !d.Ordered() {
		return w.orNull(limb{w.cast(n, "int8"), int64(d.Size())})
	}
	least, most, _ := wholeEnds(d)
	switch d.Min.(type) {
	case int64:
		if width := new(big.Int).Sub(big.NewInt(most), big.NewInt(least)); !width.IsInt64() {
			return w.folded(n)
		}
		return w.within(w.above(n, least), most-least)
	case policy.Date:
		return w.within(w.cast(w.days(n, w.constant(c, d.Min)), "int8"), most-least)
	case policy.Timestamp, policy.Timestamptz:
		return w.within(w.above(w.micros(n), least), most-least)
	case policy.Numeric:
		return w.decimals(c).limb(n)
	case float64:
		return w.floatLimb(c, n)
	}
	w.fail("a domain of a type that is not ordered")
	return limb{}
}

// above is n − least.
func (w cells) above(n string, least int64) string {
	if least == 0 {
		return n
	}
	return w.operate(n, "-", w.whole(least))
}

// within is the limb of a whole number from 0 to width, or NULL.
func (w cells) within(n string, width int64) limb {
	if width < hashPrime-1 {
		return w.orNull(limb{n, width + 1})
	}
	return w.orNull(limb{w.modulo(n), hashPrime})
}

// floatLimb is the number in units of 2^−k, as many as a whole number of 62 bits has room for: a product with a power
// of two is exact where it neither overflows nor underflows, and k ≥ 0 leaves no room for either.
func (w cells) floatLimb(c *policy.Column, n string) limb {
	if c.Domain.Ladder != nil {
		return w.wideFloatLimb(n)
	}
	least, most := c.Domain.Min.(float64), c.Domain.Max.(float64)
	_, exponent := math.Frexp(max(math.Abs(least), math.Abs(most)))
	k := min(61-exponent, 200)
	if k < 0 {
		return limb{}
	}
	low := int64(math.Floor(math.Ldexp(least, k)))
	scaled := w.call("floor", w.operate(w.cast(n, "float8"), "*", w.float(math.Ldexp(1, k))))
	return w.within(w.above(w.cast(scaled, "int8"), low), int64(math.Ceil(math.Ldexp(most, k)))-low)
}

// wideFloatLimb is that of a number without bounds of its own: of a ladder, from −10^18 to 10^18. Small ones, of which
// an even share of 61 bits would leave nothing, are distinguished in units of 2^−40. Whichever arm an engine computes
// for a row, its number is below 2^62.
func (w cells) wideFloatLimb(n string) limb {
	const small = 1 << 20
	wide := w.cast(n, "float8")
	units := func(n string, k int) string {
		return w.cast(w.call("floor", w.operate(n, "*", w.float(math.Ldexp(1, k)))), "int8")
	}
	near := "LEAST(GREATEST(" + wide + ", " + w.float(-small) + "), " + w.float(small) + ")"
	return w.folded("CASE WHEN " + w.operate(wide, ">", w.float(-small)) + " AND " + w.operate(wide, "<", w.float(small)) + " THEN " + units(near, 40) +
		" ELSE " + units(wide, 1) + " END")
}
