package scalar

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
)

var errPatternEscape = fail(stateEscape, "LIKE pattern must not end with escape character")

// patterns registers LIKE, ILIKE and regular expressions.
func (r registry) patterns() {
	t := policy.Text
	for name, form := range map[string]struct{ fold, not bool }{
		"~~": {}, "!~~": {not: true}, "~~*": {fold: true}, "!~~*": {fold: true, not: true},
	} {
		r.two(name, t, t, on2(func(s, pattern string) (policy.Value, error) {
			if form.fold {
				s, pattern = lower(s), lower(pattern)
			}
			matched, err := like(s, pattern)
			if err != nil {
				return nil, err
			}
			return matched == likeMatch != form.not, nil
		}))
	}
	r.two("like_escape", t, t, on2(likeEscape))
	r.regularExpressions()
	r.similar()
}

type likeOutcome uint8

const (
	likeMismatch likeOutcome = iota
	likeMatch
	likeAbort // the text ended: no longer prefix of the text will match, either
)

// like matches a text against % and _, with \ as the escape. A pattern that ends in its escape fails only where
// matching gets there, as in PostgreSQL.
func like(s, pattern string) (likeOutcome, error) {
	for s != "" && pattern != "" {
		switch c := pattern[0]; c {
		case '%':
			return likeRest(s, pattern[1:])
		case '_':
			_, size := utf8.DecodeRuneInString(s)
			s, pattern = s[size:], pattern[1:]
			continue
		case '\\':
			pattern = pattern[1:]
			if pattern == "" {
				return 0, errPatternEscape
			}
		}
		if s[0] != pattern[0] {
			return likeMismatch, nil
		}
		s, pattern = s[1:], pattern[1:]
	}
	if s != "" {
		return likeMismatch, nil
	}
	if strings.Trim(pattern, "%") == "" {
		return likeMatch, nil
	}
	return likeAbort, nil
}

