package scalar

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

type interval = policy.Interval

// compareInterval orders by length: months of thirty days, days of 24 hours.
func compareInterval(a, b interval) int {
	x, y := length(a), length(b)
	return x.Cmp(y)
}

func length(v interval) *big.Int {
	days := big.NewInt(int64(v.Months)*30 + int64(v.Days))
	return days.Mul(days, big.NewInt(microsPerDay)).Add(days, big.NewInt(v.Micros))
}

// newInterval checks the ranges of the parts.
func newInterval(months, days, micros int64, ok bool) (policy.Value, error) {
	if !ok || months != int64(int32(months)) || days != int64(int32(days)) {
		return nil, errInterval
	}
	return interval{Months: int32(months), Days: int32(days), Micros: micros}, nil
}

func addInterval(a, b interval) (policy.Value, error) {
	micros, ok := addInt64(a.Micros, b.Micros)
	return newInterval(int64(a.Months)+int64(b.Months), int64(a.Days)+int64(b.Days), micros, ok)
}

func negateInterval(v interval) (policy.Value, error) {
	return newInterval(-int64(v.Months), -int64(v.Days), -v.Micros, v.Micros != math.MinInt64)
}

func subtractInterval(a, b interval) (policy.Value, error) {
	micros, ok := subInt64(a.Micros, b.Micros)
	return newInterval(int64(a.Months)-int64(b.Months), int64(a.Days)-int64(b.Days), micros, ok)
}

// scaleInterval is v times what factor does to a number. What months and days lose in becoming whole spills into
// days and seconds, rounded to a microsecond, as PostgreSQL does.
func scaleInterval(v interval, factor func(float64) float64) (policy.Value, error) {
	months, days := factor(float64(v.Months)), factor(float64(v.Days))
	for _, part := range []float64{months, days} {
		if !(part >= math.MinInt32 && part <= math.MaxInt32) {
			return nil, errInterval
		}
	}
	wholeMonths, wholeDays := math.Trunc(months), math.Trunc(days)
	spillDays := roundMicro((months - wholeMonths) * 30)
	spillSeconds := roundMicro((days - wholeDays + spillDays - math.Trunc(spillDays)) * 86400)
	if math.Abs(spillSeconds) >= 86400 {
		more := math.Trunc(spillSeconds / 86400)
		wholeDays += more
		spillSeconds -= more * 86400
	}
	wholeDays += math.Trunc(spillDays)
	micros := math.RoundToEven(factor(float64(v.Micros)) + spillSeconds*1e6)
	if !(micros >= math.MinInt64 && micros < math.MaxInt64) {
		return nil, errInterval
	}
	return newInterval(int64(wholeMonths), int64(wholeDays), int64(micros), true)
}

func roundMicro(v float64) float64 { return math.RoundToEven(v*1e6) / 1e6 }

func (r registry) intervals() {
	i, f := policy.IntervalT, policy.Float8
	r.two("+", i, i, on2(addInterval))
	r.two("-", i, i, on2(subtractInterval))
	r.one("-", i, on1(negateInterval))
	times := func(v interval, by float64) (policy.Value, error) {
		return scaleInterval(v, func(x float64) float64 { return x * by })
	}
	r.two("*", i, f, on2(times))
	r.two("*", f, i, on2(func(by float64, v interval) (policy.Value, error) { return times(v, by) }))
	r.two("/", i, f, on2(func(v interval, by float64) (policy.Value, error) {
		if by == 0 {
			return nil, errDivision
		}
		return scaleInterval(v, func(x float64) float64 { return x / by })
	}))
	r.one("justify_hours", i, on1(justifyHours))
	r.one("justify_days", i, on1(justifyDays))
	r.one("justify_interval", i, on1(justifyInterval))
}

// justifyHours turns 24 hours into a day, and gives both the same sign.
func justifyHours(v interval) (policy.Value, error) {
	days := int64(v.Days) + v.Micros/microsPerDay
	micros := v.Micros % microsPerDay
	if days > 0 && micros < 0 {
		micros += microsPerDay
		days--
	} else if days < 0 && micros > 0 {
		micros -= microsPerDay
		days++
	}
	return newInterval(int64(v.Months), days, micros, true)
}

// justifyInterval turns days' worth of time into days and thirty days into a month, and gives all parts one sign.
func justifyInterval(v interval) (policy.Value, error) {
	wholeDays := v.Micros / microsPerDay
	micros := v.Micros - wholeDays*microsPerDay
	days := int64(v.Days) + wholeDays
	months := int64(v.Months) + days/30
	days %= 30
	switch {
	case months > 0 && (days < 0 || days == 0 && micros < 0):
		days += 30
		months--
	case months < 0 && (days > 0 || days == 0 && micros > 0):
		days -= 30
		months++
	}
	switch {
	case days > 0 && micros < 0:
		micros += microsPerDay
		days--
	case days < 0 && micros > 0:
		micros -= microsPerDay
		days++
	}
	return newInterval(months, days, micros, true)
}

