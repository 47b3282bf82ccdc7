package scalar

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// moment is what a date or timestamp text says. Its parts are optional.
type moment struct {
	numbers  []number // of the date, in the order written
	month    int      // written as a word
	dated    bool
	clocked  bool
	clock    [3]int // hour, minute, second
	micros   int64
	half     string // "am" or "pm"
	bc       bool
	weekday  bool // named before the date
	zoned    bool
	offset   int // seconds east of UTC
	location *time.Location
	word     string // now, today, tomorrow, yesterday, epoch
}

type number struct{ value, digits int }

var (
	errField = fail(stateDateOverflow, "date/time field value out of range")
	errForm  = unsupported("this form of date")
)

// parseMoment reads the forms that people write: 2020-01-31, 20200131, 1/31/2020, Jan 31 2020, with 10:20:30.5 and a
// zone. Other forms that PostgreSQL reads are refused.
func parseMoment(t policy.Type, text string) (*moment, error) {
	m := &moment{}
	rest := asciiLower(strings.Trim(text, blanks))
	if rest == "" || len(rest) > 128 {
		return nil, badDate(t)
	}
	original := strings.Trim(text, blanks)
	for rest != "" {
		at := len(original) - len(rest)
		n, err := m.token(t, rest, original[at:])
		if at == 0 && errors.Is(err, errForm) && span(rest, "abcdefghijklmnopqrstuvwxyz") == len(rest) {
			return nil, badDate(t) // one word, and none of those that are a moment
		}
		if err != nil {
			return nil, err
		}
		rest = strings.TrimLeft(rest[n:], blanks)
		if m.dated || m.word != "" {
			rest = strings.TrimPrefix(rest, ", ")
		}
	}
	return m, nil
}

// token reads the next part and returns its length.
func (m *moment) token(t policy.Type, rest, original string) (int, error) {
	switch c := rest[0]; {
	case c >= '0' && c <= '9':
		n := span(rest, "0123456789abcdefghijklmnopqrstuvwxyz-/.:")
		return m.digits(t, rest[:n])
	case c == '+' || c == '-':
		n := 1 + span(rest[1:], "0123456789:")
		if n == 1 && strings.HasPrefix(rest[1:], "infinity") {
			return 0, ErrInfinite
		}
		if !m.clocked && !m.dated || m.zoned || n == 1 {
			return 0, badDate(t)
		}
		offset, err := parseOffset(t, rest[:n])
		m.zoned, m.offset = true, offset
		return n, err
	case c >= 'a' && c <= 'z':
		n := span(rest, "abcdefghijklmnopqrstuvwxyz_/0123456789")
		if strings.Contains(rest[:n], "/") {
			zone, err := zoneNamed(original[:n])
			if err != nil || m.zoned || !m.clocked {
				return 0, errForm
			}
			m.zoned, m.location = true, zone
			return n, nil
		}
		letters := span(rest, "abcdefghijklmnopqrstuvwxyz")
		if letters < n {
			return 0, errForm
		}
		if letters < len(rest) && rest[letters] == '-' && m.month == 0 && !m.dated {
			return 0, errForm
		}
		return n, m.wordToken(t, rest[:n])
	case c == ',' && m.month != 0:
		return 1, nil
	}
	return 0, badDate(t)
}

func span(s, chars string) int {
	n := 0
	for n < len(s) && strings.IndexByte(chars, s[n]) >= 0 {
		n++
	}
	return n
}

// digits reads a part that begins with a digit: a clock, a date, or one number of a date.
func (m *moment) digits(t policy.Type, s string) (int, error) {
	plain := span(s, "0123456789")
	if plain < len(s) && s[plain] == ':' {
		return m.clockToken(t, s)
	}
	if plain < len(s) && strings.IndexByte("-/.", s[plain]) >= 0 {
		return m.dateToken(t, s)
	}
	if plain < len(s) && s[plain] == 't' && plain == 8 && !m.dated && len(m.numbers) == 0 && !m.weekday {
		m.compact(s[:8])
		return 9, m.needClock(s[9:])
	}
	if plain < len(s) {
		return 0, errForm
	}
	switch {
	case plain == 8 && !m.dated && m.month == 0 && len(m.numbers) == 0 && !m.weekday:
		m.compact(s)
	case m.month != 0 && plain <= 4 && len(m.numbers) < 2, m.month == 0 && !m.dated && plain <= 4 && len(m.numbers) == 0:
		m.numbers = append(m.numbers, asNumber(s))
	case plain > 4 || m.dated && m.month == 0:
		return 0, errForm
	default:
		return 0, badDate(t)
	}
	return plain, nil
}

// needClock insists on a clock after the letter T.
func (m *moment) needClock(rest string) error {
	n := span(rest, "0123456789")
	if n == 0 || n >= len(rest) || rest[n] != ':' {
		return errForm
	}
	return nil
}

func (m *moment) compact(s string) {
	m.numbers = []number{asNumber(s[:4]), asNumber(s[4:6]), asNumber(s[6:])}
	m.dated = true
}

func asNumber(s string) number {
	n, err := strconv.Atoi(s)
	if err != nil {
		n = 1 << 30
	}
	return number{n, len(s)}
}

