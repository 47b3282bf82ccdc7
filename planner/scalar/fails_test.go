package scalar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// drawnConstants are texts that arguments of a type are tried with: what templates, units, zones, expressions and
// bounds may be, good and bad.
var drawnConstants = map[policy.Type][]string{
	policy.Int4: {"-3", "0", "1", "2", "13", "30", "31", "2023", "2000000000"}, policy.Int8: {"-3", "0", "1", "7"}, policy.Int2: {"-3", "0", "1"},
	policy.NumericType: {"-2.5", "0", "1", "2", "100.25"}, policy.Float8: {"-2.5", "0", "1", "100.25", "NaN", "Infinity"}, policy.Float4: {"-1", "0", "2.5"},
	policy.Text: {"", "a", "(", "[a", "a\\", "\\", "9.9.9", "999", "S9EEEE", "EEEE9", "RN", "9V9.9", "FM", "L9", "YYYY-MM-DD", "YYYYJ", "HH24", "YYYY IYYY", "Mon YYYY", "YYYY MS US", "2024-02-01", "12", "-1.5", "foo", "year", "hour",
		"timezone", "UTC", "Nowhere", "Europe/Berlin", "+02", "xx", "day"},
	policy.DateType: {"2024-02-29", "0001-01-01"}, policy.TimestampT: {"2024-02-29 13:14:15.5", "4000-01-01"}, policy.TimestampTZ: {"2024-02-29 13:14:15.5+00"},
	policy.IntervalT: {"0", "1 day", "-1 day", "1 month", "90 seconds"},
}

// TestWhatConstantsMakeFail: of every function that harmless names, and each choice of arguments that are constants, a
// failure that is reported is one with all values of the others; the harmless ones are no cause.
func TestWhatConstantsMakeFail(t *testing.T) {
	found := map[string]bool{}
	for name := range harmless {
		list := loadCatalog().functions[name]
		if isOperator(name) {
			list = loadCatalog().operators[name]
		}
		for _, f := range list {
			body := bodies()[keyOf(name, f.args)]
			if body == nil || len(f.args) < 2 {
				continue
			}
			values := make([][]policy.Value, len(f.args))
			for i, a := range f.args {
				for k, text := range drawnConstants[a] {
					if len(f.args) > 4 && k%4 > 0 { // of many arguments a few
						continue
					}
					v, err := Env{}.ParseText(a, text)
					if err != nil {
						t.Fatal(err)
					}
					values[i] = append(values[i], v)
				}
			}
			for known := 1; known < 1<<len(f.args)-1; known++ {
				found[name] = failsTogether(t, name, f.args, body, values, known) || found[name]
			}
		}
	}
	for name := range harmless {
		if !found[name] && name != WidthBucketOf {
			t.Errorf("%s never fails by its constants", name)
		}
	}
}

// failsTogether tries all constants in the places that known has a bit of; it reports whether some fail.
func failsTogether(t *testing.T, name string, types []policy.Type, b *body, values [][]policy.Value, known int) (any bool) {
	t.Helper()
	var constants, others []int
	for i := range types {
		if known&(1<<i) != 0 {
			constants = append(constants, i)
		} else {
			others = append(others, i)
		}
	}
	args := make([]Expr, len(types))
	for _, i := range others {
		args[i] = Column(i, types[i], -1)
	}
	row := make(Row, len(types))
	each(values, constants, row, func() {
		for _, i := range constants {
			args[i] = Constant(row[i], types[i])
		}
		c := &call{name: name, node: node{args: slices.Clone(args)}, body: b, env: &Env{}}
		told := failsFolded(c)
		if told == nil {
			return
		}
		any = true
		each(values, others, row, func() {
			if v, err := c.Eval(row); err == nil && v != nil && !isNaN(v) { // NULL or NaN makes them so
				t.Errorf("%s%v is told to fail (%v), and does not with %v", name, types, told, row)
			}
		})
	})
	return any
}

// each fills in all choices of values at some places of a row.
func each(values [][]policy.Value, places []int, row Row, visit func()) {
	if len(places) == 0 {
		visit()
		return
	}
	for _, v := range values[places[0]] {
		row[places[0]] = v
		each(values, places[1:], row, visit)
	}
}

// TestFails: what fails on every row, and what need not.
func TestFails(t *testing.T) {
	n, text := Column(0, policy.Int8, -1), Column(1, policy.Text, -1)
	zero, one := Constant(int64(0), policy.Int4), Constant(int64(1), policy.Int4)
	env := Env{}
	call := func(name string, args ...Expr) Expr {
		e, err := env.Call(name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	untyped := func(s string) Expr { return Constant(s, policy.Unknown) }
	divided := call("/", n, zero)
	more := call(">", n, one)
	guarded, err := env.Case([]When{{If: more, Then: divided}}, n)
	if err != nil {
		t.Fatal(err)
	}
	certain, err := env.Case([]When{{If: Constant(true, policy.Bool), Then: divided}}, n)
	if err != nil {
		t.Fatal(err)
	}
	first, err := env.Coalesce(n, divided)
	if err != nil {
		t.Fatal(err)
	}
	both, err := And(more, call(">", divided, one))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		e    Expr
		want string
	}{
		{divided, "22012 division by zero"}, {call("+", one, divided), "22012 division by zero"}, {call("/", n, one), ""}, {call("/", one, n), ""},
		{call("/", n, Constant(nil, policy.Int4)), ""}, {call("/", divided, Constant(nil, policy.Int4)), ""},
		{guarded, ""}, {certain, "22012 division by zero"}, {first, ""}, {both, ""},
		{call("to_char", n, untyped("9.9.9")), "42601 multiple decimal points"}, {call("to_char", n, untyped("9.9")), ""}, {call("to_char", n, text), ""},
		{call("to_number", text, untyped("99")), ""}, {call("to_number", text, untyped("EEEE")), `0A000 "EEEE" not supported for input`},
		{call("to_date", text, untyped("YYYY-MM-DD")), ""}, {call("to_date", text, untyped("YYYYJ")), "0A000 this text or template is not supported"},
		{call(WidthBucketOf, n, zero, one), ""}, {call(WidthBucketOf, n, zero, Constant(nil, policy.Unknown)), "22004 thresholds array must not contain NULLs"},
		{call("make_date", Constant(int64(2023), policy.Int4), Constant(int64(2), policy.Int4), Column(0, policy.Int4, -1)), ""},
		{call("make_date", Column(0, policy.Int4, -1), Constant(int64(13), policy.Int4), one), "22008 date field value out of range"},
	} {
		got, fault := "", (*Error)(nil)
		if err := Fails(c.e); errors.As(err, &fault) {
			got = fault.SQLState + " " + fault.Message
		}
		if got != c.want {
			t.Errorf("%s\n got %q\nwant %q", strings.TrimSpace(fmt.Sprintf("%#v", c.e)), got, c.want)
		}
	}
}

func isNaN(v policy.Value) bool {
	f, ok := v.(float64)
	return ok && f != f
}
