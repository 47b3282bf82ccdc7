package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones must not depend on what is installed
)

// parseZone reads a time zone as PostgreSQL does, and returns the name under which it is kept: a name of the tz database
// in any case; hours east of UTC, as a number or INTERVAL '…'; or an offset in POSIX form, whose sign means west.
func parseZone(value string) (zone *time.Location, name string, ok bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 64 {
		return nil, "", false
	}
	if inner, found := strings.CutPrefix(value, "<"); found { // <-03>+03: what it is called, and how far west it is
		_, west, found := strings.Cut(inner, ">")
		seconds, good := offset(west)
		return time.FixedZone(value, -seconds), value, found && good
	}
	if inner, found := strings.CutPrefix(value, intervalPrefix); found {
		seconds, good := offset(strings.TrimSuffix(inner, "'"))
		return fixedEast(seconds, good)
	}
	if seconds, good := offset(value); good {
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

const intervalPrefix = "INTERVAL '"

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

// offset reads [+-]hours[:minutes[:00]] in seconds, or hours with a fraction.
func offset(value string) (seconds int, ok bool) {
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
