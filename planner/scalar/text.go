package scalar

import (
	"crypto/md5" // md5() is what people call it
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
)

// maxText bounds the bytes of a computed text.
const maxText = 1 << 20

var errTextLength = unsupported("a text of more than a million bytes")

// bytesOfRune is how many bytes PostgreSQL makes room for where a text of so many characters is asked for.
const bytesOfRune = 4

// tooLong is the error of a text of so many characters: PostgreSQL's own, of one for which it has no room either.
func tooLong(runes int64) error {
	if runes > (1<<30-1-bytesOfRune)/bytesOfRune {
		return fail(stateLimit, "requested length too large")
	}
	return errTextLength
}

func (r registry) texts() {
	t, i4 := policy.Text, policy.Int4
	for name, f := range map[string]func(string) string{
		"lower": lower, "upper": upper, "reverse": reverse,
		"btrim": func(s string) string { return strings.Trim(s, " ") },
		"ltrim": func(s string) string { return strings.TrimLeft(s, " ") },
		"rtrim": func(s string) string { return strings.TrimRight(s, " ") },
	} {
		r.one(name, t, on1(func(s string) (policy.Value, error) { return f(s), nil }))
	}
	r.one("initcap", t, on1(initcap))
	for _, name := range []string{"length", "char_length", "character_length"} {
		for _, of := range []policy.Type{t, policy.Bpchar} {
			r.one(name, of, on1(func(s string) (policy.Value, error) { return int64(utf8.RuneCountInString(s)), nil }))
		}
	}
	r.one("text", policy.Bpchar, on1(func(s string) (policy.Value, error) { return s, nil }))
	r.one("octet_length", t, on1(func(s string) (policy.Value, error) { return int64(len(s)), nil }))
	r.one("bit_length", t, on1(func(s string) (policy.Value, error) { return 8 * int64(len(s)), nil }))
	r.one("ascii", t, on1(func(s string) (policy.Value, error) {
		if s == "" {
			return int64(0), nil
		}
		first, _ := utf8.DecodeRuneInString(s)
		return int64(first), nil
	}))
	r.one("chr", i4, on1(chr))
	for name, f := range map[string]func(s, set string) string{
		"btrim": strings.Trim, "ltrim": strings.TrimLeft, "rtrim": strings.TrimRight,
	} {
		r.two(name, t, t, on2(func(s, set string) (policy.Value, error) { return f(s, set), nil }))
	}
	for _, name := range []string{"position", "strpos"} {
		r.two(name, t, t, on2(position))
	}
	for _, name := range []string{"starts_with", "^@"} {
		r.two(name, t, t, on2(func(s, prefix string) (policy.Value, error) { return strings.HasPrefix(s, prefix), nil }))
	}
	r.two("left", t, i4, on2(func(s string, n int64) (policy.Value, error) { return left(s, n), nil }))
	r.two("right", t, i4, on2(func(s string, n int64) (policy.Value, error) { return right(s, n), nil }))
	r.two("repeat", t, i4, on2(func(s string, n int64) (policy.Value, error) {
		if n <= 0 || s == "" {
			return "", nil
		}
		if n > maxText/int64(len(s)) {
			return nil, tooLong(n * int64(len(s)) / bytesOfRune)
		}
		return strings.Repeat(s, int(n)), nil
	}))
	r.one("md5", t, on1(func(s string) (policy.Value, error) {
		sum := md5.Sum([]byte(s))
		return hex.EncodeToString(sum[:]), nil
	}))
	for kind, bits := range map[policy.Type]int64{i4: math.MaxUint32, policy.Int8: -1} {
		r.one("to_hex", kind, on1(func(n int64) (policy.Value, error) { return strconv.FormatUint(uint64(n&bits), 16), nil }))
	}
	r.substrings()
	r.overlays()
	r.replacements()
	r.concatenations()
}

// chr is the character of a code point. Two of PostgreSQL's messages end with the number; it may be a row's, so that
// these do not.
func chr(n int64) (policy.Value, error) {
	switch {
	case n < 0:
		return nil, fail(stateParameter, "character number must be positive")
	case n == 0:
		return nil, fail(stateLimit, "null character not permitted")
	case n > unicode.MaxRune:
		return nil, fail(stateLimit, "requested character too large for encoding")
	case !utf8.ValidRune(rune(n)):
		return nil, fail(stateLimit, "requested character not valid for encoding")
	}
	return string(rune(n)), nil
}

// lower and upper map every letter by itself, as a C library does in a UTF-8 locale.
func lower(s string) string { return strings.Map(unicode.ToLower, s) }
func upper(s string) string { return strings.Map(unicode.ToUpper, s) }

