package embedded

import (
	"database/sql/driver"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
)

// parse_ident, with which drivers take names apart: '"My Schema".orders' has the parts My Schema and orders.

// partMark parts the names of an identifier on the way back to the engine.
const partMark = "\x1f"

// parseIdent is parse_ident in its strict form: the names of a qualified identifier, unquoted ones in lower case.
func parseIdent(args []driver.Value) (any, error) {
	text, ok := args[0].(string)
	if !ok {
		return nil, nil
	}
	invalid := &scalar.Error{SQLState: "22023", Message: "string is not a valid identifier"}
	const blank = " \t\n\r\v\f"
	if strings.Contains(text, partMark) {
		return nil, errUnable
	}
	var names []string
	for rest := strings.TrimLeft(text, blank); ; {
		name, after, ok := firstName(rest)
		if !ok {
			return nil, invalid
		}
		names = append(names, name)
		if rest = strings.TrimLeft(after, blank); rest == "" {
			return strings.Join(names, partMark), nil
		}
		if rest[0] != '.' {
			return nil, invalid
		}
		rest = strings.TrimLeft(rest[1:], blank)
	}
}

// firstName takes the name at the beginning of a text.
func firstName(text string) (name, rest string, ok bool) {
	if inner, quoted := strings.CutPrefix(text, `"`); quoted {
		for {
			part, after, closed := strings.Cut(inner, `"`)
			if name += part; !closed {
				return "", "", false
			}
			if inner, quoted = strings.CutPrefix(after, `"`); !quoted {
				return name, after, name != ""
			}
			name += `"`
		}
	}
	end := 0
	for end < len(text) && (text[end] == '_' || text[end] >= 0x80 || text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z' ||
		end > 0 && (text[end] == '$' || text[end] >= '0' && text[end] <= '9')) {
		end++
	}
	lower := []byte(text[:end])
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower), text[end:], end > 0
}
