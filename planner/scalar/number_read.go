package scalar

import (
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
)

// to_number reads a text by a template: each place takes a digit, the point or a sign if one is there, each literal
// character skips one, whichever it is.
//
//	to_number('1,234.5-', '9,999.9S')  ⇒  -1234.5
func readNumber(text, format string) (policy.Value, error) {
	t, err := readNumberTemplate(format)
	switch {
	case err != nil:
		return nil, err
	case format == "":
		return nil, nil
	case t.scientific:
		return nil, fail(stateUnsupported, `"EEEE" not supported for input`)
	case t.roman:
		return nil, fail(stateUnsupported, `"RN" not supported for input`)
	}
	r := &numberReader{numberTemplate: *t, in: text, sign: ' '}
	for _, p := range r.parts {
		if r.done() {
			break
		}
		r.part(p)
	}
	if r.fraction > 1000 || r.pre+r.shift+r.fraction > 1<<15-1 {
		return nil, unsupported("a template this long")
	}
	digits, _ := strings.CutSuffix(string(r.digits), ".")
	v, err := parseNumeric(strings.TrimPrefix(string(r.sign)+digits, " "))
	if err != nil {
		return nil, err
	}
	n := v.(numeric)
	if n.Coefficient.Sign() != 0 && decimalDigits(n.Coefficient)-n.Scale > int32(r.pre+r.shift) {
		return nil, fail(stateRange, "numeric field overflow")
	}
	if !r.shifts {
		return n, nil
	}
	power, err := powerNumeric(numericOf(10), numericOf(int64(-r.shift)))
	if err != nil {
		return nil, err
	}
	return multiplyNumeric(n, power.(numeric))
}

// numberReader reads one number.
type numberReader struct {
	numberTemplate
	in              string
	at              int
	sign            byte // a blank: none has been seen
	digits          []byte
	behind          bool // the point has been read
	whole, fraction int  // digits before and behind it
}

func (r *numberReader) done() bool         { return r.at >= len(r.in) }
func (r *numberReader) sees(c byte) bool   { return !r.done() && r.in[r.at] == c }
func (r *numberReader) isDigit(i int) bool { return i < len(r.in) && r.in[i] >= '0' && r.in[i] <= '9' }

// part reads what a word or a character of the template stands for.
func (r *numberReader) part(p numberPart) {
	switch p.word {
	case "":
		r.skip()
	case "9", "0", ".", "D":
		r.digit(p.word == "9" || p.word == "0")
		r.at++
	case ",", "G":
		if !r.fill && r.sees(',') {
			r.at++
		}
	case "L":
		r.skipWords(1)
	case "TH", "th":
		if !r.point {
			r.skipWords(2)
		}
	case "MI":
		r.takeSign("-")
	case "PL":
		r.takeSign("+")
	case "SG":
		r.takeSign("-+")
	}
}

// takeSign reads one of these signs, or skips what stands there instead.
func (r *numberReader) takeSign(signs string) {
	if strings.IndexByte(signs, r.in[r.at]) < 0 {
		r.skipWords(1)
		return
	}
	r.sign = r.in[r.at]
	r.at++
}

// skip goes over one character.
func (r *numberReader) skip() {
	_, n := utf8.DecodeRuneInString(r.in[r.at:])
	r.at += n
}

// skipWords goes over so many characters that no number has.
func (r *numberReader) skipWords(n int) {
	for ; n > 0 && !r.done() && strings.IndexByte("0123456789.,+-", r.in[r.at]) < 0; n-- {
		r.skip()
	}
}

// digit reads the place of a digit or of the point, and leaves off before what stands behind it.
func (r *numberReader) digit(isDigit bool) {
	if r.sees(' ') {
		r.at++
	}
	if !r.done() && r.sign == ' ' && isDigit && r.whole+r.fraction == 0 {
		r.signAhead()
	}
	if r.done() {
		return
	}
	read := false
	switch {
	case r.isDigit(r.at):
		if r.behind && r.fraction == r.post {
			return
		}
		r.digits = append(r.digits, r.in[r.at])
		if r.behind {
			r.fraction++
		} else {
			r.whole++
		}
		read = true
	case r.point && !r.behind && r.sees('.'):
		r.digits = append(r.digits, '.')
		r.behind, read = true, true
	}
	if r.sign == ' ' && r.whole+r.fraction > 0 {
		r.signBehind(read)
	}
}

// signAhead reads the sign before the first digit.
func (r *numberReader) signAhead() {
	c := r.in[r.at]
	if c == '<' && r.angle {
		c = '-'
	}
	if c == '-' || c == '+' {
		r.sign = c
		r.at++
	}
}

// signBehind reads the sign behind the last digit: that of S where it follows at once, others where no digit is.
func (r *numberReader) signBehind(read bool) {
	switch {
	case r.signed && read:
		if next := r.at + 1; next < len(r.in) && (r.in[next] == '-' || r.in[next] == '+') {
			r.sign = r.in[next]
			r.at = next
		}
	case !read && !r.signed && (r.plus || r.minus) && (r.sees('-') || r.sees('+')):
		r.sign = r.in[r.at]
	}
}
