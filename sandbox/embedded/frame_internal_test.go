package embedded

import (
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// numericOf draws numerics of both signs, many sizes and scales.
func numericOf(t *rapid.T) policy.Numeric {
	n, ok := new(big.Int).SetString(rapid.StringMatching(`-?[0-9]{1,40}`).Draw(t, "coefficient"), 10)
	if !ok {
		t.Fatal("no number")
	}
	return policy.Numeric{Coefficient: n, Scale: int32(rapid.IntRange(0, 30).Draw(t, "scale"))}
}

func valueOf(t *rapid.T, depth int) policy.Value {
	switch rapid.IntRange(0, 11-min(depth, 1)).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return rapid.Int64().Draw(t, "int")
	case 4:
		return rapid.Float64().Draw(t, "float")
	case 5, 6:
		return rapid.String().Draw(t, "text")
	case 7:
		return numericOf(t)
	case 8:
		return policy.Date(rapid.Int32().Draw(t, "date"))
	case 9:
		return policy.Timestamp(rapid.Int64().Draw(t, "timestamp"))
	case 10:
		if depth == 0 {
			return policy.Timestamptz(rapid.Int64().Draw(t, "timestamptz"))
		}
		return policy.Interval{Months: rapid.Int32().Draw(t, "months"), Days: rapid.Int32().Draw(t, "days"), Micros: rapid.Int64().Draw(t, "micros")}
	}
	list := make([]policy.Value, rapid.IntRange(0, 4).Draw(t, "length"))
	for i := range list {
		list[i] = valueOf(t, depth+1)
	}
	return list
}

// same compares values as they are held; big.Int has several forms of one number.
func same(a, b policy.Value) bool {
	if x, ok := a.(policy.Numeric); ok {
		y, ok := b.(policy.Numeric)
		return ok && x.Scale == y.Scale && x.Coefficient.Cmp(y.Coefficient) == 0
	}
	if x, ok := a.([]policy.Value); ok {
		y, ok := b.([]policy.Value)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// TestFramesKeepValues: what goes to the child and back is what it was, type and all.
func TestFramesKeepValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &request{kind: askQuery, dataset: rapid.String().Draw(t, "dataset"), sql: rapid.String().Draw(t, "sql"), texts: scalar.Literals{Now: time.UnixMicro(rapid.Int64().Draw(t, "now")), Zone: time.UTC}, read: scalar.Literals{Zone: time.FixedZone("<+05>-05", 18000), Form: scalar.Form{Dates: "DMY"}},
			args: []string{"a", ""}, columns: []sandbox.Column{{Name: "x", Type: policy.Int4, Typmod: -1}}}
		width := rapid.IntRange(0, 3).Draw(t, "width")
		rows := sandbox.Rows{Columns: make([]sandbox.Column, width)}
		for i := range rows.Columns {
			rows.Columns[i] = sandbox.Column{Name: rapid.String().Draw(t, "name"), Type: policy.Text, Typmod: rapid.Int32().Draw(t, "typmod")}
		}
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			row := make([]policy.Value, width)
			for i := range row {
				row[i] = valueOf(t, 0)
			}
			rows.Data = append(rows.Data, row)
		}
		in.tables = []table{{name: "t", rows: rows}}
		out, err := decodeRequest(in.encode())
		if err != nil {
			t.Fatal(err)
		}
		if out.kind != in.kind || out.dataset != in.dataset || out.sql != in.sql || !out.texts.Now.Equal(in.texts.Now) || out.read.Form != in.read.Form || !out.read.SameSettings(in.read.Zone, in.read.Form) || !reflect.DeepEqual(out.args, in.args) ||
			!reflect.DeepEqual(out.columns, in.columns) || !reflect.DeepEqual(out.tables[0].rows.Columns, rows.Columns) {
			t.Fatalf("%+v became %+v", in, out)
		}
		for i, row := range rows.Data {
			if !same(row, out.tables[0].rows.Data[i]) {
				t.Fatalf("%v became %v", row, out.tables[0].rows.Data[i])
			}
		}
		back, err := decodeReply((&reply{rows: rows}).encode())
		if err != nil || len(back.rows.Data) != len(rows.Data) {
			t.Fatalf("%v, %v", back, err)
		}
	})
}

// TestFramesCutShort: half a message is an error, never a panic or a wrong value.
func TestFramesCutShort(t *testing.T) {
	whole := (&request{kind: askQuery, sql: "SELECT 1", tables: []table{{"t", sandbox.Rows{Columns: []sandbox.Column{{Name: "x", Type: 23, Typmod: -1}},
		Data: [][]policy.Value{{int64(5)}, {"text"}, {[]policy.Value{1.5, nil}}, {policy.NewNumeric(-15, 1)}}}}}}).encode()
	for n := range whole {
		if _, err := decodeRequest(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are a request", n, len(whole))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		_, _ = decodeRequest(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		_, _ = decodeReply(rapid.SliceOf(rapid.Byte()).Draw(t, "reply"))
	})
}

// TestStoredNumericsKeepOrder: the stored texts compare as the numbers do, equal numbers share the key before the bar, and
// nothing is lost.
func TestStoredNumericsKeepOrder(t *testing.T) {
	key := func(s string) string { k, _, _ := strings.Cut(s, "|"); return k }
	rapid.Check(t, func(t *rapid.T) {
		a, b := numericOf(t), numericOf(t)
		if rapid.Bool().Draw(t, "close") {
			b = a.Rescale(a.Scale + 3)
		}
		x, errX := encodeNumeric(a)
		y, errY := encodeNumeric(b)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		if strings.Compare(key(x), key(y)) != a.Cmp(b) {
			t.Fatalf("%s and %s are stored as %s and %s", a, b, x, y)
		}
		if back, err := decodeNumeric(x); err != nil || !same(back, a) {
			t.Fatalf("%s came back as %s, %v", a, back, err)
		}
	})
}

// TestSquareRoot against floating point where that is exact enough.
func TestSquareRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1_000_000).Draw(t, "n")
		got := root(policy.NewNumeric(n*10_000, 4))
		want := math.Sqrt(float64(n))
		if f, _ := new(big.Float).SetString(got.String()); f == nil {
			t.Fatal("not a number")
		} else if v, _ := f.Float64(); math.Abs(v-want) > 0.50001e-4 {
			t.Fatalf("√%d is %v, not %s", n, want, got)
		}
	})
}

// TestSingle finds second statements and comments outside names and strings alone.
func TestSingle(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1": true, "SELECT ';'": true, `SELECT ";" FROM "a--b"`: true, "SELECT 7 // 2 - 1 - -1, $1": true, "SELECT 'it''s; --'": true,
		"SELECT 1;": false, "SELECT 1; DROP TABLE t": false, "SELECT 1 -- x": false, "SELECT /* x */ 1": false, "SELECT $$;$$": false,
		"SELECT 'open": false, "SELECT $a$x$a$": false,
	} {
		if got := single(sql); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

// TestErrorsOfUnknownClass hide what they say.
func TestErrorsOfUnknownClass(t *testing.T) {
	r := failed(errFrame)
	if r.fault != sandbox.ErrBroken || r.log == "" {
		t.Errorf("%+v", r)
	}
	if r := failed(marked(&scalar.Error{SQLState: "22012", Message: "division by zero"})); r.fault.SQLState != "22012" || r.log != "" {
		t.Errorf("%+v", r)
	}
}
