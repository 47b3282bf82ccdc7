package embedded

import (
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/rewrite/are"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// PostgreSQL's functions of regular expressions, over package are: pg_regexp('match', text, pattern, flags) and its like. Lists go
// back as one text in which every element has a mark of its own, and lists of lists as lists of those.

// searched is a text with a pattern and the flags that came with it.
type searched struct {
	runes []rune
	text  *are.Text
	e     *are.Expression
}

// regexps computes one call. All of these functions are strict: NULL of NULL.
func (i *instance) regexps(args []driver.Value) (any, error) {
	var a []string
	for _, one := range args {
		text, ok := one.(string)
		if !ok {
			return nil, nil
		}
		a = append(a, text)
	}
	if len(a) < 4 {
		return nil, errUnable
	}
	op, text, pattern, flags, rest := a[0], a[1], a[2], a[3], a[4:]
	if op == "similar" {
		known, err := false, error(nil)
		if pattern, known, err = scalar.Similar(pattern, rest[0]); err != nil {
			return nil, err
		}
		if !known {
			return nil, errUnable
		}
	}
	f, err := are.ParseFlags(flags)
	if err == nil && f.Global && op != "replace" && op != "matches" {
		err = are.ErrFlag
	}
	if err != nil {
		return nil, regexpFault(err)
	}
	key := flags + "\x00" + pattern
	e := i.patterns[key]
	if e == nil {
		if e, err = are.Compile(pattern, f); err != nil {
			return nil, regexpFault(err)
		}
		if i.patterns == nil || len(i.patterns) > 100 {
			i.patterns = map[string]*are.Expression{}
		}
		i.patterns[key] = e
	}
	s := searched{runes: []rune(text), text: e.In(text), e: e}
	out, err := s.answer(op, f, rest)
	if err != nil {
		return nil, regexpFault(err)
	}
	return out, nil
}

func (s searched) answer(op string, f are.Flags, rest []string) (any, error) {
	var n []int
	if op != "replace" && op != "similar" {
		for _, text := range rest {
			k, err := strconv.Atoi(text)
			if err != nil {
				return nil, err
			}
			n = append(n, k)
		}
	}
	switch op {
	case "is", "similar":
		m, err := s.text.Find(0)
		return strconv.FormatBool(m != nil), err
	case "part":
		m, err := s.text.Find(0)
		if m == nil || err != nil {
			return nil, err
		}
		return s.cut(m[min(1, s.e.Groups())]), nil
	case "match":
		m, err := s.text.Find(0)
		if m == nil || err != nil {
			return nil, err
		}
		return listed(s.groups(m))
	case "matches":
		all, err := s.all(0, f.Global, false)
		if err != nil {
			return nil, err
		}
		lists := []string{}
		for _, m := range all {
			list, err := listed(s.groups(m))
			if err != nil {
				return nil, err
			}
			lists = append(lists, "\x1e"+list)
		}
		return strings.Join(lists, ""), nil
	case "split":
		all, err := s.all(0, true, true)
		if err != nil {
			return nil, err
		}
		var parts []any
		at := 0
		for _, m := range all {
			parts = append(parts, string(s.runes[at:m[0].Start]))
			at = m[0].End
		}
		return listed(append(parts, string(s.runes[at:])))
	case "replace":
		return s.replaced(rest[0], f, rest[1:])
	case "count":
		all, err := s.all(n[0]-1, true, false)
		return strconv.Itoa(len(all)), err
	}
	return s.nth(op, n)
}

// nth is regexp_substr and regexp_instr: start, which match, whether its end, which group.
func (s searched) nth(op string, n []int) (any, error) {
	if s.e.Literal() && n[3] > 0 {
		return nil, are.ErrUnsupported
	}
	if n[0] < 1 || n[1] < 1 || n[2] < 0 || n[2] > 1 || n[3] < 0 {
		return nil, &scalar.Error{SQLState: "22023", Message: "invalid value for a parameter of a regular expression's function"}
	}
	all, err := s.all(n[0]-1, true, false)
	if err != nil {
		return nil, err
	}
	found := are.Span{Start: -1, End: -1}
	if n[1] <= len(all) && n[3] <= s.e.Groups() {
		found = all[n[1]-1][n[3]]
	}
	switch {
	case op == "substr":
		return s.cut(found), nil
	case found.Start < 0:
		return "0", nil
	case n[2] == 1:
		return strconv.Itoa(found.End + 1), nil
	}
	return strconv.Itoa(found.Start + 1), nil
}

// cut is a part of the text, NULL where there is none.
func (s searched) cut(at are.Span) any {
	if at.Start < 0 {
		return nil
	}
	return string(s.runes[at.Start:at.End])
}

// groups are what a match's groups have found, or all of it where there are none.
func (s searched) groups(m []are.Span) (parts []any) {
	for g := min(1, s.e.Groups()); g <= s.e.Groups(); g++ {
		parts = append(parts, s.cut(m[g]))
	}
	return parts
}

// all are the matches from a place on, or the first. Splitting leaves out empty ones at an end of the text or behind another.
func (s searched) all(from int, global, splitting bool) (all [][]are.Span, err error) {
	if from < 0 {
		return nil, &scalar.Error{SQLState: "22023", Message: "invalid value for parameter \"start\""}
	}
	for last := 0; from <= len(s.runes); {
		m, err := s.text.Find(from)
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		if !splitting || m[0].Start < len(s.runes) && m[0].End > last {
			all = append(all, m)
		}
		last = m[0].End
		if !global {
			break
		}
		if from = last; m[0].Start == m[0].End {
			from++
		}
	}
	return all, nil
}

// replaced is regexp_replace; where are the place to start and which match, 0 for all.
func (s searched) replaced(by string, f are.Flags, where []string) (any, error) {
	from, which := 0, 1
	if f.Global {
		which = 0
	}
	for i, text := range where {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1-i {
			return nil, &scalar.Error{SQLState: "22023", Message: "invalid value for a parameter of regexp_replace"}
		}
		if i == 0 {
			from, which = n-1, 1
		} else {
			which = n
		}
	}
	all, err := s.all(from, which != 1 || len(where) > 1, false)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	at := 0
	for k, m := range all {
		if which > 0 && k != which-1 {
			continue
		}
		out.WriteString(string(s.runes[at:m[0].Start]))
		for i := 0; i < len(by); i++ {
			if by[i] != '\\' || i+1 == len(by) {
				out.WriteByte(by[i])
				continue
			}
			switch c := by[i+1]; {
			case c >= '1' && c <= '9':
				if g := int(c - '0'); g < len(m) && m[g].Start >= 0 {
					out.WriteString(string(s.runes[m[g].Start:m[g].End]))
				}
			case c == '&':
				out.WriteString(string(s.runes[m[0].Start:m[0].End]))
			case c == '\\':
				out.WriteByte('\\')
			default:
				out.WriteByte('\\')
				continue
			}
			i++
		}
		at = m[0].End
		if out.Len() > 1<<20 {
			return nil, are.ErrWork
		}
	}
	out.WriteString(string(s.runes[at:]))
	return out.String(), nil
}

// listed writes a list: + before each element, - for NULL, the separators that outer knows.
func listed(parts []any) (string, error) {
	var out strings.Builder
	for _, one := range parts {
		out.WriteByte('\x1f')
		text, ok := one.(string)
		if strings.ContainsAny(text, "\x1e\x1f") {
			return "", errUnable
		}
		if ok {
			out.WriteString("+" + text)
		} else {
			out.WriteByte('-')
		}
	}
	return out.String(), nil
}

// regexpFault is an error of package are as PostgreSQL raises it.
func regexpFault(err error) error {
	switch {
	case errors.Is(err, are.ErrInvalid):
		return &scalar.Error{SQLState: "2201B", Message: outer.InvalidRegexp}
	case errors.Is(err, are.ErrFlag):
		return &scalar.Error{SQLState: "22023", Message: "invalid regular expression option"}
	case errors.Is(err, are.ErrUnsupported), errors.Is(err, are.ErrWork):
		return &scalar.Error{SQLState: "DP002", Message: err.Error() + " cannot be run by the sandbox"}
	}
	return err
}
