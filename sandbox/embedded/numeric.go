package embedded

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// The engine has no numeric of unbounded precision that keeps its scale, so a numeric is held there as a text whose
// byte order is the order of the values: a sign, the decimal exponent at a fixed width, the significant digits, and,
// behind a bar, the scale. Equal values of different scale share everything before the bar; nothing is rounded.

const (
	signNegative = '4'
	signZero     = '5'
	signPositive = '6'
	exponentBase = 500_000
	exponentSize = 7
	maxDigits    = 150_000
)

// encodeNumeric returns the order-preserving text of n.
func encodeNumeric(n policy.Numeric) (string, error) {
	coefficient := n.At(n.Scale)
	scale := "|" + strconv.Itoa(int(n.Scale))
	if coefficient.Sign() == 0 {
		return string(signZero) + scale, nil
	}
	digits := new(big.Int).Abs(coefficient).String()
	exponent := len(digits) - int(n.Scale)
	if len(digits) > maxDigits || exponent > maxDigits || exponent < -maxDigits {
		return "", fmt.Errorf("sandbox: numeric out of range")
	}
	digits = strings.TrimRight(digits, "0")
	body := fmt.Sprintf("%0*d%s", exponentSize, exponent+exponentBase, digits)
	if coefficient.Sign() > 0 {
		return string(signPositive) + body + " " + scale, nil
	}
	flipped := []byte(body)
	for i, c := range flipped {
		flipped[i] = '0' + '9' - c
	}
	return string(signNegative) + string(flipped) + "~" + scale, nil
}

// decodeNumeric is the inverse of encodeNumeric.
func decodeNumeric(s string) (policy.Numeric, error) {
	bad := fmt.Errorf("sandbox: not a numeric")
	body, tail, ok := strings.Cut(s, "|")
	scale, err := strconv.Atoi(tail)
	if !ok || err != nil || body == "" {
		return policy.Numeric{}, bad
	}
	if body[0] == signZero {
		return policy.Numeric{Coefficient: new(big.Int), Scale: int32(scale)}, nil
	}
	if len(body) < exponentSize+3 || body[0] != signPositive && body[0] != signNegative {
		return policy.Numeric{}, bad
	}
	negative := body[0] == signNegative
	plain := []byte(body[1 : len(body)-1])
	if negative {
		for i, c := range plain {
			plain[i] = '0' + '9' - c
		}
	}
	exponent, err := strconv.Atoi(string(plain[:exponentSize]))
	if err != nil {
		return policy.Numeric{}, bad
	}
	digits := string(plain[exponentSize:])
	zeros := exponent - exponentBase + scale - len(digits)
	if zeros < 0 || zeros > 2*maxDigits {
		return policy.Numeric{}, bad
	}
	n, ok := new(big.Int).SetString(digits+strings.Repeat("0", zeros), 10)
	if !ok {
		return policy.Numeric{}, bad
	}
	if negative {
		n.Neg(n)
	}
	return policy.Numeric{Coefficient: n, Scale: int32(scale)}, nil
}
