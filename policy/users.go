package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// AddUser writes a user into a policy file, or gives one that is there a new verifier (admin then grants the right and
// never takes it away). The rest of the file stays as it is, comments and layout included; the file is replaced
// atomically. The other parts of the policy need not pass.
func AddUser(path, name, verifier string, admin bool) error {
	if err := checkVerifier(verifier); err != nil {
		return err
	}
	found := &findings{path: path}
	if checkName(name, place{found: found}, "user's name"); name == "*" {
		found.add(nil, "user's name is *, which stands for each other user in budgets")
	}
	if err := found.err(); err != nil {
		return err
	}
	data, err := load(path)
	if err != nil {
		return err
	}
	root := tree(data, found)
	if err := found.err(); err != nil {
		return err
	}
	changed, err := withUser(data, root, userLine{name, verifier, admin})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := hasUser(changed, name, verifier); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := passesStill(data, changed, path); err != nil {
		return err
	}
	return replaceFile(path, changed)
}

// passesStill tells that a file that passed before passes afterwards: of a user who logs in by something else a
// password is refused.
func passesStill(data, changed []byte, path string) error {
	if _, before := Parse(data, path); before != nil {
		return nil
	}
	if _, after := Parse(changed, path); after != nil {
		return fmt.Errorf("without the change the policy passes, with it: %w", after)
	}
	return nil
}

// userLine is one user as a line of the file.
type userLine struct {
	name, verifier string
	admin          bool
}

func (u userLine) String() string {
	text := fmt.Sprintf("{name: %s, password: %q", quoteName(u.name), u.verifier)
	if u.admin {
		text += ", admin: true"
	}
	return text + "}"
}

// quoteName quotes a name that YAML would read as something else.
func quoteName(name string) string {
	var n yaml.Node
	plain := !strings.ContainsAny(name, " ,:#[]{}&*!|>'\"%@`?-")
	if plain && yaml.Unmarshal([]byte(name), &n) == nil && len(n.Content) == 1 && n.Content[0].Tag == "!!str" && n.Content[0].Value == name {
		return name
	}
	return fmt.Sprintf("%q", name)
}

var errNoMapping = errors.New("the file is not a policy: its top level is not a mapping")

// withUser edits the text at the position that the parsed tree names. Lists in brackets, and entries that are not laid
// out as dpproxy writes them, are written again from the tree, which keeps comments but not spacing.
func withUser(data []byte, root *yaml.Node, u userLine) ([]byte, error) {
	if root.Kind != yaml.MappingNode {
		return nil, errNoMapping
	}
	at := place{node: root, found: &findings{}}
	users := at.key("users").node
	if users == root { // no such key
		text := bytes.TrimRight(data, "\n")
		return append(text, []byte("\nusers:\n  - "+u.String()+"\n")...), nil
	}
	if users.Kind != yaml.SequenceNode && !(users.Kind == yaml.ScalarNode && users.ShortTag() == "!!null") {
		return nil, errors.New("users is not a list")
	}
	for _, item := range users.Content {
		entry := place{node: item}
		if entry.key("name").node.Value != u.name {
			continue
		}
		if out, ok := inPlace(data, entry.key("password").node, u.verifier); ok && (!u.admin || entry.key("admin").node.Value == "true") {
			return out, nil
		}
		return rewritten(root, item, u)
	}
	if users.Kind == yaml.SequenceNode && users.Style&yaml.FlowStyle == 0 && len(users.Content) > 0 {
		return appended(data, users, u), nil
	}
	if out, ok := begun(data, users, u); ok {
		return out, nil
	}
	return rewritten(root, nil, u)
}

// begun writes the first user of a list that is written as [].
func begun(data []byte, users *yaml.Node, u userLine) ([]byte, bool) {
	lines := strings.SplitAfter(string(data), "\n")
	if users.Kind != yaml.SequenceNode || len(users.Content) > 0 {
		return nil, false
	}
	before, after, ok := strings.Cut(lines[users.Line-1], "[]")
	if !ok || strings.TrimSpace(before) != "users:" {
		return nil, false
	}
	lines[users.Line-1] = strings.TrimRight(strings.TrimRight(before, " ")+after, "\n") + "\n  - " + u.String() + "\n"
	return []byte(strings.Join(lines, "")), true
}

