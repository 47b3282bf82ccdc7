package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrNoUser says that a policy has no user of that name.
var ErrNoUser = errors.New("no such user")

// ChangePassword gives a user who is there a new verifier.
func ChangePassword(path, name, verifier string) error {
	if err := changed(path, name, nil); err != nil {
		return err
	}
	return AddUser(path, name, verifier, false)
}

// DisableUser keeps a user from logging in, or lets her in again. What she holds and has spent stays hers.
func DisableUser(path, name string, disabled bool) error {
	return changed(path, name, func(data []byte, root *yaml.Node) ([]byte, error) {
		value := fmt.Sprint(disabled)
		entry := userEntry(root, name)
		if at := (place{node: entry}).key("disabled").node; at != entry {
			if out, ok := inPlace(data, at, value); ok {
				return out, nil
			}
			at.Value, at.Tag = value, "!!bool"
			return encoded(root)
		}
		entry.Content = append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "disabled"}, {Kind: yaml.ScalarNode, Tag: "!!bool", Value: value}}, entry.Content...)
		return asTree(root, func() []byte { // before the entry's first key
			lines := strings.SplitAfter(string(data), "\n")
			runes, column := []rune(lines[entry.Line-1]), entry.Column-1
			insert := "disabled: " + value + "\n" + strings.Repeat(" ", column)
			if entry.Style&yaml.FlowStyle != 0 {
				column, insert = column+1, "disabled: "+value+", "
			}
			lines[entry.Line-1] = string(runes[:column]) + insert + string(runes[column:])
			return []byte(strings.Join(lines, ""))
		})
	})
}

// RemoveUser takes a user out of a policy, her budgets and her membership of a group too. What the ledger knows of her
// stays: whoever is added by that name again has spent what she had.
func RemoveUser(path, name string) error {
	return changed(path, name, func(data []byte, root *yaml.Node) ([]byte, error) {
		top := place{node: root}
		users := top.key("users").node
		var cuts []cut
		cuts = append(cuts, without(users, func(item *yaml.Node) bool { return item == userEntry(root, name) })...)
		if groups := top.key("groups").node; groups != root {
			for _, g := range groups.Content {
				members := (place{node: g}).key("members").node
				cuts = append(cuts, without(members, func(m *yaml.Node) bool { return m.Value == name })...)
				if members.Kind == yaml.SequenceNode && len(members.Content) == 0 {
					return nil, fmt.Errorf("she is the only member of group %s: remove the group first", (place{node: g}).key("name").node.Value)
				}
			}
		}
		if datasets := top.key("datasets").node; datasets != root {
			for _, d := range datasets.Content {
				cuts = append(cuts, withoutKey((place{node: d}).key("budgets").node, name)...)
			}
		}
		return asTree(root, func() []byte { return cutOut(data, cuts) })
	})
}

// changed edits a policy file in which a user is; edit may be nil, to look alone. Where the file passed before, it must
// pass afterwards.
func changed(path, name string, edit func([]byte, *yaml.Node) ([]byte, error)) error {
	data, err := load(path)
	if err != nil {
		return err
	}
	found := &findings{path: path}
	root := tree(data, found)
	if err := found.err(); err != nil {
		return err
	}
	if root.Kind != yaml.MappingNode {
		return errNoMapping
	}
	if userEntry(root, name) == nil {
		return fmt.Errorf("%s: %w: %s", path, ErrNoUser, name)
	}
	if edit == nil {
		return nil
	}
	out, err := edit(data, root)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := passesStill(data, out, path); err != nil {
		return err
	}
	return replaceFile(path, out)
}

// userEntry is the entry of a user; nil means there is none.
func userEntry(root *yaml.Node, name string) *yaml.Node {
	users := (place{node: root}).key("users").node
	if users == root {
		return nil
	}
	for _, item := range users.Content {
		if n := (place{node: item}).key("name").node; n != item && n.Value == name {
			return item
		}
	}
	return nil
}

// asTree returns the text that an edit makes where that says what the tree, which has been changed, says; else the
// tree's own.
func asTree(root *yaml.Node, edited func() []byte) ([]byte, error) {
	whole, err := encoded(root)
	if err != nil {
		return nil, err
	}
	var want, have any
	if err := yaml.Unmarshal(whole, &want); err != nil {
		return nil, err
	}
	if text := edited(); text != nil && yaml.Unmarshal(text, &have) == nil && reflect.DeepEqual(want, have) {
		return text, nil
	}
	return whole, nil
}

// cut is a part of the file's text: whole lines, or an item of a list in brackets on its line.
type cut struct {
	from, to int // lines, from 1
	word     *yaml.Node
}

// without takes items out of a list, and says what that is in the text.
func without(list *yaml.Node, gone func(*yaml.Node) bool) (cuts []cut) {
	if list.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range list.Content {
		if !gone(item) {
			continue
		}
		if c := (cut{from: item.Line, to: deepest(item)}); list.Style&yaml.FlowStyle != 0 {
			cuts = append(cuts, cut{from: item.Line, to: item.Line, word: item})
		} else {
			cuts = append(cuts, c)
		}
	}
	list.Content = slices.DeleteFunc(list.Content, gone)
	return cuts
}

// withoutKey takes a key out of a mapping.
func withoutKey(mapping *yaml.Node, key string) []cut {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if k, value := mapping.Content[i], mapping.Content[i+1]; k.Value == key {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
			return []cut{{from: k.Line, to: deepest(value)}}
		}
	}
	return nil
}

// cutOut cuts, from the end of the text to its beginning.
func cutOut(data []byte, cuts []cut) []byte {
	lines := strings.SplitAfter(string(data), "\n")
	slices.SortFunc(cuts, func(a, b cut) int { return b.from - a.from })
	for _, c := range cuts {
		if c.word == nil {
			lines = slices.Delete(lines, c.from-1, c.to)
			continue
		}
		runes := []rune(lines[c.from-1])
		before, after := string(runes[:c.word.Column-1]), string(runes[c.word.Column-1:])
		rest, ok := strings.CutPrefix(after, c.word.Value)
		if !ok {
			return nil
		}
		if next, ok := strings.CutPrefix(strings.TrimLeft(rest, " "), ","); ok {
			rest = strings.TrimLeft(next, " ")
		} else if last, ok := strings.CutSuffix(strings.TrimRight(before, " "), ","); ok {
			before = last
		}
		lines[c.from-1] = before + rest
	}
	return []byte(strings.Join(lines, ""))
}
