package rewrite

import (
	"fmt"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// DuckDB's DECIMAL(width, scale) has at most 38 digits and its arithmetic fails on overflow. A numeric column is read
// with its declared precision; its bounds, and the differences between values within them, are public and are checked
// here, so that no stored value can overflow.

const (
	maxWidth    = 38
	narrowWidth = 18 // digits that DuckDB holds in 64 bits
	// looseScale is the number of digits after the point that a numeric column without a declared precision keeps: it is
	// read as DECIMAL(38,9), or with the domain's digits where those are more. A number that does not fit is NULL.
	looseScale = 9
)

// decimal is how DuckDB holds a numeric column.
type decimal struct {
	width, scale int32 // of the raw column
	wide         int32 // at least width, so that the domain's bounds fit
}

// ColumnType is the DuckDB type in which a column's values are read.
func ColumnType(c *policy.Column) (string, error) {
	switch c.Type {
	case policy.Bool:
		return "BOOLEAN", nil
	case policy.Int2, policy.Int4, policy.Int8:
		return "BIGINT", nil
	case policy.Float4:
		return "FLOAT", nil
	case policy.Float8:
		return "DOUBLE", nil
	case policy.NumericType:
		d, err := decimalOf(c)
		return fmt.Sprintf("DECIMAL(%d,%d)", d.width, d.scale), err
	case policy.Text, policy.Varchar:
		return "VARCHAR", nil
	case policy.UUID:
		return "UUID", nil
	case policy.DateType:
		return "DATE", nil
	case policy.TimestampT:
		return "TIMESTAMP", nil
	case policy.TimestampTZ:
		return "TIMESTAMPTZ", nil
	}
	return "", fmt.Errorf("column %s: type %s cannot be read in DuckDB", c.Name, c.Type)
}

func decimalOf(c *policy.Column) (decimal, error) {
	width, scale := policy.NumericTypmod(c.Typmod)
	d := decimal{width: width, scale: scale}
	if width < 0 {
		d = decimal{width: maxWidth, scale: looseScale}
	}
	if d.width > maxWidth {
		return d, fmt.Errorf("column %s: DuckDB holds at most %d digits", c.Name, maxWidth)
	}
	d.wide = d.width
	if c.Domain == nil {
		return d, nil
	}
	least, _ := c.Domain.Min.(policy.Numeric)
	most, _ := c.Domain.Max.(policy.Numeric)
	d.scale = max(d.scale, least.Scale, most.Scale, c.Domain.Step.Decimal.Scale)
	if width >= 0 && d.scale > scale || d.scale > maxWidth {
		return d, fmt.Errorf("column %s: its domain has more digits after the point than DuckDB would hold", c.Name)
	}
	for _, bound := range []policy.Numeric{least, most} {
		if digits(bound.At(d.scale)) > d.width {
			d.wide = maxWidth
		}
		if digits(bound.At(d.scale)) > maxWidth {
			return d, fmt.Errorf("column %s: its domain has more than %d digits", c.Name, maxWidth)
		}
	}
	return d, nil
}

func (w *writer) decimal(c *policy.Column) decimal {
	d, err := decimalOf(c)
	if err != nil {
		w.fail("%v", err)
	}
	return d
}

// literal writes a constant at the column's own scale, which it must fit.
func (d decimal) literal(w *writer, v policy.Numeric) string {
	fits := v.Rescale(d.scale)
	if fits.Cmp(v) != 0 || digits(fits.Coefficient) > maxWidth {
		w.fail("a numeric constant with more digits than DuckDB holds")
	}
	return w.cast("'"+fits.String()+"'", fmt.Sprintf("DECIMAL(%d,%d)", d.wide, d.scale))
}

// units writes the distance of a normalised value from the domain's least one as an integer of 10^−scale units. The
// narrowest decimal that holds the domain keeps the arithmetic within 64 bits where it can be.
func (d decimal) units(w *writer, c *policy.Column, n string) (above, kind string) {
	least, most := c.Domain.Min.(policy.Numeric).At(d.scale), c.Domain.Max.(policy.Numeric).At(d.scale)
	width := max(digits(least), digits(most), d.scale)
	var shifted string
	switch product := width + d.scale + 1; {
	case product > maxWidth: // no decimal holds n · 10^scale, so the point is taken out of its text
		shifted = "replace(" + w.cast(n, "text") + ", '.', '')"
	case product > narrowWidth: // a product of two narrow decimals would overflow rather than become a wide one
		width = maxWidth
		fallthrough
	default:
		shifted = fmt.Sprintf("TRY_CAST(%s AS DECIMAL(%d,%d))", n, width, d.scale)
		if d.scale > 0 {
			shifted = w.operate(shifted, "*", w.cast("'"+power(d.scale).String()+"'", fmt.Sprintf("DECIMAL(%d,0)", d.scale+1)))
		}
	}
	kind = "hugeint"
	if least.IsInt64() && most.IsInt64() && new(big.Int).Sub(most, least).IsInt64() {
		kind = "int8"
	}
	above = "TRY_CAST(" + shifted + " AS " + duckTypes[kind] + ")"
	if least.Sign() != 0 {
		above = w.operate(above, "-", w.cast("'"+least.String()+"'", kind))
	}
	return above, kind
}

func digits(n *big.Int) int32 { return int32(len(new(big.Int).Abs(n).String())) }

func power(scale int32) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
}
