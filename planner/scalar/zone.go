package scalar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // where the machine has no tz database
)

// zones keeps what ZoneNamed found, by name: a few, since a zone of rules is a third of a megabyte.
var zones = struct {
	sync.Mutex
	known map[string]namedZone
}{known: map[string]namedZone{}}

const keptZones = 64

type namedZone struct {
	zone *time.Location // nil if there is none of that name
	name string
}

// ZoneNamed finds a time zone as PostgreSQL's pg_tzset does: by a name of the tz database, in any case, or in POSIX's
// form. It returns the name under which PostgreSQL keeps it, which is the zone's own.
func ZoneNamed(text string) (zone *time.Location, name string, ok bool) {
	if text == "" || len(text) > 255 {
		return nil, "", false
	}
	zones.Lock()
	defer zones.Unlock()
	found, known := zones.known[text]
	if !known {
		found = findZone(text)
		if len(zones.known) >= keptZones {
			clear(zones.known)
		}
		zones.known[text] = found
	}
	return found.zone, found.name, found.zone != nil
}

func findZone(text string) namedZone {
	for _, name := range []string{text, asciiUpper(text), titled(text)} {
		if strings.EqualFold(name, "local") { // Go's name of the machine's own
			continue
		}
		if zone, err := time.LoadLocation(name); err == nil {
			return namedZone{zone, name}
		}
	}
	name := asciiUpper(text)
	return namedZone{posixZone(name), name}
}

// standing are the abbreviations, which AT TIME ZONE prefers and SET does not read, of the tz database's names, in
// hours east: the zones of some of these names have a summer.
var standing = map[string]int{"CET": 1, "EET": 2, "EST": -5, "GMT": 0, "HST": -10, "MET": 1, "MST": -7, "UCT": 0, "UTC": 0, "WET": 0, "Z": 0, "ZULU": 0}

// ZoneAt finds the zone of AT TIME ZONE. Abbreviations that are no names of the tz database are unknown here.
func ZoneAt(name string) (zone *time.Location, ok bool) {
	if hours, of := standing[asciiUpper(name)]; of {
		if hours == 0 {
			return time.UTC, true
		}
		return time.FixedZone(name, hours*3600), true
	}
	zone, _, ok = ZoneNamed(name)
	return zone, ok
}

func zoneNamed(name string) (*time.Location, error) {
	zone, ok := ZoneAt(name)
	if !ok {
		return nil, unsupported("this time zone")
	}
	return zone, nil
}

// Turns calls each with the instants after from, up to and including to, at which a zone's offset changes, in order,
// with the offsets in seconds before and after.
func Turns(zone *time.Location, from, to time.Time, each func(at time.Time, before, after int)) {
	at := from.In(zone)
	for _, before := at.Zone(); ; {
		_, next := at.ZoneBounds()
		if next.IsZero() || next.After(to) {
			return
		}
		if !next.After(at) { // the bounds that time.Location makes of a rule end each year after 365 days
			next = at.AddDate(0, 0, 1)
		}
		at = next.In(zone)
		_, after := at.Zone()
		if after != before {
			each(at, before, after)
		}
		before = after
	}
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

// asciiUpper and asciiLower change ASCII letters only.
func asciiUpper(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 32
		}
		return r
	}, s)
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 32
		}
		return r
	}, s)
}

// SessionZone reads the setting TimeZone as PostgreSQL does, and returns the name under which it is kept, which reads
// as the same zone wherever it is handed on: what ZoneNamed finds, or hours east of UTC, as a number or INTERVAL '…'.
// Offsets of parts of minutes are refused.
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
