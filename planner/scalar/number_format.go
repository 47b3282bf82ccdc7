package scalar

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// to_char of numbers, with the words, blanks and signs of PostgreSQL 15 in the locale C:
//
//	to_char(1234567.5, 'FM999,999,990.00')  ⇒  1,234,567.50
//	to_char(-7, '099S'), to_char(1000, '999')  ⇒  007-, ####
//
// A number's digits are made first, by its type; the places of the template then take them from left to right. Where
// the digits end before the places do, as those of NaN or of a double precision of more than fifteen digits, PostgreSQL
// writes the byte zero, and its text ends there.
func (r registry) numberFormats() {
	t := policy.Text
	r.two("to_char", policy.Int4, t, numberFormat(writeInt4))
	r.two("to_char", policy.Int8, t, numberFormat(writeInt8))
	r.two("to_char", policy.NumericType, t, numberFormat(writeNumeric))
	r.two("to_char", policy.Float4, t, numberFormat(func(w *numberWriter, v float64) error { return w.float(v, 6) }))
	r.two("to_char", policy.Float8, t, numberFormat(func(w *numberWriter, v float64) error { return w.float(v, 15) }))
	for _, from := range []policy.Type{policy.Int4, policy.Int8, policy.NumericType, policy.Float4, policy.Float8} {
		r.stable("to_char", from, t)
	}
	r.two("to_number", t, t, func(env *Env, text, format policy.Value) (policy.Value, error) {
		env.Work.Step(len(format.(string)) / 8)
		return readNumber(text.(string), format.(string))
	})
	r.stable("to_number", t, t)
}

// numberFormat is to_char of one type, by what makes its digits.
func numberFormat[V policy.Value](digits func(*numberWriter, V) error) func(*Env, policy.Value, policy.Value) (policy.Value, error) {
	return func(env *Env, v, format policy.Value) (policy.Value, error) {
		env.Work.Step(len(format.(string)) / 8)
		t, err := readNumberTemplate(format.(string))
		if err != nil {
			return nil, err
		}
		w := &numberWriter{numberTemplate: *t, last: -1}
		if format.(string) == "" {
			return "", nil
		}
		if err := digits(w, v.(V)); err != nil {
			return nil, err
		}
		if w.scientific {
			return w.number, nil
		}
		if err := w.write(); err != nil {
			return nil, err
		}
		text, _, _ := strings.Cut(w.out.String(), "\x00")
		return text, nil
	}
}

// numberWriter writes one number.
type numberWriter struct {
	numberTemplate
	number string // its digits without a sign; ### where there are too many
	mark   byte   // '+' or '-'; 0 of a Roman number
	next   int    // the digit that is written next
	spaces int    // places before the first digit
	last   int    // under FM, the last digit behind the point that is shown whatever it is, or the point; -1: none
	count  int    // the places, roughly; the sign behind them is written with the last
	place  int
	wrote  bool // the sign
	inside bool // a digit has been written, and commas are shown
	out    strings.Builder
}

// fit takes the digits of a number, as many as places are there.
func (w *numberWriter) fit(text string) error {
	w.mark = '+'
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, w.mark = rest, '-'
	}
	whole, _, _ := strings.Cut(text, ".")
	switch {
	case len(whole) < w.pre:
		w.spaces = w.pre - len(whole)
	case len(whole) > w.pre:
		text = strings.Repeat("#", w.pre) + "." + strings.Repeat("#", w.post)
	}
	w.number = text
	return nil
}

// whole fits a whole number.
func (w *numberWriter) whole(v int64) error {
	text := strconv.FormatInt(v, 10)
	if w.post > 0 {
		text += "." + strings.Repeat("0", w.post)
	}
	return w.fit(text)
}

func writeInt4(w *numberWriter, v int64) error {
	switch {
	case w.roman:
		w.number = romanOf(v)
		return nil
	case w.scientific:
		w.number = scientific(float64(v), w.post)
		return nil
	case w.shifts && w.shift > 9:
		return unsupported("an integer times a power of ten beyond its type") // which PostgreSQL leaves to the machine
	case w.shifts:
		w.pre += w.shift
		v = int64(int32(v) * int32(pow10(int32(w.shift)).Int64())) // comes round, as PostgreSQL's does
	}
	return w.whole(v)
}

