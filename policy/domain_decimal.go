package policy

import (
	"math"
	"math/big"
	"strconv"
)

// Numeric and floating domains have decimal steps. Their boundaries are Min + i·Step, computed in integers at the
// domain's common scale; those of a floating domain are then rounded once, to the nearest value of the column's type.

// decimals are Min and Step at their common scale, read once: a boundary is then one multiplication and one addition.
type decimals struct {
	step  Numeric // Domain.Step.Decimal, of which the rest was made: a copy of the domain may be given another
	scale int32
	least *big.Int
	each  *big.Int
	power float64 // 10^scale, where a floating boundary is one exact division; else 0
}

// decimals returns those that Steps has prepared, or makes them for a Domain written by hand.
func (d *Domain) decimals() *decimals {
	if d.prepared != nil && d.prepared.step == d.Step.Decimal {
		return d.prepared
	}
	least := d.decimal(d.Min)
	scale := max(least.Scale, d.Step.Decimal.Scale, d.Scale)
	out := &decimals{step: d.Step.Decimal, scale: scale, least: least.At(scale), each: d.Step.Decimal.At(scale)}
	if d.Type == Float8 && scale >= 0 && scale <= 22 {
		out.power = math.Pow10(int(scale))
	}
	return out
}

// decimal returns the shortest decimal that denotes a numeric or floating value.
func (d *Domain) decimal(v Value) Numeric {
	if f, ok := v.(float64); ok {
		n, err := ParseNumeric(strconv.FormatFloat(f, 'f', -1, 8*int(d.Type.Length())))
		if err != nil {
			return Numeric{}
		}
		return n
	}
	n, _ := v.(Numeric)
	return n
}

// boundary is Min + i·Step at the common scale.
func (d *Domain) boundary(i int) (*big.Int, *decimals) {
	of := d.decimals()
	at := new(big.Int).Mul(of.each, big.NewInt(int64(i)))
	return at.Add(at, of.least), of
}

func (d *Domain) numericLow(cell int) Numeric {
	at, of := d.boundary(cell)
	return Numeric{at, of.scale}
}

// numericCell is floor((v − Min)/Step); v lies within Min and Max.
func (d *Domain) numericCell(v Numeric) int {
	of := d.decimals()
	scale := max(of.scale, v.Scale)
	above := v.At(scale)
	above.Sub(above, Numeric{of.least, of.scale}.At(scale))
	return int(above.Quo(above, Numeric{of.each, of.scale}.At(scale)).Int64())
}

// maxExact is 2^53: whole numbers up to it, and powers of ten up to 10^22, are float64s, so that their quotient is
// rounded once.
const maxExact = 1 << 53

func (d *Domain) floatLow(cell int) float64 {
	at, of := d.boundary(cell)
	if of.power != 0 && at.IsInt64() && at.Int64() >= -maxExact && at.Int64() <= maxExact {
		return float64(at.Int64())/of.power + 0 // no negative zero
	}
	f, err := strconv.ParseFloat(at.String()+"e-"+strconv.Itoa(int(of.scale)), 8*int(d.Type.Length()))
	if err != nil {
		return math.NaN()
	}
	return f + 0 // no negative zero
}

// floatCell finds the last boundary that is not above v, starting from the quotient, which is off by rounding alone.
func (d *Domain) floatCell(v float64) int {
	step, _ := strconv.ParseFloat(d.Step.Decimal.String(), 64)
	cell := int(math.Floor((v - d.Min.(float64)) / step))
	cell = min(max(cell, 0), d.Regular-1)
	for cell > 0 && d.floatLow(cell) > v {
		cell--
	}
	for cell+1 < d.Regular && d.floatLow(cell+1) <= v {
		cell++
	}
	return cell
}
