package policy

import "testing"

func TestParseType(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   Type
		typmod int32
		format string
		length int16
	}{
		{"integer", Int4, -1, "integer", 4}, {"INT", Int4, -1, "integer", 4}, {"bool", Bool, -1, "boolean", 1},
		{"smallint", Int2, -1, "smallint", 2}, {"bigint", Int8, -1, "bigint", 8}, {"real", Float4, -1, "real", 4},
		{"double  precision", Float8, -1, "double precision", 8}, {"float8", Float8, -1, "double precision", 8},
		{"numeric", NumericType, -1, "numeric", -1}, {"numeric(10, 2)", NumericType, 10<<16 + 2 + 4, "numeric(10,2)", -1},
		{"decimal(5)", NumericType, 5<<16 + 4, "numeric(5,0)", -1}, {"text", Text, -1, "text", -1},
		{"varchar(3)", Varchar, 7, "character varying(3)", -1}, {"character varying", Varchar, -1, "character varying", -1},
		{"date", DateType, -1, "date", 4}, {"timestamp", TimestampT, -1, "timestamp without time zone", 8},
		{"timestamptz", TimestampTZ, -1, "timestamp with time zone", 8}, {"uuid", UUID, -1, "uuid", 16},
		{"timestamp with time zone", TimestampTZ, -1, "timestamp with time zone", 8},
	} {
		got, typmod, err := ParseType(c.text)
		if err != nil || got != c.want || typmod != c.typmod || got.Format(typmod) != c.format || got.Length() != c.length {
			t.Errorf("%q is %v %d %q %d, %v", c.text, got, typmod, got.Format(typmod), got.Length(), err)
		}
		if again, typmod2, err := ParseType(c.format); err != nil || again != got || typmod2 != typmod {
			t.Errorf("%q does not read back: %v %d %v", c.format, again, typmod2, err)
		}
	}
	for _, text := range []string{"", "json", "interval", "unknown", "numeric(", "numeric(a)", "numeric()", "numeric(0)", "numeric(1001)",
		"numeric(2,3)", "numeric(2,1,1)", "varchar(0)", "varchar(1,2)", "text(3)", "char(3)", "timestamp(3)", "integer[]"} {
		if got, _, err := ParseType(text); err == nil {
			t.Errorf("%q passes as %v", text, got)
		}
	}
	if p, s := NumericTypmod(10<<16 + 2 + 4); p != 10 || s != 2 {
		t.Errorf("typmod of numeric(10,2) reads as %d, %d", p, s)
	}
}

func TestNumeric(t *testing.T) {
	for _, text := range []string{"0", "-0.5", "12.50", "0.001", "-123456789012345678901234567890.000001"} {
		n, err := ParseNumeric(text)
		if err != nil || n.String() != text {
			t.Errorf("%s reads as %s, %v", text, n, err)
		}
	}
	a, b := NewNumeric(150, 2), NewNumeric(15, 1)
	if a.Cmp(b) != 0 || a.shortest() != "1.5" || b.Rescale(3).String() != "1.500" || a.Rescale(1).String() != "1.5" || NewNumeric(100, 0).shortest() != "100" {
		t.Errorf("1.50 and 1.5: %d %s %s", a.Cmp(b), a.shortest(), b.Rescale(3))
	}
}
