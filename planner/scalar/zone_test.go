package scalar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// drawnZone is a zone in POSIX's form: mostly one that PostgreSQL takes.
func drawnZone(rng *rand.Rand) string {
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	offset := func() string {
		text := pick("", "", "+", "-") + fmt.Sprint(rng.IntN(13+155*(rng.IntN(30)/29)))
		if rng.IntN(3) == 0 {
			text += fmt.Sprintf(":%02d", rng.IntN(61))
		}
		if rng.IntN(12) == 0 {
			text += pick(":00", ":30", ":60", ":", "x", ":7")
		}
		return text
	}
	rule := func() string {
		text := fmt.Sprintf("M%d.%d.%d", 1+rng.IntN(12), 1+rng.IntN(5), rng.IntN(7))
		switch rng.IntN(20) {
		case 0, 1:
			text = fmt.Sprintf("J%d", 1+rng.IntN(365))
		case 2, 3:
			text = fmt.Sprint(rng.IntN(366))
		case 4:
			text = pick("M13.1.0", "M1.6.0", "M1.1.7", "J0", "J366", "366", "", "M2.5.1", "J59", "J60", "0", "365")
		}
		if rng.IntN(3) == 0 {
			text += "/" + offset()
		}
		return text
	}
	name := pick("GMT", "UTC", "EST", "abc", "<+03>", "<-0330>", "<x y>", "X", "Etc/GMT", "No where") + offset()
	if rng.IntN(8) == 0 {
		name = offset()
	}
	if rng.IntN(2) == 0 {
		name += pick("EDT", "EDT", "<-02>", "S") + pick("", "", offset()) + pick("", ","+rule()+","+rule(), ","+rule()+","+rule(), ","+rule())
	}
	return name
}

// TestZonesAgainstServer compares both directions of AT TIME ZONE on random instants, half of them within hours of a
// change of the zone's offset, of named zones and of drawn ones; and what the setting TimeZone becomes.
func TestZonesAgainstServer(t *testing.T) {
	s := newServer(t)
	const seed, drawn, tried = 17, 80, 400
	t.Logf("seed %d: %d zones drawn for times, %d names for the setting", seed, drawn, tried)
	rng := rand.New(rand.NewPCG(seed, 0))
	utc := Env{Zone: time.UTC}
	names := []string{"Europe/Paris", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Tokyo",
		"Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Europe/London", "Etc/GMT+5", "Asia/Kathmandu", "UTC", "europe/berlin",
		"GMT-3", "UTC+3", "EST5EDT,M3.2.0,M11.1.0", "EST5EDT", "CET", "est", "MET", "<+0330>-3:30", "FOO3BAR", "EST5EDT,0/0,J365/24", "NZST-12NZDT,M9.5.0,M4.1.0/3", "XYZ-1ABC-2:30,J60/26,300/-3"}
	names = append(names, s.column(t, "SELECT name FROM pg_timezone_names WHERE name !~ '/'")...)
	for len(names) < 64+drawn {
		name := drawnZone(rng)
		if _, err := zoneNamed(name); err == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		zone, err := zoneNamed(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var instants []int64
		var texts []string
		for range 300 {
			at := time.Unix(rng.Int64N(6e9)-3786912000, 0).In(zone) // 1850 to 2040
			if strings.Contains(name, ",") && rng.IntN(4) == 0 {
				at = time.Unix(rng.Int64N(7e10)-6.2e10, 0).In(zone) // 6 to 2223
			}
			if start, _ := at.ZoneBounds(); !start.IsZero() && rng.IntN(2) == 0 {
				at = start.Add(time.Duration(rng.IntN(20000)-10000) * time.Second)
				if rng.IntN(4) == 0 {
					at = start
				}
			}
			instants = append(instants, at.UnixMicro())
			texts = append(texts, "('"+utc.FormatText(policy.TimestampT, policy.Timestamp(at.UnixMicro()))+"'::timestamp)")
		}
		from := " FROM (VALUES " + strings.Join(texts, ", ") + ") AS x (v)"
		walls := s.column(t, fmt.Sprintf("SELECT (v AT TIME ZONE 'UTC' AT TIME ZONE '%s')::text", name)+from)
		back := s.column(t, fmt.Sprintf("SELECT (v AT TIME ZONE '%s' AT TIME ZONE 'UTC')::text", name)+from)
		for i, at := range instants {
			wall, err := local(policy.Timestamptz(at), zone)
			if got := utc.FormatText(policy.TimestampT, wall); err != nil || got != walls[i] {
				t.Errorf("%s at %s UTC: got %s, want %s", name, texts[i], got, walls[i])
			}
			there, err := zoned(policy.Timestamp(at), zone)
			if got := utc.FormatText(policy.TimestampT, policy.Timestamp(there)); err != nil || got != back[i] {
				t.Errorf("%s of %s: got %s, want %s", name, texts[i], got, back[i])
			}
		}
	}

	given := []string{"GMT-3", "gmt-3", "UTC+3", "est5edt,m3.2.0,m11.1.0", "3:30", "-3:30", "100", "168", "GMT-3:00:30", "1e1", "A>B3", "PST", "EST", "1.5", "1.00001", "-0.5",
		"GMT-3:60", "europe/berlin", "GMT", "", "Nowhere/Else", "<+03", "nan", "X-168", "0", "-0"}
	for len(given) < tried {
		given = append(given, drawnZone(rng))
	}
	for _, value := range given {
		_, name, ok := SessionZone(value)
		results, err := s.conn.Exec(t.Context(), "SET TimeZone = '"+value+"'; SHOW TimeZone").ReadAll()
		want := ""
		if err == nil {
			want = string(results[1].Rows[0][0])
		}
		if ok != (err == nil) || ok && name != want {
			t.Errorf("TimeZone %q is %q, %v; PostgreSQL: %q, %v", value, name, ok, want, err)
		}
	}
}

// TestTurns: the changes of a zone's clock come to an end, whatever years are asked for, and none is left out.
func TestTurns(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "EST5EDT,M3.2.0,M11.1.0", "XYZ-1ABC-2:30,J1/0,300/-3"} {
		zone, _, ok := ZoneNamed(name)
		if !ok {
			t.Fatal(name)
		}
		from, to := time.Date(2029, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2061, 1, 1, 0, 0, 0, 0, time.UTC)
		var got, want []int64
		Turns(zone, from, to, func(at time.Time, before, after int) { got = append(got, at.Unix()) })
		_, last := from.In(zone).Zone()
		for at := from; !at.After(to); at = at.Add(15 * time.Minute) {
			if _, offset := at.In(zone).Zone(); offset != last {
				want, last = append(want, at.Unix()), offset
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d changes, want %d", name, len(got), len(want))
		}
	}
}
