package scalar

import (
	"slices"
	"strings"
	"sync/atomic"
)

// piece is one part of a to_char or to_date template: a literal text, or a field with its modifiers.
type piece struct {
	literal string
	field   string // as in the template: "YYYY", "Mon"
	fill    bool   // FM: without padding
	ordinal string // "TH" or "th" after it
}

// templateFields are the fields in the order in which PostgreSQL tries them; each also stands in lower case.
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

// byLetter are words by their first letter, in order; each also stands in lower case.
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
