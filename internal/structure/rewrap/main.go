// Command rewrap breaks comment lines of Go files that are longer than 120 columns, without changing a word: the
// paragraph of such a line is filled anew. Directives, code, lists and tables in comments stay as they are, and so do
// paragraphs of short lines. With -trailing a comment behind code moves above a line that is too long with it. It
// writes the files that it is given, or those of the directories.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/internal/structure"
)

func main() {
	trailing := flag.Bool("trailing", false, "move comments behind code above lines that are too long with them")
	flag.Parse()
	var errs []error
	for _, root := range flag.Args() {
		errs = append(errs, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "/testdata/") {
				return err
			}
			old, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			changed, err := rewrap(old, *trailing)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if bytes.Equal(old, changed) {
				return nil
			}
			return os.WriteFile(path, changed, d.Type().Perm()|0o644)
		}))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "rewrap:", err)
		os.Exit(1)
	}
}

// comment is a line comment and where it is.
type comment struct {
	line, at int // from 0: its line, and its first byte in that line
	text     string
}

// scan returns the line comments of a source, the words of all comments, and all other tokens.
func scan(source []byte) (comments []comment, words, code []string, err error) {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, func(at token.Position, message string) { err = errors.Join(err, fmt.Errorf("%s: %s", at, message)) }, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return comments, words, code, err
		}
		if kind != token.COMMENT {
			if kind != token.SEMICOLON || text == ";" { // others end lines
				code = append(code, kind.String()+" "+text)
			}
			continue
		}
		if strings.HasPrefix(text, "//") {
			p := file.Position(at)
			comments = append(comments, comment{p.Line - 1, p.Column - 1, text})
			text = text[2:]
		}
		words = append(words, strings.Fields(text)...)
	}
}

// rewrap returns a source in which comments are broken. It is an error if that would change more than where lines end.
func rewrap(source []byte, trailing bool) ([]byte, error) {
	comments, words, code, err := scan(source)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(source), "\n")
	out := make([][]string, len(lines)) // what becomes of each line
	for i, line := range lines {
		out[i] = []string{line}
	}
	var moved int
	for i := 0; i < len(comments); {
		c := comments[i]
		line := lines[c.line]
		indent := line[:c.at]
		if strings.TrimSpace(indent) != "" {
			if trailing && structure.Columns(line) > structure.MaxColumns && isText(c.text) {
				before := line[:len(line)-len(strings.TrimLeft(line, "\t"))]
				out[c.line] = append(filled(before, strings.Fields(c.text[2:])), strings.TrimRight(indent, " \t"))
				moved++
			}
			i++
			continue
		}
		block := i + 1 // of lines that follow one another
		for block < len(comments) && comments[block].line == comments[block-1].line+1 && comments[block].at == c.at && strings.TrimSpace(lines[comments[block].line][:c.at]) == "" {
			block++
		}
		if !isCode(lines, comments[i:block]) {
			for from := i; from < block; {
				to := from + 1
				if isText(comments[from].text) {
					for to < block && isText(comments[to].text) {
						to++
					}
					paragraph(out, lines, indent, comments[from:to])
				}
				from = to
			}
		}
		i = block
	}
	var all []string
	for _, l := range out {
		all = append(all, l...)
	}
	result, err := format.Source([]byte(strings.Join(all, "\n")))
	if err != nil {
		return nil, err
	}
	_, wordsAfter, codeAfter, err := scan(result)
	if err != nil {
		return nil, err
	}
	if moved > 0 { // moved comments come before words of comments on the same line
		slices.Sort(words)
		slices.Sort(wordsAfter)
	}
	if !slices.Equal(words, wordsAfter) || !slices.Equal(code, codeAfter) {
		return nil, errors.New("more than the ends of lines would change")
	}
	return result, nil
}

var (
	list   = regexp.MustCompile(`^// ([-*+•]|\d+[.)]|#+|\|)( |$)`)
	output = regexp.MustCompile(`(?i)^// ?(unordered )?output:`)
	// begins are words that mean something else at the beginning of a line.
	begins = regexp.MustCompile(`(?i)^([-*+•#|]+|\d+[.)]|\+build|nolint.*|go:.*|line|export|output:|unordered|deprecated:|//.*)$`)
)

// isText reports whether a line comment is a line of a paragraph: not empty, not indented, no directive, list, heading
// or table.
func isText(text string) bool {
	return len(text) > 3 && strings.HasPrefix(text, "// ") && text[3] != ' ' && text[3] != '\t' && !strings.HasPrefix(text, "// +build") &&
		!strings.HasPrefix(text, "// |") && !list.MatchString(text)
}

// isCode reports whether a block of comments is the output of an example or what cgo compiles.
func isCode(lines []string, block []comment) bool {
	after := block[len(block)-1].line + 1
	return slices.ContainsFunc(block, func(c comment) bool { return output.MatchString(c.text) }) ||
		after < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[after]), `import "C"`)
}

// paragraph fills a paragraph anew if one of its lines is too long.
func paragraph(out [][]string, lines []string, indent string, part []comment) {
	if !slices.ContainsFunc(part, func(c comment) bool { return structure.Columns(lines[c.line]) > structure.MaxColumns }) {
		return
	}
	var words []string
	for _, c := range part {
		words = append(words, strings.Fields(c.text[2:])...)
		out[c.line] = nil
	}
	out[part[0].line] = filled(indent, words)
}

// filled breaks words into comment lines that are as long as they may be.
func filled(indent string, words []string) (lines []string) {
	for from := 0; from < len(words); {
		line, to := indent+"// "+words[from], from+1
		for to < len(words) && structure.Columns(line+" "+words[to]) <= structure.MaxColumns {
			line += " " + words[to]
			to++
		}
		for last := to; to < len(words) && begins.MatchString(words[to]); to-- {
			if to == from+1 { // it cannot be helped
				to = last
				break
			}
		}
		lines = append(lines, indent+"// "+strings.Join(words[from:to], " "))
		from = to
	}
	return lines
}