func writeInt8(w *numberWriter, v int64) error {
	switch {
	case w.roman:
		if v != int64(int32(v)) {
			return outOfRange(policy.Int4)
		}
		w.number = romanOf(v)
		return nil
	case w.scientific:
		w.number = scientificNumeric(numericOf(v), w.post)
		return nil
	case w.shifts:
		product := new(big.Int).Mul(big.NewInt(v), pow10(int32(w.shift)))
		if w.shift > 18 || !product.IsInt64() {
			return outOfRange(policy.Int8)
		}
		w.pre += w.shift
		v = product.Int64()
	}
	return w.whole(v)
}

func writeNumeric(w *numberWriter, v numeric) error {
	switch {
	case w.roman:
		whole, err := numericToInt(v, policy.Int4)
		if err != nil {
			return err
		}
		w.number = romanOf(whole.(int64))
		return nil
	case w.scientific:
		w.number = scientificNumeric(v, w.post)
		return nil
	case w.shifts:
		product, err := fits(newNumeric(new(big.Int).Mul(v.Coefficient, pow10(int32(w.shift))), v.Scale))
		if err != nil {
			return err
		}
		w.pre += w.shift
		v = product.(numeric)
	}
	return w.fit(roundNumeric(v, int32(min(w.post, maxResultScale))).String())
}

// float fits a real or a double precision, of which so many digits are shown.
func (w *numberWriter) float(v float64, digits int) error {
	switch {
	case w.roman:
		w.number = romanOf(int64(min(max(math.RoundToEven(v), 0), 4000)))
		return nil
	case w.scientific:
		w.number = scientific(v, w.post)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			w.number = " " + strings.Repeat("#", w.pre) + "." + strings.Repeat("#", w.post+4)
		}
		return nil
	case w.shifts:
		power, _ := strconv.ParseFloat("1e"+strconv.Itoa(w.shift), 64) // infinite where it is too large
		if digits == 6 {
			v = float64(float32(v) * float32(power))
		} else {
			v *= power
		}
		w.pre += w.shift
	}
	if before := len(fixed(math.Abs(v), 0)); before+w.post > digits {
		w.post = max(digits-before, 0)
	}
	return w.fit(fixed(v, w.post))
}

// fixed is a float with so many digits behind the point, as PostgreSQL's printf writes it.
func fixed(v float64, post int) string {
	return strings.NewReplacer("+Inf", "Infinity", "-Inf", "-Infinity").Replace(strconv.FormatFloat(v, 'f', post, 64))
}

// printedDigits is how many digits PostgreSQL's printf asks the system for; the others are zeros.
const printedDigits = 350

// scientific is a float in scientific notation, with a blank for the sign of what is not negative.
func scientific(v float64, post int) string {
	text := strconv.FormatFloat(v, 'e', min(post, printedDigits), 64)
	if at := strings.IndexByte(text, 'e'); at >= 0 && post > printedDigits {
		text = text[:at] + strings.Repeat("0", post-printedDigits) + text[at:]
	}
	if text[0] != '-' {
		text = " " + text
	}
	return text
}

// scientificNumeric is a numeric in scientific notation. Its exponent is that before rounding: 9.99 under 9.9EEEE is
// 10.0e+00.
func scientificNumeric(v numeric, post int) string {
	sign := " "
	if v.Coefficient.Sign() < 0 {
		sign = "-"
	}
	c, first := new(big.Int).Abs(v.Coefficient), int32(0)
	exponent := int32(0)
	if c.Sign() != 0 {
		first = decimalDigits(c) - 1
		exponent = first - v.Scale
	}
	return sign + roundNumeric(newNumeric(c, first), int32(post)).String() + fmt.Sprintf("e%+03d", exponent)
}

// romanOf is a Roman number, which there is from 1 to 3999.
func romanOf(v int64) string {
	if v < 1 || v > 3999 {
		return strings.Repeat("#", 15)
	}
	var b strings.Builder
	for _, sign := range []struct {
		of   int64
		text string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; v >= sign.of; v -= sign.of {
			b.WriteString(sign.text)
		}
	}
	return b.String()
}

// write puts the digits into the template's places.
func (w *numberWriter) write() error {
	w.begin()
	for _, p := range w.parts {
		switch p.word {
		case "":
			w.out.WriteString(p.literal)
		case "9", "0", ".", "D":
			if !w.roman {
				w.digit(p.word)
			}
		case ",", "G":
			w.sign(w.inside, ',')
		case "L": // of the locale C
			w.out.WriteByte(' ')
		case "MI":
			w.sign(w.mark == '-', '-')
		case "PL":
			w.sign(w.mark == '+', '+')
		case "SG":
			w.out.WriteByte(w.mark)
		case "RN", "rn":
			w.writeRoman(p.word == "rn")
		case "TH", "th":
			if w.roman || w.number[:1] == "#" || w.mark == '-' || w.point {
				continue
			}
			if !allDigits(w.number[len(w.number)-1:]) {
				return fail(stateText, "what is no number has no ordinal")
			}
			w.out.WriteString(ordinal(w.number, p.word))
		}
	}
	return nil
}

