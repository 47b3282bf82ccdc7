package scalar

import (
	"math"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestIntervalStyles: the forms are those of PostgreSQL 15.18.
func TestIntervalStyles(t *testing.T) {
	const hour, minute = microsPerHour, microsPerMinute
	at := func(hours, minutes int, seconds float64) int64 {
		return int64(hours)*hour + int64(minutes)*minute + int64(math.Round(seconds*float64(microsPerSecond)))
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
			forms = append(forms, string(FormOf("ISO, MDY", style, 1).AppendInterval(nil, c.v)))
		}
		if got := strings.Join(forms, "|"); got != c.want {
			t.Errorf("%v:\ngot  %s\nwant %s", c.v, got, c.want)
		}
	}
	for _, v := range []policy.Interval{{Months: math.MinInt32, Days: math.MinInt32, Micros: math.MinInt64}, {Micros: math.MaxInt64}} {
		for _, style := range IntervalStyles {
			if len(FormOf("ISO, MDY", style, 1).AppendInterval(nil, v)) == 0 {
				t.Error(style)
			}
		}
	}
}

// TestFormsOfCasts: a cast to text and what is made of one are in the session's form, and a constant is read by its
// IntervalStyle; values are not touched.
func TestFormsOfCasts(t *testing.T) {
	for _, c := range []struct {
		style  string
		extra  int
		number string
		want   string
	}{{"postgres", 1, "0.3333333333333333", "-1 days +02:00:00"}, {"postgres", 3, "0.3333333333333333", "-1 days +02:00:00"}, {"iso_8601", 0, "0.333333333333333", "P-1DT2H"}, {"sql_standard", -12, "0.333", "-1 2:00:00"},
		{"postgres_verbose", -15, "0.3", "@ 1 day -2 hours ago"}} {
		env := Env{Form: FormOf("ISO, DMY", c.style, c.extra)}
		for _, of := range []struct {
			t    policy.Type
			v    policy.Value
			want string
		}{{policy.Float8, 1.0 / 3, c.number}, {policy.IntervalT, "-1 day 2:00", c.want}} {
			e, err := env.Cast(Constant(of.v, map[bool]policy.Type{true: policy.Unknown, false: of.t}[of.t == policy.IntervalT]), of.t, -1)
			if err == nil {
				e, err = env.Cast(e, policy.Text, -1)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Eval(nil); err != nil || got != of.want {
				t.Errorf("%+v: %v, %v; want %s", c, got, err, of.want)
			}
		}
		if f := FormOf("ISO, DMY", c.style, c.extra); f.Style() != c.style || f != FormOf(f.DateStyle(), f.Style(), f.Extra()) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// TestDateOrder: of what is written with numbers alone DateStyle says which is the day; ISO's forms and four digits of
// a year have one meaning.
func TestDateOrder(t *testing.T) {
	for text, want := range map[string]string{
		"01/02/2003": "2003-01-02 2003-02-01 -", "01-02-03": "2003-01-02 2003-02-01 2001-02-03", "13/02/2003": "- 2003-02-13 -", "2003-02-01": "2003-02-01 2003-02-01 2003-02-01",
		"20030201": "2003-02-01 2003-02-01 2003-02-01", "05-Mar-04": "2004-03-05 2004-03-05 2005-03-04", "05 Mar 2004": "2004-03-05 2004-03-05 2004-03-05", "Mar 5 2004": "2004-03-05 2004-03-05 2004-03-05",
	} {
		var got []string
		for _, order := range []string{"ISO, MDY", "ISO, DMY", "ISO, YMD"} {
			env := Env{Form: FormOf(order, "postgres", 1)}
			v, err := env.ParseText(policy.DateType, text)
			if err != nil {
				got = append(got, "-")
				continue
			}
			got = append(got, env.FormatText(policy.DateType, v))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
}
