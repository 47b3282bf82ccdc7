package policy

import (
	"fmt"
	"math/big"
	"strings"
)

// maxScale bounds the digits after the point of a numeric constant in a policy.
const maxScale = 100

// NewNumeric is n · 10^−scale.
func NewNumeric(n int64, scale int32) Numeric { return Numeric{big.NewInt(n), scale} }

// ParseNumeric reads a plain decimal such as -12.50; the digits after the point are its scale.
func ParseNumeric(text string) (Numeric, error) {
	bad := fmt.Errorf("is %.40q, must be a decimal number such as 12.5", text)
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole, "+-") + fraction
	if len(whole)-len(strings.TrimLeft(whole, "+-")) > 1 || digits == "" || len(text) > 1000 || len(fraction) > maxScale {
		return Numeric{}, bad
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return Numeric{}, bad
		}
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return Numeric{}, bad
	}
	if strings.HasPrefix(whole, "-") {
		n.Neg(n)
	}
	return Numeric{n, int32(len(fraction))}, nil
}

// At returns n's coefficient at a larger or equal scale: At(2) of 1.5 is 150.
func (n Numeric) At(scale int32) *big.Int {
	if n.Coefficient == nil {
		return new(big.Int)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-n.Scale)), nil)
	return power.Mul(power, n.Coefficient)
}

// Cmp compares by value: 1.50 equals 1.5.
func (n Numeric) Cmp(m Numeric) int {
	scale := max(n.Scale, m.Scale)
	return n.At(scale).Cmp(m.At(scale))
}

// Rescale gives n more or fewer digits after the point, cutting towards zero where digits go.
func (n Numeric) Rescale(scale int32) Numeric {
	if scale >= n.Scale {
		return Numeric{n.At(scale), scale}
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.Scale-scale)), nil)
	return Numeric{power.Quo(n.At(n.Scale), power), scale}
}

// String writes all Scale digits after the point, as PostgreSQL does.
func (n Numeric) String() string {
	if n.Coefficient == nil {
		return "0"
	}
	digits := new(big.Int).Abs(n.Coefficient).String()
	if n.Scale < 0 {
		digits += strings.Repeat("0", int(-n.Scale))
	} else if n.Scale > 0 {
		if short := int(n.Scale) + 1 - len(digits); short > 0 {
			digits = strings.Repeat("0", short) + digits
		}
		digits = digits[:len(digits)-int(n.Scale)] + "." + digits[len(digits)-int(n.Scale):]
	}
	if n.Coefficient.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}