// sign writes a character, or a blank for it that FM leaves out.
func (w *numberWriter) sign(shown bool, c byte) {
	switch {
	case shown:
		w.out.WriteByte(c)
	case !w.fill:
		w.out.WriteByte(' ')
	}
}

func (w *numberWriter) writeRoman(small bool) {
	text := w.number
	if small {
		text = strings.ToLower(text)
	}
	if !w.fill {
		w.out.WriteString(strings.Repeat(" ", 15-len(text)))
	}
	w.out.WriteString(text)
}

// begin finds which places are shown, and who writes the sign.
func (w *numberWriter) begin() {
	if w.roman { // beside which nothing but FM says anything
		w.numberTemplate = numberTemplate{parts: w.parts, roman: true, fill: w.fill}
	}
	if w.plus || w.minus { // the words write it themselves
		w.wrote = w.minus
	} else {
		w.angle = w.angle && (w.mark == '-' || !w.fill)
		w.wrote = w.mark == '+' && w.fill && !w.signed
		if w.anchor == signBefore && w.pre == w.anchored {
			w.anchor = signBehind
		}
	}
	w.count = w.pre + w.post - 1
	if !w.wrote && w.spaces == 0 {
		w.count++
	}
	point := strings.IndexByte(w.number, '.')
	if !w.fill || !w.point || point < 0 {
		return
	}
	w.last = max(point, len(strings.TrimRight(w.number, "0"))-1)
	if w.zeroTo > w.spaces {
		w.last = max(w.last, min(len(w.number)-1, w.zeroTo-w.spaces))
	}
}

// upcoming is the digit that is written next; 0 means there is none.
func (w *numberWriter) upcoming() byte {
	if w.next < len(w.number) {
		return w.number[w.next]
	}
	return 0
}

// pointless tells that nothing behind the point is shown.
func (w *numberWriter) pointless() bool { return w.last >= 0 && w.number[w.last] == '.' }

// leadingZero reports whether the next digit is the zero of 0.5, which 9.9 shows as a blank.
func (w *numberWriter) leadingZero() bool {
	return !w.zero && w.next == 0 && w.upcoming() == '0' && w.post != 0
}

// digit fills a place: of a digit, or of the point.
func (w *numberWriter) digit(word string) {
	padded := w.zero && w.zeroFrom <= w.place
	w.inside = false
	if !w.wrote && (w.place >= w.spaces || w.zero && w.zeroFrom == w.place) && (!w.leadingZero() || w.pointless()) {
		w.leadingSign()
	}
	switch {
	case w.place < w.spaces && padded:
		w.out.WriteByte('0')
		w.inside = true
	case w.place < w.spaces:
		w.sign(false, ' ')
	default:
		w.nextDigit(word)
	}
	end := w.count
	if w.spaces > 0 {
		end++
	}
	if w.point {
		end++
	}
	if w.last >= 0 && w.last == w.next {
		end = w.place
	}
	if w.place+1 == end {
		switch {
		case w.wrote && w.angle && w.mark == '-':
			w.out.WriteByte('>')
		case w.wrote && w.angle:
			w.out.WriteByte(' ')
		case w.signed && w.anchor == signBehind:
			w.out.WriteByte(w.mark)
		}
	}
	w.place++
}

// leadingSign writes the sign before the first digit.
func (w *numberWriter) leadingSign() {
	switch {
	case w.signed && w.anchor != signBefore:
		return
	case w.signed:
		w.out.WriteByte(w.mark)
	case w.angle && w.mark != '+':
		w.out.WriteByte('<')
	case w.angle:
		w.out.WriteByte(' ')
	case w.mark == '+':
		w.sign(false, ' ')
	default:
		w.out.WriteByte('-')
	}
	w.wrote = true
}

// nextDigit writes the next digit, or the point.
func (w *numberWriter) nextDigit(word string) {
	c := w.upcoming()
	switch {
	case c == '.':
		if !w.pointless() || w.fill {
			w.out.WriteByte('.')
		}
	case w.last >= 0 && w.next > w.last && word != "0": // FM leaves it out
	case w.leadingZero():
		if !w.fill {
			w.out.WriteByte(' ')
		} else if w.pointless() {
			w.out.WriteByte('0')
		}
	default:
		w.out.WriteByte(c)
		w.inside = true
	}
	if c != 0 {
		w.next++
	}
}
