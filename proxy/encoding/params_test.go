package encoding

import (
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// TestWordsOfTime: a parameter that is a word names the moment at which it comes, on the client's clock; `at < $1` with now counted what was before the year 1.
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
		if v, f := Parameter(0, c.t, 0, []byte(c.text), nil, c.zone, now); f != nil || v != c.want {
			t.Errorf("%s as %s is %v, %v, not %v", c.text, c.t.Name(), v, f, c.want)
		}
	}
}