// justifyDays turns thirty days into a month.
func justifyDays(v interval) (policy.Value, error) {
	months := int64(v.Months) + int64(v.Days/30)
	days := int64(v.Days % 30)
	if months > 0 && days < 0 {
		days += 30
		months--
	} else if months < 0 && days > 0 {
		days -= 30
		months++
	}
	return newInterval(months, days, v.Micros, true)
}

// unitNames are the units of time by PostgreSQL's names for them; names are compared by their first ten letters.
var unitNames = func() map[string]string {
	table := map[string]string{}
	for unit, names := range map[string]string{
		"microsecond": "us usec usecond useconds usecs microsecon",
		"millisecond": "ms msec msecond mseconds msecs millisecon",
		"second":      "s sec second seconds secs",
		"minute":      "m min mins minute minutes",
		"hour":        "h hour hours hr hrs",
		"day":         "d day days",
		"week":        "w week weeks",
		"month":       "mon mons month months",
		"quarter":     "qtr quarter",
		"year":        "y year years yr yrs",
		"decade":      "dec decade decades decs",
		"century":     "c cent century centuries",
		"millennium":  "mil mils millennia millennium",
	} {
		for name := range strings.FieldsSeq(names) {
			table[name] = unit
		}
	}
	return table
}()

func unitNamed(name string) string { return unitNames[name[:min(len(name), 10)]] }

// span of a unit in months, days or microseconds, and how its fraction spills: months of a year are rounded, days of
// a month and week spill into microseconds.
type unitSize struct {
	months, days, micros int64
}

var unitSizes = map[string]unitSize{
	"microsecond": {micros: 1}, "millisecond": {micros: 1000}, "second": {micros: microsPerSecond},
	"minute": {micros: microsPerMinute}, "hour": {micros: microsPerHour}, "day": {days: 1}, "week": {days: 7},
	"month": {months: 1}, "year": {months: 12}, "decade": {months: 120}, "century": {months: 1200},
	"millennium": {months: 12000},
}

// parts is an interval being added up.
type parts struct {
	months, days, micros int64
	seen                 map[string]bool
}

// parseInterval reads "1 year 2 days 03:04:05.6", "-1.5 hours", "2 weeks ago" and ISO 8601's P1Y2M3DT4H5M6S.
func (f Form) parseInterval(text string) (policy.Value, error) {
	bad := badDate(policy.IntervalT)
	s := asciiLower(strings.Trim(text, blanks))
	if s == "" || len(s) > 256 {
		return nil, bad
	}
	p := &parts{seen: map[string]bool{}}
	if s[0] == 'p' {
		if text != asciiUpper(s) {
			return nil, bad // blanks around, small letters
		}
		if err := p.iso(s[1:]); err != nil {
			return nil, err
		}
		return newInterval(p.months, p.days, p.micros, true)
	}
	fields := strings.Fields(separateUnits(s))
	sign := int64(1)
	if n := len(fields); n > 1 && fields[n-1] == "ago" {
		sign, fields = -1, fields[:n-1]
		if _, _, _, _, number := decimalForm(fields[n-2]); number {
			return nil, bad
		}
	}
	if len(fields) > 0 && fields[0] == "@" {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return nil, bad
	}
	if f.Intervals == "sql_standard" {
		signAll(fields)
	}
	for len(fields) > 0 {
		n, err := p.field(fields)
		if err != nil {
			return nil, err
		}
		fields = fields[n:]
	}
	return newInterval(sign*p.months, sign*p.days, sign*p.micros, true)
}

// signAll gives all numbers the sign of the first, where that is minus and no other has a sign of its own: in
// IntervalStyle sql_standard '-1 2:03:04' is a day, two hours and so on, all of them before.
func signAll(fields []string) {
	if fields[0][0] != '-' || slices.ContainsFunc(fields[1:], func(f string) bool { return f[0] == '-' || f[0] == '+' }) {
		return
	}
	for i, f := range fields[1:] {
		if f[0] >= '0' && f[0] <= '9' || f[0] == '.' {
			fields[i+1] = "-" + f
		}
	}
}