// likeRest matches what follows a %.
func likeRest(s, pattern string) (likeOutcome, error) {
	for pattern != "" && (pattern[0] == '%' || pattern[0] == '_') {
		if pattern[0] == '_' {
			if s == "" {
				return likeAbort, nil
			}
			_, size := utf8.DecodeRuneInString(s)
			s = s[size:]
		}
		pattern = pattern[1:]
	}
	if pattern == "" {
		return likeMatch, nil
	}
	first := pattern[0]
	if first == '\\' {
		if len(pattern) == 1 {
			return 0, errPatternEscape
		}
		first = pattern[1]
	}
	for s != "" {
		if s[0] == first {
			if outcome, err := like(s, pattern); outcome != likeMismatch || err != nil {
				return outcome, err
			}
		}
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return likeAbort, nil
}

// likeEscape rewrites a pattern with another escape character to one with the backslash.
func likeEscape(pattern, escape string) (policy.Value, error) {
	if escape == "" {
		return strings.ReplaceAll(pattern, `\`, `\\`), nil
	}
	if utf8.RuneCountInString(escape) != 1 {
		return nil, fail(stateEscape, "invalid escape string")
	}
	if escape == `\` {
		return pattern, nil
	}
	var b strings.Builder
	escaped := false
	for _, c := range pattern {
		switch {
		case string(c) == escape && !escaped:
			b.WriteByte('\\')
			escaped = true
			continue
		case c == '\\':
			b.WriteByte('\\')
			if !escaped {
				b.WriteByte('\\')
			}
		default:
			b.WriteRune(c)
		}
		escaped = false
	}
	return b.String(), nil
}

// SIMILAR TO. The grammar writes x SIMILAR TO 'a(b|c)_%' as x ~ similar_to_escape('a(b|c)_%').

func (r registry) similar() {
	t := policy.Text
	of := func(pattern, escape string) (policy.Value, error) {
		re, known, err := Similar(pattern, escape)
		if err == nil && !known {
			err = unsupported("a pattern with parts to take out")
		}
		return valued(re, err)
	}
	r.one("similar_to_escape", t, func(_ *Env, p policy.Value) (policy.Value, error) { return of(p.(string), `\`) })
	r.two("similar_to_escape", t, t, on2(of))
}

// Similar writes a pattern of SIMILAR TO as a regular expression: 'a(b|c)_%' as '^(?:a(?:b|c)..*)$'. Not known: it
// marks a part of the text, as SUBSTRING takes one out.
func Similar(pattern, escape string) (re string, known bool, err error) {
	if len([]rune(escape)) > 1 {
		return "", true, fail(stateEscape, "invalid escape string")
	}
	var out strings.Builder
	escaped, inside := false, false
	for _, c := range pattern {
		switch {
		case escaped:
			if c == '"' && !inside {
				return "", false, nil
			}
			out.WriteString(`\` + string(c))
			escaped = false
		case string(c) == escape:
			escaped = true
		case inside:
			if c == '\\' {
				out.WriteByte('\\')
			}
			out.WriteRune(c)
			inside = c != ']'
		case c == '[':
			out.WriteRune(c)
			inside = true
		case c == '%':
			out.WriteString(".*")
		case c == '_':
			out.WriteByte('.')
		case c == '(':
			out.WriteString("(?:")
		case strings.ContainsRune(`\.^$`, c):
			out.WriteString(`\` + string(c))
		default:
			out.WriteRune(c)
		}
	}
	return "^(?:" + out.String() + ")$", true, nil
}

// expressions keeps compiled patterns. It is emptied when it has grown, so that analysts cannot fill the memory.
var expressions struct {
	sync.Mutex
	compiled map[string]*regexp.Regexp
}

func (r registry) regularExpressions() {
	t := policy.Text
	for name, form := range map[string]struct{ fold, not bool }{
		"~": {}, "!~": {not: true}, "~*": {fold: true}, "!~*": {fold: true, not: true}, "regexp_like": {},
	} {
		r.two(name, t, t, on2(func(s, pattern string) (policy.Value, error) {
			matched, err := matchesExpression(s, pattern, form.fold)
			return matched != form.not, err
		}))
	}
	r.many("regexp_like", []policy.Type{t, t, t}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		fold, err := foldsCase(a[2].(string))
		if err != nil {
			return nil, err
		}
		return matchesExpression(a[0].(string), a[1].(string), fold)
	})
}

func matchesExpression(s, pattern string, fold bool) (bool, error) {
	re, err := expression(pattern, fold)
	if err != nil {
		return false, err
	}
	if fold && strings.ContainsAny(s, "\u017F\u212A") {
		return false, unsupported("a long s or Kelvin sign where case does not matter") // Go folds them with s and k
	}
	return re.MatchString(s), nil
}

// foldsCase reads the flags of regexp_like: the last of i and c decides, and s is the rule anyway. PostgreSQL's message
// ends with the flags, which may be a row's.
func foldsCase(flags string) (fold bool, _ error) {
	switch {
	case strings.Trim(flags, "bcegimnpqstwx") != "":
		return false, fail(stateParameter, "invalid regular expression option")
	case strings.Contains(flags, "g"):
		return false, fail(stateParameter, `regexp_like() does not support the "global" option`)
	case strings.Trim(flags, "ics") != "":
		return false, unsupported("a regular expression's option other than i, c and s")
	}
	return strings.LastIndexByte(flags, 'i') > strings.LastIndexByte(flags, 'c'), nil
}

// expression compiles a pattern that means the same here and in PostgreSQL.
func expression(pattern string, fold bool) (*regexp.Regexp, error) {
	flags := "(?s)"
	if fold {
		flags = "(?is)"
	}
	key := flags + pattern
	expressions.Lock()
	defer expressions.Unlock()
	if re, ok := expressions.compiled[key]; ok {
		return re, nil
	}
	if err := plainExpression(pattern, fold); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(key)
	if e, ok := err.(*syntax.Error); ok && tooLarge[e.Code] {
		return nil, unsupported("a regular expression this large")
	}
	if err != nil {
		return nil, fail(stateRegex, "invalid regular expression")
	}
	if expressions.compiled == nil || len(expressions.compiled) >= 256 {
		expressions.compiled = map[string]*regexp.Regexp{}
	}
	expressions.compiled[key] = re
	return re, nil
}

var tooLarge = map[syntax.ErrorCode]bool{syntax.ErrInvalidRepeatSize: true, syntax.ErrLarge: true,
	syntax.ErrNestingDepth: true}

// plainExpression refuses the parts of the language where PostgreSQL's advanced expressions and Go's differ: other
// escapes than those of punctuation and \d \w \s over ASCII, look-around, back references, embedded options, character
// names in brackets, large repeats. Whether a text matches at all does not depend on greediness.
func plainExpression(pattern string, fold bool) error {
	refused := unsupported("this regular expression")
	if len(pattern) > 1000 || strings.HasPrefix(pattern, "***") || strings.HasPrefix(pattern, "(?") {
		return refused
	}
	quantified := true // nothing to repeat yet
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c >= 0x80 && fold:
			return refused
		case c == '\\':
			i++
			if i == len(pattern) {
				return fail(stateRegex, "invalid regular expression")
			}
			if strings.IndexByte(`.[]()*+?{}|^$\/-"' _,;:!@#%&=<>~`+"`", pattern[i]) < 0 {
				return refused
			}
		case c == '[':
			end, err := plainBracket(pattern[i:])
			if err != nil {
				return err
			}
			i += end
		case c == '(':
			if i+1 < len(pattern) && pattern[i+1] == '?' && !strings.HasPrefix(pattern[i:], "(?:") {
				return refused
			}
			if strings.HasPrefix(pattern[i:], "(?:") {
				i += 2
			}
			quantified = true
			continue
		case c == '*' || c == '+' || c == '?' || c == '{':
			if quantified {
				return refused // "**", "a+?", "^*": read differently
			}
			if c == '{' {
				end, err := plainRepeat(pattern[i:])
				if err != nil {
					return err
				}
				i += end
			}
			quantified = true
			continue
		case c == '|' || c == '^' || c == '$':
			quantified = true
			if c == '|' && (i == 0 || i == len(pattern)-1 || pattern[i+1] == '|' || pattern[i+1] == ')') {
				return refused
			}
			continue
		case c == ')' && i > 0 && (pattern[i-1] == '(' || pattern[i-1] == ':'):
			return refused
		case c == '}':
			return refused
		}
		quantified = false
	}
	return nil
}

// plainBracket returns the index of the ] that ends a bracket expression of plain characters and ranges.
func plainBracket(s string) (int, error) {
	refused := unsupported("this regular expression")
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	for first := true; i < len(s); first = false {
		switch c := s[i]; {
		case c == ']' && !first:
			return i, nil
		case c == ']' || c == '[' || c == '\\' || c >= 0x80:
			return 0, refused
		}
		i++
	}
	return 0, fail(stateRegex, "invalid regular expression")
}

// plainRepeat returns the index of the } that ends {m}, {m,} or {m,n} with small numbers.
func plainRepeat(s string) (int, error) {
	refused := unsupported("this regular expression")
	end := strings.IndexByte(s, '}')
	if end < 2 || end > 8 {
		return 0, refused
	}
	least, most, ranged := strings.Cut(s[1:end], ",")
	if !allDigits(least) || ranged && most != "" && !allDigits(most) {
		return 0, refused
	}
	if asNumber(least).value > 100 || most != "" && asNumber(most).value > 100 {
		return 0, refused
	}
	return end, nil
}