// inPlace exchanges the text of a scalar on its own line; a verifier needs no escapes, so its text is as it is.
func inPlace(data []byte, scalar *yaml.Node, text string) ([]byte, bool) {
	lines := strings.SplitAfter(string(data), "\n")
	if scalar.Kind != yaml.ScalarNode || scalar.Value == "" || scalar.Line > len(lines) {
		return nil, false
	}
	runes := []rune(lines[scalar.Line-1])
	if scalar.Column > len(runes) {
		return nil, false
	}
	before, after := string(runes[:scalar.Column-1]), string(runes[scalar.Column-1:])
	start := strings.Index(after, scalar.Value)
	if start < 0 || start > 1 {
		return nil, false
	}
	lines[scalar.Line-1] = before + after[:start] + text + after[start+len(scalar.Value):]
	return []byte(strings.Join(lines, "")), true
}

// appended writes the user on a line of its own after the last user of a list in block style.
func appended(data []byte, users *yaml.Node, u userLine) []byte {
	lines := strings.SplitAfter(string(data), "\n")
	last := deepest(users)
	if n := len(lines); !strings.HasSuffix(lines[last-1], "\n") {
		lines[min(last, n)-1] += "\n"
	}
	indent := strings.Repeat(" ", users.Column-1)
	return []byte(strings.Join(lines[:last], "") + indent + "- " + u.String() + "\n" + strings.Join(lines[last:], ""))
}

// deepest is the last line that a node reaches; lines of a folded scalar are its own, so a count of them is added.
func deepest(n *yaml.Node) int {
	last := n.Line
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last += strings.Count(n.Value, "\n")
	}
	for _, inner := range n.Content {
		last = max(last, deepest(inner))
	}
	return last
}

// rewritten encodes the tree with the user's entry changed or added.
func rewritten(root, entry *yaml.Node, u userLine) ([]byte, error) {
	var fresh yaml.Node
	if err := yaml.Unmarshal([]byte(u.String()), &fresh); err != nil {
		return nil, err
	}
	mapping := fresh.Content[0]
	if entry != nil {
		return changedEntry(root, entry, mapping)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "users" {
			continue
		}
		list := root.Content[i+1]
		list.Kind, list.Tag, list.Value = yaml.SequenceNode, "!!seq", ""
		list.Style &^= yaml.FlowStyle
		list.Content = append(list.Content, mapping)
	}
	return encoded(root)
}

// changedEntry copies the keys of fresh into entry.
func changedEntry(root, entry, fresh *yaml.Node) ([]byte, error) {
	for i := 0; i+1 < len(fresh.Content); i += 2 {
		key, value := fresh.Content[i], fresh.Content[i+1]
		old := (place{node: entry}).key(key.Value).node
		if old == entry {
			entry.Content = append(entry.Content, key, value)
			continue
		}
		old.Value, old.Tag, old.Style, old.Kind = value.Value, value.Tag, value.Style, value.Kind
	}
	return encoded(root)
}

func encoded(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// hasUser checks the text that will be written: it is YAML still, and the user is in it once.
func hasUser(data []byte, name, verifier string) error {
	var f struct {
		Users []struct{ Name, Password string }
	}
	if err := yaml.Unmarshal(data, &f); err != nil {
		return errors.New("the file's layout is too unusual to edit; add the user by hand")
	}
	n := 0
	for _, u := range f.Users {
		if u.Name == name && u.Password == verifier {
			n++
		}
	}
	if n != 1 {
		return errors.New("the file's layout is too unusual to edit; add the user by hand")
	}
	return nil
}

// replaceFile puts text in the place of a file, whole or not at all, with the file's own mode and owner: a service that
// runs as another user than the operator must still be able to read it.
func replaceFile(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".policy-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("%s belongs to somebody else, and would no longer: %w", path, err)
		}
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

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
