package structure

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxColumns is how long a line of source or of a document may be; a tab has four columns.
const MaxColumns = 120

// Columns returns how long a line is.
func Columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// dialect are turns of phrase that readers do not know, with what to write instead.
var dialect = []struct {
	words   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(tells?|told|telling) (whether|if)\b`), "reports whether"},
	{regexp.MustCompile(`[;,.(] ?(nil|empty|""|0|false|true|none): `), "or nil if …"},
	{regexp.MustCompile(`\b(hangs?|hung|hanging) on\b`), "depends on"},
	{regexp.MustCompile(`\b(is|are) described at\b`), "see …"},
	{regexp.MustCompile(`\btold\b`), "reported, named, sent"},
	{regexp.MustCompile(`\bstands?\b`), "is, is written, means"},
	{regexp.MustCompile(`\b[Ww]hat (\w+ ){1,4}brings\b`), "the noun"},
}

// Worded is how many phrases of the dialect comments and documents have, and how many lines are too long.
type Worded struct{ Phrases, Long int }

// Words counts them in the Go files and documents that git knows below root, by their uppermost directories. each is
// called for each phrase.
func Words(root string, each func(file string, line int, phrase, instead string)) (map[string]Worded, error) {
	cmd := exec.Command("git", "ls-files", "-z", "*.go", "*.md")
	cmd.Dir = root
	names, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	all := map[string]Worded{}
	for _, name := range strings.Split(strings.Trim(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // it is about to be removed
		}
		if err != nil {
			return nil, err
		}
		above, _, below := strings.Cut(name, "/")
		if !below {
			above = "."
		}
		counted := all[above]
		prose, long := document(string(text))
		if strings.HasSuffix(name, ".go") {
			prose, long = source(text)
		}
		counted.Long += long
		for i, line := range prose {
			for _, d := range dialect {
				for _, phrase := range d.words.FindAllString(line, -1) {
					counted.Phrases++
					each(name, i+1, phrase, d.instead)
				}
			}
		}
		all[above] = counted
	}
	return all, nil
}

// source returns the comments of a Go file by lines, and how many lines are too long.
func source(text []byte) (prose []string, long int) {
	lines := strings.Split(string(text), "\n")
	for _, line := range lines {
		if Columns(line) > MaxColumns {
			long++
		}
	}
	prose = make([]string, len(lines))
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for at, kind, comment := s.Scan(); kind != token.EOF; at, kind, comment = s.Scan() {
		if kind == token.COMMENT {
			for i, line := range strings.Split(comment, "\n") {
				prose[file.Line(at)-1+i] += line
			}
		}
	}
	return prose, long
}

// document returns the prose of a document by lines, and how many lines are too long. Tables and what is fenced are
// neither.
func document(text string) (prose []string, long int) {
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "|") {
			line = ""
		}
		if Columns(line) > MaxColumns {
			long++
		}
		prose = append(prose, line)
	}
	return prose, long
}
