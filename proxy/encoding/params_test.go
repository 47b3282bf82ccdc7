package encoding

import (
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// TestWordsOfTime: a parameter that is a word names the moment at which it comes, on the client's clock; `at < $1` with
// now counted what was before the year 1.
func TestWordsOfTime(t *testing.T) {
	kolkata := time.FixedZone("", 5*3600+1800)
	now := time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC) // half past one of the 27th there
	day := func(d int) policy.Date {
		return policy.Date(time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	for _, c := range []struct {
		t    policy.Type
		text string
		zone *time.Location
		want policy.Value
	}{
		{policy.DateType, "today", time.UTC, day(26)},
		{policy.DateType, "now", kolkata, day(27)},
		{policy.DateType, "tomorrow", kolkata, day(28)},
		{policy.TimestampTZ, "now", kolkata, policy.Timestamptz(now.UnixMicro())},
		{policy.TimestampT, "now", time.UTC, policy.Timestamp(now.UnixMicro())},
		{policy.TimestampTZ, "epoch", kolkata, policy.Timestamptz(0)},
	} {
		if v, f := Parameter(0, c.t, 0, []byte(c.text), Style{Zone: c.zone}, now); f != nil || v != c.want {
			t.Errorf("%s as %s is %v, %v, not %v", c.text, c.t.Name(), v, f, c.want)
		}
	}
}

// TestDatesInTheSessionsOrder: a date parameter is read by DateStyle, an interval by IntervalStyle.
func TestDatesInTheSessionsOrder(t *testing.T) {
	may := policy.Date(time.Date(2024, 5, 3, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	for order, text := range map[string]string{"ISO, DMY": "03/05/2024", "ISO, MDY": "05/03/2024", "ISO, YMD": "24/05/03"} {
		if v, f := Parameter(0, policy.DateType, 0, []byte(text), Style{Zone: time.UTC, Form: scalar.FormOf(order, "postgres", 1)}, time.Time{}); f != nil || v != may {
			t.Errorf("%s: %v, %v", order, v, f)
		}
	}
	style := Style{Zone: time.UTC, Form: scalar.FormOf("ISO, MDY", "sql_standard", 1)}
	if v, f := Parameter(0, policy.IntervalT, 0, []byte("-1 02:00"), style, time.Time{}); f != nil || v != (policy.Interval{Days: -1, Micros: -7200e6}) {
		t.Errorf("%v, %v", v, f)
	}
}

// TestTimes: a time is a clock's text or microseconds since midnight, to the day's end.
func TestTimes(t *testing.T) {
	style := Style{Zone: time.UTC}
	for _, c := range []struct {
		code int16
		raw  string
		want policy.Value
	}{
		{0, "09:30", policy.Time(34_200_000_000)}, {0, " 9:30 pm", policy.Time(77_400_000_000)}, {0, "24:00:00", policy.Time(86_400_000_000)}, {0, "24:00:01", nil}, {0, "", nil},
		{1, "\x00\x00\x00\x14\x1d\xd7\x60\x00", policy.Time(86_400_000_000)}, {1, "\x00\x00\x00\x14\x1d\xd7\x60\x01", nil}, {1, "\xff\xff\xff\xff\xff\xff\xff\xff", nil}, {1, "\x00", nil},
	} {
		v, failure := Parameter(0, policy.TimeT, c.code, []byte(c.raw), style, time.Time{})
		if (failure != nil) != (c.want == nil) || failure == nil && v != c.want {
			t.Errorf("%q in format %d: %v, %v", c.raw, c.code, v, failure)
		}
	}
}

// TestNumericsThatAreNoNumbers: NaN and the infinities are their texts, in either format, as PostgreSQL writes them; a
// list has none.
func TestNumericsThatAreNoNumbers(t *testing.T) {
	for _, c := range []struct {
		code int16
		raw  string
		want policy.Value
	}{
		{0, " nan ", "NaN"}, {0, "+INF", "Infinity"}, {0, "-infinity", "-Infinity"},
		{1, "\x00\x00\x00\x00\xc0\x00\x00\x00", "NaN"}, {1, "\x00\x00\x00\x00\xd0\x00\x00\x20", "Infinity"}, {1, "\x00\x00\x00\x00\xf0\x00\x00\x00", "-Infinity"},
		{0, "nano", nil}, {1, "\x00\x01\x00\x00\xc0\x00\x00\x00\x00\x01", nil}, {1, "\x00\x00\x00\x00\xe0\x00\x00\x00", nil},
	} {
		if v, f := Parameter(0, policy.NumericType, c.code, []byte(c.raw), Style{Zone: time.UTC}, time.Time{}); v != c.want || (f == nil) != (c.want != nil) {
			t.Errorf("%q is %v, %v, not %v", c.raw, v, f, c.want)
		}
	}
	const list policy.Type = 1231
	for code, raw := range []string{"{1,NaN}", "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06\xa4\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\xc0\x00\x00\x00"} {
		if v, f := Parameter(0, list, int16(code), []byte(raw), Style{Zone: time.UTC}, time.Time{}); f == nil || f.SQLState != "DP002" {
			t.Errorf("a list with NaN is %v, %v", v, f)
		}
	}
}
