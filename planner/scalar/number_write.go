package scalar

import "strings"

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
			if c := w.number[len(w.number)-1]; c < '0' || c > '9' {
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

// upcoming is the digit that is written next; 0: there is none.
func (w *numberWriter) upcoming() byte {
	if w.next < len(w.number) {
		return w.number[w.next]
	}
	return 0
}

// pointless tells that nothing behind the point is shown.
func (w *numberWriter) pointless() bool { return w.last >= 0 && w.number[w.last] == '.' }

// leadingZero tells whether the next digit is the zero of 0.5, which 9.9 shows as a blank.
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
