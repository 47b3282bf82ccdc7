package scalar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// SessionZone reads the setting TimeZone as PostgreSQL does, and returns the name under which it is kept, which reads as the same zone wherever it is handed on: a name of the tz database
// in any case; hours east of UTC, as a number or INTERVAL '…'; or an offset in POSIX form, whose sign means west.
func SessionZone(value string) (zone *time.Location, name string, ok bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 64 {
		return nil, "", false
	}
	if inner, found := strings.CutPrefix(value, "<"); found { // <-03>+03: what it is called, and how far west it is
		_, west, found := strings.Cut(inner, ">")
		seconds, good := zoneOffset(west)
		return time.FixedZone(value, -seconds), value, found && good
	}
	if inner, found := strings.CutPrefix(value, IntervalPrefix); found {
		seconds, good := zoneOffset(strings.TrimSuffix(inner, "'"))
		return fixedEast(seconds, good)
	}
	if seconds, good := zoneOffset(value); good {
		if strings.Contains(value, ":") {
			return time.FixedZone(value, -seconds), value, true
		}
		return fixedEast(seconds, true)
	}
	for _, name := range []string{value, strings.ToUpper(value), titled(value)} {
		if strings.EqualFold(name, "local") {
			continue
		}
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, name, true
		}
	}
	return nil, "", false
}

// IntervalPrefix begins a zone that is an interval.
const IntervalPrefix = "INTERVAL '"

// fixedEast names an offset east of UTC as PostgreSQL does: <+02>-02, the second part in POSIX's sign.
func fixedEast(seconds int, ok bool) (*time.Location, string, bool) {
	east, west := byte('+'), byte('-')
	size := seconds
	if seconds < 0 {
		east, west, size = '-', '+', -seconds
	}
	digits := fmt.Appendf(nil, "%02d", size/3600)
	if size%3600 != 0 {
		digits = fmt.Appendf(digits, ":%02d", size%3600/60)
	}
	name := "<" + string(east) + string(digits) + ">" + string(west) + string(digits)
	return time.FixedZone(name, seconds), name, ok
}

// zoneOffset reads [+-]hours[:minutes[:00]] in seconds, or hours with a fraction.
func zoneOffset(value string) (seconds int, ok bool) {
	sign, digits := 1, strings.TrimPrefix(value, "+")
	if strings.HasPrefix(value, "-") {
		sign, digits = -1, value[1:]
	}
	hours, minutes, hasMinutes := strings.Cut(digits, ":")
	minutes = strings.TrimSuffix(minutes, ":00")
	h, err := strconv.ParseFloat(hours, 64)
	if err != nil || !(h >= 0 && h <= 15) || strings.Trim(hours, "0123456789.") != "" {
		return 0, false
	}
	seconds = int(math.Round(h * 3600))
	if hasMinutes {
		m, err := strconv.ParseUint(minutes, 10, 8)
		if err != nil || m > 59 {
			return 0, false
		}
		seconds += int(m) * 60
	}
	return sign * seconds, true
}

// titled writes each part of a zone's name with a capital: europe/berlin, america/new_york.
func titled(name string) string {
	b := []byte(strings.ToLower(name))
	for i := range b {
		if (i == 0 || b[i-1] == '/' || b[i-1] == '_' || b[i-1] == '-') && b[i] >= 'a' && b[i] <= 'z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}
