package embedded

import (
	"database/sql/driver"
	"math/big"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates and comparisons of numerics, over the stored texts: sum, min, max, greatest, least, variances and deviations, with
// the digits that PostgreSQL gives.

// numericIn reads the text of a numeric.
func numericIn(args []driver.Value) (any, error) {
	text, ok := args[0].(string)
	if !ok {
		return nil, nil
	}
	v, err := scalar.Env{Zone: time.UTC}.ParseText(policy.NumericType, text)
	if err != nil {
		return nil, err
	}
	n, ok := v.(policy.Numeric)
	if !ok {
		return nil, errRange
	}
	return encodeNumeric(n)
}

// numerics reads a list of stored numerics, NULLs left out.
func numerics(v driver.Value) ([]policy.Numeric, error) {
	list, _ := v.([]any)
	var out []policy.Numeric
	for _, one := range list {
		if text, ok := one.(string); ok {
			n, err := decodeNumeric(text)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// numericSum has the largest scale of its parts, as PostgreSQL's has.
func numericSum(args []driver.Value) (any, error) {
	list, err := numerics(args[0])
	if err != nil || len(list) == 0 {
		return nil, err
	}
	scale := int32(0)
	for _, n := range list {
		scale = max(scale, n.Scale)
	}
	sum := new(big.Int)
	for _, n := range list {
		sum.Add(sum, n.At(scale))
	}
	return encodeNumeric(policy.Numeric{Coefficient: sum, Scale: scale})
}

// numericEnd finds the least (side −1) or largest (side 1) value; of equal ones, which may differ in scale, the last as
// min and max do, or the first as LEAST and GREATEST do.
func numericEnd(side int, last bool) func([]driver.Value) (any, error) {
	return func(args []driver.Value) (any, error) {
		list, err := numerics(args[0])
		if err != nil || len(list) == 0 {
			return nil, err
		}
		best := list[0]
		for _, n := range list[1:] {
			if c := n.Cmp(best) * side; c > 0 || c == 0 && last {
				best = n
			}
		}
		return encodeNumeric(best)
	}
}

// numericSpread is variance or standard deviation, of a sample or a population, after PostgreSQL's numeric.c:
// (N·Σx² − (Σx)²) / (N·(N−1)), or over N², divided as numerics are, and the root at the quotient's own scale.
func numericSpread(args []driver.Value) (any, error) {
	kind, _ := args[0].(string)
	list, err := numerics(args[1])
	sample := kind == "var_samp" || kind == "stddev_samp"
	if err != nil || len(list) == 0 || sample && len(list) == 1 {
		return nil, err
	}
	scale := int32(0)
	for _, n := range list {
		scale = max(scale, n.Scale)
	}
	sum, squares := new(big.Int), new(big.Int)
	for _, n := range list {
		x := n.At(scale)
		sum.Add(sum, x)
		squares.Add(squares, new(big.Int).Mul(x, x))
	}
	count := big.NewInt(int64(len(list)))
	top := new(big.Int).Mul(count, squares)
	top.Sub(top, sum.Mul(sum, sum))
	if top.Sign() <= 0 {
		return encodeNumeric(policy.NewNumeric(0, 0))
	}
	bottom := new(big.Int).Mul(count, count)
	if sample {
		bottom.Mul(count, new(big.Int).Sub(count, big.NewInt(1)))
	}
	quotient, err := divide(policy.Numeric{Coefficient: top, Scale: 2 * scale}, policy.Numeric{Coefficient: bottom})
	if err != nil {
		return nil, err
	}
	if kind == "stddev_samp" || kind == "stddev_pop" {
		quotient = root(quotient)
	}
	return encodeNumeric(quotient)
}

func divide(a, b policy.Numeric) (policy.Numeric, error) {
	quotient, err := scalar.Env{Zone: time.UTC}.Call("/", scalar.Column(0, policy.NumericType, -1), scalar.Column(1, policy.NumericType, -1))
	if err != nil {
		return policy.Numeric{}, err
	}
	v, err := quotient.Eval(scalar.Row{a, b})
	if err != nil {
		return policy.Numeric{}, err
	}
	return v.(policy.Numeric), nil
}

// root is the square root at the same scale, rounded half up.
func root(n policy.Numeric) policy.Numeric {
	// ⌊√(4y)⌋ = ⌊2√y⌋, so that (⌊2√y⌋ + 1) / 2, cut, rounds √y to the nearest whole number.
	wide := n.At(2 * n.Scale)
	wide.Mul(wide, big.NewInt(4))
	r := wide.Sqrt(wide)
	r.Add(r, big.NewInt(1)).Rsh(r, 1)
	return policy.Numeric{Coefficient: r, Scale: n.Scale}
}