// separateUnits puts a blank between a number and the letters after it: "1h" is "1 h".
func separateUnits(s string) string {
	var b strings.Builder
	for i := range len(s) {
		letter := s[i] >= 'a' && s[i] <= 'z'
		if letter && i > 0 && (s[i-1] >= '0' && s[i-1] <= '9' || s[i-1] == '.') {
			b.WriteByte(' ')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// field reads one clock, or one number with its unit.
func (p *parts) field(fields []string) (int, error) {
	bad := badDate(policy.IntervalT)
	if strings.Contains(fields[0], ":") {
		return 1, p.clock(fields[0])
	}
	number := fields[0]
	if strings.Count(number[1:], "-") > 0 {
		return 0, unsupported("this form of interval")
	}
	negative, whole, fraction, exponent, ok := decimalForm(number)
	if !ok || exponent != "" {
		return 0, bad
	}
	unit, used := "second", 1
	if len(fields) > 1 {
		switch next := fields[1]; {
		case next[0] >= 'a' && next[0] <= 'z':
			unit, used = unitNamed(next), 2
		case strings.Contains(next, ":"):
			unit = "day" // "1 02:03:04"
		default:
			return 0, bad
		}
	}
	size, known := unitSizes[unit]
	if !known {
		return 0, bad
	}
	if p.seen[unit] || p.seen["clock"] && size.micros > 0 {
		return 0, bad
	}
	p.seen[unit] = true
	n, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil {
		return 0, fail(stateIntervalFields, "interval field value out of range")
	}
	part, err := strconv.ParseFloat("0."+fraction, 64)
	if err != nil {
		return 0, bad
	}
	if negative {
		n, part = -n, -part
	}
	return used, p.add(size, n, part)
}

// add puts n units and a fraction of one.
func (p *parts) add(size unitSize, n int64, fraction float64) error {
	overflow := fail(stateIntervalFields, "interval field value out of range")
	whole := func(to *int64, unit, limit int64) bool {
		product, ok := mulInt64(n, unit)
		sum, fits := addInt64(*to, product)
		*to = sum
		return ok && fits && sum <= limit && sum >= -limit-1
	}
	if !whole(&p.months, size.months, math.MaxInt32) || !whole(&p.days, size.days, math.MaxInt32) ||
		!whole(&p.micros, size.micros, math.MaxInt64) {
		return overflow
	}
	if fraction == 0 {
		return nil
	}
	switch {
	case size.months > 1:
		p.months += int64(math.RoundToEven(fraction * float64(size.months)))
	case size.months == 1:
		p.spillDays(fraction * 30)
	case size.days > 0:
		p.spillDays(fraction * float64(size.days))
	default:
		p.micros += spillMicros(fraction, size.micros)
	}
	return nil
}

func (p *parts) spillDays(days float64) {
	p.days += int64(days)
	p.micros += spillMicros(days-math.Trunc(days), microsPerDay)
}

func spillMicros(fraction float64, unit int64) int64 {
	return int64(math.RoundToEven(fraction * float64(unit)))
}

// clock adds [-]hh:mm[:ss[.f]].
func (p *parts) clock(s string) error {
	bad := badDate(policy.IntervalT)
	if p.seen["clock"] || p.seen["hour"] || p.seen["minute"] || p.seen["second"] || p.seen["millisecond"] ||
		p.seen["microsecond"] {
		return bad
	}
	p.seen["clock"] = true
	sign := int64(1)
	if s[0] == '-' {
		sign = -1
	}
	pieces := strings.Split(strings.TrimLeft(s, "+-"), ":")
	if len(pieces) < 2 || len(pieces) > 3 || len(s)-len(strings.TrimLeft(s, "+-")) > 1 {
		return bad
	}
	if len(pieces) == 2 && strings.Contains(pieces[1], ".") {
		pieces = append([]string{"0"}, pieces...) // mm:ss.f
	}
	seconds, fraction := "0", ""
	if len(pieces) == 3 {
		seconds, fraction, _ = strings.Cut(pieces[2], ".")
	}
	hours, minutes := pieces[0], pieces[1]
	if !allDigits(hours) || !allDigits(minutes) || !allDigits(seconds) || fraction != "" && !allDigits(fraction) ||
		len(hours) > 10 || len(minutes) > 9 || len(seconds) > 9 {
		return bad
	}
	h, m, sec := int64(asNumber(hours).value), int64(asNumber(minutes).value), int64(asNumber(seconds).value)
	if m > 59 || sec > 60 {
		return fail(stateIntervalFields, "interval field value out of range")
	}
	p.micros += sign * (h*microsPerHour + m*microsPerMinute + sec*microsPerSecond + fractionMicros(fraction))
	return nil
}

var isoUnits = [2]map[byte]string{
	{'y': "year", 'm': "month", 'w': "week", 'd': "day"},
	{'h': "hour", 'm': "minute", 's': "second"},
}

// iso reads the form with designators, after its P.
func (p *parts) iso(s string) error {
	bad := badDate(policy.IntervalT)
	half := 0
	if s == "" {
		return bad
	}
	for s != "" {
		if s[0] == 't' && half == 0 && len(s) > 1 {
			half, s = 1, s[1:]
		}
		n := span(s, "+-0123456789.")
		if n == 0 || n == len(s) {
			return bad
		}
		unit, known := isoUnits[half][s[n]]
		if !known {
			return bad
		}
		negative, whole, fraction, _, ok := decimalForm(s[:n])
		if !ok || len(whole) > 9 {
			return bad
		}
		value, part := int64(0), 0.0
		if whole != "" {
			value = int64(asNumber(whole).value)
		}
		if fraction != "" {
			var err error
			if part, err = strconv.ParseFloat("0."+fraction, 64); err != nil {
				return bad
			}
		}
		if negative {
			value, part = -value, -part
		}
		if err := p.add(unitSizes[unit], value, part); err != nil {
			return err
		}
		s = s[n+1:]
	}
	return nil
}
