package scalar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// randomFloat draws floats of all sizes, whole ones, and ones with few digits.
func randomFloat(rng *rand.Rand, single bool) float64 {
	switch rng.IntN(4) {
	case 0:
		return float64(rng.IntN(1000)) * math.Pow(10, float64(rng.IntN(40)-15))
	case 1:
		return math.Ldexp(float64(1+rng.IntN(9)), rng.IntN(120)-40)
	}
	for {
		v := math.Float64frombits(rng.Uint64())
		if single {
			v = float64(math.Float32frombits(rng.Uint32()))
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
}

// TestFloatText compares the text of random floats, and their casts to numeric, with a server.
func TestFloatText(t *testing.T) {
	s := newServer(t)
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, typ := range []policy.Type{policy.Float8, policy.Float4} {
		single := typ == policy.Float4
		var values []float64
		var texts []string
		for range 3000 {
			v := randomFloat(rng, single)
			if single {
				v = float64(float32(v))
			}
			if math.IsInf(v, 0) {
				continue
			}
			values = append(values, v)
			texts = append(texts, fmt.Sprintf("('%s'::%s)", strconv.FormatFloat(v, 'g', 17, 64), map[bool]string{true: "float4", false: "float8"}[single]))
		}
		from := " FROM (VALUES " + strings.Join(texts, ", ") + ") AS x (v)"
		for i, want := range s.column(t, "SELECT v::text"+from) {
			if got := s.env.FormatText(typ, values[i]); got != want {
				t.Errorf("%b: got %s, want %s", values[i], got, want)
			}
		}
		for i, want := range s.column(t, "SELECT v::numeric::text"+from) {
			n, err := floatToNumeric(values[i], map[bool]int{true: 6, false: 15}[single])
			if err != nil || n.(numeric).String() != want {
				t.Errorf("%b: numeric %v, want %s", values[i], n, want)
			}
		}
	}
}

// TestElementaryFunctions compares exp, ln, log and power with a server: equal but for the last bit, where the C
// library does not round correctly.
func TestElementaryFunctions(t *testing.T) {
	s := newServer(t)
	const seed = 12
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var pairs [][2]float64
	var texts []string
	for range 2000 {
		x, y := math.Exp(rng.NormFloat64()*3), rng.NormFloat64()*5
		if rng.IntN(4) == 0 {
			x, y = float64(1+rng.IntN(20)), float64(rng.IntN(20)-5)
		}
		pairs = append(pairs, [2]float64{x, y})
		texts = append(texts, fmt.Sprintf("('%s'::float8, '%s'::float8)", strconv.FormatFloat(x, 'g', 17, 64), strconv.FormatFloat(y, 'g', 17, 64)))
	}
	from := " FROM (VALUES " + strings.Join(texts, ", ") + ") AS v (x, y)"
	for sql, f := range map[string]func(x, y float64) (policy.Value, error){
		"exp(y)":      func(_, y float64) (policy.Value, error) { return expFloat(y) },
		"ln(x)":       func(x, _ float64) (policy.Value, error) { return logFloat(x, nil) },
		"power(x, y)": powerFloat,
		"sqrt(x)":     func(x, _ float64) (policy.Value, error) { return math.Sqrt(x), nil },
		"log(x)": func(x, _ float64) (policy.Value, error) {
			return logFloat(x, bigLn(bigFloat(64).SetInt64(10), floatBits))
		},
	} {
		different := 0
		for i, text := range s.column(t, "SELECT ("+sql+")::text"+from) {
			want, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			v, err := f(pairs[i][0], pairs[i][1])
			if err != nil {
				t.Errorf("%s of %v: %v, want %v", sql, pairs[i], err, want)
				continue
			}
			got := v.(float64)
			if got != want {
				different++
			}
			if near := math.Nextafter(want, got); got != want && got != near && got != math.Nextafter(near, got) {
				t.Errorf("%s of %v: %v, want %v", sql, pairs[i], got, want)
			}
		}
		t.Logf("%s: %d of %d differ in the last bits", sql, different, len(pairs))
	}
}
