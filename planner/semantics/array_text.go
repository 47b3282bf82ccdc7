package semantics

import (
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// SplitArray reads a one-dimensional array literal: {a,"b c",NULL}.
func SplitArray(text string) ([]policy.Value, bool) {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	text = text[1 : len(text)-1]
	var out []policy.Value
	if strings.TrimSpace(text) == "" {
		return out, true
	}
	for {
		text = strings.TrimLeft(text, " \t\n")
		var b strings.Builder
		quoted := strings.HasPrefix(text, `"`)
		if quoted {
			text = text[1:]
		}
		closed := !quoted
		for len(text) > 0 && !(quoted && text[0] == '"') && !(!quoted && text[0] == ',') {
			if text[0] == '\\' && len(text) > 1 {
				text = text[1:]
			} else if !quoted && strings.IndexByte(`{}"`, text[0]) >= 0 {
				return nil, false
			}
			b.WriteByte(text[0])
			text = text[1:]
		}
		if quoted && len(text) > 0 {
			closed, text = true, strings.TrimLeft(text[1:], " \t\n")
		}
		if item := b.String(); quoted {
			out = append(out, item)
		} else if item = strings.TrimSpace(item); strings.EqualFold(item, "null") {
			out = append(out, nil)
		} else if item == "" {
			return nil, false
		} else {
			out = append(out, item)
		}
		if !closed || text != "" && text[0] != ',' {
			return nil, false
		}
		if text == "" {
			return out, true
		}
		text = text[1:]
	}
}
