package digits

import (
	"math/big"
	"testing"
)

// TestShown: two digits of the error, the number to the same place, thousands parted, and the
// interval's ends moved outwards; what is exact stays as it is.
func TestShown(t *testing.T) {
	for _, c := range [][4]string{
		{"26270.453859511999", "26243.62", "26297.29", "26,270 ± 27"},
		{"10114", "10014", "10214", "10,110 ± 100"},
		{"-1234567.5", "-1234667", "-1234467", "-1,234,570 ± 100"},
		{"0.5066", "0.5047", "0.5085", "0.5066 ± 0.0019"},
		{"30190.514804003336", "28357.824594651506", "32007.082340862423", "30,200 ± 1,800"},
		{"-12.3", "-15", "-9", "-12.3 ± 3.3"}, {"1.25e-07", "1.2e-07", "1.3e-07", "0.0000001250 ± 0.0000000050"},
		{"1234567890123456789", "1234567890123456780", "1234567890123456798", "1,234,567,890,123,456,789 ± 9"},
		{"12", "12", "12", "12"},
		{"3", "-5", "4", "3 ± 8"},
		{"7", "6", "1e400", "0 ± " + grouped("1"+zeros(400))},
		{"2020-01-01", "2019-12-31", "2020-01-02", ""}, {"x", "1", "2", ""}, {"1/3", "0", "1", ""},
		{"NaN", "1", "2", ""},
	} {
		if got, _ := Shown(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s from %s to %s: %q, want %q", c[0], c[1], c[2], got, c[3])
		}
	}
	for _, c := range [][4]string{
		{"26270.453859511999", "26243.62", "26297.29", "26,243 to 26,298"}, {"-12.3", "-15", "-9", "-15.0 to -9.0"},
		{"30190.514804003336", "28357.82", "32007.08", "28,300 to 32,100"}, {"12", "12", "12", "12"},
		{"-30190.5", "-32007.08", "-28357.8", "-32,100 to -28,300"}, {"3", "-5", "4", "-5 to 4"}, {"x", "1", "2", ""},
	} {
		if _, got := Shown(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s from %s to %s: from %q, want %q", c[0], c[1], c[2], got, c[3])
		}
	}
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}

// TestRound: what is rounded away is less than a tenth of the error, and an error next to nothing takes nothing away
// that is kept.
func TestRound(t *testing.T) {
	for _, c := range []struct{ x, off, want string }{
		{"26270.4538", "26.83", "26270"}, {"15", "100", "20"}, {"-15", "100", "-20"}, {"14.999", "100", "10"},
		{"0.123456", "0.0009", "0.12346"}, {"5", "1e-30", "5"}, {"5.55", "9.99", "5.6"}, {"123", "99999", "0"},
	} {
		x, _ := new(big.Rat).SetString(c.x)
		off, _ := new(big.Rat).SetString(c.off)
		want, _ := new(big.Rat).SetString(c.want)
		got := Round(x, off)
		if got.Cmp(want) != 0 {
			t.Errorf("%s ± %s: %s, want %s", c.x, c.off, got.FloatString(8), c.want)
		}
		if away := new(big.Rat).Sub(got, x); away.Abs(away).Cmp(new(big.Rat).Quo(off, ten)) > 0 {
			t.Errorf("%s ± %s: %s is rounded away", c.x, c.off, away.FloatString(8))
		}
	}
}
