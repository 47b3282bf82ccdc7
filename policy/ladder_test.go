package policy

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// ladderTypes are all types that have ends.
var ladderTypes = []string{"smallint", "integer", "bigint", "numeric", "numeric(12,2)", "numeric(4,2)", "numeric(5,5)", "numeric(38,30)", "numeric(38,0)", "real", "double precision", "date", "timestamp", "timestamptz"}

// TestLadders: the cells of a ladder rise and are as many as their boundaries say; each value between the ends lies in
// the one cell that its boundaries say, which Cell finds; what is written of a boundary is at or above all values below
// it, at or below all others, and is a value of the type that a policy may have.
func TestLadders(t *testing.T) {
	r := rand.New(rand.NewPCG(130, 1))
	for _, name := range ladderTypes {
		typ, typmod, err := ParseType(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := NewLadder(typ, typmod)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l := d.Ladder
		if d.Regular != len(l.Lows) || len(l.Ends) != len(l.Lows)+1 || d.Null != d.Regular || d.Size() != d.Regular+1 || d.Single() || d.Regular < 9 || d.Regular > 500 {
			t.Fatalf("%s: %d cells, %d ends, NULL in %d", name, d.Regular, len(l.Ends), d.Null)
		}
		for i, low := range l.Lows {
			if i > 0 && compare(l.Lows[i-1], low) >= 0 {
				t.Errorf("%s: cell %d begins at %v, after %v", name, i, low, l.Lows[i-1])
			}
			if cell, ok := d.Cell(low); !ok || cell != i || d.Low(i) != low {
				t.Errorf("%s: %v is in cell %d, begins %d", name, low, cell, i)
			}
			if i > 0 && compare(l.Ends[i], low) > 0 {
				t.Errorf("%s: %v is written of the boundary below cell %d, which begins at %v", name, l.Ends[i], i, low)
			}
			if below, ok := predecessor(d, low); ok && i > 0 {
				if compare(below, l.Ends[i]) > 0 {
					t.Errorf("%s: cell %d holds %v, above its end %v", name, i-1, below, l.Ends[i])
				}
				if cell, ok := d.Cell(below); !ok || cell != i-1 {
					t.Errorf("%s: %v is in cell %d, not %d", name, below, cell, i-1)
				}
			}
		}
		for _, end := range l.Ends {
			if back, err := ParseValue(typ, strings.TrimSuffix(FormatValue(typ, end), " ")); err != nil || compare(back, end) != 0 {
				t.Errorf("%s: %v is written %s and read %v: %v", name, end, FormatValue(typ, end), back, err)
			}
		}
		for range 200 {
			i := r.IntN(d.Regular)
			if cell, ok := d.Cell(between(r, d, i)); !ok || cell != i {
				t.Errorf("%s: a value of cell %d is in cell %d", name, i, cell)
			}
		}
		if _, ok := d.Cell(beyondLadder(d)); ok {
			t.Errorf("%s: a value beyond the ladder is in a cell", name)
		}
		if cell, ok := d.Cell(nil); !ok || cell != d.Null {
			t.Errorf("%s: NULL is in cell %d", name, cell)
		}
	}
	for _, name := range []string{"text", "boolean", "uuid", "varchar(3)"} {
		typ, typmod, _ := ParseType(name)
		if _, err := NewLadder(typ, typmod); err == nil {
			t.Errorf("%s has a ladder", name)
		}
	}
}

// TestRowsLadder: numbers of rows from 1 to the most, each in the cell whose end is the first that is not below it.
func TestRowsLadder(t *testing.T) {
	for _, most := range []int64{1, 2, 7, 1000, 1_000_000} {
		d := RowsLadder(most)
		for n := int64(1); n <= most; n += 1 + n/50 {
			cell, ok := d.Cell(n)
			if end := d.Ladder.Ends[cell+1].(int64); !ok || n > end || cell > 0 && n <= d.Ladder.Ends[cell].(int64) {
				t.Errorf("of %d: %d rows are in cell %d, to %d", most, n, cell, end)
			}
		}
		if cell, ok := d.Cell(most); !ok || cell != d.Regular-1 {
			t.Errorf("of %d: the most is in cell %d of %d", most, cell, d.Regular)
		}
	}
}

// TestLadderFingerprints: bounds in the place of domain: private are another meaning of the table.
func TestLadderFingerprints(t *testing.T) {
	const line = "- {name: hired, type: date, domain: {min: 2000-01-01, max: 2026-12-31, step: 1 day}}"
	seen := map[string]string{}
	for _, domain := range []string{"domain: private", "domain: {min: 1000-01-01, below: 9999-01-01, step: 1 day}", "domain: {min: 2000-01-01, max: 2026-12-31, step: 1 day}"} {
		p, err := Parse([]byte(strings.Replace(base(t), line, "- {name: hired, type: date, "+domain+"}", 1)), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		people := p.Datasets[0].Table("", "people")
		print := string(people.Fingerprint())
		if other, twice := seen[print]; twice {
			t.Errorf("%s means what %s does", domain, other)
		}
		seen[print] = domain
		if want := len(people.Columns); domain == "domain: private" {
			if want--; len(people.Shown()) != want || people.Column("hired") == nil || !people.Column("hired").Private {
				t.Errorf("%d of %d columns are shown", len(people.Shown()), len(people.Columns))
			}
		}
	}
}

// predecessor is the greatest value below v that a column of the type can have; not ok: there is none that is known.
func predecessor(d *Domain, v Value) (Value, bool) {
	if f, ok := v.(float64); ok {
		if d.Type == Float4 {
			return float64(math.Nextafter32(float32(f), float32(math.Inf(-1)))), true
		}
		return math.Nextafter(f, math.Inf(-1)), true
	}
	if n, ok := v.(Numeric); ok && d.Scale < 0 {
		return Numeric{new(big.Int).Sub(n.At(looseDigits), big.NewInt(1)), looseDigits}, true
	}
	typmod := int32(-1)
	if d.Type == NumericType {
		typmod = (38<<16 | d.Scale) + 4
	}
	return before(d.Type, typmod, v)
}

// between is a value of a cell.
func between(r *rand.Rand, d *Domain, cell int) Value {
	low := d.Low(cell)
	high := d.Max
	if cell+1 < d.Regular {
		high, _ = predecessor(d, d.Low(cell+1))
	}
	switch a := low.(type) {
	case float64:
		v := a + (high.(float64)-a)*r.Float64()
		if d.Type == Float4 {
			v = float64(float32(v))
		}
		return math.Min(math.Max(v, a), high.(float64))
	case Numeric:
		scale := max(a.Scale, high.(Numeric).Scale)
		width := new(big.Int).Sub(high.(Numeric).At(scale), a.At(scale))
		part := new(big.Int).Mul(width, big.NewInt(r.Int64N(1000)))
		return Numeric{part.Quo(part, big.NewInt(1000)).Add(part, a.At(scale)), scale}
	}
	a, _ := UnitsOf(low)
	b, _ := UnitsOf(high)
	return d.wrap(a + r.Int64N(b-a+1))
}

func beyondLadder(d *Domain) Value {
	switch m := d.Max.(type) {
	case float64:
		return 2 * m
	case Numeric:
		return Numeric{new(big.Int).Add(m.Coefficient, big.NewInt(1)), m.Scale}
	}
	n, _ := UnitsOf(d.Max)
	return d.wrap(n + 1)
}

func ExampleNewLadder() {
	d, _ := NewLadder(Int2, -1)
	fmt.Println(d.Ladder.Ends[d.Regular/2:])
	// Output: [0 1 2 3 4 5 6 8 10 15 20 30 40 50 60 80 100 150 200 300 400 500 600 800 1000 1500 2000 3000 4000 5000 6000 8000 10000 15000 20000 30000 32767]
}
