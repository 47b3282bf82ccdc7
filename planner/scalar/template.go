package scalar

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/policy"
)

// piece is one part of a to_char or to_date template: a literal text, or a field with its modifiers.
type piece struct {
	literal string
	field   string // as in the template: "YYYY", "Mon"
	fill    bool   // FM: without padding
	ordinal string // "TH" or "th" after it
}

// templateFields are the fields in the order in which PostgreSQL tries them; each is also there in lower case.
var templateFields = strings.Fields("A.D. A.M. AD AM B.C. BC CC DAY DDD DD DY Day Dy D FF1 FF2 FF3 FF4 FF5 FF6 FX HH24 " +
	"HH12 HH IDDD ID IW IYYY IYY IY I J MI MM MONTH MON MS Month Mon OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W " +
	"Y,YYY YYYY YYY YY Y")

// splitTemplate is what template has made of a format.
type splitTemplate struct {
	format string
	pieces []piece
	err    error
}

// lastTemplate is the format that was split last: each cell of a column is written by the same one.
var lastTemplate atomic.Pointer[splitTemplate]

// template splits a format, whose pieces are not to be changed. Prefixes that translate or spell are refused.
func template(format string) ([]piece, error) {
	last := lastTemplate.Load()
	if last == nil || last.format != format {
		all, err := pieces(format)
		last = &splitTemplate{strings.Clone(format), all, err}
		lastTemplate.Store(last)
	}
	return last.pieces, last.err
}

// pieces splits a format.
func pieces(format string) ([]piece, error) {
	var out []piece
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, piece{literal: text.String()})
			text.Reset()
		}
	}
	for format != "" {
		rest, fill := strings.CutPrefix(format, "FM")
		if !fill {
			rest, fill = strings.CutPrefix(format, "fm")
		}
		if field := leading(fieldsByLetter, rest); field != "" {
			flush()
			p := piece{field: field, fill: fill}
			rest = rest[len(field):]
			for _, suffix := range []string{"TH", "th"} {
				if after, ok := strings.CutPrefix(rest, suffix); ok {
					p.ordinal, rest = suffix, after
					break
				}
			}
			out = append(out, p)
			format = rest
			continue
		}
		if fill || refusedPrefix(format) {
			return nil, unsupported("this template")
		}
		format = literal(format, &text)
	}
	flush()
	return out, nil
}

// fieldsByLetter are the fields as leading finds them.
var fieldsByLetter = byLetter(templateFields)

// byLetter are words by their first letter, in order; each is also there in lower case.
func byLetter(words []string) map[byte][]string {
	table := map[byte][]string{}
	for _, word := range words {
		table[word[0]] = append(table[word[0]], word)
		if small := strings.ToLower(word); small != word {
			table[small[0]] = append(table[small[0]], small)
		}
	}
	return table
}

// leading is the first of some words that a text begins with; "" means it begins with none.
func leading(words map[byte][]string, s string) string {
	if s == "" {
		return ""
	}
	i := slices.IndexFunc(words[s[0]], func(word string) bool { return strings.HasPrefix(s, word) })
	if i < 0 {
		return ""
	}
	return words[s[0]][i]
}

