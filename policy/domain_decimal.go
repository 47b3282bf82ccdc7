package policy

import (
	"math"
	"math/big"
	"strconv"
)

// Numeric and floating domains have decimal steps. Their boundaries are Min + i·Step, computed in integers at the
// domain's common scale; those of a floating domain are then rounded once, to the nearest value of the column's type.

// scale is the common scale of Min and Step.
func (d *Domain) scale() int32 {
	return max(d.decimal(d.Min).Scale, d.Step.Decimal.Scale, d.Scale)
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
func (d *Domain) boundary(i int) (*big.Int, int32) {
	scale := d.scale()
	at := new(big.Int).Mul(d.Step.Decimal.At(scale), big.NewInt(int64(i)))
	return at.Add(at, d.decimal(d.Min).At(scale)), scale
}

func (d *Domain) numericLow(cell int) Numeric {
	at, scale := d.boundary(cell)
	return Numeric{at, scale}
}

// numericCell is floor((v − Min)/Step); v lies within Min and Max.
func (d *Domain) numericCell(v Numeric) int {
	scale := max(d.scale(), v.Scale)
	above := v.At(scale)
	above.Sub(above, d.decimal(d.Min).At(scale))
	return int(above.Quo(above, d.Step.Decimal.At(scale)).Int64())
}

func (d *Domain) floatLow(cell int) float64 {
	at, scale := d.boundary(cell)
	f, err := strconv.ParseFloat(at.String()+"e-"+strconv.Itoa(int(scale)), 8*int(d.Type.Length()))
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
