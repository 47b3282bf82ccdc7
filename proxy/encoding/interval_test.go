package encoding

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

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

// TestIntervalStyles: the forms are those of PostgreSQL 15.18.
func TestIntervalStyles(t *testing.T) {
	const hour, minute = 3600 * microsPerSecond, 60 * microsPerSecond
	at := func(hours, minutes int, seconds float64) int64 {
		return int64(hours)*hour + int64(minutes)*minute + int64(math.Round(seconds*microsPerSecond))
	}
	for _, c := range []struct {
		v    policy.Interval
		want string
	}{
		{policy.Interval{}, "00:00:00|@ 0|0|PT0S"},
		{policy.Interval{Months: 14}, "1 year 2 mons|@ 1 year 2 mons|1-2|P1Y2M"},
		{policy.Interval{Months: -1}, "-1 mons|@ 1 mon ago|-0-1|P-1M"},
		{policy.Interval{Days: 3, Micros: at(4, 5, 6.789)}, "3 days 04:05:06.789|@ 3 days 4 hours 5 mins 6.789 secs|3 4:05:06.789|P3DT4H5M6.789S"},
		{policy.Interval{Days: -3, Micros: -at(4, 5, 6)}, "-3 days -04:05:06|@ 3 days 4 hours 5 mins 6 secs ago|-3 4:05:06|P-3DT-4H-5M-6S"},
		{policy.Interval{Days: -3, Micros: at(4, 5, 6)}, "-3 days +04:05:06|@ 3 days -4 hours -5 mins -6 secs ago|+0-0 -3 +4:05:06|P-3DT4H5M6S"},
		{policy.Interval{Months: 1, Days: 3}, "1 mon 3 days|@ 1 mon 3 days|+0-1 +3 +0:00:00|P1M3D"},
		{policy.Interval{Months: 14, Days: -3, Micros: at(4, 5, 6.5)},
			"1 year 2 mons -3 days +04:05:06.5|@ 1 year 2 mons -3 days 4 hours 5 mins 6.5 secs|+1-2 -3 +4:05:06.5|P1Y2M-3DT4H5M6.5S"},
		{policy.Interval{Micros: -1}, "-00:00:00.000001|@ 0.000001 secs ago|-0:00:00.000001|PT-0.000001S"},
		{policy.Interval{Micros: at(0, 0, 1)}, "00:00:01|@ 1 sec|0:00:01|PT1S"},
		{policy.Interval{Micros: at(25, 0, 0)}, "25:00:00|@ 25 hours|25:00:00|PT25H"},
		{policy.Interval{Days: 2}, "2 days|@ 2 days|2 0:00:00|P2D"},
		{policy.Interval{Months: -14, Days: -3, Micros: -at(4, 5, 6.7)},
			"-1 years -2 mons -3 days -04:05:06.7|@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs ago|-1-2 -3 -4:05:06.7|P-1Y-2M-3DT-4H-5M-6.7S"},
		{policy.Interval{Micros: at(100000, 59, 59.999999)},
			"100000:59:59.999999|@ 100000 hours 59 mins 59.999999 secs|100000:59:59.999999|PT100000H59M59.999999S"},
	} {
		var forms []string
		for _, style := range IntervalStyles {
			out, err := (&Encoder{intervals: style}).text(nil, policy.IntervalT, c.v)
			if err != nil {
				t.Fatal(err)
			}
			forms = append(forms, string(out))
		}
		if got := strings.Join(forms, "|"); got != c.want {
			t.Errorf("%v:\ngot  %s\nwant %s", c.v, got, c.want)
		}
	}
	for _, v := range []policy.Interval{{Months: math.MinInt32, Days: math.MinInt32, Micros: math.MinInt64}, {Micros: math.MaxInt64}} {
		for _, style := range IntervalStyles {
			if len(appendInterval(nil, v, style)) == 0 {
				t.Error(style)
			}
		}
	}
}
