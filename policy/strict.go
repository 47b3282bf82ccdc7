package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v3"
)

// strict holds a YAML tree against the schema: known keys, required keys, kinds of values, enumerations.
type strict struct{ found *findings }

func (s strict) check(n *yaml.Node, rule *jsonschema.Schema, where string) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		s.found.add(n, "anchors and aliases are not part of a policy")
		return
	}
	if len(rule.AnyOf) > 0 {
		rules := rule.AnyOf
		rule = alternative(n, rules)
		if len(rule.Enum) > 0 && !slices.Contains(rule.Enum, any(n.Value)) {
			s.found.add(n, fmt.Sprintf("%s must be %s", where, forms(rules)))
			return
		}
	}
	switch {
	case rule.Extras[markLater] != nil:
		s.found.add(n, where+": this form is not available yet")
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		s.found.add(n, fmt.Sprintf("%s has no value", where))
	case rule.Type == "object":
		s.mapping(n, rule, where)
	case rule.Type == "array":
		if n.Kind != yaml.SequenceNode {
			s.found.add(n, fmt.Sprintf("%s must be a list", where))
			return
		}
		for i, item := range n.Content {
			s.check(item, rule.Items, where+"["+strconv.Itoa(i)+"]")
		}
	default:
		s.scalar(n, rule, where)
	}
}

// alternative picks the alternative of n's kind, or the first.
func alternative(n *yaml.Node, rules []*jsonschema.Schema) *jsonschema.Schema {
	for _, rule := range rules {
		if (rule.Type == "object") == (n.Kind == yaml.MappingNode) && (rule.Type == "array") == (n.Kind == yaml.SequenceNode) {
			if n.Kind != yaml.ScalarNode || fits(n.ShortTag(), rule.Type) {
				return rule
			}
		}
	}
	return rules[0]
}

// forms says what each of several alternatives looks like.
func forms(rules []*jsonschema.Schema) string {
	var names []string
	for _, rule := range rules {
		if rule.Type == "boolean" {
			names = append(names, "true", "false")
		}
		for _, v := range rule.Enum {
			names = append(names, fmt.Sprint(v))
		}
		if rule.Type == "object" && len(rule.Required) == 0 {
			names = append(names, "a mapping")
		}
		if len(rule.Required) > 0 {
			names = append(names, "{"+strings.Join(rule.Required, ": …, ")+": …}")
		}
	}
	return either(names)
}

func (s strict) mapping(n *yaml.Node, rule *jsonschema.Schema, where string) {
	if n.Kind != yaml.MappingNode {
		if where == "" {
			where = "a policy"
		}
		s.found.add(n, fmt.Sprintf("%s must be a mapping", where))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := join(where, key.Value)
		if key.Kind != yaml.ScalarNode {
			s.found.add(key, fmt.Sprintf("%s: a key must be text", where))
			continue
		}
		if seen[key.Value] {
			s.found.add(key, fmt.Sprintf("%s is given twice", path))
			continue
		}
		seen[key.Value] = true
		s.entry(key, value, rule, where)
	}
	for _, name := range rule.Required {
		if !seen[name] {
			s.found.add(n, fmt.Sprintf("%s is missing", join(where, name)))
		}
	}
}

// entry checks one key of a mapping and its value.
func (s strict) entry(key, value *yaml.Node, rule *jsonschema.Schema, where string) {
	path := join(where, key.Value)
	if rule.Properties == nil {
		s.check(value, rule.AdditionalProperties, path)
		return
	}
	inner, known := rule.Properties.Get(key.Value)
	if !known {
		text := fmt.Sprintf("unknown key %q", key.Value)
		if where != "" {
			text += " in " + where
		}
		var names []string
		for pair := rule.Properties.Oldest(); pair != nil; pair = pair.Next() {
			if pair.Value.Extras[markLater] == nil {
				names = append(names, pair.Key)
			}
		}
		if near := nearest(key.Value, names); near != "" {
			text += fmt.Sprintf("; the nearest known key is %q", near)
		} else {
			text += "; known keys are " + strings.Join(names, ", ")
		}
		s.found.add(key, text)
		return
	}
	if inner.Extras[markLater] != nil {
		s.found.add(key, path+" is not available yet")
		return
	}
	s.check(value, inner, path)
}

func (s strict) scalar(n *yaml.Node, rule *jsonschema.Schema, where string) {
	if n.Kind != yaml.ScalarNode {
		s.found.add(n, fmt.Sprintf("%s must be %s", where, article(rule.Type)))
		return
	}
	if !fits(n.ShortTag(), rule.Type) {
		text := fmt.Sprintf("%s must be %s", where, article(rule.Type))
		if rule.Type == "string" {
			text += ": put it in quotes"
		}
		s.found.add(n, text)
		return
	}
	if len(rule.Enum) == 0 || slices.Contains(rule.Enum, any(n.Value)) {
		return
	}
	if slices.Contains(listed(rule.Extras[markEnum]), n.Value) {
		s.found.add(n, fmt.Sprintf("%s: %s is not available yet", where, n.Value))
		return
	}
	names := make([]string, len(rule.Enum))
	for i, v := range rule.Enum {
		names[i] = fmt.Sprint(v)
	}
	s.found.add(n, fmt.Sprintf("%s is %.40q, must be %s", where, n.Value, either(names)))
}

// fits reports whether a scalar that YAML resolves to tag may be where the schema wants that type.
func fits(tag, want string) bool {
	switch want {
	case "boolean":
		return tag == "!!bool"
	case "integer":
		return tag == "!!int"
	case "number":
		return tag == "!!int" || tag == "!!float"
	default:
		return tag == "!!str" || tag == "!!timestamp"
	}
}

func article(kind string) string {
	switch kind {
	case "boolean":
		return "true or false"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	default:
		return "text"
	}
}

// listed reads a mark that jsonschema holds as one text or as several.
func listed(mark any) []string {
	switch mark := mark.(type) {
	case string:
		return []string{mark}
	case []string:
		return mark
	}
	return nil
}

func join(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}

// either writes "a, b or c".
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// nearest returns the name with the fewest edits from word, if it is near enough to be what was meant.
func nearest(word string, names []string) string {
	best, found := 1+max(1, len(word)/3), ""
	for _, name := range names {
		if d := edits(strings.ToLower(word), name); d < best {
			best, found = d, name
		}
	}
	return found
}

// edits is the number of insertions, deletions, replacements and swaps of neighbours that turn a into b.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
