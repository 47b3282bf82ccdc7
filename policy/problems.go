package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is one thing that is wrong with a policy file.
type Problem struct {
	Path         string
	Line, Column int // from 1; 0 means the file as a whole
	Text         string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Text)
}

// Problems is all that is wrong with a policy file, in the order of its lines. It is an error.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// findings collects problems while a file is checked.
type findings struct {
	path     string
	problems Problems
}

func (f *findings) add(node *yaml.Node, text string) {
	p := Problem{Path: f.path, Text: text}
	if node != nil {
		p.Line, p.Column = node.Line, node.Column
	}
	if !slices.Contains(f.problems, p) {
		f.problems = append(f.problems, p)
	}
}

// err returns the problems sorted, or nil.
func (f *findings) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(f.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f.problems
}

// place is a position in the file, with the words that say where: "table people, column age".
type place struct {
	node  *yaml.Node
	words string
	found *findings
}

// key is the value of a key, or p's own position where the key is absent.
func (p place) key(name string) place {
	if p.node != nil && p.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			if p.node.Content[i].Value == name {
				return place{p.node.Content[i+1], p.words, p.found}
			}
		}
	}
	return p
}

// name is the key itself rather than its value.
func (p place) name(name string) place {
	if p.node != nil && p.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			if p.node.Content[i].Value == name {
				return place{p.node.Content[i], p.words, p.found}
			}
		}
	}
	return p
}

// item is the i-th item of a list.
func (p place) item(i int) place {
	if p.node != nil && p.node.Kind == yaml.SequenceNode && i < len(p.node.Content) {
		return place{p.node.Content[i], p.words, p.found}
	}
	return p
}

// within adds to the words that say where.
func (p place) within(kind, name string) place {
	if p.words != "" {
		p.words += ", "
	}
	p.words += kind
	if name != "" {
		p.words += " " + name
	}
	return p
}

// unwanted reports the keys that are given here and may not be, each named in the words.
func (p place) unwanted(words string, given map[string]bool) {
	for key, is := range given {
		if is {
			p.name(key).problem(words, key)
		}
	}
}

// problem reports what is wrong here.
func (p place) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.words != "" {
		text = p.words + ": " + text
	}
	p.found.add(p.node, text)
}
