package scalar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// TestZonesAgainstServer compares both directions of AT TIME ZONE on random instants, half of them within hours of a
// change of the zone's offset.
func TestZonesAgainstServer(t *testing.T) {
	s := newServer(t)
	const seed = 17
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	utc := Env{Zone: time.UTC}
	for _, name := range []string{"Europe/Paris", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Tokyo",
		"Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Europe/London", "Etc/GMT+5", "Asia/Kathmandu", "UTC"} {
		zone, err := zoneNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		var instants []int64
		var texts []string
		for range 600 {
			at := time.Unix(rng.Int64N(6e9)-3786912000, 0).In(zone) // 1850 to 2040
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
		zones := s.column(t, fmt.Sprintf("SELECT (v AT TIME ZONE '%s' AT TIME ZONE 'UTC')::text", name)+from)
		for i, at := range instants {
			wall, err := local(policy.Timestamptz(at), zone)
			if got := utc.FormatText(policy.TimestampT, wall); err != nil || got != walls[i] {
				t.Errorf("%s at %s UTC: got %s, want %s", name, texts[i], got, walls[i])
			}
			back, err := zoned(policy.Timestamp(at), zone)
			if got := utc.FormatText(policy.TimestampT, policy.Timestamp(back)); err != nil || got != zones[i] {
				t.Errorf("%s of %s: got %s, want %s", name, texts[i], got, zones[i])
			}
		}
	}
}
