package mysql

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// What MySQL's collations have in common is used, and nothing else: ASCII letters are equal but for their case, other
// ASCII characters differ from each other, and characters beyond ASCII may equal anything. Spaces at the end may count
// or not.

// alikeTexts reports whether two texts are equal, and whether that is certain under every collation.
func alikeTexts(a, b string) (equal, sure bool) {
	if a == b {
		return true, true
	}
	x, y := folded(a), folded(b)
	if x == y {
		return true, true
	}
	if !plain(a) || !plain(b) {
		return false, !mayMeet(pattern(x), pattern(y))
	}
	if strings.TrimRight(x, " ") == strings.TrimRight(y, " ") {
		return false, false
	}
	return false, true
}

// folded has the ASCII letters in lower case.
func folded(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// plain tells printable ASCII.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f })
}

func allPlain(list []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !plain(s) })
}

// letterless tells ASCII without letters, in which no collation sees two texts as one.
func letterless(s string) bool {
	return plain(s) && s == strings.TrimRight(s, " ") && strings.ToUpper(s) == strings.ToLower(s)
}

// wild stands for any characters, none included.
const wild = utf8.RuneError

// pattern has what a collation may take for anything replaced by wild.
func pattern(s string) []rune {
	var out []rune
	for _, c := range strings.TrimRight(s, " ") {
		if c >= ' ' && c < 0x7f {
			out = append(out, c)
		} else if len(out) == 0 || out[len(out)-1] != wild {
			out = append(out, wild)
		}
	}
	return out
}

// mayMeet reports whether two patterns have a text in common.
func mayMeet(a, b []rune) bool {
	row := make([]bool, len(b)+1) // row[j]: a[i:] and b[j:] may meet
	for i := len(a); i >= 0; i-- {
		below := slices.Clone(row)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == wild:
				row[j] = below[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == wild:
				row[j] = row[j+1] || i < len(a) && below[j]
			default:
				row[j] = i < len(a) && j < len(b) && a[i] == b[j] && below[j+1]
			}
		}
	}
	return row[0]
}

// maxCompared bounds the values that are compared with each other.
const maxCompared = 2000

// distinctTexts refuses to group texts of which MySQL may take two for one.
func distinctTexts(v value) {
	if v.class != text || v.key || v.binary || v.caseless || v.literal != nil {
		return
	}
	if v.values == nil || len(v.values) > maxCompared {
		bail(Collation, "grouping by these texts", "GROUP BY BINARY column groups by the bytes; so does SELECT DISTINCT BINARY column.")
	}
	seen := map[string]string{}
	for _, s := range v.values {
		key := strings.TrimRight(folded(s), " ")
		if other, ok := seen[key]; ok && other != s {
			merged(other, s)
		}
		seen[key] = s
	}
	for _, e := range slices.DeleteFunc(slices.Clone(v.values), plain) {
		for _, s := range v.values {
			if equal, sure := alikeTexts(e, s); e != s && (equal || !sure) {
				merged(e, s)
			}
		}
	}
}

func merged(a, b string) {
	bail(Collation, `grouping by these texts, of which MySQL may take '`+a+`' and '`+b+`' for one`, "GROUP BY BINARY column groups by the bytes.")
}

// inByteOrder tells that the values' order by bytes is MySQL's: letters and digits whose case does not change the
// order.
func inByteOrder(values []string) bool {
	if !inFoldedOrder(values) {
		return false
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.IsSortedFunc(sorted, func(a, b string) int { return strings.Compare(folded(a), folded(b)) })
}

// inFoldedOrder tells that the order of the values in lower case is MySQL's, whatever the collation.
func inFoldedOrder(values []string) bool {
	if values == nil {
		return false
	}
	for _, v := range values {
		for i := range len(v) {
			if c := v[i] | 0x20; !(c >= 'a' && c <= 'z' || isDigit(v[i]) || v[i] == ' ') {
				return false
			}
		}
	}
	return true
}
