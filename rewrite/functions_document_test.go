package rewrite_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// worstScalar are values that an expression over declared values is called with.
func worstScalar(t *testing.T) map[policy.Type][]policy.Value {
	texts := []policy.Value{"", "a", "i", "day", "UTC", "12", "9.9.9", "9V9999999999999999999", "FM9TH", "2024-02-30", `\`, "%", "(", "e\u0301\U0010ffff", strings.Repeat("ab", 200)}
	days := []policy.Value{policy.Date(0), policy.Date(19000), policy.Date(-719162), policy.Date(2932896), policy.Date(2147483493)}
	moments := []int64{0, 1_700_000_000_123_456, -62135596800_000_000, 253402300799_999_999, 9214646400_000_000 + 9_007_199_254_740_991}
	values := map[policy.Type][]policy.Value{
		policy.Bool: {true, false}, policy.Int2: {int64(0), int64(1), int64(math.MinInt16), int64(math.MaxInt16)},
		policy.Int4: {int64(0), int64(1), int64(-1), int64(math.MinInt32), int64(math.MaxInt32)}, policy.Int8: {int64(0), int64(1), int64(-1), int64(math.MinInt64), int64(math.MaxInt64)},
		policy.Float4:      {0.0, 1.5, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), float64(math.SmallestNonzeroFloat32), float64(math.MaxFloat32)},
		policy.Float8:      {0.0, 1.5, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64},
		policy.NumericType: {policy.NewNumeric(0, 0), policy.NewNumeric(-15, 1), policy.NewNumeric(1, 300), policy.Numeric{Coefficient: new(big.Int).Exp(big.NewInt(10), big.NewInt(300), nil)}},
		policy.Text:        texts, policy.Varchar: texts, policy.DateType: days, policy.UUID: {"00000000-0000-0000-0000-000000000001"},
		policy.IntervalT: {policy.Interval{}, policy.Interval{Months: 1, Days: -3, Micros: 5}, policy.Interval{Months: math.MaxInt32, Days: math.MaxInt32, Micros: math.MaxInt64}, policy.Interval{Months: math.MinInt32, Days: math.MinInt32, Micros: math.MinInt64}},
	}
	for _, m := range moments {
		values[policy.TimestampT] = append(values[policy.TimestampT], policy.Timestamp(m))
		values[policy.TimestampTZ] = append(values[policy.TimestampTZ], policy.Timestamptz(m))
	}
	for kind := range values {
		values[kind] = append(values[kind], nil)
	}
	return values
}

// outcomesOf are the reasons for which a function of declared values fails on the worst values of its types; none means
// it is total.
func outcomesOf(t *testing.T, name string, types []policy.Type, worst map[policy.Type][]policy.Value) []string {
	t.Helper()
	args := make([]scalar.Expr, len(types))
	for i, kind := range types {
		args[i] = scalar.Column(i, kind, -1)
	}
	e, err := scalar.Env{Now: time.Unix(0, 0), Zone: time.UTC}.Call(name, args...)
	if err != nil {
		if !strings.HasSuffix(err.Error(), "is not supported") {
			t.Errorf("%s%v: %v", name, types, err)
		}
		return []string{"being PostgreSQL's alone: it is refused on every value"}
	}
	reasons := map[string]bool{}
	row := make(scalar.Row, len(types))
	var fill func(at int)
	fill = func(at int) {
		if at < len(row) {
			for _, v := range worst[types[at]] {
				row[at] = v
				fill(at + 1)
			}
			return
		}
		if _, err := e.Eval(row); err != nil {
			var known *scalar.Error
			if !errors.As(err, &known) {
				t.Errorf("%s%v: %v is no error of PostgreSQL's", name, types, err)
				return
			}
			reasons[reasonOf[known.SQLState]] = true
		}
	}
	fill(0)
	return slices.Sorted(maps.Keys(reasons))
}

// reasonOf says in words what an SQLSTATE of an expression means.
var reasonOf = map[string]string{
	"22012": "division by zero", "22003": "out of range", "22P02": "a text that is no such value", "22007": "a text that is no date", "22008": "a date or moment out of range",
	"22023": "a parameter without a meaning", "22025": "an escape at the end of a pattern", "22011": "a negative length", "2201B": "a regular expression that is none",
	"2201G": "buckets without a width", "2201E": "a logarithm of what has none", "2201F": "a power that has no value", "0A000": "a value that is not supported", "54000": "a number that is no character", "22015": "an interval out of range", "22004": "a NULL where none may be", "42601": "a template whose words exclude one another",
}

// TestFunctionsDocument holds docs/functions.md equal to the catalogue, and to what each function that analysts may
// write does on the worst values of its types. None of them may do anything but answer or fail with one of PostgreSQL's
// errors.
func TestFunctionsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(functionsHead)
	b.WriteString("| what | PostgreSQL | DuckDB | Spark | total | why nothing fails |\n| --- | --- | --- | --- | --- | --- |\n")
	quoted := func(list []string) string {
		var out []string
		for _, s := range list {
			out = append(out, "`"+strings.ReplaceAll(s, "|", "\\|")+"`")
		}
		return strings.Join(out, ", ")
	}
	for _, s := range rewrite.Catalogue() {
		total := "by itself"
		if !s.Total {
			total = "as used"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.What, quoted(s.PostgreSQL), quoted(s.DuckDB), quoted(s.Spark), total, s.Why)
	}
	b.WriteString(functionsScalar)
	text, err := os.ReadFile("../planner/scalar/catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	worst := worstScalar(t)
	for _, kind := range []string{"operator", "function"} {
		fmt.Fprintf(&b, "\n| %s | on types | refused where a declared value makes it fail by |\n| --- | --- | --- |\n", kind)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 3 || f[0] != kind {
				continue
			}
			byReasons := map[string][]string{}
			for _, signature := range f[2:] {
				types, known := typesOf(signature, worst)
				if !known {
					continue
				}
				reasons := strings.Join(outcomesOf(t, f[1], types, worst), "; ")
				if reasons == "" {
					reasons = "nothing: it is total"
				}
				if form := formOf(types); !slices.Contains(byReasons[reasons], form) {
					byReasons[reasons] = append(byReasons[reasons], form)
				}
			}
			for _, reasons := range slices.Sorted(maps.Keys(byReasons)) {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(f[1], "|", "\\|"), strings.Join(byReasons[reasons], ", "), reasons)
			}
		}
	}
	const path = "../docs/functions.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the catalogue and the functions say; run with -update and read the difference (%v)", path, err)
	}
}

// typesOf reads a signature of the catalogue; false where an expression cannot have one of its types.
func typesOf(signature string, worst map[policy.Type][]policy.Value) ([]policy.Type, bool) {
	args, _, _ := strings.Cut(signature, "=")
	var types []policy.Type
	for a := range strings.SplitSeq(args, "+") {
		n, err := strconv.ParseUint(strings.TrimPrefix(a, "v"), 10, 32)
		if err != nil || worst[policy.Type(n)] == nil {
			return nil, args == ""
		}
		types = append(types, policy.Type(n))
	}
	return types, true
}

func formOf(types []policy.Type) string {
	var names []string
	for _, kind := range types {
		names = append(names, kind.Name())
	}
	return "(" + strings.Join(names, ", ") + ")"
}

const functionsHead = `# Functions, operators and casts, and what makes none of them fail

Where SQL fails on one person's value, the error is an exact bit about her. So there are two lists. This page is generated
(` + "`go test ./rewrite -run TestFunctionsDocument -update`" + `).

## What is sent to the private database

Everything that the generated SQL of a measure may contain (rewrite/token.go; ADR 21). In PostgreSQL the list is of the
functions behind operators and casts, with the types that the database resolves, implicit casts included; names in capitals
are kinds of nodes of its parse tree. A test has both databases take apart the SQL of all measures and fails on anything that
is not here; Spark's is taken apart by its words. *By itself*: it is called with the extremes of its types, NaN, infinities, denormal numbers, empty and huge texts,
the first and last days, NULL, and answers. *As used*: it would fail on some values that it is never given; every form of
measure is run over tables of hostile rows on both engines, and the golden ones on Spark, and each row lies in the cell that policy.Domain says.

`

const functionsScalar = `
## What analysts may write

Expressions over private columns are evaluated in Go on the declared values when a statement is planned, never in the
database. Where one of them fails on a declared value the statement is refused for everybody, whether or not a row has that
value, and costs nothing ([refusals.md](refusals.md)). The reasons below were found by calling each function with the worst
values of its types, NaN, infinities and the ends of the ranges among them; on a column's own domain most of them cannot
occur.
`
