package scalar

import (
	"encoding/binary"
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

// The years of which a zone's changes are written out: from PostgreSQL's first on. After the last of them time.Location
// reads the rule itself; of times before 1970, and of rules that cross a year's end, it reads it wrongly.
const firstRuledYear, lastRuledYear = -4713, 2400

// posixZone makes a zone of POSIX's form, as PostgreSQL's tzparse reads it: a name that may be empty, how far west of
// UTC it is and, where it has a summer, that one's name, its offset if it is not an hour less, and the rules by which
// it begins and ends, those of the United States where none are written: GMT-3, <+0330>-3:30, EST5EDT,M3.2.0,M11.1.0.
// It is nil if text is none, and if a year's last change is not before the next one's first.
func posixZone(text string) *time.Location {
	p := posixText{rest: text, ok: true}
	std := p.name()
	west := p.offset()
	if p.rest == "" {
		if !p.ok {
			return nil
		}
		return zoneOfRules(text, []zoneType{{std, -west, false}}, nil, "")
	}
	dst := p.name()
	summer := west - 3600
	if p.rest != "" && p.rest[0] != ',' {
		summer = p.offset()
	}
	if p.rest == "" {
		p.rest = ",M3.2.0,M11.1.0"
	}
	rules := p.rest
	p.sign(',')
	begin := p.rule()
	p.sign(',')
	end := p.rule()
	if !p.ok || dst == "" || p.rest != "" {
		return nil
	}
	types := []zoneType{{std, -west, false}, {dst, -summer, true}}
	var turns []zoneTurn
	for year := firstRuledYear; year <= lastRuledYear; year++ {
		first, second := zoneTurn{begin.in(year) + int64(west), 1}, zoneTurn{end.in(year) + int64(summer), 0}
		whole := yearBegins(year+1) - yearBegins(year) + int64(west-summer)
		if second.at < first.at {
			first, second = second, first
		} else if first.at == second.at || second.at-first.at >= whole { // summer all year, or none of it
			continue
		}
		if n := len(turns); n > 0 && turns[n-1].at >= first.at {
			return nil // PostgreSQL reads such a list by its order, not by its times
		}
		turns = append(turns, first, second)
	}
	if turns == nil {
		return zoneOfRules(text, types[1:], nil, "")
	}
	return zoneOfRules(text, types, turns, "<"+std+">"+westOf(west)+"<"+dst+">"+westOf(summer)+rules)
}

// westOf writes an offset west of UTC.
func westOf(seconds int) string {
	if seconds < 0 {
		return "-" + hoursOf(-seconds)
	}
	return hoursOf(seconds)
}

// posixText is what is left to read of a zone in POSIX's form, and whether all before it was well-formed.
type posixText struct {
	rest string
	ok   bool
}

// sign reads one byte.
func (p *posixText) sign(c byte) {
	if p.rest == "" || p.rest[0] != c {
		p.ok, p.rest = false, ""
		return
	}
	p.rest = p.rest[1:]
}

// name reads all up to a digit, a comma or a sign, or what is in angle brackets.
func (p *posixText) name() (name string) {
	n := 0
	if p.rest != "" && p.rest[0] == '<' {
		p.sign('<')
		for n < len(p.rest) && p.rest[n] != '>' {
			n++
		}
		name, p.rest = p.rest[:n], p.rest[n:]
		p.sign('>')
		return name
	}
	for n < len(p.rest) && (p.rest[n] < '0' || p.rest[n] > '9') && p.rest[n] != ',' && p.rest[n] != '-' && p.rest[n] != '+' {
		n++
	}
	name, p.rest = p.rest[:n], p.rest[n:]
	return name
}

// number reads decimal digits.
func (p *posixText) number(least, most int) int {
	n := span(p.rest, "0123456789")
	v, err := strconv.Atoi(p.rest[:n])
	if err != nil || v < least || v > most {
		p.ok, p.rest = false, ""
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

// offset reads [+-]hours[:minutes[:seconds]] in seconds.
func (p *posixText) offset() int {
	sign := 1
	if p.rest != "" && (p.rest[0] == '-' || p.rest[0] == '+') {
		if p.rest[0] == '-' {
			sign = -1
		}
		p.rest = p.rest[1:]
	}
	seconds := 3600 * p.number(0, 167)
	if p.rest != "" && p.rest[0] == ':' {
		p.sign(':')
		seconds += 60 * p.number(0, 59)
		if p.rest != "" && p.rest[0] == ':' {
			p.sign(':')
			seconds += p.number(0, 60)
		}
	}
	return sign * seconds
}

// zoneRule is a moment of each year, of a clock that the rule itself does not know.
type zoneRule struct {
	kind             byte // 'J': a day of a year without 29 February; 'M': a weekday of a week of a month; 0 means a day of the year
	day, week, month int
	seconds          int // of that day
}

func (p *posixText) rule() (r zoneRule) {
	r.seconds = 2 * 3600
	switch {
	case p.rest != "" && p.rest[0] == 'J':
		p.sign('J')
		r.kind, r.day = 'J', p.number(1, 365)
	case p.rest != "" && p.rest[0] == 'M':
		p.sign('M')
		r.kind, r.month = 'M', p.number(1, 12)
		p.sign('.')
		r.week = p.number(1, 5)
		p.sign('.')
		r.day = p.number(0, 6)
	default:
		r.day = p.number(0, 365)
	}
	if p.rest != "" && p.rest[0] == '/' {
		p.sign('/')
		r.seconds = p.offset()
	}
	return r
}

// in is the rule's moment in a year, as if its clock were UTC's.
func (r zoneRule) in(year int) int64 {
	day := yearBegins(year) + int64(r.seconds)
	switch r.kind {
	case 'J':
		day += int64(r.day-1) * 86400
		if r.day >= 60 && yearBegins(year+1)-yearBegins(year) > 365*86400 {
			day += 86400
		}
		return day
	case 'M':
		month := time.Date(year, time.Month(r.month), 1, 0, 0, 0, 0, time.UTC)
		n := (r.day-int(month.Weekday())+7)%7 + 7*(r.week-1)
		for month.AddDate(0, 0, n).Month() != month.Month() {
			n -= 7
		}
		return month.Unix() + int64(n)*86400 + int64(r.seconds)
	}
	return day + int64(r.day)*86400
}

func yearBegins(year int) int64 { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix() }

// zoneType is an offset with its abbreviation, zoneTurn the moment from which one of a list of them holds. Before all
// turns the first one does.
type zoneType struct {
	name   string
	east   int
	summer bool
}

type zoneTurn struct {
	at   int64
	kind byte
}

// zoneOfRules makes a time.Location, by the tz database's file format (RFC 8536, version 2), which is the only way to
// make one that changes.
func zoneOfRules(name string, types []zoneType, turns []zoneTurn, footer string) *time.Location {
	header := append([]byte("TZif2"), make([]byte, 15)...)
	file := append(append([]byte{}, header...), make([]byte, 6*4)...) // there is nothing of version 1
	file = append(file, header...)
	var names []byte
	var described []byte
	for _, t := range types {
		described = binary.BigEndian.AppendUint32(described, uint32(int32(t.east)))
		summer := byte(0)
		if t.summer {
			summer = 1
		}
		described = append(described, summer, byte(len(names)))
		names = append(append(names, t.name...), 0)
	}
	for _, n := range []int{0, 0, 0, len(turns), len(types), len(names)} {
		file = binary.BigEndian.AppendUint32(file, uint32(n))
	}
	for _, t := range turns {
		file = binary.BigEndian.AppendUint64(file, uint64(t.at))
	}
	for _, t := range turns {
		file = append(file, t.kind)
	}
	file = append(append(file, described...), names...)
	file = append(append(append(file, '\n'), footer...), '\n')
	zone, err := time.LoadLocationFromTZData(name, file)
	if err != nil {
		return nil
	}
	return zone
}
