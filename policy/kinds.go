package policy

import (
	"fmt"
	"regexp"
	"strings"
)

// fewLines is how many lines of one kind a summary has in full.
const fewLines = 3

// Summary gathers what is said of a policy by kind: of many lines that differ in its names and in numbers alone it has
// the first one, and their number. Kinds and lines keep their order.
func (p *Policy) Summary(lines []string) (list []string) {
	for _, kind := range p.byKind(lines) {
		if len(kind) > fewLines {
			kind = []string{fmt.Sprintf("%s (and %d more of this kind)", kind[0], len(kind)-1)}
		}
		list = append(list, kind...)
	}
	return list
}

func (p *Policy) byKind(lines []string) (kinds [][]string) {
	names := map[string]bool{}
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			for _, name := range []string{t.Name, t.Source.Name, t.UnitColumn} {
				names[name] = true
			}
			for _, c := range append(t.Keys[:len(t.Keys):len(t.Keys)], t.Columns...) {
				names[c.Name], names[c.Source] = true, true
			}
		}
	}
	at := map[string]int{}
	for _, line := range lines {
		kind := wordOf.ReplaceAllStringFunc(line, func(word string) string {
			if names[word] || strings.Trim(word, "0123456789") == "" {
				return "…"
			}
			return word
		})
		kind = namesOf.ReplaceAllString(kind, "…")
		i, known := at[kind]
		if !known {
			i = len(kinds)
			at[kind], kinds = i, append(kinds, nil)
		}
		kinds[i] = append(kinds[i], line)
	}
	return kinds
}

// wordOf finds what may be a name or a number, and namesOf a list of them.
var (
	wordOf  = regexp.MustCompile(`[\pL\pN_$]+`)
	namesOf = regexp.MustCompile(`…([.,; ]+…)+`)
)
