package scalar

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// monotoneCases are expressions of one column; rises says that a proof must be found.
var monotoneCases = []struct {
	sql   string
	rises bool
}{
	{"i4", true}, {"i4 + 1", true}, {"i4 / 10", true}, {"i4 / -10", false}, {"-(-i4)", true}, {"-i4", false}, {"i4 * 5", true},
	{"i4 * -5", false}, {"5 - (3 - i4)", true}, {"i4 % 10", false}, {"i4 * i4", false}, {"abs(i4)", false}, {"i4 * 0", false},
	{"i4::bool", false}, {"i4::numeric", true}, {"i4::float8 / 3", true}, {"i4 / 10 * 10 + 5", true}, {"i4::text", false},
	{"greatest(i4, 10)", true}, {"least(i4, 10)", true}, {"coalesce(i4, 0)", true}, {"i4 >= 10", true}, {"10 > i4", false},
	{"i4 < 10", false}, {"i4 = 10", false}, {"width_bucket(i4, 0, 100, 7)", true}, {"width_bucket(i4, 100, 0, 7)", false},
	{"-width_bucket(i4, 100, 0, 7)", true}, {"sign(i4)", true}, {"CASE WHEN i4 > 3 THEN 1 ELSE 0 END", false},
	{"n", true}, {"floor(n)", true}, {"ceil(n / 3)", true}, {"floor(n / 1000) * 1000", true}, {"n / 3", false}, {"trunc(n / 7)", true},
	{"round(n)", true}, {"round(n, 2)", true}, {"round(n, -2)", true}, {"trunc(n, 1)", true}, {"n::int4", true}, {"n::numeric(8,1)", true},
	{"n::float8", true}, {"n % 3", false}, {"width_bucket(n, 0, 1000, 13)", true}, {"floor(sqrt(n))", true}, {"n * 2.5 - 7", true},
	{"floor(f8)", true}, {"f8 / 7", true}, {"round(f8 * 3)", true}, {"f8::int4", true}, {"f8::numeric", true}, {"exp(f8 / 1000)", true},
	{"width_bucket(f8, 0, 10, 9)", true}, {"f8::float4", true}, {"f4 + 0.1", true}, {"f4::int2", true},
	{"d", true}, {"d + 7", true}, {"d - date '2020-01-01'", true}, {"date '2020-01-01' - d", false}, {"d::timestamp", true},
	{"date_trunc('month', ts)", true}, {"date_trunc('week', ts)", true}, {"ts::date", true}, {"extract(year from ts)", true},
	{"extract(epoch from ts)", true}, {"extract(month from ts)", false}, {"extract(doy from d)", false}, {"extract(year from d)", true},
	{"ts + interval '1 day 3 hours'", true}, {"ts + interval '1 mon'", false}, {"d + interval '2 days'", true},
	{"ts::timestamp(0)", true}, {"tz", true}, {"tz + interval '1 hour'", true}, {"tz::date", false}, {"date_trunc('day', tz)", false},
	{"ts::timestamptz", false}, {"tz > timestamptz '2020-01-01'", true}, {"d < tz", false}, {"left(t, 2)", true}, {"left(t, -1)", false},
	{"upper(t)", false}, {"t", true}, {"t::varchar(2)", true}, {"t >= 'b'", true}, {"b", true}, {"b::int", true}, {"i4 + i8", false},
}

func TestMonotone(t *testing.T) {
	env := testEnv(t)
	for _, c := range monotoneCases {
		e, err := compile(env, c.sql)
		if err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		col := readColumn(e)
		if got := Monotone(e, col); got != c.rises {
			t.Errorf("Monotone(%s) is %v", c.sql, got)
		}
	}
	utc := Env{Zone: time.UTC}
	for _, sql := range []string{"tz::date", "date_trunc('day', tz)", "ts::timestamptz", "extract(year from tz)"} {
		e, err := compile(utc, sql)
		if err != nil {
			t.Fatal(err)
		}
		if !Monotone(e, readColumn(e)) {
			t.Errorf("Monotone(%s) is false in UTC", sql)
		}
	}
}

// readColumn is the first column that e reads.
func readColumn(e Expr) int {
	for i := range testColumns {
		if reads(e, i) {
			return i
		}
	}
	return -1
}

// TestMonotoneIsSo checks the claims on random pairs of values, and those of Steady on values between its ends.
func TestMonotoneIsSo(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, env := range []Env{testEnv(t), {Zone: time.UTC}} {
		for _, c := range monotoneCases {
			e, err := compile(env, c.sql)
			if err != nil {
				t.Fatal(err)
			}
			col := readColumn(e)
			for range 2000 {
				checkOrder(t, rng, c.sql, e, col)
			}
		}
	}
}

