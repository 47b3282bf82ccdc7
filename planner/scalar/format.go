package scalar

import (
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

func (r registry) formats() {
	t, ts, tz := policy.Text, policy.TimestampT, policy.TimestampTZ
	r.two("to_char", ts, t, on2(func(v policy.Timestamp, format string) (policy.Value, error) {
		return writeTemplate(format, clockFace{wall: v}.show)
	}))
	r.two("to_char", tz, t, func(env *Env, v, format policy.Value) (policy.Value, error) {
		wall, err := env.toLocal(v.(policy.Timestamptz))
		if err != nil {
			return nil, err
		}
		zone, offset := zoneAt(v.(policy.Timestamptz), env.zone())
		face := clockFace{wall: wall, zoned: true, offset: offset, zone: zone}
		return writeTemplate(format.(string), face.show)
	})
	r.two("to_char", policy.IntervalT, t, on2(func(v interval, format string) (policy.Value, error) {
		return writeTemplate(format, func(p piece) (string, error) { return showInterval(v, p) })
	}))
	for _, from := range []policy.Type{ts, tz, policy.IntervalT} {
		r.stable("to_char", from, t)
	}
	r.readers()
	r.numberFormats()
}

// clockFace is what a template shows.
type clockFace struct {
	wall   policy.Timestamp
	zoned  bool
	offset int // seconds east of UTC
	zone   string
}

// writeTemplate writes a template's text, and each of its fields as show does.
func writeTemplate(format string, show func(piece) (string, error)) (policy.Value, error) {
	if format == "" {
		return nil, nil
	}
	pieces, err := template(format)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.field == "" {
			b.WriteString(p.literal)
			continue
		}
		text, err := show(p)
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// show writes one field.
func (f clockFace) show(p piece) (string, error) {
	days, ofDay := split(int64(f.wall))
	c := civilOf(days)
	if name, padded, ok := nameField(p.field, c, days); ok {
		if padded && !p.fill {
			name = fmt.Sprintf("%-9s", name)
		}
		return name, nil
	}
	if text, ok := wordField(p.field, c, ofDay); ok {
		return text, nil
	}
	number, width, ok := numberField(strings.ToUpper(p.field), c, days, ofDay)
	if !ok {
		if text, ok := f.offsetField(p); ok && p.ordinal == "" {
			return text, nil
		}
		return "", unsupported("this template")
	}
	text := ""
	if p.fill && !fractional(p.field) {
		width = 0
	}
	if strings.EqualFold(p.field, "Y,YYY") {
		text = fmt.Sprintf("%d,%03d", number/1000, number%1000)
	} else {
		text = fmt.Sprintf("%0*d", width, number)
	}
	return text + ordinal(text, p.ordinal), nil
}

// fractional reports whether a field is a fraction of a second, which keeps its zeros.
func fractional(field string) bool {
	field = strings.ToUpper(field)
	return field == "MS" || field == "US" || strings.HasPrefix(field, "FF")
}

// nameField is a name of a month or day in the case of the template; the long ones are padded.
func nameField(field string, c civil, days int64) (name string, padded, ok bool) {
	switch strings.ToUpper(field) {
	case "MONTH":
		name, padded = monthNames[c.month-1], true
	case "MON":
		name = monthNames[c.month-1][:3]
	case "DAY":
		name, padded = dayNames[weekday(days)], true
	case "DY":
		name = dayNames[weekday(days)][:3]
	default:
		return "", false, false
	}
	switch {
	case field == strings.ToUpper(field):
		name = strings.ToUpper(name)
	case field != strings.ToLower(field):
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return name, padded, true
}

// wordField is the half of the day or the era.
func wordField(field string, c civil, ofDay int64) (string, bool) {
	half, era := "AM", "AD"
	if ofDay >= 12*microsPerHour {
		half = "PM"
	}
	if c.year <= 0 {
		era = "BC"
	}
	text := ""
	switch strings.ToUpper(field) {
	case "AM", "PM":
		text = half
	case "A.M.", "P.M.":
		text = half[:1] + "." + half[1:] + "."
	case "AD", "BC":
		text = era
	case "A.D.", "B.C.":
		text = era[:1] + "." + era[1:] + "."
	default:
		return "", false
	}
	if field == strings.ToLower(field) {
		text = strings.ToLower(text)
	}
	return text, true
}

// numberField is a number and the width that it is padded to.
func numberField(field string, c civil, days, ofDay int64) (n int64, width int, ok bool) {
	fraction := ofDay % microsPerSecond
	hour := ofDay / microsPerHour
	year := c.year
	if year <= 0 {
		year = 1 - year
	}
	isoYear, week := isoWeek(days)
	if isoYear <= 0 {
		isoYear = 1 - isoYear
	}
	switch field {
	case "HH24":
		return hour, 2, true
	case "HH12", "HH":
		return (hour+11)%12 + 1, 2, true
	case "MI":
		return ofDay / microsPerMinute % 60, 2, true
	case "SS":
		return ofDay / microsPerSecond % 60, 2, true
	case "SSSS", "SSSSS":
		return ofDay / microsPerSecond, 0, true
	case "MS", "FF3":
		return fraction / 1000, 3, true
	case "US", "FF6":
		return fraction, 6, true
	case "FF1":
		return fraction / 100000, 1, true
	case "FF2":
		return fraction / 10000, 2, true
	case "FF4":
		return fraction / 100, 4, true
	case "FF5":
		return fraction / 10, 5, true
	case "YYYY", "Y,YYY":
		return int64(year), 4, true
	case "IYYY":
		return int64(isoYear), 4, true
	case "YYY":
		return int64(year % 1000), 3, true
	case "IYY":
		return int64(isoYear % 1000), 3, true
	case "YY":
		return int64(year % 100), 2, true
	case "IY":
		return int64(isoYear % 100), 2, true
	case "Y":
		return int64(year % 10), 1, true
	case "I":
		return int64(isoYear % 10), 1, true
	case "IW":
		return int64(week), 2, true
	case "IDDD":
		return int64(week-1)*7 + int64((weekday(days)+6)%7) + 1, 3, true
	}
	return calendarNumber(field, c, days)
}

func calendarNumber(field string, c civil, days int64) (n int64, width int, ok bool) {
	ofYear := days - daysOf(civil{c.year, 1, 1}) + 1
	switch field {
	case "MM":
		return int64(c.month), 2, true
	case "DD":
		return int64(c.day), 2, true
	case "DDD":
		return ofYear, 3, true
	case "D":
		return int64(weekday(days)) + 1, 0, true
	case "ID":
		return int64((weekday(days)+6)%7) + 1, 0, true
	case "WW":
		return (ofYear-1)/7 + 1, 2, true
	case "W":
		return int64(c.day-1)/7 + 1, 0, true
	case "Q":
		return int64(c.month-1)/3 + 1, 0, true
	case "J":
		return days + julianOf1970, 0, true
	case "CC":
		if c.year > 0 {
			return int64(c.year-1)/100 + 1, 2, true
		}
	}
	return 0, 0, false
}

// offsetField is a part of the zone's distance from UTC.
func (f clockFace) offsetField(p piece) (string, bool) {
	if !f.zoned {
		return "", false
	}
	sign, distance := "+", f.offset
	if distance < 0 {
		sign, distance = "-", -distance
	}
	switch strings.ToUpper(p.field) {
	case "TZ":
		if strings.Trim(f.zone, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return "", false // a zone without a name of its own
		}
		if p.field == "tz" {
			return strings.ToLower(f.zone), true
		}
		return f.zone, true
	case "TZH":
		return fmt.Sprintf("%s%02d", sign, distance/3600), true
	case "TZM":
		return fmt.Sprintf("%02d", distance/60%60), true
	case "OF":
		width := 2
		if p.fill {
			width = 0
		}
		text := fmt.Sprintf("%s%0*d", sign, width, distance/3600)
		if minutes := distance / 60 % 60; minutes != 0 {
			text += fmt.Sprintf(":%02d", minutes)
		}
		return text, true
	}
	return "", false
}

// ordinal is the English suffix of a number.
func ordinal(number, form string) string {
	if form == "" {
		return ""
	}
	suffix := "th"
	if len(number) < 2 || number[len(number)-2] != '1' {
		switch number[len(number)-1] {
		case '1':
			suffix = "st"
		case '2':
			suffix = "nd"
		case '3':
			suffix = "rd"
		}
	}
	if form == "TH" {
		return strings.ToUpper(suffix)
	}
	return suffix
}

// showInterval writes one field of an interval, or of a time: hours, the half of the day, minutes, seconds and days;
// others are refused.
func showInterval(v interval, p piece) (string, error) {
	var n int64
	width := 2
	switch strings.ToUpper(p.field) {
	case "AM", "PM", "A.M.", "P.M.":
		half, _ := wordField(p.field, civil{}, v.Micros%microsPerDay)
		if v.Micros < 0 {
			return "", unsupported("this template")
		}
		return half, nil
	case "HH12", "HH":
		if n = v.Micros / microsPerHour; n >= 0 {
			n = (n+11)%12 + 1
		}
	case "HH24":
		n = v.Micros / microsPerHour
	case "MI":
		n = v.Micros / microsPerMinute % 60
	case "SS":
		n = v.Micros / microsPerSecond % 60
	case "MS":
		n, width = v.Micros%microsPerSecond/1000, 3
	case "US":
		n, width = v.Micros%microsPerSecond, 6
	case "DD":
		n = int64(v.Days)
	default:
		return "", unsupported("this template")
	}
	if n < 0 || p.ordinal != "" {
		return "", unsupported("this template")
	}
	if p.fill && !fractional(p.field) {
		width = 0
	}
	return fmt.Sprintf("%0*d", width, n), nil
}
