package scalar

import (
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

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

// Similar writes a pattern of SIMILAR TO as a regular expression: 'a(b|c)_%' as '^(?:a(?:b|c)..*)$'. Not known: it marks a part of
// the text, as SUBSTRING takes one out.
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