// dateToken reads 2020-01-31, 1/31/2020, 31-jan-2020, up to a T that begins the clock.
func (m *moment) dateToken(t policy.Type, s string) (int, error) {
	separator := s[span(s, "0123456789")]
	n := 0
	var parts []string
	for {
		length := span(s[n:], "0123456789")
		if length == 0 {
			length = span(s[n:], "abcdefghijklmnopqrstuvwxyz")
		}
		if length == 0 {
			return 0, badDate(t)
		}
		parts = append(parts, s[n:n+length])
		n += length
		if n >= len(s) || s[n] != separator || len(parts) == 3 {
			break
		}
		n++
	}
	if m.dated || m.month != 0 || len(m.numbers) > 0 || m.weekday || separator == '.' || len(parts) < 3 {
		return 0, errForm
	}
	m.dated = true
	for _, part := range parts {
		if part[0] >= '0' && part[0] <= '9' {
			m.numbers = append(m.numbers, asNumber(part))
		} else if month := monthNamed(part); month != 0 && m.month == 0 {
			m.month = month
		} else {
			return 0, errForm
		}
	}
	if n < len(s) && s[n] == 't' {
		return n + 1, m.needClock(s[n+1:])
	}
	if n < len(s) && s[n] == '-' && n+1 < len(s) && s[n+1] >= '0' && s[n+1] <= '9' {
		return 0, errForm
	}
	if n < len(s) && (m.month != 0 || !slices.Contains([]string{"z", "utc", "gmt", "zulu"}, s[n:])) { // 2020-01-31Z is read on behind the day
		return 0, errForm
	}
	return n, nil
}

// clockToken reads hh:mm[:ss[.f…]].
func (m *moment) clockToken(t policy.Type, s string) (int, error) {
	if m.clocked {
		return 0, badDate(t)
	}
	if !m.dated && m.month == 0 && m.word == "" {
		return 0, errForm // a clock before its date is read in more than one way
	}
	m.clocked = true
	n := 0
	parts := 0
	for i := range m.clock {
		length := span(s[n:], "0123456789")
		if length == 0 && i == 2 {
			return 0, errForm
		}
		if length == 0 || length > 9 {
			return 0, badDate(t)
		}
		m.clock[i] = asNumber(s[n : n+length]).value
		parts++
		n += length
		if !strings.HasPrefix(s[n:], ":") || i == 2 {
			break
		}
		n++
	}
	if strings.HasPrefix(s[n:], ".") {
		if parts < 3 {
			return 0, errForm // minutes and seconds
		}
		length := span(s[n+1:], "0123456789")
		m.micros = fractionMicros(s[n+1 : n+1+length])
		n += 1 + length
	}
	if strings.IndexAny(s[n:], ".:/") == 0 {
		return 0, badDate(t)
	}
	return n, nil
}

// fractionMicros rounds digits after the point to microseconds.
func fractionMicros(digits string) int64 {
	if digits == "" {
		return 0
	}
	f, err := strconv.ParseFloat("0."+digits, 64)
	if err != nil {
		return 0
	}
	return int64(math.RoundToEven(f * 1e6))
}

func parseOffset(t policy.Type, s string) (int, error) {
	sign := 1
	if s[0] == '-' {
		sign = -1
	}
	parts := strings.Split(s[1:], ":")
	if len(parts) == 1 && len(parts[0]) > 2 {
		whole := parts[0]
		parts = []string{whole[:len(whole)-2], whole[len(whole)-2:]}
	}
	values := [3]int{}
	for i, part := range parts {
		if i > 2 || !allDigits(part) || len(part) > 2 {
			return 0, badDate(t)
		}
		values[i] = asNumber(part).value
	}
	if values[0] > 15 || values[1] > 59 || values[2] > 59 {
		return 0, fail("22009", "time zone displacement out of range")
	}
	return sign * (values[0]*3600 + values[1]*60 + values[2]), nil
}

var monthNames = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september",
	"october", "november", "december"}

func monthNamed(s string) int {
	for i, name := range monthNames {
		if s == name || s == name[:3] || s == "sept" && i == 8 {
			return i + 1
		}
	}
	return 0
}

var dayNames = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

func (m *moment) wordToken(t policy.Type, s string) error {
	if month := monthNamed(s); month != 0 && m.month == 0 && !m.dated {
		m.month = month
		return nil
	}
	for _, name := range dayNames {
		if s == name || s == name[:3] {
			m.weekday = true
			return nil
		}
	}
	switch s {
	case "am", "pm":
		if m.half != "" || !m.clocked {
			return badDate(t)
		}
		m.half = s
	case "bc", "ad":
		if !m.dated && len(m.numbers) < 2 {
			return errForm
		}
		m.bc = m.bc || s == "bc"
	case "z", "utc", "gmt", "zulu":
		if m.zoned {
			return badDate(t)
		}
		m.zoned, m.location = true, time.UTC
	case "now", "today", "tomorrow", "yesterday", "epoch":
		if m.word != "" || m.dated {
			return badDate(t)
		}
		m.word = s
	case "infinity":
		return ErrInfinite
	default:
		if len(s) <= 5 || s == "allballs" || monthNamed(s) != 0 {
			return errForm
		}
		return badDate(t)
	}
	return nil
}
