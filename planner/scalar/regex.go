package scalar

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

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

// foldsCase reads the flags of regexp_like: the last of i and c decides, and s is the rule anyway. PostgreSQL's message ends with
// the flags, which may be a row's.
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
