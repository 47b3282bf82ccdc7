package sandbox_test

import (
	"context"
	"errors"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

var env = scalar.Env{Zone: time.UTC, Now: time.Unix(0, 0)}

// key is the first column of the test's leaf, a text; count the second, a bigint.
var (
	key   = scalar.Column(0, policy.Text, -1)
	count = scalar.Column(1, policy.Int8, -1)
)

func call(t testing.TB, name string, args ...scalar.Expr) scalar.Expr {
	t.Helper()
	e, err := env.Call(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func number(n int64) scalar.Expr { return scalar.Constant(n, policy.Int8) }

func leafOf(rows ...[]policy.Value) privacy.Released[sandbox.Rows] {
	return privacy.Published(sandbox.Rows{Columns: []sandbox.Column{{Name: "k", Type: policy.Text, Typmod: -1}, {Name: "n", Type: policy.Int8, Typmod: -1}}, Data: rows})
}

func TestDirect(t *testing.T) {
	leaf := leafOf([]policy.Value{"b", int64(2)}, []policy.Value{"a", int64(3)}, []policy.Value{nil, int64(1)}, []policy.Value{"b", nil})
	all := []scalar.Expr{key, count}
	for _, c := range []struct {
		name string
		d    plans.Direct
		want [][]policy.Value
	}{
		{"as it is", plans.Direct{Items: all, Limit: -1}, [][]policy.Value{{"b", int64(2)}, {"a", int64(3)}, {nil, int64(1)}, {"b", nil}}},
		{"expression", plans.Direct{Items: []scalar.Expr{call(t, "+", count, number(1))}, Limit: -1}, [][]policy.Value{{int64(3)}, {int64(4)}, {int64(2)}, {nil}}},
		{"having", plans.Direct{Items: all, Having: call(t, ">", count, number(1)), Limit: -1}, [][]policy.Value{{"b", int64(2)}, {"a", int64(3)}}},
		{"sorted", plans.Direct{Items: all, Sort: []plans.SortKey{{By: key}, {By: count, NullsFirst: true}}, Limit: -1},
			[][]policy.Value{{"a", int64(3)}, {"b", nil}, {"b", int64(2)}, {nil, int64(1)}}},
		{"descending", plans.Direct{Items: all, Sort: []plans.SortKey{{By: key, Descending: true, NullsFirst: true}, {By: count, Descending: true}}, Limit: -1},
			[][]policy.Value{{nil, int64(1)}, {"b", int64(2)}, {"b", nil}, {"a", int64(3)}}},
		{"cut", plans.Direct{Items: all, Sort: []plans.SortKey{{By: count}}, Limit: 1, Offset: 1}, [][]policy.Value{{"b", int64(2)}}},
		{"past the end", plans.Direct{Items: all, Limit: 5, Offset: 9}, [][]policy.Value{}},
		{"none", plans.Direct{Items: all, Limit: 0}, [][]policy.Value{}},
		{"no FROM", plans.Direct{Leaf: -1, Items: []scalar.Expr{number(7)}, Limit: -1}, [][]policy.Value{{int64(7)}}},
	} {
		got, err := sandbox.Direct(context.Background(), &c.d, nil, leaf)
		if err != nil || !reflect.DeepEqual(got.Value().Data, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got.Value().Data, err, c.want)
		}
	}
}

// TestDirectErrors: a value that cannot be computed is an error of package scalar; one in a row that is not part of the
// answer is none.
func TestDirectErrors(t *testing.T) {
	leaf := leafOf([]policy.Value{"a", int64(0)}, []policy.Value{"b", int64(5)})
	divided := call(t, "/", number(10), count)
	var fault *scalar.Error
	if _, err := sandbox.Direct(context.Background(), &plans.Direct{Items: []scalar.Expr{divided}, Limit: -1}, nil, leaf); !errors.As(err, &fault) || fault.SQLState != "22012" {
		t.Errorf("division by zero: %v", err)
	}
	if _, err := sandbox.Direct(context.Background(), &plans.Direct{Items: []scalar.Expr{count}, Sort: []plans.SortKey{{By: divided}}, Limit: -1}, nil, leaf); !errors.As(err, &fault) {
		t.Errorf("in a sort key: %v", err)
	}
	got, err := sandbox.Direct(context.Background(), &plans.Direct{Items: []scalar.Expr{divided}, Having: call(t, ">", count, number(0)), Limit: -1}, nil, leaf)
	if err != nil || !reflect.DeepEqual(got.Value().Data, [][]policy.Value{{int64(2)}}) {
		t.Errorf("filtered out: %v, %v", got, err)
	}
}

// TestDirectAgainstTwin sorts and cuts random leaves the slow way: by counting, for each row, the rows before it.
func TestDirectAgainstTwin(t *testing.T) {
	const seed = 20261121
	random := rand.New(rand.NewSource(seed))
	for round := range 300 {
		rows := make([][]policy.Value, random.Intn(12))
		for i := range rows {
			rows[i] = []policy.Value{policy.Value(string(rune('a' + random.Intn(4)))), policy.Value(int64(random.Intn(5)))}
			for j := range rows[i] {
				if random.Intn(5) == 0 {
					rows[i][j] = nil
				}
			}
		}
		sort := []plans.SortKey{{By: key, Descending: random.Intn(2) == 0, NullsFirst: random.Intn(2) == 0},
			{By: count, Descending: random.Intn(2) == 0, NullsFirst: random.Intn(2) == 0}}
		d := &plans.Direct{Items: []scalar.Expr{key, count}, Sort: sort, Limit: int64(random.Intn(8) - 1), Offset: int64(random.Intn(4))}
		got, err := sandbox.Direct(context.Background(), d, nil, leafOf(rows...))
		if err != nil {
			t.Fatal(err)
		}
		if want := twin(d, rows); len(got.Value().Data)+len(want) > 0 && !reflect.DeepEqual(got.Value().Data, want) {
			t.Fatalf("seed %d, round %d: %v of %v, want %v", seed, round, got.Value().Data, rows, want)
		}
	}
}

func twin(d *plans.Direct, rows [][]policy.Value) [][]policy.Value {
	before := func(i, j int) bool {
		for c, s := range d.Sort {
			a, b := rows[i][c], rows[j][c]
			if a == nil && b == nil || reflect.DeepEqual(a, b) {
				continue
			}
			if a == nil || b == nil {
				return (a == nil) == s.NullsFirst
			}
			var less bool
			if c == 0 {
				less = a.(string) < b.(string)
			} else {
				less = a.(int64) < b.(int64)
			}
			return less != s.Descending
		}
		return i < j
	}
	placed := make([][]policy.Value, len(rows))
	for i := range rows {
		place := 0
		for j := range rows {
			if j != i && before(j, i) {
				place++
			}
		}
		placed[place] = rows[i]
	}
	var out [][]policy.Value
	for i, row := range placed {
		if int64(i) >= d.Offset && (d.Limit < 0 || int64(i) < d.Offset+d.Limit) {
			out = append(out, row)
		}
	}
	return out
}

func BenchmarkDirectOneRow(b *testing.B) {
	leaf := leafOf([]policy.Value{"a", int64(5)})
	d := &plans.Direct{Items: []scalar.Expr{count}, Limit: -1}
	for b.Loop() {
		if _, err := sandbox.Direct(context.Background(), d, nil, leaf); err != nil {
			b.Fatal(err)
		}
	}
}