func checkOrder(t *testing.T, rng *rand.Rand, sql string, e Expr, col int) {
	typ := testColumns[col].typ
	rows := [3]Row{}
	for i := range rows {
		rows[i] = make(Row, len(testColumns))
		rows[i][col] = randomValue(rng, typ)
	}
	for i := range 2 { // order the three
		for j := range 2 - i {
			if Compare(typ, rows[j][col], rows[j+1][col]) > 0 {
				rows[j], rows[j+1] = rows[j+1], rows[j]
			}
		}
	}
	var values [3]policy.Value
	for i, row := range rows {
		v, err := e.Eval(row)
		if err != nil || v == nil {
			return
		}
		values[i] = v
	}
	if Monotone(e, col) && (Compare(e.Type(), values[0], values[1]) > 0 || Compare(e.Type(), values[1], values[2]) > 0) {
		t.Errorf("%s falls: %v of %v", sql, values, [3]policy.Value{rows[0][col], rows[1][col], rows[2][col]})
	}
	if Steady(e, col, rows[0], rows[2]) && Compare(e.Type(), values[0], values[1]) != 0 {
		t.Errorf("%s is not steady: %v of %v", sql, values, [3]policy.Value{rows[0][col], rows[1][col], rows[2][col]})
	}
}

// randomValue draws values that are often close to one another and to the steps of functions.
func randomValue(rng *rand.Rand, t policy.Type) policy.Value {
	n := rng.Int64N(200) - 60
	switch t {
	case policy.Bool:
		return n%2 == 0
	case policy.Int2, policy.Int4, policy.Int8:
		return n
	case policy.NumericType:
		v := roundNumeric(numericOf(n), int32(rng.IntN(3)))
		if rng.IntN(2) == 0 {
			v = newNumeric(numericOf(n*1000+rng.Int64N(1000)).Coefficient, 3)
		}
		if rng.IntN(3) == 0 {
			tiny := newNumeric(numericOf(rng.Int64N(7)-3).Coefficient, 25)
			sum, err := addNumeric(v, tiny)
			if err == nil {
				return sum
			}
		}
		return v
	case policy.Float4:
		return float64(float32(n) / 8)
	case policy.Float8:
		v := float64(n) / 10
		if rng.IntN(2) == 0 {
			return math.Nextafter(v, float64(rng.IntN(3)-1)*1e9)
		}
		return v
	case policy.Text:
		letters := []rune("abBö ")
		out := make([]rune, rng.IntN(4))
		for i := range out {
			out[i] = letters[rng.IntN(len(letters))]
		}
		return string(out)
	case policy.DateType:
		return policy.Date(18300 + n)
	case policy.TimestampT:
		return policy.Timestamp((18300*24+n)*microsPerHour + rng.Int64N(3)*microsPerSecond/3)
	case policy.TimestampTZ:
		return policy.Timestamptz((18560*24+n)*microsPerHour + rng.Int64N(3)*microsPerSecond/3)
	}
	return nil
}

func TestSteady(t *testing.T) {
	env := testEnv(t)
	for _, c := range []struct {
		sql       string
		low, high int64
		want      bool
	}{
		{"CASE WHEN i4 < 10 THEN 'a' WHEN i4 < 20 THEN 'b' ELSE 'c' END", 10, 19, true},
		{"CASE WHEN i4 < 10 THEN 'a' WHEN i4 < 20 THEN 'b' ELSE 'c' END", 9, 19, false},
		{"i4 BETWEEN 10 AND 19 OR i4 > 40", 10, 19, true}, {"i4 BETWEEN 10 AND 19 OR i4 > 40", 10, 20, false},
		{"mod(i4 / 10, 2)", 30, 39, true}, {"i4 % 2", 2, 4, false}, {"(i4 / 10)::text || 'x'", 10, 19, true},
		{"i4 = 15", 10, 19, false}, {"i4 IS NULL", 10, 19, false}, {"abs(i4 / 10)", 0, 9, true}, {"7", 0, 9, true},
		{"i4 / 0", 1, 2, false}, {"date_trunc('year', date '2020-01-01' + i4)", 0, 30, false}, {"i4", 3, 3, true},
	} {
		e, err := compile(env, c.sql)
		if err != nil {
			t.Fatal(err)
		}
		low, high := make(Row, len(testColumns)), make(Row, len(testColumns))
		low[2], high[2] = c.low, c.high
		if got := Steady(e, 2, low, high); got != c.want {
			t.Errorf("Steady(%s) on %d … %d is %v", c.sql, c.low, c.high, got)
		}
	}
}
