// Package digits finds which digits of a number mean something: those that the number's error leaves. Of 26270.4538,
// which may be off by 26.83, these are 26270 ± 27. The session's dp.digits, the console and assistants go by it.
package digits

import (
	"math/big"
	"strings"
)

var ten = big.NewRat(10, 1)

// mostDecimals bounds the decimals of an error that is next to nothing.
const mostDecimals = 20

// Place is the place of the last digit that means something of a number that may be off by so much, above 0: the one of
// the error's second digit. The number of decimals is 0 or more, and a step above 1 is a power of ten, of no decimals.
func Place(off *big.Rat) (step *big.Rat, decimals int) {
	scaled, step := new(big.Rat).Set(off), big.NewRat(1, 1)
	for ; scaled.Cmp(ten) < 0 && decimals < mostDecimals; decimals++ {
		scaled.Mul(scaled, ten)
		step.Quo(step, ten)
	}
	for hundred := big.NewRat(100, 1); scaled.Cmp(hundred) >= 0; scaled.Quo(scaled, ten) {
		step.Mul(step, ten)
	}
	return step, decimals
}

// Off is how far a number may be off by its interval: the farther of the two ends.
func Off(x, low, high *big.Rat) *big.Rat {
	off := new(big.Rat).Sub(high, x)
	if below := new(big.Rat).Sub(x, low); below.Cmp(off) > 0 {
		off = below
	}
	return off
}

// Round is the nearest number that has no digits behind Place, the one further from 0 of two.
func Round(x, off *big.Rat) *big.Rat {
	step, _ := Place(off)
	steps := new(big.Rat)
	steps.SetString(new(big.Rat).Quo(x, step).FloatString(0))
	return steps.Mul(steps, step)
}

// Text is an error with its two digits.
func Text(off *big.Rat) string {
	_, decimals := Place(off)
	return grouped(Round(off, off).FloatString(decimals))
}

// decimalsOf is how many decimals a number is written with; as many as there may be where it has an exponent.
func decimalsOf(text string) int {
	if strings.ContainsAny(text, "eE") {
		return mostDecimals
	}
	_, decimals, _ := strings.Cut(text, ".")
	return len(decimals)
}

// Shown is a number with the digits that its interval leaves, and how far it may be off: "26,270 ± 27" of 26270.4538
// from 26243.6 to 26297.3; and the interval with these digits, "26,243 to 26,298", its ends moved outwards. Whole
// numbers stay whole. Both are empty of what is no number, and the number itself where its interval is nothing else.
func Shown(value, low, high string) (number, interval string) {
	x, ok := new(big.Rat).SetString(value)
	l, okLow := new(big.Rat).SetString(low)
	h, okHigh := new(big.Rat).SetString(high)
	if !ok || !okLow || !okHigh || strings.ContainsAny(value+low+high, "/xXpP") {
		return "", ""
	}
	off := Off(x, l, h)
	if off.Sign() <= 0 {
		return value, value
	}
	step, decimals := Place(off)
	decimals = min(decimals, max(decimalsOf(value), decimalsOf(low), decimalsOf(high)))
	text := func(x *big.Rat) string { return grouped(x.FloatString(decimals)) }
	return text(Round(x, off)) + " ± " + text(Round(off, off)), text(floor(l, step)) + " to " +
		text(new(big.Rat).Neg(floor(new(big.Rat).Neg(h), step)))
}

// floor is the largest multiple of a step that is not above x.
func floor(x, step *big.Rat) *big.Rat {
	steps := new(big.Rat).Quo(x, step)
	whole := new(big.Int).Div(steps.Num(), steps.Denom()) // a denominator is above 0: downwards
	return steps.Mul(steps.SetInt(whole), step)
}

// grouped parts the whole digits of a decimal number by thousands.
func grouped(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, fraction, dot := strings.Cut(text, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if dot {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}
