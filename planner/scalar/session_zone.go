package scalar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// SessionZone reads the setting TimeZone as PostgreSQL does, and returns the name under which it is kept, which reads as the same zone wherever it is handed on: what
// ZoneNamed finds, or hours east of UTC, as a number or INTERVAL '…'. Offsets of parts of minutes are refused.
func SessionZone(value string) (zone *time.Location, name string, ok bool) {
	value = strings.TrimSpace(value)
	if inner, of := strings.CutPrefix(value, IntervalPrefix); of {
		inner = strings.TrimSuffix(inner, "'")
		if _, err := strconv.ParseFloat(inner, 64); err == nil {
			value = inner
		} else {
			p := posixText{rest: inner, ok: true}
			east := p.offset()
			if !p.ok || p.rest != "" {
				return nil, "", false
			}
			value = eastOf(east)
		}
	}
	if hours, err := strconv.ParseFloat(value, 64); err == nil {
		if !(math.Abs(hours) < 168) {
			return nil, "", false
		}
		value = eastOf(int(hours * 3600))
	}
	if zone, name, ok = ZoneNamed(value); !ok {
		return nil, "", false
	}
	if _, offset := time.Unix(946684800, 0).In(zone).Zone(); offset%60 != 0 { // at the beginning of 2000, as PostgreSQL
		return nil, "", false
	}
	return zone, name, true
}

// IntervalPrefix begins a zone that is an interval.
const IntervalPrefix = "INTERVAL '"

// eastOf names an offset east of UTC as PostgreSQL does: <+02>-02, the second part in POSIX's sign.
func eastOf(seconds int) string {
	if seconds < 0 {
		return "<-" + hoursOf(-seconds) + ">+" + hoursOf(-seconds)
	}
	return "<+" + hoursOf(seconds) + ">-" + hoursOf(seconds)
}

// hoursOf writes an offset without its sign: hours, and what they leave.
func hoursOf(seconds int) string {
	clock := fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	return strings.TrimSuffix(strings.TrimSuffix(clock, ":00"), ":00")
}
