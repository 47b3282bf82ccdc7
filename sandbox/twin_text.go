package sandbox

import (
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// fromText reads the text form of a value of type t. What package policy has no form for (dates before Christ, the
// infinities of time, NaN of numeric, types of their own) stays the text that it is.
func fromText(env scalar.Env, t policy.Type, text string) policy.Value {
	switch t {
	case policy.Text, policy.Varchar:
		return text
	case policy.Bool:
		return text == "t"
	case 26, 28, 29: // oid, xid, cid
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return text
	}
	if element, ok := outer.ArrayElement(t); ok {
		if list, ok := listOf(env, t, element, text); ok {
			return list
		}
		return text
	}
	if !simple(t) {
		return text
	}
	v, err := env.ParseText(t, text)
	if err != nil || env.FormatText(t, v) != text && t != policy.UUID {
		return text
	}
	return v
}

// listOf reads an array of one dimension, or a vector.
func listOf(env scalar.Env, t, element policy.Type, text string) ([]policy.Value, bool) {
	list := []policy.Value{}
	if t == 22 || t == 30 { // int2vector, oidvector
		for part := range strings.FieldsSeq(text) {
			list = append(list, fromText(env, element, part))
		}
		return list, true
	}
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	for rest := text[1 : len(text)-1]; rest != ""; {
		item, quoted, after, ok := nextItem(rest)
		if !ok {
			return nil, false
		}
		if item == "NULL" && !quoted {
			list = append(list, nil)
		} else {
			list = append(list, fromText(env, element, item))
		}
		rest = after
	}
	return list, true
}

// nextItem takes the first element off the inside of an array literal that PostgreSQL wrote.
func nextItem(text string) (item string, quoted bool, rest string, ok bool) {
	if text[0] == '{' {
		return "", false, "", false // of more dimensions
	}
	var b strings.Builder
	i := 0
	if quoted = text[0] == '"'; quoted {
		for i = 1; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
			if i < len(text) {
				b.WriteByte(text[i])
			}
		}
		i++
	} else {
		for ; i < len(text) && text[i] != ','; i++ {
			b.WriteByte(text[i])
		}
	}
	switch {
	case i == len(text):
		return b.String(), quoted, "", true
	case i > len(text) || text[i] != ',' || i+1 == len(text):
		return "", false, "", false
	}
	return b.String(), quoted, text[i+1:], true
}
