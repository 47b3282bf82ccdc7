package privacy

import (
	"math"
	"strconv"
)

// Accountant names the composition rule of a dataset.
type Accountant uint8

// The accountants. The zero value is invalid.
const (
	Pure   Accountant = 1 + iota // ε adds up
	ZCDP                         // ρ adds up
	Either                       // what is spent satisfies the one or the other: accounting.Filter
)

func (a Accountant) String() string { return [...]string{"invalid", "pure", "zcdp", "either"}[a] }

// Takes reports whether an accountant adds up costs that name ε, and whether it adds up those that name ρ.
func (a Accountant) Takes() (epsilon, rho bool) { return a != ZCDP, a != Pure }

// Neighbors names the neighbour relation of a dataset: what protecting one unit means.
type Neighbors uint8

// The neighbour relations. The zero value is invalid.
const (
	AddRemove  Neighbors = 1 + iota // one unit's rows are absent from one of the two databases
	ReplaceOne                      // one unit's rows differ; the number of units is public
)

func (n Neighbors) String() string { return [...]string{"invalid", "add-remove", "replace-one"}[n] }

// Cost is what a release takes from a budget: it names ε, and is then ε-DP, or ρ, and is then ρ-zCDP. Under the pure
// accountant Rho is zero, under zCDP Epsilon is zero. What is spent of a limit that names both, and what is left, name
// both: ε or ρ, whichever filter one looks at. Delta is what thresholded keys take; the δ of a (ε, δ) conversion is not
// part of it.
type Cost struct {
	Epsilon Epsilon
	Rho     Rho
	Delta   Delta
}

// In gives c in the unit in which an account with such a limit is kept, also where nothing is spent, and its δ where it
// has some: "ρ 0" of "ρ 1.3".
func (c Cost) In(limit Cost) string {
	s := "ε " + c.Epsilon.String()
	switch {
	case limit.Rho.pico != 0 && limit.Epsilon.micro != 0:
		s += " or ρ " + c.Rho.String()
	case limit.Rho.pico != 0:
		s = "ρ " + c.Rho.String()
	}
	if c.Delta.atto != 0 {
		s += ", δ " + c.Delta.String()
	}
	return s
}

// Percent writes a share in per cent with so many significant digits, as a plain figure: "100", "0.0000000038".
func Percent(share float64, digits int) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(100*share, 'g', digits, 64), 64)
	if err != nil {
		return "?"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Plus returns c + d, and where that is more than can be written the most that can, which no account pays: the ρ of an
// ε in the thousands is that by itself.
func (c Cost) Plus(d Cost) Cost { return c.with(d, add) }

// Less returns c − d in every unit, and never below zero.
func (c Cost) Less(d Cost) Cost { return c.with(d, func(a, b int64) int64 { return max(0, a-b) }) }

// Least is the lesser of two costs in every unit.
func (c Cost) Least(d Cost) Cost { return c.with(d, func(a, b int64) int64 { return min(a, b) }) }

// Most is the larger of two costs in every unit.
func (c Cost) Most(d Cost) Cost { return c.with(d, func(a, b int64) int64 { return max(a, b) }) }

func (c Cost) with(d Cost, of func(a, b int64) int64) Cost {
	return Cost{Epsilon{of(c.Epsilon.micro, d.Epsilon.micro)}, Rho{of(c.Rho.pico, d.Rho.pico)}, Delta{of(c.Delta.atto, d.Delta.atto)}}
}

// Fits reports whether c is at most limit in every unit.
func (c Cost) Fits(limit Cost) bool {
	return c.Epsilon.micro <= limit.Epsilon.micro && c.Rho.pico <= limit.Rho.pico && c.Delta.atto <= limit.Delta.atto
}

// IsZero reports whether c costs nothing.
func (c Cost) IsZero() bool { return c == Cost{} }

func (c Cost) String() string {
	return c.In(c)
}

func add(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Sensitivity bounds how far one unit's rows can move a vector of integers.
type Sensitivity struct {
	L1        int64 // Σ |difference|
	L2Squared int64 // Σ difference²
}

// Contribution bounds what one unit puts into a measure, enforced in the SQL or proved by a constraint.
type Contribution struct {
	Rows      int64 // rows a unit, at least 1
	Groups    int64 // groups that a unit's rows are in; 0 means as many as it has rows
	PerGroup  int64 // rows of a unit in one group; 0 means all of them may be in one
	Neighbors Neighbors
}