// initcap begins every run of letters and digits with a capital. C libraries count marks and some symbols among the
// letters, so texts with such are refused.
func initcap(s string) (policy.Value, error) {
	inside, strange := false, false
	out := strings.Map(func(c rune) rune {
		before := inside
		inside = unicode.IsLetter(c) || c >= '0' && c <= '9'
		strange = strange || c > '\u024F' && !inside || c > '\uFFFF'
		if before {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
	if strange {
		return nil, unsupported("initcap of this text")
	}
	return out, nil
}

func reverse(s string) string {
	runes := []rune(s)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}

func position(s, part string) (policy.Value, error) {
	at := strings.Index(s, part)
	if at < 0 {
		return int64(0), nil
	}
	return int64(utf8.RuneCountInString(s[:at])) + 1, nil
}

// left is the first n characters, or all but the last −n; right mirrors it.
func left(s string, n int64) string {
	length := int64(utf8.RuneCountInString(s))
	if n < 0 {
		n = max(length+n, 0)
	}
	return firstRunes(s, int(min(n, length)))
}

func right(s string, n int64) string {
	length := int64(utf8.RuneCountInString(s))
	skip := max(length-n, 0)
	if n < 0 {
		skip = min(-n, length)
	}
	return s[len(firstRunes(s, int(skip))):]
}

func (r registry) substrings() {
	t, i4 := policy.Text, policy.Int4
	for _, name := range []string{"substr", "substring"} {
		r.two(name, t, i4, on2(func(s string, from int64) (policy.Value, error) {
			return s[len(firstRunes(s, int(max(from-1, 0)))):], nil
		}))
		r.many(name, []policy.Type{t, i4, i4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
			from, length := a[1].(int64), a[2].(int64)
			if length < 0 {
				return nil, fail(stateSubstring, "negative substring length not allowed")
			}
			end := max(from+length-1, 0)
			head := firstRunes(a[0].(string), int(end))
			return head[len(firstRunes(head, int(max(from-1, 0)))):], nil
		})
	}
	r.many("split_part", []policy.Type{t, t, i4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return splitPart(a[0].(string), a[1].(string), a[2].(int64))
	})
	for name, leftSide := range map[string]bool{"lpad": true, "rpad": false} {
		r.many(name, []policy.Type{t, i4, t}, func(_ *Env, a []policy.Value) (policy.Value, error) {
			return pad(a[0].(string), a[2].(string), a[1].(int64), leftSide)
		})
		r.two(name, t, i4, on2(func(s string, n int64) (policy.Value, error) { return pad(s, " ", n, leftSide) }))
	}
}

// overlays are overlay('abcd' PLACING 'XY' FROM 2 FOR 1), which is aXYcd; without FOR as many are replaced as come.
func (r registry) overlays() {
	t, i4 := policy.Text, policy.Int4
	overlay := func(s, with string, from, length int64) (policy.Value, error) {
		switch rest := from + length; {
		case from <= 0:
			return nil, fail(stateSubstring, "negative substring length not allowed")
		case rest > math.MaxInt32 || rest < math.MinInt32:
			return nil, outOfRange(i4)
		case len(s)+len(with) > maxText:
			return nil, errTextLength
		default:
			return firstRunes(s, int(from-1)) + with + s[len(firstRunes(s, int(max(rest-1, 0)))):], nil
		}
	}
	r.many("overlay", []policy.Type{t, t, i4, i4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return overlay(a[0].(string), a[1].(string), a[2].(int64), a[3].(int64))
	})
	r.many("overlay", []policy.Type{t, t, i4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		with := a[1].(string)
		return overlay(a[0].(string), with, a[2].(int64), int64(utf8.RuneCountInString(with)))
	})
}

func splitPart(s, separator string, n int64) (policy.Value, error) {
	if n == 0 {
		return nil, fail(stateParameter, "field position must not be zero")
	}
	if s == "" {
		return "", nil
	}
	fields := []string{s}
	if separator != "" {
		fields = strings.Split(s, separator)
	}
	if n < 0 {
		n += int64(len(fields)) + 1
	}
	if n < 1 || n > int64(len(fields)) {
		return "", nil
	}
	return fields[n-1], nil
}

// pad fills s to n characters, or cuts it to them.
func pad(s, fill string, n int64, leftSide bool) (policy.Value, error) {
	if n > maxText {
		return nil, tooLong(n)
	}
	length := int64(utf8.RuneCountInString(s))
	if n <= length || fill == "" {
		return firstRunes(s, int(max(min(n, length), 0))), nil
	}
	missing := n - length
	each := int64(utf8.RuneCountInString(fill))
	padding := firstRunes(strings.Repeat(fill, int(missing/each+1)), int(missing))
	if leftSide {
		return padding + s, nil
	}
	return s + padding, nil
}

func (r registry) replacements() {
	t := policy.Text
	r.many("replace", []policy.Type{t, t, t}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		s, from, to := a[0].(string), a[1].(string), a[2].(string)
		if from == "" {
			return s, nil
		}
		if len(s)+strings.Count(s, from)*(len(to)-len(from)) > maxText {
			return nil, errTextLength
		}
		return strings.ReplaceAll(s, from, to), nil
	})
	r.many("translate", []policy.Type{t, t, t}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		from, to := []rune(a[1].(string)), []rune(a[2].(string))
		return strings.Map(func(c rune) rune {
			for i, f := range from {
				if f == c {
					if i < len(to) {
						return to[i]
					}
					return -1
				}
			}
			return c
		}, a[0].(string)), nil
	})
}

func (r registry) concatenations() {
	t := policy.Text
	join := on2(func(a, b string) (policy.Value, error) {
		if len(a)+len(b) > maxText {
			return nil, errTextLength
		}
		return a + b, nil
	})
	r.two("||", t, t, join)
	r.two("||", t, anyNonArray, join)
	r.two("||", anyNonArray, t, join)
	r.many("concat", []policy.Type{anyType}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return joined("", a)
	})
	r.loose("concat", anyType)
	r.stable("concat", anyType)
	r.many("concat_ws", []policy.Type{t, anyType}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		if a[0] == nil {
			return nil, nil
		}
		return joined(a[0].(string), a[1:])
	})
	r.loose("concat_ws", t, anyType)
	r.stable("concat_ws", t, anyType)
}

// joined puts the texts that are not NULL together.
func joined(separator string, values []policy.Value) (policy.Value, error) {
	var b strings.Builder
	some := false
	for _, v := range values {
		if v == nil {
			continue
		}
		if some {
			b.WriteString(separator)
		}
		some = true
		b.WriteString(v.(string))
		if b.Len() > maxText {
			return nil, errTextLength
		}
	}
	return b.String(), nil
}
