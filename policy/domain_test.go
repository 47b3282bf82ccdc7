package policy

import "testing"

func TestDomainCells(t *testing.T) {
	steps := func(ty Type, typmod int32, low, high, step string, rules Rules) *Domain {
		t.Helper()
		a, err := ParseValue(ty, low)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseValue(ty, high)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseStep(ty, step)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Steps(ty, typmod, a, b, s, rules)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	other := Rules{NullCell, OutsideOther}
	d := steps(Int4, -1, "0", "119", "1", other)
	if d.Size() != 121 || d.Null != 120 || !d.Single() || d.High(119) != Value(int64(119)) {
		t.Errorf("age: %+v", d)
	}
	d = steps(NumericType, -1, "0", "200000", "1000", Rules{NullExclude, OutsideClamp})
	if d.Size() != 201 || d.Null != -1 || d.Single() || !d.HighOpen(0) || d.HighOpen(200) {
		t.Errorf("income: %+v", d)
	}
	d = steps(Float8, -1, "0", "1", "0.1", other)
	if cell, ok := d.Cell(0.3); !ok || cell != 3 || d.Low(3) != Value(0.3) {
		t.Errorf("float: cell %d %v, low %v", cell, ok, d.Low(3))
	}
}
