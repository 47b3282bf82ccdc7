package encoding

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

func numeric(text string) policy.Numeric {
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		panic(text)
	}
	return policy.Numeric{Coefficient: n, Scale: int32(len(fraction))}
}

func date(y, m, d int) policy.Date {
	return policy.Date(time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// TestTextForms: the forms were read off a PostgreSQL 15 server.
func TestTextForms(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) int64 {
		v, err := time.Parse("2006-01-02 15:04:05.999999", s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	for _, c := range []struct {
		t      policy.Type
		v      policy.Value
		digits int
		want   string
	}{
		{policy.Bool, true, 1, "t"}, {policy.Bool, false, 1, "f"},
		{policy.Int8, int64(math.MinInt64), 1, "-9223372036854775808"},
		{policy.Float8, 0.1, 1, "0.1"}, {policy.Float8, 1e15, 1, "1e+15"}, {policy.Float8, 123456789012345.0, 1, "123456789012345"},
		{policy.Float8, 0.0001, 1, "0.0001"}, {policy.Float8, 0.00001, 1, "1e-05"}, {policy.Float8, 1.0 / 3, 1, "0.3333333333333333"},
		{policy.Float8, 1.0 / 3, 0, "0.333333333333333"}, {policy.Float8, 1.0 / 3, -3, "0.333333333333"}, {policy.Float8, 2e5, -10, "2e+05"},
		{policy.Float8, math.Inf(-1), 1, "-Infinity"}, {policy.Float8, math.NaN(), 1, "NaN"}, {policy.Float8, math.Copysign(0, -1), 1, "-0"},
		{policy.Float4, float64(float32(0.1)), 1, "0.1"}, {policy.Float4, 1e6, 1, "1e+06"}, {policy.Float4, 123456.0, 1, "123456"},
		{policy.NumericType, numeric("12.340"), 1, "12.340"}, {policy.NumericType, numeric("-0.05"), 1, "-0.05"}, {policy.NumericType, numeric("0.00"), 1, "0.00"},
		{policy.NumericType, policy.Numeric{Coefficient: big.NewInt(12), Scale: -2}, 1, "1200"},
		{policy.DateType, date(2024, 2, 29), 1, "2024-02-29"}, {policy.DateType, date(1, 1, 1), 1, "0001-01-01"}, {policy.DateType, date(0, 1, 1), 1, "0001-01-01 BC"},
		{policy.DateType, date(12024, 2, 29), 1, "12024-02-29"},
		{policy.TimestampT, policy.Timestamp(at("2024-02-29 13:14:15.5")), 1, "2024-02-29 13:14:15.5"},
		{policy.TimestampT, policy.Timestamp(-1), 1, "1969-12-31 23:59:59.999999"}, {policy.TimestampT, policy.Timestamp(math.MaxInt64), 1, "infinity"},
		{policy.TimestampTZ, policy.Timestamptz(at("2024-07-01 10:00:00")), 1, "2024-07-01 12:00:00+02"},
		{policy.TimestampTZ, policy.Timestamptz(at("2024-01-01 10:00:00")), 1, "2024-01-01 11:00:00+01"},
		{policy.TimestampTZ, policy.Timestamptz(at("1890-01-01 00:00:00")), 1, "1890-01-01 00:53:28+00:53:28"},
		{policy.TimeT, policy.Time(0), 1, "00:00:00"}, {policy.TimeT, policy.Time(33_900_500_000), 1, "09:25:00.5"}, {policy.TimeT, policy.Time(86_400_000_000), 1, "24:00:00"},
		{policy.IntervalT, policy.Interval{}, 1, "00:00:00"}, {policy.IntervalT, policy.Interval{Months: 14, Days: 3, Micros: 3_723_000_001}, 1, "1 year 2 mons 3 days 01:02:03.000001"},
		{policy.IntervalT, policy.Interval{Months: -1, Days: 1}, 1, "-1 mons +1 day"}, {policy.IntervalT, policy.Interval{Days: -1, Micros: 1_000_000}, 1, "-1 days +00:00:01"},
		{policy.IntervalT, policy.Interval{Micros: -90_000_000}, 1, "-00:01:30"}, {policy.IntervalT, policy.Interval{Months: 12}, 1, "1 year"},
		{policy.IntervalT, policy.Interval{Months: -13}, 1, "-1 years -1 mons"}, {policy.IntervalT, policy.Interval{Months: -10, Days: -3, Micros: -3_600_000_000}, 1, "-10 mons -3 days -01:00:00"},
		{policy.IntervalT, policy.Interval{Days: 2, Micros: -1_000_000}, 1, "2 days -00:00:01"}, {policy.Float8, 123456.0, -10, "1.2346e+05"}, {policy.Float8, 1e14, 0, "100000000000000"},
		{policy.Float8, 1e12, -3, "1e+12"}, {policy.Float4, 1234567.0, 0, "1.23457e+06"},
		{policy.UUID, "12345678-1234-1234-1234-123456789abc", 1, "12345678-1234-1234-1234-123456789abc"},
		{policy.Text, "it's ü", 1, "it's ü"},
		{1009, []policy.Value{"a", "b c", nil, "", "null", `q"\`, "x,y"}, 1, `{a,"b c",NULL,"","null","q\"\\","x,y"}`},
		{1016, []policy.Value{int64(1), int64(2)}, 1, "{1,2}"}, {1016, []policy.Value{}, 1, "{}"},
		{1007, []policy.Value{[]policy.Value{int64(1), int64(2)}, []policy.Value{int64(3), int64(4)}}, 1, "{{1,2},{3,4}}"},
		{oidInt2Vector, []policy.Value{int64(1), int64(2)}, 1, "1 2"}, {1000, []policy.Value{true, false}, 1, "{t,f}"},
	} {
		e := &Encoder{zone: berlin, form: scalar.FormOf("ISO, MDY", "postgres", c.digits)}
		got, err := e.text(nil, c.t, c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%d %v: %q, want %q (%v)", c.t, c.v, got, c.want, err)
		}
	}
}

// TestBinaryForms reads every binary form with pgtype, an implementation of somebody else's, and with our own reader.
func TestBinaryForms(t *testing.T) {
	m := pgtype.NewMap()
	e := &Encoder{zone: time.UTC}
	const seed = 7
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	cases := []struct {
		t policy.Type
		v policy.Value
	}{
		{policy.Bool, true}, {policy.Int2, int64(-7)}, {policy.Int4, int64(math.MinInt32)}, {policy.Int8, int64(math.MaxInt64)},
		{policy.Float4, 0.5}, {policy.Float8, -1.25}, {policy.Text, "ü"}, {policy.Varchar, ""}, {policy.UUID, "12345678-1234-1234-1234-123456789abc"},
		{policy.DateType, date(1969, 7, 20)}, {policy.TimestampT, policy.Timestamp(-123456789)}, {policy.TimestampTZ, policy.Timestamptz(1234567890123456)},
		{policy.TimeT, policy.Time(33_900_500_001)}, {policy.TimeT, policy.Time(86_400_000_000)}, {1183, []policy.Value{policy.Time(1), nil}},
		{policy.IntervalT, policy.Interval{Months: -5, Days: 3, Micros: 7}}, {1009, []policy.Value{"a", nil, "b"}}, {1016, []policy.Value{}}, {1016, []policy.Value{int64(5)}},
		{oidOid, int64(math.MaxUint32)}, {oidName, "pg_class"},
	}
	for range 500 {
		n := new(big.Int).Rand(random, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+random.Intn(40))), nil))
		if random.Intn(2) == 0 {
			n.Neg(n)
		}
		cases = append(cases, struct {
			t policy.Type
			v policy.Value
		}{policy.NumericType, policy.Numeric{Coefficient: n, Scale: int32(random.Intn(20))}})
	}
	for _, c := range cases {
		raw, err := e.binary(nil, c.t, c.v)
		if err != nil {
			t.Errorf("%d %v: %v", c.t, c.v, err)
			continue
		}
		back, err := readBinary(nil, c.t, raw)
		if err != nil || form(t, c.t, back) != form(t, c.t, c.v) {
			t.Errorf("%d %v: read back as %v (%v)", c.t, c.v, back, err)
		}
		pg, ok := m.TypeForOID(uint32(c.t))
		if !ok {
			t.Fatalf("pgtype has no %d", c.t)
		}
		text, err := reencode(m, pg, raw)
		if err != nil {
			t.Errorf("%d %v: pgtype: %v on %s", c.t, c.v, err, hex.EncodeToString(raw))
			continue
		}
		if want := form(t, c.t, c.v); text != want && c.t != policy.TimestampTZ && c.t != policy.TimeT && c.t != policy.IntervalT && c.t != policy.NumericType {
			t.Errorf("%d: pgtype reads %q, our text is %q", c.t, text, want)
		}
		if n, ok := c.v.(policy.Numeric); ok {
			a, _ := new(big.Rat).SetString(text)
			b := new(big.Rat).SetFrac(n.Coefficient, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.Scale)), nil))
			if a == nil || a.Cmp(b) != 0 {
				t.Errorf("numeric %s read as %s", b.FloatString(20), text)
			}
		}
	}
}

func reencode(m *pgtype.Map, pg *pgtype.Type, raw []byte) (string, error) {
	v, err := pg.Codec.DecodeValue(m, pg.OID, pgtype.BinaryFormatCode, raw)
	if err != nil {
		return "", err
	}
	out, err := m.Encode(pg.OID, pgtype.TextFormatCode, v, nil)
	return string(out), err
}

func form(t *testing.T, typ policy.Type, v policy.Value) string {
	t.Helper()
	got, err := (&Encoder{zone: time.UTC}).text(nil, typ, v)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// TestEncoderRefuses: what was not released is not encoded, nor what does not fit its column.
func TestEncoderRefuses(t *testing.T) {
	columns := []sandbox.Column{{Name: "n", Type: policy.Int2, Typmod: -1}}
	e := NewEncoder(columns, []int16{1}, Style{Zone: time.UTC}, nil)
	if got, err := e.Row(nil, privacy.Released[sandbox.Rows]{}, 0); err == nil || len(got) != 0 {
		t.Errorf("%x, %v", got, err)
	}
	for _, row := range [][]policy.Value{{int64(40_000)}, {"x"}, {3.5}, {true}, {int64(1), int64(2)}, {}, {numeric("1")}, {[]policy.Value{int64(1)}}, {struct{}{}}} {
		rows := privacy.Published(sandbox.Rows{Columns: columns, Data: [][]policy.Value{row}})
		if got, err := e.Row([]byte("kept"), rows, 0); err == nil || string(got) != "kept" {
			t.Errorf("%v: %q, %v", row, got, err)
		}
	}
}

// FuzzBinaryParameter: any bytes are a value or an error, and what is read is written the same again.
func FuzzBinaryParameter(f *testing.F) {
	e := &Encoder{zone: time.UTC}
	for _, t := range []policy.Type{policy.Bool, policy.Int4, policy.NumericType, policy.UUID, policy.IntervalT, 1009, 1231} {
		f.Add(uint32(t), []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 5})
	}
	raw, err := e.binary(nil, 1009, []policy.Value{"a", nil})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(1009), raw)
	f.Fuzz(func(t *testing.T, oid uint32, raw []byte) {
		v, err := readBinary(nil, policy.Type(oid), raw)
		if err != nil {
			return
		}
		written, err := e.binary(nil, WireType(policy.Type(oid)), v)
		if err != nil {
			return // a type that is only read as text
		}
		again, err := readBinary(nil, policy.Type(oid), written)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(v) && !strings.Contains(fmt.Sprint(v), "NaN") {
			t.Fatalf("%d %x: %v, then %x: %v, %v", oid, raw, v, written, again, err)
		}
	})
}

func TestTextParameters(t *testing.T) {
	env := scalar.Env{Zone: time.UTC}
	for _, c := range []struct {
		t    policy.Type
		in   string
		want string // in Go's form; "!" followed by a SQLSTATE
	}{
		{policy.Text, "a b", "a b"}, {policy.Int4, "12", "12"}, {policy.Int4, "x", "!22P02"}, {policy.Bool, "true", "true"},
		{1009, `{a,"b, c",NULL,"NULL",""}`, "[a b, c <nil> NULL ]"}, {1016, "{1,2}", "[1 2]"}, {1016, "{}", "[]"}, {1009, `{"a\"b", c d ,e}`, `[a"b c d e]`},
		{1016, "{1,x}", "!22P02"}, {1016, "{1", "!22P02"}, {1016, "1}", "!22P02"}, {1016, "{1,}", "!22P02"}, {1016, "{{1},{2}}", "!DP002"}, {1009, `{"a}`, "!22P02"},
		{oidOid, "12", "12"}, {oidRegclass, "people", "people"}, {policy.UUID + 1_000_000, "anything", "anything"},
	} {
		v, f := readText(env, c.t, c.in)
		got := fmt.Sprint(v)
		if f != nil {
			got = "!" + f.SQLState
		}
		if got != c.want {
			t.Errorf("%d %q: %s, want %s", c.t, c.in, got, c.want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	columns := []sandbox.Column{{Name: "k", Type: policy.Text, Typmod: -1}, {Name: "n", Type: policy.Int8, Typmod: -1}}
	rows := privacy.Published(sandbox.Rows{Columns: columns, Data: [][]policy.Value{{"Female", int64(123456)}}})
	e := NewEncoder(columns, nil, Style{Zone: time.UTC}, nil)
	var buffer bytes.Buffer
	for b.Loop() {
		out, err := e.Row(buffer.Bytes()[:0], rows, 0)
		if err != nil || len(out) == 0 {
			b.Fatal(err)
		}
	}
}

// TestVoid: asyncpg asks for everything in binary, also for what a function that returns nothing returns.
func TestVoid(t *testing.T) {
	e := &Encoder{zone: time.UTC}
	for _, form := range []func([]byte, policy.Type, policy.Value) ([]byte, error){e.text, e.binary} {
		if out, err := form(nil, oidVoid, ""); err != nil || len(out) != 0 {
			t.Errorf("%q, %v", out, err)
		}
	}
	if v, err := readBinary(nil, oidVoid, nil); err != nil || v != "" {
		t.Errorf("%v, %v", v, err)
	}
}
