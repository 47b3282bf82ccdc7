package scalar

import (
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
)

// Templates of numbers, as to_char writes and to_number reads with them. A template is taken apart into words and
// literal characters; what the words say together is known before a digit is written.
//
//	FM999,990.00   ⇒  eight digits, the point behind the sixth, none cut off that a 0 is written for, without blanks

// numberPart is a word of a template, or a literal character.
type numberPart struct {
	word    string // "9", "0", ".", "D", ",", "G", "L", "MI", "PL", "SG", "RN", "rn", "TH", "th"; others do what they do when read
	literal string
}

// signPlace is where the sign that S writes is anchored.
type signPlace int

const (
	signNowhere signPlace = iota
	signBefore
	signBehind
)

// numberTemplate is a template that was read.
type numberTemplate struct {
	parts               []numberPart
	pre, post, shift    int // digits before the point, behind it, and behind V
	zeroFrom, zeroTo    int // before how many digits the first 0 before the point is, and the number of digits up to the last 0
	anchor              signPlace
	anchored            int // digits before S
	zero, point, shifts bool
	fill, blank, signed bool // FM, B, S
	minus, plus, angle  bool // MI, PL, both of them for SG, PR
	roman, scientific   bool // RN, EEEE
}

// numberWords are the words in the order in which they are tried.
var numberWords = byLetter(strings.Fields(", . 0 9 B C D EEEE FM G L MI PL PR RN SG SP S TH V"))

// readNumberTemplate takes a template apart. What it writes is at most eight times as long.
func readNumberTemplate(format string) (*numberTemplate, error) {
	if len(format) > maxText/8 {
		return nil, errTextLength
	}
	t := &numberTemplate{}
	for format != "" {
		if word := leading(numberWords, format); word != "" {
			format = format[len(word):]
			if word != "rn" && word != "th" {
				word = strings.ToUpper(word)
			}
			if err := t.note(word); err != nil {
				return nil, err
			}
			t.parts = append(t.parts, numberPart{word: word})
			continue
		}
		_, size := utf8.DecodeRuneInString(format)
		text, rest := format[:size], format[size:]
		if text == `"` || strings.HasPrefix(format, `\"`) {
			var quoted strings.Builder
			rest = literal(format, &quoted)
			text = quoted.String()
		}
		for _, c := range text {
			t.parts = append(t.parts, numberPart{literal: string(c)})
		}
		format = rest
	}
	return t, nil
}

// note takes in what a word says of the whole template.
func (t *numberTemplate) note(word string) error {
	if t.scientific && word != "EEEE" {
		return fail(stateSyntax, `"EEEE" must be the last pattern used`)
	}
	switch word {
	case "9", "0":
		return t.digit(word)
	case "B":
		t.blank = t.blank || t.pre == 0 && t.post == 0 && !t.zero
	case ".", "D":
		switch {
		case t.point:
			return fail(stateSyntax, "multiple decimal points")
		case t.shifts:
			return fail(stateSyntax, `cannot use "V" and decimal point together`)
		}
		t.point = true
	case "FM":
		t.fill = true
	case "S", "MI", "PL", "SG", "PR":
		return t.sign(word)
	case "RN", "rn":
		t.roman = true
	case "V":
		if t.point {
			return fail(stateSyntax, `cannot use "V" and decimal point together`)
		}
		t.shifts = true
	case "EEEE":
		switch {
		case t.scientific:
			return fail(stateSyntax, `cannot use "EEEE" twice`)
		case t.blank || t.fill || t.signed || t.angle || t.minus || t.plus || t.roman || t.shifts:
			return fail(stateSyntax, `"EEEE" is incompatible with other formats`)
		}
		t.scientific = true
	}
	return nil
}

// digit counts a digit's place.
func (t *numberTemplate) digit(word string) error {
	switch {
	case t.angle:
		return failf(stateSyntax, `"%s" must be ahead of "PR"`, word)
	case t.shifts && word == "9":
		t.shift++
		return nil
	}
	if word == "0" && !t.zero && !t.point {
		t.zero, t.zeroFrom = true, t.pre
	}
	if t.point {
		t.post++
	} else {
		t.pre++
	}
	if word == "0" {
		t.zeroTo = t.pre + t.post
	}
	return nil
}

// sign takes in a word that shows the sign; S excludes the others, and so does PR.
func (t *numberTemplate) sign(word string) error {
	switch word {
	case "S":
		switch {
		case t.signed:
			return fail(stateSyntax, `cannot use "S" twice`)
		case t.plus || t.minus || t.angle:
			return fail(stateSyntax, `cannot use "S" and "PL"/"MI"/"SG"/"PR" together`)
		}
		t.signed, t.anchor = true, signBehind
		if !t.point {
			t.anchor, t.anchored = signBefore, t.pre
		}
	case "PR":
		if t.signed || t.plus || t.minus {
			return fail(stateSyntax, `cannot use "PR" and "S"/"PL"/"MI"/"SG" together`)
		}
		t.angle = true
	default:
		if t.signed {
			return failf(stateSyntax, `cannot use "S" and "%s" together`, word)
		}
		t.minus, t.plus = t.minus || word != "PL", t.plus || word != "MI"
	}
	return nil
}

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

// part reads what a word or a character of the template means.
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

// takeSign reads one of these signs, or skips what is there instead.
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

// digit reads the place of a digit or of the point, and leaves off before what is behind it.
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
