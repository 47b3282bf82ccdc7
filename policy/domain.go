package policy

// MaxCells is the largest number of cells of a release, and of the combinations of cells that a plan looks at one by
// one.
const MaxCells = 1 << 20

// MaxDomain is the largest number of cells of a domain: a cell's number is an int4 in every dialect. A domain is its
// two ends and its step, so that its size costs nothing where nothing goes over its cells (docs/adr/0052).
const MaxDomain = 1 << 30

// OtherValue is the text value that stands for every value outside an enumerated text domain under `outside: other`.
const OtherValue = "other"

// Domain is the finite, public set of cells that a column's values fall into. Each raw value is first normalised by the
// column's rules for NULL and for values outside the domain; the normalised value lies in exactly one cell.
//
// Cells are numbered 0 … Size()−1: first the declared values or steps in order, then, where the rules make them
// reachable, one cell for the text value 'other' (unless 'other' is itself declared) and one cell for NULL, last.
// An ordered column has no spare value, so under `outside: other` its outside values are NULL and share that cell
// (docs/adr/0004); so do those of an enumerated uuid column. A domain is made by Enumerate or Steps.
type Domain struct {
	Type    Type
	Values  []string // enumerated text, uuid and boolean domains: the values, in order ("false", "true" for boolean)
	Min     Value    // ordered domains: the least value (Int8-ish int64, Numeric, float64, Date, Timestamp, Timestamptz)
	Max     Value    // ordered domains: the largest value, inclusive
	Below   Value    // ordered domains that are declared so: the least value beyond Max, for people; nil means Max is declared
	Step    Step     // ordered domains
	Scale   int32    // numeric(p,s) columns: s, so that values come in units of 10^−s; −1: any number of digits
	Regular int      // number of declared cells
	Other   int      // cell of 'other' (under `outside: other`, a declared 'other' included), or −1
	Null    int      // cell of NULL, or −1
	Ladder  *Ladder  // ordered domains without a step, of columns whose bounds are not known yet: their cells; nil means Step makes them

	index    map[string]int // Values by text; nil in a Domain written by hand
	prepared *decimals      // of numeric and floating domains; nil in a Domain written by hand
}

// Step is the width of an ordered domain's cells: cell i holds the values v with Min + i·Step ≤ v < Min + (i+1)·Step,
// v ≤ Max. Dates step in days, timestamps in microseconds, numbers in their own unit.
type Step struct {
	Whole   int64   // integers: the step; dates: days; timestamps: microseconds
	Decimal Numeric // numeric and floating columns
}
