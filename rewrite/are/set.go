package are

import "unicode"

// set is a set of characters: ranges and classes, or all others.
type set struct {
	ranges  [][2]rune
	classes []class
	not     bool
}

// class is a class of characters, or its opposite.
type class struct {
	name string
	not  bool
}

var classNames = []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "word"}

func (s *set) add(low, high rune) { s.ranges = append(s.ranges, [2]rune{low, high}) }

func (s *set) has(c rune) bool {
	for _, r := range s.ranges {
		if c >= r[0] && c <= r[1] {
			return !s.not
		}
	}
	for _, k := range s.classes {
		if member(k.name, c) != k.not {
			return !s.not
		}
	}
	return s.not
}

// member tells whether a class has a character. Beyond ASCII a locale says so: letters are letters in C.UTF-8, and what glibc and
// Unicode may see otherwise is refused.
func member(class string, c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	digit := c >= '0' && c <= '9'
	if c >= 0x80 {
		if class == "digit" || class == "xdigit" || class == "blank" && unicode.IsLetter(c) || class == "cntrl" && unicode.IsLetter(c) {
			return false
		}
		if unicode.IsLetter(c) {
			switch class {
			case "space", "punct":
				return false
			case "alnum", "alpha", "word", "graph", "print":
				return true
			case "upper", "lower":
				if c < 0x180 && c != 0xAA && c != 0xBA {
					return unicode.IsUpper(c) == (class == "upper")
				}
			}
		}
		unsupported()
	}
	switch class {
	case "alnum":
		return letter || digit
	case "alpha":
		return letter
	case "word":
		return letter || digit || c == '_'
	case "blank":
		return c == ' ' || c == '\t'
	case "cntrl":
		return c < ' ' || c == 0x7f
	case "digit":
		return digit
	case "graph":
		return c > ' ' && c < 0x7f
	case "print":
		return c >= ' ' && c < 0x7f
	case "punct":
		return c > ' ' && c < 0x7f && !letter && !digit
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r'
	case "lower":
		return letter && c >= 'a'
	case "upper":
		return letter && c <= 'Z'
	}
	return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' // xdigit
}