func refusedPrefix(s string) bool {
	prefixes := []string{"TM", "tm", "FX", "fx", "TH", "th", "SP", "sp"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// literal takes the next character, or a text in double quotes, and returns what follows.
func literal(s string, to *strings.Builder) string {
	if strings.HasPrefix(s, `\"`) {
		to.WriteByte('"')
		return s[2:]
	}
	if s[0] != '"' {
		to.WriteByte(s[0])
		return s[1:]
	}
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		to.WriteByte(s[i])
	}
	return s[min(i+1, len(s)):]
}

// finerFields are the fields that vary within a day, with the unit of date_trunc that fixes each; "" means none does.
// Those of the zone follow the clock's offset, which the wall clock's time does not tell.
var finerFields = map[string]string{
	"HH": "hour", "HH12": "hour", "HH24": "hour", "AM": "hour", "PM": "hour", "A.M.": "hour", "P.M.": "hour",
	"MI": "minute", "SS": "second", "SSSS": "second", "SSSSS": "second", "MS": "", "US": "", "TZ": "", "OF": "", "TZH": "", "TZM": "",
	"FF1": "", "FF2": "", "FF3": "", "FF4": "", "FF5": "", "FF6": "",
}

// TemplateUnit is the unit of date_trunc within which to_char cannot change under this template; "" means none is
// known.
func TemplateUnit(format string) string {
	pieces, err := template(format)
	if err != nil {
		return ""
	}
	units := []string{"day", "hour", "minute", "second"}
	finest := 0
	for _, p := range pieces {
		unit, finer := finerFields[strings.ToUpper(p.field)]
		if !finer {
			continue
		}
		if unit == "" {
			return ""
		}
		finest = max(finest, slices.Index(units, unit))
	}
	return units[finest]
}

// comesRound are fields of a template by the field of EXTRACT that comes round with them.
var comesRound = map[string]string{
	"HH": "hour", "HH12": "hour", "HH24": "hour", "AM": "hour", "PM": "hour", "A.M.": "hour", "P.M.": "hour", "SSSS": "hour", "SSSSS": "hour",
	"MI": "minute", "SS": "second", "D": "dow", "ID": "dow", "DAY": "dow", "DY": "dow",
}

// TemplateFields are the fields of a template as EXTRACT names what comes round with each; "" means it does not, or is
// not known to.
func TemplateFields(format string) (fields []string) {
	pieces, err := template(format)
	if err != nil {
		return nil
	}
	for _, p := range pieces {
		if p.field != "" {
			fields = append(fields, comesRound[strings.ToUpper(p.field)])
		}
	}
	return fields
}

// readers registers to_date and to_timestamp.
func (r registry) readers() {
	t := policy.Text
	r.two("to_date", t, t, on2(func(text, format string) (policy.Value, error) {
		days, _, err := readTemplate(text, format)
		if err != nil {
			return nil, err
		}
		return valued(checkDate(days))
	}))
	r.stable("to_date", t, t)
	r.two("to_timestamp", t, t, func(env *Env, text, format policy.Value) (policy.Value, error) {
		days, ofDay, err := readTemplate(text.(string), format.(string))
		if err != nil {
			return nil, err
		}
		wall, err := timestampOf(days, ofDay)
		if err != nil {
			return nil, err
		}
		return valued(env.toZoned(wall))
	})
	r.stable("to_timestamp", t, t)
	r.one("to_timestamp", policy.Float8, on1(func(v float64) (policy.Value, error) {
		if math.IsNaN(v) {
			return nil, errTimestamp
		}
		if math.IsInf(v, 0) {
			return nil, ErrInfinite
		}
		micros := math.RoundToEven((v - daysTo2000*86400) * 1e6)
		if !(math.Abs(micros) < 9.2e18) {
			return nil, errTimestamp
		}
		at, err := checkTimestamp(addInt64(int64(micros), epoch2000))
		return valued(policy.Timestamptz(at), err)
	}))
}

// read collects the fields of a text.
type read struct {
	fields map[string]int
}

// digitsOf are the fields that to_date and to_timestamp read here, with their digits.
var digitsOf = map[string]int{"YYYY": 4, "MM": 2, "DD": 2, "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6}

// readTemplate reads texts that show exactly what the template says: all digits of each field, the same separators.
// PostgreSQL is more lenient; what it would read differently or in addition is refused.
func readTemplate(text, format string) (days, ofDay int64, err error) {
	refused := unsupported("this text or template")
	pieces, err := template(format)
	if err != nil {
		return 0, 0, err
	}
	r := read{fields: map[string]int{}}
	for _, p := range pieces {
		if p.field == "" {
			rest, ok := strings.CutPrefix(text, p.literal)
			if !ok || strings.Trim(p.literal, "-/.,:; T") != "" || strings.Contains(p.literal, "  ") {
				return 0, 0, refused
			}
			text = rest
			continue
		}
		n, ok := r.field(p, text)
		if !ok {
			return 0, 0, refused
		}
		text = text[n:]
	}
	if text != "" || len(r.fields) == 0 {
		return 0, 0, refused
	}
	return r.moment()
}

// field reads one field and returns its length.
func (r *read) field(p piece, text string) (int, bool) {
	name := strings.ToUpper(p.field)
	if p.fill || p.ordinal != "" {
		return 0, false
	}
	if _, twice := r.fields[name]; twice {
		return 0, false
	}
	if name == "MON" || name == "MONTH" {
		length := span(asciiLower(text), "abcdefghijklmnopqrstuvwxyz")
		word := asciiLower(text[:length])
		month := monthNamed(word)
		_, twice := r.fields["MM"]
		if month == 0 || twice || name == "MON" && length != 3 || name == "MONTH" && word != monthNames[month-1] {
			return 0, false
		}
		r.fields["MM"] = month
		return length, true
	}
	digits, known := digitsOf[name]
	if length := span(text, "0123456789"); !known || length < digits || name == "US" && length > digits {
		return 0, false
	}
	r.fields[name] = asNumber(text[:digits]).value
	return digits, true
}

// moment checks the fields.
func (r *read) moment() (days, ofDay int64, err error) {
	c := civil{year: 0, month: 1, day: 1}
	year, hasYear := r.fields["YYYY"]
	if !hasYear || year == 0 {
		return 0, 0, unsupported("a template without a year")
	}
	c.year = year
	if month, ok := r.fields["MM"]; ok {
		c.month = month
	}
	if day, ok := r.fields["DD"]; ok {
		c.day = day
	}
	hour, minute, second := r.fields["HH24"], r.fields["MI"], r.fields["SS"]
	for _, name := range []string{"HH12", "HH"} {
		if _, ok := r.fields[name]; ok {
			return 0, 0, unsupported("a twelve-hour clock")
		}
	}
	if _, both := r.fields["US"]; both {
		if _, ms := r.fields["MS"]; ms {
			return 0, 0, unsupported("this template")
		}
	}
	if c.month < 1 || c.month > 12 || c.day < 1 || c.day > daysInMonth(c.year, c.month) || hour > 23 || minute > 59 ||
		second > 59 {
		return 0, 0, errField
	}
	ofDay = int64(hour)*microsPerHour + int64(minute)*microsPerMinute + int64(second)*microsPerSecond
	return daysOf(c), ofDay + int64(r.fields["MS"])*1000 + int64(r.fields["US"]), nil
}
