// Package privacy holds the units in which privacy is counted, each a type of its own, and the two wrappers
// (Sensitive, Released) that every package uses to say on which side of the privacy boundary a value is.
package privacy

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Epsilon is a pure differential-privacy parameter in whole micro-units (1e-6), so that sums are exact.
type Epsilon struct{ micro int64 }

// Rho is a zero-concentrated differential-privacy parameter in whole pico-units (1e-12).
type Rho struct{ pico int64 }

// Delta is a failure probability in whole atto-units (1e-18).
type Delta struct{ atto int64 }

// MicroEpsilon makes an Epsilon of n·1e-6.
func MicroEpsilon(n int64) Epsilon { return Epsilon{n} }

// PicoRho makes a Rho of n·1e-12.
func PicoRho(n int64) Rho { return Rho{n} }

// AttoDelta makes a Delta of n·1e-18.
func AttoDelta(n int64) Delta { return Delta{n} }

// Micro returns e in micro-units.
func (e Epsilon) Micro() int64 { return e.micro }

// Pico returns r in pico-units.
func (r Rho) Pico() int64 { return r.pico }

// Atto returns d in atto-units.
func (d Delta) Atto() int64 { return d.atto }

// Float returns e as a float, for display and for expected errors only, never for a noise scale.
func (e Epsilon) Float() float64 { return float64(e.micro) / 1e6 }

// Float returns r as a float, for display and for expected errors only, never for a noise scale.
func (r Rho) Float() float64 { return float64(r.pico) / 1e12 }

// Float returns d as a float, for display and for conversions.
func (d Delta) Float() float64 { return float64(d.atto) / 1e18 }

func (e Epsilon) String() string { return decimal(e.micro, 6) }
func (r Rho) String() string     { return decimal(r.pico, 12) }
func (d Delta) String() string {
	if d.atto == 0 {
		return "0"
	}
	return fmt.Sprintf("%.3g", d.Float())
}

// Rho returns the cost ρ = ε²/2 that an ε-DP release has under zCDP (Bun and Steinke 2016, Proposition 1.4), rounded
// up. Under the zcdp accountant it is also what a requested epsilon buys.
func (e Epsilon) Rho() Rho {
	sq := new(big.Int).Mul(big.NewInt(e.micro), big.NewInt(e.micro))
	sq.Add(sq, big.NewInt(1)).Rsh(sq, 1)
	if !sq.IsInt64() {
		return Rho{math.MaxInt64}
	}
	return Rho{sq.Int64()}
}

// ParseEpsilon reads a decimal number of at most six places, greater than zero and at most 1e6.
func ParseEpsilon(s string) (Epsilon, error) {
	n, err := atMostMillion("epsilon", s, 6, 1e12)
	return Epsilon{n}, err
}

// ParseDelta reads a decimal number, possibly with an exponent, of at most eighteen places, at least zero and below
// one.
func ParseDelta(s string) (Delta, error) {
	n, err := units(s, 18)
	if err != nil {
		return Delta{}, fmt.Errorf("delta %w", err)
	}
	if n < 0 || n >= 1e18 {
		return Delta{}, fmt.Errorf("delta is %s, must be at least 0 and below 1", s)
	}
	return Delta{n}, nil
}

// ParseRho reads a decimal number of at most twelve places, greater than zero and at most 1e6.
func ParseRho(s string) (Rho, error) {
	n, err := atMostMillion("rho", s, 12, 1e18)
	return Rho{n}, err
}

func atMostMillion(name, s string, places int, most int64) (int64, error) {
	n, err := units(s, places)
	if err != nil {
		return 0, fmt.Errorf("%s %w", name, err)
	}
	if n <= 0 || n > most {
		return 0, fmt.Errorf("%s is %s, must be greater than 0 and at most 1000000", name, s)
	}
	return n, nil
}

// units reads a plain decimal (with optional exponent of at most two digits) as a whole number of 10^-places.
func units(s string, places int) (int64, error) {
	text := strings.TrimSpace(s)
	if len(text) == 0 || len(text) > 40 {
		return 0, fmt.Errorf("is %.40q, must be a decimal number", s)
	}
	for i, c := range text {
		ok := c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || (c == '-' || c == '+')
		if !ok {
			return 0, fmt.Errorf("is %q, must be a decimal number (character %d)", s, i+1)
		}
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 4 {
		return 0, fmt.Errorf("is %q, its exponent is too large", s)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("is %q, must be a decimal number", s)
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	r.Mul(r, new(big.Rat).SetInt(scale))
	if !r.IsInt() {
		return 0, fmt.Errorf("is %s, must have at most %d decimal places", s, places)
	}
	if !r.Num().IsInt64() {
		return 0, fmt.Errorf("is %s, out of range", s)
	}
	return r.Num().Int64(), nil
}

func decimal(n int64, places int) string {
	r := new(big.Rat).SetFrac(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil))
	s := strings.TrimRight(r.FloatString(places), "0")
	return strings.TrimSuffix(s, ".")
}
